"""Reads the arguments of a server as the server's own parser does: argparse, click or clap.

A value is known only if the command line alone decides it. With `$NAME` in a script, or arguments that a script
passes on, the value is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple

from webhook.deadline import Deadline
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_non_text

_VARIABLE: Final = re.compile(r"[$`?]")
"""Characters of a value that only the shell or the kubelet knows. `?` replaces a value that a script computes."""
_MODEL: Final = re.compile(r"(?i)model")
_OPTIONS: Final = re.compile(r"(?i)args|opts|options|flags|extra|params|@|\*")
"""A variable with one of these texts in its name may contain further arguments besides the model."""
_NEGATIVE: Final = re.compile(r"-[0-9.]+")
_FLAG: Final = re.compile(r"--?[A-Za-z][A-Za-z0-9_-]*")
_DASHES_APART: Final = re.compile(r"--? +[A-Za-z][A-Za-z0-9_-]*")
"""Dashes with a space before the name of a flag. The parser does not read such a word as a flag."""
_WITHOUT_DASHES: Final = re.compile(r"[a-z][a-z0-9_-]*=.*|[a-z][a-z0-9]*([-_][a-z0-9]+)+")
_SEVERAL_VALUES: Final = frozenset(("--api-key", "--served-model-name"))
"""Flags with one value or several values."""
_LONGEST_NAME: Final = 100
_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]+(_[0-9]+)*\s*", re.ASCII)
"""The texts that Python's int() accepts."""
_LONGEST_NUMBER: Final = 40
_SHORTEST_BEGINNING: Final = len("--model")
_NUMERAL: Final = re.compile(r"[+-]?\.?[0-9]")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]{1,20}\.?[0-9]{0,20}|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)
"""The texts that Python's float() accepts, for numbers of a usual size."""
_NUMBERS: Final = frozenset(
    (
        *("tensor", "pipeline", "context", "prefill-context", "decode-context", "attention-data", "shards"),
        *("data", "data-local", "data-rank", "data-start-rank", "nodes", "node-rank", "gpus-per-node", "port"),
        *("grpc-port", "metrics-port"),
    )
)
"""The meanings of the flags with a whole number."""
_BOOLEANS: Final = ("true", "false")
_WHOLE: Final = re.compile(r"\+?[0-9]{1,6}", re.ASCII)
_ATTACHED: Final = re.compile(r"(-[a-z])([0-9]+)", re.ASCII)
"""A short flag of one letter with its number attached, such as `-p8080`. Every parser splits such a word."""
_FLAGS_OF_DOCKER: Final = {
    "--shm-size": "remove the flag, and mount an emptyDir with medium Memory at /dev/shm",
    "--gpus": "remove the flag, and request the GPUs in resources",
    "--ipc": "remove the flag, and mount an emptyDir with medium Memory at /dev/shm",
    "--ulimit": "remove the flag",
}
"""Flags of `docker run`, each with the fix. No server has these flags."""
_END: Final = "--"
"""The word after which every word is positional."""
_GLUED: Final = re.compile(r"(-[a-z]{2,3})([0-9]{1,4})", re.ASCII)
"""A short flag of several letters with its value attached. argparse does not split such a word."""


class RemovedFlag(NamedTuple):
    """A flag that a server no longer has: a release without the flag, and the fix."""

    release: tuple[int, int, int]
    fix: str


