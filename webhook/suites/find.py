"""Which suites there are: known file names in named folders, each with the reader of its format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from webhook import yamlfile
from webhook.errors import InputError, Problem
from webhook.policy.load import Options
from webhook.suites.case import Case
from webhook.suites.files import Suite

Reader: TypeAlias = Callable[[Suite, Options], Iterator[Case]]


def suites(named: Sequence[Path]) -> Iterator[Suite]:
    """The suite files of folders, sorted; a file that is named is taken to be one.

    Raises:
        InputError: a path that does not exist.
    """
    for place in named:
        if not place.exists():
            raise InputError(Problem(message="no such file or folder", file=str(place)))
        if place.is_file():
            yield Suite(file=place, root=place.parent)
            continue
        for root, folders, names in os.walk(place):
            folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
            files = (Path(root, name) for name in sorted(names))
            yield from (Suite(file=file, root=place) for file in files if _is_suite(file))


def _is_suite(file: Path) -> bool:
    if file.name == "suite.yaml":
        return True
    return file.name in {"kyverno-test.yaml", "kyverno-test.yml"} or file.name.endswith("cases.jsonl")


def read(suite: Suite, how: Options) -> Iterator[Case]:
    """The cases of a suite file.

    Raises:
        InputError: the file is no suite, or has mistakes.
    """
    return _reader(suite.file)(suite, how)


def is_own(suite: Suite) -> bool:
    """Say whether a suite is of this project's own format."""
    from webhook.suites import own

    return _reader(suite.file) is own.read


def _reader(file: Path) -> Reader:
    """By name, and for YAML by what it says it is: gator suites are also called suite.yaml."""
    if file.suffix == ".jsonl":
        from webhook.suites import recorded

        return recorded.read
    first = next(iter(yamlfile.read(file)), None)
    kind = first.value.get("kind") if first and isinstance(first.value, dict) else None
    if kind == "Test":
        from webhook.suites import kyverno

        return kyverno.read
    if kind == "Suite":
        from webhook.suites import gator

        return gator.read
    from webhook.suites import own

    return own.read
