"""The words and operators of a shell script; shell.py finds the words of each command.

One pass from left to right. Source: POSIX.1-2024, Shell Command Language, 2.2 Quoting and 2.3 Token Recognition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from webhook.text.caches import cache_for_short_texts

Operator: TypeAlias = str
"""`\\n`, `;`, `&&`, `<<`, `(` and their like."""

_OPERATOR: Final = re.compile(r"&>>|<<<|<<-|;;&|&&|\|\||;;|;&|\|&|&>|>>|>\||>&|<&|<>|<<|[|&;()<>\n]")
_PLAIN: Final = re.compile(r"[^ \t\r\f\v\n\\'\"`$|&;()<>]+")
_ALONE: Final = re.compile(rf"(?!#){_PLAIN.pattern}(?=[ \t\n;])")
_BLANK: Final = re.compile(r"(?:[ \t\r\f\v]|\\\r?\n)+")
_QUOTED: Final = re.compile(r"[^\\\"`$]+")
_NAME: Final = re.compile(
    r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?-)[^\s{}$`'\"\\]*)?\}|([0-9@*#?$!-]))"
)
"""A variable, with a plain default at most: `$NAME`, `${NAME}`, `${NAME:-4}`."""
_NESTED: Final = re.compile(r"[(){}'\"`\\]")
_PAIRS: Final = {"(": ")", "{": "}"}
_LOOKS: Final = 32
"""The most places of one sign that are read; more places cost as much as a search for several signs."""
_DEEPEST: Final = 40
"""Quotes inside parentheses inside quotes; people stop at three."""


class WordPart(NamedTuple):
    """A part of a word: literal text, or a variable if `name` is set, which is split unless `quoted`.

    `has_default`: the text has a replacement for an empty variable.
    """

    text: str
    name: str = ""
    quoted: bool = False
    has_default: bool = False


class ShellWord(Struct, frozen=True):
    """One word of a command. `written`: without its quotes, with variables unchanged.

    `literal`: its text if no part is quoted or a variable, as for reserved words; else "".
    """

    parts: tuple[WordPart, ...]
    written: str
    literal: str

    def expand(self, value: Callable[[str], str | None], *, splits: bool = True) -> Sequence[str]:
        """Return the words that this one becomes; a variable without a known value stays unchanged."""
        if self.literal:
            return (self.literal,)
        fields: list[list[str]] = [[]]
        for part in self.parts:
            known = value(part.name) if part.name else None
            known = None if part.has_default and known in ("", "?") else known
            pieces = [part.text if known is None else known]
            if known is not None and splits and not part.quoted:
                pieces = known.split()
            for index, piece in enumerate(pieces):
                if index:
                    fields.append([])
                fields[-1].append(piece)
        return ["".join(field) for field in fields if field]


def join_word_parts(parts: Sequence[WordPart]) -> ShellWord:
    """Join the parts of a shell word into one word."""
    written = "".join([part.text for part in parts])
    is_literal = not any(part.quoted or part.name for part in parts)
    return ShellWord(tuple(parts), written, written if is_literal else "")


def _find_newline_and_sign(text: str, sign: str, start: int) -> int:
    """Return the next place of a text that begins with a newline, -1 if there is none; faster than `str.find` for long
    scripts. CPython finds one sign fifty times as fast as several.
    """
    at, first = start + 1, sign[1:2]
    for _ in range(_LOOKS if first else 0):
        at = text.find(first, at)
        if at < 0 or text.startswith(sign, at - 1):
            return max(-1, at - 1)
        at += 1
    return text.find(sign, max(start, at - 1))


@cache_for_short_texts(1 << 20)
def _plain_word(text: str) -> ShellWord:
    """Return a word of one stretch, made once: scripts repeat themselves."""
    return join_word_parts([WordPart(text)])


def split_into_tokens(script: str) -> Iterator[ShellWord | Operator]:
    """Yield the words and operators of a script, without comments and the bodies of here-documents.

    Raises:
        ValueError: a quote or a parenthesis is not closed, or they are nested beyond reason.
    """
    return _ShellTokenizer(script).tokens()


class _ShellTokenizer:
    def __init__(self, script: str) -> None:
        self.text = script
        self.at = 0
        self.depth = 0
        self.documents: list[tuple[str, bool]] = []  # delimiter, whether tabs before it are dropped

    def tokens(self) -> Iterator[ShellWord | Operator]:
        document: Operator = ""
        while self.at < len(self.text):
            if not document and (plain := _ALONE.match(self.text, self.at)):
                self.at = plain.end()
                yield _plain_word(plain[0])
                continue
            if self._take_match(_BLANK):
                continue
            if self.text[self.at] == "#":
                self.at = self._find_closing_text("\n", len(self.text))
            elif self.text.startswith(("<(", ">("), self.at):
                yield join_word_parts([WordPart(self.text[self.at] + self._read_until_closed(self.at + 1))])
            elif self.text.startswith("((", self.at):
                yield join_word_parts([WordPart(self._read_until_closed(self.at))])
            elif operator := self._take_match(_OPERATOR):
                if operator == "\n":
                    self._skip_here_documents()
                document = operator if operator in ("<<", "<<-") else ""
                yield operator
            elif read := self._read_word():
                if document:
                    self.documents.append((read.written, document == "<<-"))
                    document = ""
                yield read

    def _take_match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match[0] if match else ""

    def _find_closing_text(self, text: str, default: int = -1) -> int:
        at = self.text.find(text, self.at)
        if at < 0 and default < 0:
            raise ValueError(f"{text} is not closed")
        return default if at < 0 else at

    def _skip_here_documents(self) -> None:
        """Skip here-documents, which begin after the line that asks for them, and end at a line that is their
        delimiter.
        """
        for delimiter, tabs in self.documents:
            self.at = self._end_of_here_document(delimiter, "\n" if tabs else f"\n{delimiter}", tabs=tabs)
        self.documents.clear()

    def _end_of_here_document(self, delimiter: str, sign: str, *, tabs: bool) -> int:
        """Return where the line after the delimiter begins; only lines that begin with `sign` may be it."""
        start = self.at - 1
        while (start := _find_newline_and_sign(self.text, sign, start)) >= 0:
            end = self.text.find("\n", start + 1)
            line = self.text[start + 1 : end if end >= 0 else len(self.text)].rstrip("\r")
            if (line.lstrip("\t") if tabs else line) == delimiter:
                return end + 1 if end >= 0 else len(self.text)
            start += 1
        return len(self.text)

    def _read_word(self) -> ShellWord | None:
        """Read one word; None for the number of a file before `<` or `>`."""
        parts: list[WordPart] = []
        while self.at < len(self.text):
            if plain := self._take_match(_PLAIN):
                parts.append(WordPart(plain))
                continue
            match self.text[self.at]:
                case "'":
                    parts.append(self._read_single_quoted())
                case '"':
                    parts.extend(self._read_double_quoted())
                case "\\":
                    parts.append(self._read_escaped())
                case "$" | "`":
                    parts.append(self._read_expansion(quoted=False))
                case "(" if parts and parts[-1].text.endswith("="):
                    parts.append(WordPart(self._read_until_closed(self.at)))
                case _:
                    break
        whole = join_word_parts(parts)
        is_file = whole.literal.isdigit() and self.text[self.at : self.at + 1] in ("<", ">")
        return None if is_file else whole

    def _read_single_quoted(self) -> WordPart:
        self.at += 1
        end = self._find_closing_text("'")
        text, self.at = self.text[self.at : end], end + 1
        return WordPart(text, quoted=True)

    def _read_double_quoted(self) -> Iterator[WordPart]:
        self.at += 1
        yield WordPart("", quoted=True)
        while self.at < len(self.text):
            if plain := self._take_match(_QUOTED):
                yield WordPart(plain, quoted=True)
                continue
            match self.text[self.at]:
                case '"':
                    self.at += 1
                    return
                case "\\":
                    kept = "" if self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n") else "\\"
                    yield WordPart(kept + self._read_escaped().text, quoted=True)
                case _:
                    yield self._read_expansion(quoted=True)
        raise ValueError('" is not closed')

    def _read_escaped(self) -> WordPart:
        """Read a backslash and what it quotes; before a newline both go."""
        sign, self.at = self.text[self.at + 1 : self.at + 2], self.at + 2
        return WordPart("" if sign == "\n" else sign, quoted=sign != "\n")

    def _read_expansion(self, *, quoted: bool) -> WordPart:
        """Read what follows a `$` or a backquote: a variable by its name, anything else unchanged."""
        start = self.at
        if match := _NAME.match(self.text, start):
            self.at = match.end()
            return WordPart(match[0], match[1] or match[2] or "", quoted, bool(match[3]))
        if self.text[start] == "`":
            self.at += 1
            self.at = self._find_closing_text("`") + 1
            return WordPart(self.text[start : self.at], quoted=quoted)
        if self.text.startswith(("$(", "${"), start):
            return WordPart("$" + self._read_until_closed(start + 1), quoted=quoted)
        self.at += 1
        if not quoted and self.text[self.at : self.at + 1] == "'":
            return self._read_single_quoted()
        return WordPart("$", quoted=quoted)

    def _read_until_closed(self, start: int) -> str:
        """Read everything from a parenthesis or brace to its closing counterpart."""
        self.at, self.depth = start + 1, self.depth + 1
        if self.depth > _DEEPEST:
            raise ValueError("too deep")
        closers = [_PAIRS[self.text[start]]]
        while closers:
            match = _NESTED.search(self.text, self.at)
            if match is None:
                raise ValueError(f"{self.text[start]} is not closed")
            self.at = match.end()
            self._step_inside_nesting(match[0], closers)
        self.depth -= 1
        return self.text[start : self.at]

    def _step_inside_nesting(self, sign: str, closers: list[str]) -> None:
        match sign:
            case "\\":
                self.at += 1
            case "'":
                self.at = self._find_closing_text("'") + 1
            case '"':
                self.at -= 1
                for _ in self._read_double_quoted():
                    pass
            case _ if sign == closers[-1]:
                closers.pop()
            case "(" | "{":
                closers.append(_PAIRS[sign])
            case _:
                pass
