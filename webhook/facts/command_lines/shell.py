"""The simple commands of a shell script, as words; a script is read, never run.

Knows quotes, comments, line continuations, here-documents, redirections, operators and reserved words. Parts that only
a shell could evaluate (`$(...)`, `${X:-1}`, globs) stay unchanged in their word. Source: POSIX.1-2024, Shell Command
Language; `function`, `select`, `&>` and `<<<` are bash's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.deadline import Deadline
from webhook.facts.command_lines.shell_words import Operator, ShellWord, split_into_tokens

_OPENS = frozenset(("if", "while", "until", "case", "for", "select", "{"))
_CLOSES = frozenset(("fi", "done", "esac", "}"))
_AMONG = frozenset(("then", "else", "elif", "do", "!", "time", "function"))
_WHOLE = frozenset(("case", "for", "select"))
_REDIRECTIONS = frozenset(("<", ">", ">>", ">|", "<>", ">&", "<&", "&>", "&>>", "<<<", "<<", "<<-"))
_CONDITIONAL = frozenset(("&&", "||", "|", "|&"))
_APART = frozenset(("|", "|&", "&"))

_NO_SIGNS: Final = bytes(set(range(256)).difference(b"(){}'\"`\\"))
"""All bytes of UTF-8 except the signs that are read one by one inside parentheses."""
_SIGN_S: Final = 3.5e-7
"""How long one of these signs takes: 60 KB of `$(` and `)`, 14 ms."""


class ShellCommand(Struct, frozen=True):
    """Words as written. `certain`: it runs once, in the script's own shell, in any case."""

    words: tuple[ShellWord, ...]
    certain: bool


def split_into_commands(script: str, deadline: Deadline | None = None) -> Iterator[ShellCommand]:
    """Yield the simple commands of a script, in order; assignments are commands too. The deadline is charged for every
    word.

    Raises:
        ValueError: a quote or a parenthesis is not closed, so that the words are not known.
    """
    nesting = _NestingOfCommand()
    words: list[ShellWord] = []
    target = False
    for token in (deadline or Deadline()).items_with_clock_checks(split_into_tokens(script)):
        if isinstance(token, ShellWord):
            if not target:
                words.append(token)
            target = False
        elif token in _REDIRECTIONS:
            target = True
        else:
            yield from nesting.finished_command(words, token)
            words, target = [], False
    yield from nesting.finished_command(words, "\n")


class _NestingOfCommand:
    """The context of a command: compound commands, parentheses, and the operator before it."""

    def __init__(self) -> None:
        self.compounds = self.parentheses = 0
        self.before: Operator = "\n"

    def finished_command(self, words: list[ShellWord], operator: Operator) -> Iterator[ShellCommand]:
        """Yield the command of these words, which ends at an operator."""
        rest = self._strip_reserved_words(words)
        if rest:
            alone = self.before not in _CONDITIONAL and operator not in _APART
            yield ShellCommand(tuple(rest), certain=alone and not self.compounds and not self.parentheses)
        if operator == "(":
            self.parentheses += 1
        elif operator == ")":
            self.parentheses = max(0, self.parentheses - 1)
        if words or operator != "\n":
            self.before = operator

    def _strip_reserved_words(self, words: list[ShellWord]) -> list[ShellWord]:
        """Return the words after those that open, close or divide compound commands."""
        index = 0
        while index < len(words):
            name = words[index].literal
            if name in _OPENS:
                self.compounds += 1
            elif name in _CLOSES:
                self.compounds = max(0, self.compounds - 1)
            elif name not in _AMONG:
                break
            if name in _WHOLE:
                break
            index += 2 if name == "function" else 1
        return words[index:]


_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]]*\])?(\+?)=")
_DECLARES = frozenset(("export", "declare", "typeset", "local", "readonly"))
_SETS = frozenset(("for", "select", "read", "unset", "mapfile", "readarray", "getopts", "let", "printf"))
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPEN = re.compile(r"[$`?*(]")