@dataclass(frozen=True, kw_only=True)
class FlagTable:
    """The flags of one server; servers.yaml explains the fields."""

    meanings: Mapping[str, str]
    switches: re.Pattern[str]
    bare: re.Pattern[str] | None = None
    positional_words: int = 0
    beginnings: bool = False
    underscores: bool = False
    any_value: bool = False
    also: Sequence[str] = ()
    valued: Sequence[str] = ()
    of_modules: Sequence[str] = ()
    mistakes: Mapping[str, str] = field(default_factory=dict)
    removed: Mapping[str, RemovedFlag] = field(default_factory=dict)

    @cached_property
    def of_programs(self) -> FlagTable:
        """Return the table without the flags that only Python modules of the server accept, not its programs."""
        if not self.of_modules:
            return self
        known = {name: meaning for name, meaning in self.meanings.items() if name not in self.of_modules}
        spellings = {meaning: name for name, meaning in reversed(known.items())}
        meant = {name: spellings[self.meanings[name]] for name in self.of_modules}
        return replace(self, meanings=known, of_modules=(), mistakes={**self.mistakes, **meant})

    @cached_property
    def long_names(self) -> tuple[str, ...]:
        """Return every long flag that may be abbreviated."""
        return tuple(name for name in (*self.meanings, *self.also) if name.startswith("--"))

    def flags_with_name(self, name: str) -> tuple[str, ...]:
        """Return the flags that a written name may mean. An abbreviation that is not unique means several flags."""
        if name in self.meanings or name in self.also or not self.beginnings or not name.startswith("--"):
            return (name,) if name in self.meanings else ()
        return tuple(each for each in self.long_names if each.startswith(name))

    def takes_no_value(self, name: str) -> bool:
        """Return whether a flag is a switch, which has no value."""
        return name not in self.valued and self.switches.fullmatch(name.lstrip("-")) is not None

    def refuses_value(self, name: str) -> bool:
        """Return whether every release of the server refuses this flag with `=` and a value."""
        return self.bare is not None and self.bare.fullmatch(name.lstrip("-")) is not None

    def fix_of_unknown_flag(self, name: str) -> str:
        """Return the fix for a flag that the server does not know; "" if no fix is known."""
        meant = self._meant_flag(name)
        return f"write {meant}" if meant else _FLAGS_OF_DOCKER.get(name, "")

    def _meant_flag(self, name: str) -> str:
        """Return the flag that the user probably meant by an unknown flag; "" without a probable flag."""
        glued = _GLUED.fullmatch(name)
        if glued is not None and name not in self.meanings and glued[1] in self.meanings:
            return f"{glued[1]} {glued[2]}"
        with_dashes = name.replace("_", "-")
        is_known = with_dashes in self.meanings or with_dashes in self.valued
        if is_known and with_dashes != name and not self.underscores:
            return with_dashes
        return self.mistakes.get(name, "") or self._abbreviated_flag(name)

    def _abbreviated_flag(self, name: str) -> str:
        """For a parser that accepts no abbreviations, return the flag that a name abbreviates; "" if the name
        abbreviates no flag, or flags with several meanings.
        """
        if self.beginnings or len(name) < _SHORTEST_BEGINNING or not name.startswith("--"):
            return ""
        longer = [each for each in self.long_names if each.startswith(name)]
        meanings = {self.meanings.get(each) for each in longer}
        return longer[0] if len(meanings) == 1 and None not in meanings else ""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The arguments of a server.

    Args:
        values: the values of known flags as written, by the meaning of the flag. A repeated flag has its last value.
            The value of a switch is "".
        spellings: the flags as written, by the meaning of the flag.
        positional: other words, in order.
        joined: words in which a space joins a flag and its value. The server does not know a flag with this name.
        ambiguous: abbreviations of several flags.
        repeated: known flags that are given more than once, as written.
        mistaken: flags that the server does not know, with the fix.
        removed: flags that some release of the server no longer has, by their names.
        valued_switches: flags that accept no value and have a value, such as `--enforce-eager=true` and
            `--enforce-eager true`.
        undashed: positional words with the name of a flag, after another positional word, such as `port=8000`.
        is_open: whether a running shell or another object may add more arguments.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)
    positional: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    mistaken: Mapping[str, str] = field(default_factory=dict)
    removed: Mapping[str, RemovedFlag] = field(default_factory=dict)
    valued_switches: tuple[str, ...] = ()
    undashed: tuple[str, ...] = ()
    is_open: bool = False

    @property
    def has_unknown_words(self) -> bool:
        """Return whether the server refuses a word. The effect of the other words is then unknown."""
        return bool(self.joined or self.ambiguous or self.mistaken or self.valued_switches or self.undashed)

    def has(self, *meanings: str) -> bool:
        """Return whether a flag with one of these meanings is given."""
        return not self.values.keys().isdisjoint(meanings)

    def number(self, meaning: str, default: int = 1) -> int | None:
        """Return the number that a flag sets, or the default without the flag; None if the number is not known."""
        if self.is_open:
            return None
        written = self.values.get(meaning)
        if written is None:
            return default
        return int(written) if _WHOLE.fullmatch(written) else None

    def mistyped_numbers(self) -> Iterator[tuple[str, str]]:
        """Yield each flag that needs a whole number but has another value, and this value."""
        for meaning, written in self.values.items():
            is_known = meaning in _NUMBERS and not (is_variable(written) or is_placeholder_for_non_text(written))
            if is_known and len(written) <= _LONGEST_NUMBER and not _INTEGER.fullmatch(written):
                yield self.spellings.get(meaning, meaning), written

    def refused_fraction(self, meaning: str) -> str:
        """Return the value of a flag if it is a number of at most 0 or above 1; "" otherwise."""
        written = self.text(meaning) or ""
        if not written or is_placeholder(written) or len(written) > _LONGEST_NUMBER:
            return ""
        is_fraction = _DECIMAL.fullmatch(written) is not None and 0 < float(written) <= 1
        return "" if is_fraction or not _NUMERAL.match(written) else written

    def text(self, meaning: str, default: str = "") -> str | None:
        """Return the value of a flag, or the default without the flag; None if the value is not known."""
        written = self.values.get(meaning)
        if written is None:
            return None if self.is_open else default
        return None if self.is_open or is_variable(written) else written

    def written(self, *meanings: str) -> tuple[str, ...]:
        """Return the given flags with these meanings, as written."""
        return tuple(self.spellings[meaning] for meaning in meanings if meaning in self.spellings)

    def spelling(self, meaning: str, default: str) -> str:
        """Return a flag as the command writes it, or its usual form."""
        return self.spellings.get(meaning, default)


