"""Which launcher a command runs: behind wrappers, in scripts inside the command, or as a Python module.

The launchers and their options are data: launchers.yaml. The name of a launcher counts only where a program is named:
not as the value of an option, and not as an argument of a program that is known not to run launchers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from webhook.apimachinery.attributes import JSON
from webhook.facts.command_lines.shell import ScriptVariables, is_shell, read_shell_call, split_into_commands
from webhook.yamltext import yamlfile

FILE = Path(__file__).with_name("launchers.yaml")
_COUNTS = {"flags": 0, "values": 1, "pairs": 2}
_EXPANDED: Final = ("sh", "eval", "$")
"""Texts of commands in which a launcher may be spelled differently: every name of a shell ends with `sh`."""
_SNAKE: Final = re.compile(r"python[0-9.]*")
_PYTHON_VALUES: Final = frozenset(("-X", "-W", "--check-hash-based-pycs"))
_FOLDER_OF_COMMANDS: Final = "/bin/"
"""The folder where a Python package installs its commands. A file elsewhere may be another program of the same name."""
_REMOVES: Final = frozenset(("-i", "-u", "-", "--unset", "--ignore-environment"))
"""Options of `env` that remove variables."""
_DEEPEST: Final = 5
_LONGEST: Final = 128 * 1024
"""Linux's MAX_ARG_STRLEN: an argument of a program cannot be longer."""


class LauncherRow(Struct, frozen=True, kw_only=True):
    """One row of launchers.yaml."""

    name: str
    verb: str
    counts: Mapping[str, int]
    prefixes: tuple[tuple[str, int], ...]
    meanings: Mapping[str, str]

    def count_values_of_option(self, option: str) -> int | None:
        """Return how many values an option has; None for an unknown option."""
        count = self.counts.get(option)
        if count is None:
            return next((each for prefix, each in self.prefixes if option.startswith(prefix)), None)
        return count

    def meaning(self, option: str) -> str:
        """Return what an option means: `processes`, `nodes`, `node-rank`, `rendezvous`, `address`, `ranks`, `hosts` or
        "".
        """
        return self.meanings.get(option, "")


class LauncherCatalogue(Struct, frozen=True, kw_only=True):
    """The content of launchers.yaml: launchers by the names of programs and of Python modules, and other programs."""

    programs: Mapping[str, LauncherRow]
    modules: Mapping[str, LauncherRow]
    wrappers: frozenset[str]
    others: frozenset[str]
    names: re.Pattern[str]
    """Matches a text that every command with a launcher has. The text is the name of a launcher's program or module, or
    may expand to this name.
    """
    variables: frozenset[str] = frozenset()
    """The names of the variables that LauncherStart records."""


@cache
def read_launcher_catalogue() -> LauncherCatalogue:
    """Return the shipped catalogue, which is read on first use."""
    (document,) = yamlfile.read(FILE)
    return catalogue_of_rows(document.value["launchers"], document.value["wrappers"], document.value["others"])


def catalogue_of_rows(
    rows: Sequence[JSON], wrappers: Collection[str], others: Collection[str], variables: Collection[str] = ()
) -> LauncherCatalogue:
    """Return the catalogue of the programs that these rows declare. The rows have the form of launchers.yaml, and may
    declare other programs than launchers.
    """
    read = [(row, _launcher_of_row(row)) for row in rows]
    programs = {name: launcher for row, launcher in read for name in row["programs"]}
    modules = {name: launcher for row, launcher in read for name in row["modules"]}
    return LauncherCatalogue(
        programs=programs,
        modules=modules,
        names=re.compile("|".join(map(re.escape, (*_EXPANDED, *programs, *modules)))),
        wrappers=frozenset(wrappers),
        others=frozenset(others),
        variables=frozenset(variables),
    )


def _launcher_of_row(row: JSON) -> LauncherRow:
    takes = [(option, count) for key, count in _COUNTS.items() for option in row.get(key, ())]
    return LauncherRow(
        name=row["name"],
        verb=row.get("verb", ""),
        counts={option: count for option, count in takes if not option.endswith("*")},
        prefixes=tuple((option[:-1], count) for option, count in takes if option.endswith("*")),
        meanings={option: meaning for meaning, options in row.get("means", {}).items() for option in options},
    )


class LauncherStart(Struct, frozen=True):
    """A launcher or a Python program in a command, and the words after it.

    Args:
        launcher: the launcher; None for a Python program without a launcher.
        is_inline: whether the program is written in the command itself, after Python's option -c or in a here-document.
        is_in_script: whether a shell reads the words and expands variables in them.
        variables: the variables of the catalogue that the command sets for the program; `?` for a value that is known
            only at run time.
    """

    launcher: LauncherRow | None
    arguments: tuple[str, ...] = ()
    is_inline: bool = False
    is_in_script: bool = False
    variables: Mapping[str, str] = {}


