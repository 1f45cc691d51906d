"""Splits the text of an expression into tokens. Knows the spelling of CEL, not its grammar.

The tokens are those of cel-go's CEL.g4 (v0.26): hexadecimal only after a lower-case `0x`, a `b` before an `r` in
prefixes, escapes checked while reading. A character that begins no token is noted, and the lexer continues after it.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
_TEXT = (
    rf'"""(?:[^\\]|{_ESCAPE})*?"""'
    rf"|'''(?:[^\\]|{_ESCAPE})*?'''"
    rf'|"(?:[^\\"\n\r]|{_ESCAPE})*"'
    rf"|'(?:[^\\'\n\r]|{_ESCAPE})*'"
    r'|[rR](?:"""(?s:.)*?"""|\'\'\'(?s:.)*?\'\'\'|"[^"\n\r]*"|\'[^\'\n\r]*\')'
)
_TOKEN = re.compile(
    r"(?P<space>(?:[ \t\r\n\f]+|//[^\n]*)+)"
    rf"|(?P<bytes>[bB](?:{_TEXT}))"
    rf"|(?P<string>{_TEXT})"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])"
    r"|(?P<int>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<operator>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,\[\]{}()])"
    r"|(?P<escaped>`[A-Za-z0-9_.\-/ ]+`)"
    rf"|(?P<bad>[&|=](?s:.)?|\"(?:[^\\\"\n\r]|{_ESCAPE})*\\?(?s:.)?|'(?:[^\\'\n\r]|{_ESCAPE})*\\?(?s:.)?|(?s:.))"
)
KEYWORDS = frozenset({"in", "true", "false", "null"})
RESERVED = frozenset(
    {
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
        "package", "namespace", "null", "return", "true", "var", "void", "while",
    }
)  # fmt: skip
END = "<EOF>"
"""The kind of the last token, and its name in messages."""


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(text: str) -> bool:
    """Return whether CEL reads the text as one name that is not reserved, as kubernetes v1.36 asks of variables too."""
    return _IDENTIFIER.fullmatch(text) is not None and text not in RESERVED


class TokenColumns(Struct):
    """The tokens of one source, as three parallel columns that end with an END token.

    kinds hold the token's spelling for operators and keywords, else `name`, `int`, `uint`, `double`, `string`, `bytes`,
    `escaped`; texts its spelling in the source; offsets its first character, from 0. unread is text that is not a
    token, with its offset.
    """

    kinds: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    unread: list[tuple[str, int]] = field(default_factory=list)


def tokenize(source: str) -> TokenColumns:
    """Split the source into tokens."""
    tokens = TokenColumns()
    kinds, texts, offsets = tokens.kinds, tokens.texts, tokens.offsets
    for match in _TOKEN.finditer(source):
        kind = match.lastgroup
        if kind == "space":
            continue
        text = match.group()
        if kind == "operator" or (kind == "name" and text in KEYWORDS):
            kind = text
        elif kind == "bad":
            tokens.unread.append((text, match.start()))
            continue
        assert kind is not None
        kinds.append(kind)
        texts.append(text)
        offsets.append(match.start())
    kinds.append(END)
    texts.append(END)
    offsets.append(len(source))
    return tokens


def line_and_column(source: str, offset: int) -> tuple[int, int]:
    """Return line from 1 and column from 0 of a character offset."""
    return source.count("\n", 0, offset) + 1, offset - (source.rfind("\n", 0, offset) + 1)
