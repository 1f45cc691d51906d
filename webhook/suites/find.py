"""Finds suites by their file names in named folders, and chooses the reader of their format."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.errors import InputError
from webhook.policy.load import Options
from webhook.suites import golden
from webhook.suites.case import Entry, SkippedCase
from webhook.suites.files import Suite
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import NotReadError, read_start, reason_not_read

Documents: TypeAlias = Sequence[yamlfile.Document]

_KYVERNO_FOLDER: Final = ".kyverno-test"
"""The hidden folder in which policies of Kyverno keep their suites."""
_CHAINSAW: Final = frozenset(("chainsaw-test.yaml", "chainsaw-test.yml"))
_GATOR: Final = re.compile(rb"""^apiVersion: *["']?test\.gatekeeper\.sh/""", re.MULTILINE)


def find_suites(named: Sequence[Path]) -> Iterator[Suite]:
    """Yield the suite files of folders, sorted. A named file always counts as a suite.

    Raises:
        InputError: a path does not exist.
    """
    for place in named:
        if not place.exists():
            raise InputError(yamlfile.problem_of_absent_file(place))
        if place.is_file():
            yield Suite(file=place, root=place.parent, is_named=True)
            continue
        for root, folders, names in os.walk(place):
            folders[:] = sorted(folder for folder in folders if not folder.startswith(".") or folder == _KYVERNO_FOLDER)
            suites = (Suite(file=Path(root, name), root=place) for name in sorted(names))
            yield from filter(_is_suite, suites)


def find_chainsaw_tests(named: Sequence[Path]) -> Iterator[Path]:
    """Yield the tests of Chainsaw in folders, which need a cluster. Kyverno has these tests beside its policies."""
    for place in named:
        for root, folders, names in os.walk(place):
            folders[:] = sorted(each for each in folders if not each.startswith(".") or each.startswith(".chainsaw-"))
            yield from (Path(root, name) for name in sorted(names) if name in _CHAINSAW)


def _is_suite(suite: Suite) -> bool:
    """Return whether the file is a suite, by its name. Suites of gator are recognized by their content, as in `gator
    verify`.
    """
    file = suite.file
    if _is_named_like_suite(file):
        return True
    if file.suffix not in {".yaml", ".yml"}:
        return False
    try:
        return _GATOR.search(read_start(suite.input)) is not None
    except NotReadError:
        return True  # the file may be a suite, and is reported as not read
    except OSError:
        return False


def _is_named_like_suite(file: Path) -> bool:
    names = {"suite.yaml", "kyverno-test.yaml", "kyverno-test.yml"}
    return golden.is_golden(file) or file.name in names or file.name.endswith("cases.jsonl")


def read_suite(suite: Suite, options: Options) -> Iterator[Entry]:
    """Yield the cases of a suite file, also those that are not run.

    Raises:
        InputError: the file is not a suite, or has mistakes.
    """
    if not _is_named_like_suite(suite.file) and (reason := reason_not_read(suite.input)):
        yield SkippedCase(id=str(suite.file), suite=str(suite.file), why=f"it is not read: {reason}")
        return
    entries = iter(_entries_of_suite(suite, options))
    first = next(entries, None)
    if first is None:
        yield SkippedCase(id=str(suite.file), suite=str(suite.file), why="the file names no case")
        return
    yield first
    yield from entries


def documents_of_own_suite(suite: Suite) -> Documents | None:
    """Return the documents of a suite in this project's format; None for another format."""
    if suite.file.suffix == ".jsonl":
        return None
    documents = yamlfile.read(suite.input)
    return documents if _kind(documents) not in ("Test", "Suite") else None


def _entries_of_suite(suite: Suite, options: Options) -> Iterator[Entry]:
    """Return the cases of a suite. Files named .jsonl have recorded cases. In others, the kind of the first document
    decides the format, because gator also uses the name suite.yaml.
    """
    if suite.file.suffix == ".jsonl":
        from webhook.suites import recorded

        return recorded.read_recorded_file(suite, options)
    documents = yamlfile.read(suite.input)
    match _kind(documents):
        case "Test":
            from webhook.suites import kyverno

            return kyverno.read_kyverno_cases(suite, documents, options)
        case "Suite":
            from webhook.suites import gator

            return gator.read_gator_cases(suite, documents, options)
    from webhook.suites import own

    return own.read_own_cases(suite, documents, options)


def _kind(documents: Documents) -> JSON:
    first = documents[0].value if documents else None
    return first.get("kind") if isinstance(first, dict) else None
