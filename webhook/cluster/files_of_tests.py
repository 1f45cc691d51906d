"""Recognizes the files of tests by their names: objects of assertions and expected outputs are never applied.

kuttl and Chainsaw compare the objects of an assertion with those of a cluster, so such an object has only the fields
that are compared. The audit reads these names, and so does the view of the cluster, in which such objects do not exist.
"""

from __future__ import annotations

import posixpath
from typing import Final

_FOLDERS: Final = frozenset(("test", "tests", "e2e", "fixtures"))
_ASSERTION: Final = "an assertion of a test, which has only the fields that are compared"
_EXPECTED: Final = "the expected output or failure of a test, which nobody applies"


def is_in_folder_of_tests(file: str) -> bool:
    """Return whether a file is in a folder of tests below the working directory."""
    return not posixpath.isabs(file) and not _FOLDERS.isdisjoint(file.split("/")[:-1])


def is_assertion(file: str) -> bool:
    """Return whether a file has the name of an assertion: `01-assert.yaml`, `assert.yaml` or `01-errors.yaml`."""
    stem = posixpath.splitext(posixpath.basename(file))[0].lower().replace("_", "-")
    before, _, word = stem.rpartition("-")
    return word in ("assert", "asserts", "assertion") or (word in ("error", "errors") and before.isdigit())


def reason_not_applied(file: str) -> str:
    """Return why the objects of a file are never applied, "" if they may be."""
    if is_assertion(file):
        return _ASSERTION
    steps = file.split("/")
    is_expected = is_in_folder_of_tests(file) and any(step.startswith("expected") for step in steps)
    return _EXPECTED if is_expected else ""