def is_variable(word: str) -> bool:
    """Return whether a word contains a variable."""
    return _VARIABLE.search(word) is not None


def read_arguments(words: Sequence[str], table: FlagTable, deadline: Deadline, *, is_in_script: bool) -> Arguments:
    """Read the words after the name of a server.

    Args:
        words: the words after the name.
        table: the flags of the server.
        deadline: the deadline that is charged for each word.
        is_in_script: whether a shell reads the words, and may split variables into more words.
    """
    reader = _ArgumentReader(table, is_in_script=is_in_script)
    at, given = 0, list(words)
    while at < len(given):
        deadline.spend(1)
        at = reader.read(given, at)
    return reader.arguments()


def _is_spelling_of(written: str, flag: str) -> bool:
    return written.replace("_", "-") == flag.replace("_", "-")


class _ArgumentReader:
    """Reads words from left to right."""

    def __init__(self, table: FlagTable, *, is_in_script: bool) -> None:
        self._table = table
        self._is_in_script = is_in_script
        self._values: dict[str, str] = {}
        self._spellings: dict[str, str] = {}
        self._positional: list[str] = []
        self._joined: list[str] = []
        self._ambiguous: list[str] = []
        self._repeated: list[str] = []
        self._mistaken: dict[str, str] = {}
        self._removed: dict[str, RemovedFlag] = {}
        self._valued_switches: list[str] = []
        self._booleans: list[str] = []
        self._undashed: list[str] = []
        self._may_have_more_values = False
        self._is_open = False
        self._has_ended = False

    def arguments(self) -> Arguments:
        """Return the arguments that were read.

        The server's parser reads true or false after a switch as a positional word. The parser refuses the word if the
        command has all its positional words.
        """
        if len(self._positional) >= self._table.positional_words:
            self._valued_switches += self._booleans
        else:
            self._positional += [word.partition(" ")[2] for word in self._booleans]
        return Arguments(
            values=self._values,
            spellings=self._spellings,
            positional=tuple(self._positional),
            joined=tuple(self._joined),
            ambiguous=tuple(self._ambiguous),
            repeated=tuple(self._repeated),
            mistaken=self._mistaken,
            removed=self._removed,
            valued_switches=tuple(self._valued_switches),
            undashed=tuple(self._undashed),
            is_open=self._is_open,
        )

    def read(self, words: Sequence[str], at: int) -> int:
        """Read the word at an index, and the next word if it is the value of a flag. Return the next index."""
        word = words[at]
        if self._has_ended or not word.startswith("-") or len(word) == 1 or _NEGATIVE.fullmatch(word):
            self._read_positional(word)
            return at + 1
        if word == _END:
            self._has_ended = True
            return at + 1
        self._may_have_more_values = False
        name, equals, value = word.partition("=")
        attached = _ATTACHED.fullmatch(name)
        if attached is not None and attached[1] in self._table.meanings:
            name, equals, value = attached[1], "=", attached[2]
        if " " in name:
            self._read_joined(word)
            return at + 1
        written, name = name, name.replace("_", "-") if self._table.underscores and name.startswith("--") else name
        flags = self._table.flags_with_name(name)
        if name in self._table.removed:
            self._removed[name] = self._table.removed[name]
        if self._table.takes_no_value(flags[0] if flags else name):
            if equals and self._table.refuses_value(name):
                self._valued_switches.append(word)
            self._note(flags, written, value)
            has_boolean = not equals and words[at + 1 : at + 2] and words[at + 1].lower() in _BOOLEANS
            if has_boolean and self._table.refuses_value(name):
                self._booleans.append(f"{word} {words[at + 1]}")
                return at + 2
            return at + 1
        follows = words[at + 1] if at + 1 < len(words) else _END
        is_flag = follows.startswith("-") and follows != "-" and not _NEGATIVE.fullmatch(follows)
        may_follow = self._table.any_value and (flags or self._takes_value(name)) and at + 1 < len(words)
        if equals or (is_flag and not may_follow):
            self._note(flags, written, value)
            return at + 1
        if not flags and self._is_in_script and is_variable(follows) and not self._takes_value(name):
            self._is_open = True  # if the unknown flag is a switch, the variable may contain any arguments
        self._may_have_more_values = name in _SEVERAL_VALUES or not (flags or name in self._table.valued)
        self._note(flags, written, follows)
        return at + 2

    def _takes_value(self, name: str) -> bool:
        return name in self._table.valued or name in self._table.also

    def _note(self, flags: Sequence[str], written: str, value: str) -> None:
        fix = "" if flags else self._table.fix_of_unknown_flag(written)
        if not flags and not fix:
            return
        meanings = {self._table.meanings.get(flag) for flag in flags}
        if len(flags) > 1 and (len(meanings) > 1 or None in meanings):
            self._ambiguous.append(written)
        elif flags and (meaning := self._table.meanings.get(flags[0])):
            if meaning in self._values:
                self._repeated.append(written)
            self._values[meaning] = value
            self._spellings[meaning] = written if _is_spelling_of(written, flags[0]) else flags[0]
        elif fix:
            self._mistaken[written] = fix

    def _read_positional(self, word: str) -> None:
        if self._is_in_script and is_variable(word):
            is_model = not self._positional and _MODEL.search(word) and not _OPTIONS.search(word)
            self._is_open = self._is_open or not is_model
        if self._positional and not self._may_have_more_values and self._lacks_dashes(word):
            self._undashed.append(word)
        self._positional.append(word)

    def _lacks_dashes(self, word: str) -> bool:
        """Return whether a positional word has the name of a known flag, and a value or several parts."""
        if len(word) > _LONGEST_NAME or not _WITHOUT_DASHES.fullmatch(word) or is_variable(word):
            return False
        flag = f"--{word.partition('=')[0].replace('_', '-')}"
        return flag in self._table.meanings or self._takes_value(flag)

    def _read_joined(self, word: str) -> None:
        if _FLAG.fullmatch(word.split(" ", 1)[0]) or _DASHES_APART.fullmatch(word.partition("=")[0].rstrip()):
            self._joined.append(word)
