"""The words and operators that a shell script is made of; shell.py says which words are one command.

One pass from left to right. Source: POSIX.1-2024, Shell Command Language, 2.2 Quoting and 2.3 Token Recognition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from webhook.short_texts import kept_for_short_texts

Operator: TypeAlias = str
"""`\\n`, `;`, `&&`, `<<`, `(` and their like."""

_OPERATOR: Final = re.compile(r"&>>|<<<|<<-|;;&|&&|\|\||;;|;&|\|&|&>|>>|>\||>&|<&|<>|<<|[|&;()<>\n]")
_PLAIN: Final = re.compile(r"[^ \t\r\f\v\n\\'\"`$|&;()<>]+")
_ALONE: Final = re.compile(rf"(?!#){_PLAIN.pattern}(?=[ \t\n;])")
_BLANK: Final = re.compile(r"(?:[ \t\r\f\v]|\\\r?\n)+")
_QUOTED: Final = re.compile(r"[^\\\"`$]+")
_NAME: Final = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\}|([0-9@*#?$!-]))")
_NESTED: Final = re.compile(r"[(){}'\"`\\]")
_PAIRS: Final = {"(": ")", "{": "}"}
_LOOKS: Final = 32
"""Places of one sign that are looked at; more of them cost as much as looking for several signs."""
_DEEPEST: Final = 40
"""Quotes inside parentheses inside quotes; people stop at three."""


class Part(NamedTuple):
    """A stretch of a word: text as it is, or where `name` is set a variable, which is split unless `quoted`."""

    text: str
    name: str = ""
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command. `written`: without its quotes, variables as they are written.

    `literal`: what it says where nothing of it is quoted or a variable, as reserved words must be; else "".
    """

    parts: tuple[Part, ...]
    written: str
    literal: str

    def expand(self, value: Callable[[str], str | None], *, splits: bool = True) -> Sequence[str]:
        """Return the words that this one becomes; a variable without a known value stays as it is written."""
        if self.literal:
            return (self.literal,)
        fields: list[list[str]] = [[]]
        for part in self.parts:
            known = value(part.name) if part.name else None
            pieces = [part.text if known is None else known]
            if known is not None and splits and not part.quoted:
                pieces = known.split()
            for index, piece in enumerate(pieces):
                if index:
                    fields.append([])
                fields[-1].append(piece)
        return ["".join(field) for field in fields if field]


def join_word_parts(parts: Sequence[Part]) -> Word:
    """Join the parts of a shell word into one word."""
    written = "".join([part.text for part in parts])
    is_literal = not any(part.quoted or part.name for part in parts)
    return Word(tuple(parts), written, written if is_literal else "")


def _find_line(text: str, sign: str, start: int) -> int:
    """Find a newline and what follows it, as `find` does: CPython finds one sign fifty times as fast as several."""
    at, first = start + 1, sign[1:2]
    for _ in range(_LOOKS if first else 0):
        at = text.find(first, at)
        if at < 0 or text.startswith(sign, at - 1):
            return max(-1, at - 1)
        at += 1
    return text.find(sign, max(start, at - 1))


@kept_for_short_texts(1 << 20)
def _plain(text: str) -> Word:
    """Return a word of one stretch, made once: scripts repeat themselves."""
    return join_word_parts([Part(text)])


def split_into_tokens(script: str) -> Iterator[Word | Operator]:
    """Yield the words and operators of a script, without comments and the bodies of here-documents.

    Raises:
        ValueError: a quote or a parenthesis is not closed, or they are nested beyond reason.
    """
    return _Reader(script).tokens()