class ReadingBudget:
    """How much text may still be read and made while one command line is followed, and until when.

    Variables can double with every line, and scripts can run each other: commands that a kernel would not start are not
    read.
    """

    MOST = 2 * 1024 * 1024
    """Characters: the limit of Linux for arguments and environment together (a quarter of the stack of 8 MiB)."""

    def __init__(self, deadline: Deadline | None = None) -> None:
        self.deadline = deadline or Deadline()
        self.left = self.MOST

    def take(self, length: int) -> None:
        """Count text before it is read or made.

        Raises:
            ValueError: there is too much text.
        """
        self.left -= length
        if self.left < 0:
            raise ValueError("more text than a process can be given")
        self.deadline.spend(1 + length // 10)

    def take_script(self, script: str) -> None:
        """Count a script that is about to be split into words, which nothing interrupts.

        Raises:
            ValueError: there is too much text.
        """
        self.take(len(script))
        signs = script.encode("utf-8", "surrogatepass").translate(None, _NO_SIGNS)
        self.deadline.check_clock_before_slow_call(len(signs) * _SIGN_S)


class ScriptVariables:
    """The known values of a script's variables while its commands are read; `?` is a value that the script computes.

    `exported` are the variables that programs get, and `of_command` the variables that are set only for the last
    command.
    """

    def __init__(self, known: Mapping[str, str], reading: ReadingBudget | None = None) -> None:
        self.known = dict(known)
        self.own: set[str] = set()
        self.exported = set(known)
        self.of_command: dict[str, str] = {}
        self.reading = reading or ReadingBudget()

    def value(self, name: str) -> str | None:
        """Return the value of a variable; None if it is set elsewhere, such as in the image."""
        return "?" if name in self.own else self.known.get(name)

    def certain_values(self) -> dict[str, str]:
        """Return the values that are known for certain, for a script inside the script."""
        return {name: value for name, value in self.known.items() if name not in self.own}

    def values_for_program(self, names: Collection[str]) -> dict[str, str]:
        """Return the values of some variables as the program of the last command gets them."""
        exported = {name: self.value(name) for name in names if name in self.exported}
        values = {**exported, **{name: self.of_command[name] for name in names if name in self.of_command}}
        return {name: value for name, value in values.items() if value is not None}

    def assign_and_expand_command(self, command: ShellCommand) -> tuple[str, ...]:
        """Note a command's assignments, and return its words; no words for a command that only assigns."""
        self.of_command = {}
        count = 0
        while count < len(command.words) and _ASSIGNMENT.match(command.words[count].written):
            count += 1
        rest = command.words[count:]
        if not rest:
            self._assign_values(command.words, certain=command.certain)
            return ()
        self.of_command = dict(filter(None, map(self._assigned_value, command.words[:count])))
        name = rest[0].literal
        if name in _DECLARES:
            if name == "export" or (len(rest) > 1 and rest[1].literal == "-x"):
                self.exported.update(word.written.partition("=")[0] for word in rest[1:])
            self._assign_values(rest[1:], certain=command.certain)
            return ()
        if name in _SETS or rest[0].written.startswith("(("):
            self.own |= {each for word in rest for each in _IDENTIFIER.findall(word.written)}
            return ()
        words = tuple(each for word in rest for each in word.expand(self._value_for_expansion))
        if words and words[0] in ("source", "."):
            self.own |= self.known.keys()
            self.known.clear()
        return words

    def _value_for_expansion(self, name: str) -> str | None:
        """Return the value of a variable that is put into a word, and count its characters."""
        value = self.value(name)
        self.reading.take(len(value or ""))
        return value

    def _assign_values(self, words: tuple[ShellWord, ...], *, certain: bool) -> None:
        for name, value in filter(None, map(self._assigned_value, words)):
            if certain and value != "?":
                self.known[name] = value
                self.own.discard(name)
            else:
                self.own.add(name)

    def _assigned_value(self, word: ShellWord) -> tuple[str, str] | None:
        """Return the name and value of an assignment, `?` for what only a shell could tell; None for another word."""
        match = _ASSIGNMENT.match(word.written)
        if match is None:
            return None
        value = "".join(word.expand(self._value_for_expansion, splits=False))[match.end() :]
        is_known = not match[2] and not match[3] and not _OPEN.search(value)
        return match[1], value if is_known else "?"