def commands_started_by(
    words: Sequence[str], variables: ScriptVariables, catalogue: LauncherCatalogue, depth: int = 0
) -> Iterator[LauncherStart]:
    """Yield the programs that one command starts, directly or by a script inside the command.

    Args:
        words: the command and its arguments.
        variables: the known variables.
        catalogue: the programs to find.
        depth: the number of scripts around the command.

    Raises:
        ValueError: a script is not a valid shell script.
    """
    first = _program_name(words[0]) if words else ""
    if first in catalogue.others:
        return
    if first == "eval":
        yield from _launcher_starts_of_script(" ".join(words[1:]), variables, catalogue, depth)
        return
    for index, word in enumerate(variables.reading.deadline.items_with_clock_checks(words)):
        program = _program_name(word)
        if not _is_program_word(words, index, catalogue):
            continue
        if is_shell(word):
            call = read_shell_call(words[index:])
            if call is not None and not call.is_file:
                yield from _launcher_starts_of_script(call.script, variables, catalogue, depth)
            return
        if _SNAKE.fullmatch(program):
            alone = not index or first in catalogue.wrappers
            for start in _launcher_starts_of_python(words[index + 1 :], catalogue, alone=alone):
                set_before = _variables_before_program(words[:index], catalogue)
                yield structs.replace(start, is_in_script=depth > 0, variables=set_before)
            return
        launcher = catalogue.programs.get(program)
        if launcher is not None and _runs_verb(launcher, words, index):
            arguments = tuple(words[index + (2 if launcher.verb else 1) :])
            set_before = _variables_before_program(words[:index], catalogue)
            yield LauncherStart(launcher, arguments, is_in_script=depth > 0, variables=set_before)
            return


def _variables_before_program(words: Sequence[str], catalogue: LauncherCatalogue) -> Mapping[str, str]:
    """Return the variables of the catalogue that words such as `env A=1` set. If env removes variables, all other
    variables of the catalogue are `?`.
    """
    if not catalogue.variables or not words:
        return {}
    pairs = (word.partition("=") for word in words)
    written = {name: value for name, equals, value in pairs if equals and name in catalogue.variables}
    removes = any(word in _REMOVES for word in words)
    return dict.fromkeys(catalogue.variables, "?") | written if removes else written


def _runs_verb(launcher: LauncherRow, words: Sequence[str], index: int) -> bool:
    """Return whether the launcher's verb, such as `launch`, is the next word; True for a launcher without a verb."""
    return not launcher.verb or (index + 1 < len(words) and words[index + 1] == launcher.verb)


def _is_program_word(words: Sequence[str], index: int, catalogue: LauncherCatalogue) -> bool:
    """Return whether a word is a program and not the value of the option before it."""
    before = words[index - 1] if index else ""
    is_value = before.startswith("-") and "=" not in before and before != "--"
    return not is_value or _program_name(words[0]) in catalogue.wrappers


def _program_name(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def _launcher_starts_of_script(
    script: str, variables: ScriptVariables, catalogue: LauncherCatalogue, depth: int
) -> Iterator[LauncherStart]:
    """Yield the programs that a script starts; nothing if the script is longer than the kernel accepts or nested too
    deeply.
    """
    if len(script) >= _LONGEST or depth >= _DEEPEST:
        return
    shown = variables.certain_values()
    variables.reading.take(len(shown))
    variables.reading.take_script(script)
    inner = ScriptVariables(shown, variables.reading)
    for command in split_into_commands(script, variables.reading.deadline):
        words = inner.assign_and_expand_command(command)
        for start in commands_started_by(words, inner, catalogue, depth + 1):
            known = inner.values_for_program(catalogue.variables)
            yield structs.replace(start, variables={**known, **start.variables}) if known else start


def _launcher_starts_of_python(
    words: Sequence[str], catalogue: LauncherCatalogue, *, alone: bool
) -> Iterator[LauncherStart]:
    """Yield the program that Python runs: a launcher, by the name of its module or file, or another program. `alone`:
    whether the command itself, or a wrapper such as `env`, runs Python.
    """
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option, at = words[at], at + 1
        if option.startswith("-m"):
            named = [option[2:], *words[at:]] if option[2:] else words[at:]
            launcher = catalogue.modules.get(named[0]) if named else None
            if launcher is not None:
                yield LauncherStart(launcher, tuple(named[1:]))
            return
        if option.startswith("-c") or option == "-":
            yield LauncherStart(None, is_inline=True)
            return
        at += option in _PYTHON_VALUES
    program = words[at] if at < len(words) else ""
    launcher = catalogue.programs.get(_program_name(program))
    is_installed = launcher is not None and _FOLDER_OF_COMMANDS in program and _runs_verb(launcher, words, at)
    if launcher is not None and (is_installed or not launcher.verb):
        yield LauncherStart(launcher, tuple(words[at + (2 if launcher.verb else 1) :]))
    elif alone and program.endswith(".py"):
        yield LauncherStart(None)