class _Reader:
    def __init__(self, script: str) -> None:
        self.text = script
        self.at = 0
        self.depth = 0
        self.documents: list[tuple[str, bool]] = []  # delimiter, whether tabs before it are dropped

    def tokens(self) -> Iterator[Word | Operator]:
        document: Operator = ""
        while self.at < len(self.text):
            if not document and (plain := _ALONE.match(self.text, self.at)):
                self.at = plain.end()
                yield _plain(plain[0])
                continue
            if self._take(_BLANK):
                continue
            if self.text[self.at] == "#":
                self.at = self._find("\n", len(self.text))
            elif self.text.startswith(("<(", ">("), self.at):
                yield join_word_parts([Part(self.text[self.at] + self._nested(self.at + 1))])
            elif self.text.startswith("((", self.at):
                yield join_word_parts([Part(self._nested(self.at))])
            elif operator := self._take(_OPERATOR):
                if operator == "\n":
                    self._skip_documents()
                document = operator if operator in ("<<", "<<-") else ""
                yield operator
            elif read := self._word():
                if document:
                    self.documents.append((read.written, document == "<<-"))
                    document = ""
                yield read

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match[0] if match else ""

    def _find(self, text: str, default: int = -1) -> int:
        at = self.text.find(text, self.at)
        if at < 0 and default < 0:
            raise ValueError(f"{text} is not closed")
        return default if at < 0 else at

    def _skip_documents(self) -> None:
        """Skip here-documents, which begin after the line that asks for them, and end at a line that is their
        delimiter.
        """
        for delimiter, tabs in self.documents:
            self.at = self._after_document(delimiter, "\n" if tabs else f"\n{delimiter}", tabs=tabs)
        self.documents.clear()

    def _after_document(self, delimiter: str, sign: str, *, tabs: bool) -> int:
        """Return where the line after the delimiter begins; only lines that begin with `sign` may be it."""
        start = self.at - 1
        while (start := _find_line(self.text, sign, start)) >= 0:
            end = self.text.find("\n", start + 1)
            line = self.text[start + 1 : end if end >= 0 else len(self.text)].rstrip("\r")
            if (line.lstrip("\t") if tabs else line) == delimiter:
                return end + 1 if end >= 0 else len(self.text)
            start += 1
        return len(self.text)

    def _word(self) -> Word | None:
        """Read one word; None for the number of a file before `<` or `>`."""
        parts: list[Part] = []
        while self.at < len(self.text):
            if plain := self._take(_PLAIN):
                parts.append(Part(plain))
                continue
            match self.text[self.at]:
                case "'":
                    parts.append(self._single())
                case '"':
                    parts.extend(self._double())
                case "\\":
                    parts.append(self._escaped())
                case "$" | "`":
                    parts.append(self._expansion(quoted=False))
                case "(" if parts and parts[-1].text.endswith("="):
                    parts.append(Part(self._nested(self.at)))
                case _:
                    break
        whole = join_word_parts(parts)
        is_file = whole.literal.isdigit() and self.text[self.at : self.at + 1] in ("<", ">")
        return None if is_file else whole

    def _single(self) -> Part:
        self.at += 1
        end = self._find("'")
        text, self.at = self.text[self.at : end], end + 1
        return Part(text, quoted=True)

    def _double(self) -> Iterator[Part]:
        self.at += 1
        yield Part("", quoted=True)
        while self.at < len(self.text):
            if plain := self._take(_QUOTED):
                yield Part(plain, quoted=True)
                continue
            match self.text[self.at]:
                case '"':
                    self.at += 1
                    return
                case "\\":
                    kept = "" if self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n") else "\\"
                    yield Part(kept + self._escaped().text, quoted=True)
                case _:
                    yield self._expansion(quoted=True)
        raise ValueError('" is not closed')

    def _escaped(self) -> Part:
        """Read a backslash and what it quotes; before a newline both go."""
        sign, self.at = self.text[self.at + 1 : self.at + 2], self.at + 2
        return Part("" if sign == "\n" else sign, quoted=sign != "\n")

    def _expansion(self, *, quoted: bool) -> Part:
        """Read what follows a `$` or a backquote: a variable by its name, anything else as it is written."""
        start = self.at
        if match := _NAME.match(self.text, start):
            self.at = match.end()
            return Part(match[0], name=match[1] or match[2] or "", quoted=quoted)
        if self.text[start] == "`":
            self.at += 1
            self.at = self._find("`") + 1
            return Part(self.text[start : self.at], quoted=quoted)
        if self.text.startswith(("$(", "${"), start):
            return Part("$" + self._nested(start + 1), quoted=quoted)
        self.at += 1
        if not quoted and self.text[self.at : self.at + 1] == "'":
            return self._single()
        return Part("$", quoted=quoted)

    def _nested(self, start: int) -> str:
        """Read everything from one parenthesis or brace to the one that closes it."""
        self.at, self.depth = start + 1, self.depth + 1
        if self.depth > _DEEPEST:
            raise ValueError("too deep")
        closers = [_PAIRS[self.text[start]]]
        while closers:
            match = _NESTED.search(self.text, self.at)
            if match is None:
                raise ValueError(f"{self.text[start]} is not closed")
            self.at = match.end()
            self._step(match[0], closers)
        self.depth -= 1
        return self.text[start : self.at]

    def _step(self, sign: str, closers: list[str]) -> None:
        match sign:
            case "\\":
                self.at += 1
            case "'":
                self.at = self._find("'") + 1
            case '"':
                self.at -= 1
                for _ in self._double():
                    pass
            case _ if sign == closers[-1]:
                closers.pop()
            case "(" | "{":
                closers.append(_PAIRS[sign])
            case _:
                pass
