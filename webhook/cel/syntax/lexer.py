"""Splits an expression into tokens, and reads the values of literals.

The tokens are those of cel-go's CEL.g4 (v0.26): `0X1` is not a number, and `rb"…"` is not a literal. Escapes are
checked. Text that is not a token, such as an unterminated string, is recorded in `unread`, and the lexer continues.

Sources of the rules and messages for literals: cel-go v0.26 parser/unescape.go and parser/parser.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct, field

from webhook.cel.values import UInt

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
"""The kind of the last token, and the name of this token in messages."""


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(text: str) -> bool:
    """Return whether CEL reads the text as an unreserved name, as kubernetes v1.36 requires of variables."""
    return _IDENTIFIER.fullmatch(text) is not None and text not in RESERVED


class TokenColumns(Struct):
    """The tokens of one source, as parallel columns that end with an END token.

    Attributes:
        kinds: the spelling of operators and keywords; otherwise `name`, `int`, `uint`, `double`, `string`, `bytes` or
            `escaped`.
        texts: the spelling in the source.
        offsets: of the first character, from 0.
        unread: texts that are not tokens, with their offsets.
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
    """Return line (from 1) and column (from 0) of an offset."""
    return source.count("\n", 0, offset) + 1, offset - (source.rfind("\n", 0, offset) + 1)


# ---- literals


_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip
_ESCAPED = re.compile(
    r"\\(?:[xX](?P<byte>..)|[uU](?P<rune>(?<=u)....|(?<=U)........)|(?P<octal>[0-3]..)|(?P<simple>.))"
)


def string_value(text: str) -> str:
    """Return the value of a string token: escapes decoded, line ends as line feeds.

    Raises:
        ValueError: the code of an escape is not a Unicode character.
    """
    raw, body = _unquoted(text)
    return body if raw or "\\" not in body else _ESCAPED.sub(_decoded_escape, body)


def bytes_value(text: str) -> bytes:
    """Return the value of a bytes token: hexadecimal and octal escapes are bytes, Unicode escapes are errors."""
    raw, body = _unquoted(text[1:])
    if raw or "\\" not in body:
        return body.encode()
    value, end = bytearray(), 0
    for match in _ESCAPED.finditer(body):
        if match["rune"]:
            raise ValueError("unable to unescape string")
        value += body[end : match.start()].encode()
        value.append(ord(_decoded_escape(match)))
        end = match.end()
    return bytes(value + body[end:].encode())


def _unquoted(text: str) -> tuple[bool, str]:
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    body = text[width:-width]
    return raw, body.replace("\r\n", "\n").replace("\r", "\n") if "\r" in body else body


def _decoded_escape(match: re.Match[str]) -> str:
    if match["simple"]:
        return _SIMPLE[match["simple"]]
    code = int(match["octal"], 8) if match["octal"] else int(match["byte"] or match["rune"], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _int_value(text: str) -> int:
    sign, digits = (text[0], text[1:]) if text[0] == "-" else ("", text)
    value = _whole_number(digits, "int")
    value = -value if sign else value
    if not -(2**63) <= value < 2**63:
        raise ValueError("invalid int literal")
    return value


def _uint_value(text: str) -> UInt:
    value = _whole_number(text[:-1], "uint")
    if value >= 2**64:
        raise ValueError("invalid uint literal")
    return UInt(value)


def _whole_number(digits: str, kind: str) -> int:
    if len(digits) > 40:  # such a number fits 64 bits only with leading zeros, and int() refuses thousands of digits
        digits = digits.lstrip("0") if digits[:2] != "0x" else "0x0" + digits[2:].lstrip("0")
        if len(digits) > 40:
            raise ValueError(f"invalid {kind} literal")
    return int(digits or "0", 16) if digits[:2] == "0x" else int(digits or "0")


def _double_value(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("invalid double literal")
    return value


LITERALS: dict[str, Callable[[str], object]] = {
    "int": _int_value,
    "uint": _uint_value,
    "double": _double_value,
    "string": string_value,
    "bytes": bytes_value,
    "true": lambda _: True,
    "false": lambda _: False,
    "null": lambda _: None,
}
"""Functions that read the value of a token, by its kind. A function raises ValueError with a message. A minus sign
before a number is accepted.
"""
