"""The known plugins of a Job: their options, and the tasks that they look for by name.

Arguments are parsed as Go's package flag parses them.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins; Go 1.25 src/flag/flag.go parseOne.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from webhook.text.wording import either

Kind: TypeAlias = Literal["text", "number", "truth"]
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_TRUTHS: Final = _TRUE | {"0", "f", "F", "false", "FALSE", "False"}
_EXAMPLES: Final = {
    "number": "a whole number, such as --{}=5000",
    "truth": "--{0}=true or --{0}=false",
}
_NUMBER: Final = re.compile(r"[-+]?([0-9][0-9_]*|0[xXoObB][0-9a-fA-F_]+)")


class ParsedFlags(Struct):
    """The parsed flags. `error` says why parsing ended early, at argument `at`; later flags keep their defaults.

    `fix` says what to write instead of this argument. `unknown` is the name of an option that the plugin lacks.
    """

    values: dict[str, str] = field(default_factory=dict)
    error: str = ""
    unknown: str = ""
    fix: str = ""
    at: int = 0


def is_true_in_go(value: str) -> bool:
    """Return whether strconv.ParseBool reads a text as true."""
    return value in _TRUE


def read_flags(arguments: Iterable[str], options: Mapping[str, Kind]) -> ParsedFlags:
    """Parse `-name=value`, `--name value` and `--name`, up to the first argument of another form."""
    flags, numbered = ParsedFlags(), enumerate(arguments)
    for flags.at, argument in numbered:
        name, equals, value = _split_argument(argument)
        if not name:
            flags.error = "" if argument == "--" else f"`{argument}` is not an option"
        elif name not in options:
            flags.error, flags.unknown = f"`{name}` is not an option", name
        if name not in options:
            flags.fix = f"use only {either(f'--{option}' for option in sorted(options))}"
            break
        if not equals:
            following = (flags.at, "true") if options[name] == "truth" else next(numbered, None)
            if following is None:
                flags.error, flags.fix = f"`{name}` has no value", f"write --{name}= and the value"
                break
            value = following[1]
        flags.error = _fault_of_value(name, value, options[name])
        if flags.error:
            flags.fix = f"write {_EXAMPLES[options[name]].format(name)}"
            break
        flags.values[name] = value
    return flags


def _split_argument(argument: str) -> tuple[str, str, str]:
    """Return name, equals sign and value; the name is "" for an argument that ends the options."""
    if len(argument) < 2 or argument[0] != "-" or argument == "--":
        return "", "", ""
    return argument.removeprefix("-").removeprefix("-").partition("=")


def _fault_of_value(name: str, value: str, kind: Kind) -> str:
    if kind == "number" and not _NUMBER.fullmatch(value):
        return f"`{value}`, the value of --{name}, is not a whole number"
    if kind == "truth" and value not in _TRUTHS:
        return f"`{value}`, the value of --{name}, is not true or false"
    return ""


class VolcanoPlugin(Struct, frozen=True, kw_only=True):
    """One plugin: its options, and the roles of the tasks that it looks for, each with the default name of the task."""

    options: Mapping[str, Kind] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)

    def parse_arguments(self, arguments: Iterable[str]) -> ParsedFlags:
        """Return the parsed arguments of the plugin; a plugin without options ignores all arguments."""
        options: dict[str, Kind] = {**self.options, **dict.fromkeys(self.tasks, "text")}
        return read_flags(arguments, options) if options else ParsedFlags()


PLUGINS: Final[Mapping[str, VolcanoPlugin]] = {
    "env": VolcanoPlugin(),
    "hcclrank": VolcanoPlugin(tasks={"master": "master", "worker": "worker"}),
    "mpi": VolcanoPlugin(options={"port": "number"}, tasks={"master": "master", "worker": "worker"}),
    "pytorch": VolcanoPlugin(
        options={
            "port": "number",
            "wait-master-enabled": "truth",
            "wait-master-timeout": "number",
            "wait-master-image": "text",
        },
        tasks={"master": "master", "worker": "worker"},
    ),
    "ray": VolcanoPlugin(
        options={
            "headContainer": "text",
            "workerContainer": "text",
            "port": "number",
            "dashboardPort": "number",
            "clientPort": "number",
        },
        tasks={"head": "head", "worker": "worker"},
    ),
    "ssh": VolcanoPlugin(
        options={"ssh-key-file-path": "text", "ssh-private-key": "text", "ssh-public-key": "text", "ssh-port": "number"}
    ),
    "svc": VolcanoPlugin(
        options={"publish-not-ready-addresses": "truth", "disable-network-policy": "truth", "inject-hosts-env": "truth"}
    ),
    "tensorflow": VolcanoPlugin(
        options={"port": "number"}, tasks={"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator"}
    ),
}
