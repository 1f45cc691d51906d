"""Reads the declarations of checks and facts from declared.json, so that claimgate starts without an import of the
packages.

`make docs` writes declared.json from the packages, and tests/facts/test_declared.py compares the file with the
packages.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

GroupKind: TypeAlias = tuple[str, str]
_FILE: Final = Path(__file__).with_name("declared.json")


class CheckScope(Struct, frozen=True, kw_only=True):
    """The objects for which a check runs.

    Args:
        kinds: pairs of group and kind; empty for all kinds.
        other_than: the kinds that are excluded.
        of_deletions: whether the check runs only for deletions. If False, it runs only for objects that are not
            deleted.
        of_pods_with: the check runs only for Pods with at least one of these parts (typed/pod_parts.py); empty for
            all Pods.
    """

    kinds: frozenset[GroupKind] = frozenset()
    other_than: frozenset[GroupKind] = frozenset()
    of_deletions: bool = False
    of_pods_with: frozenset[str] = frozenset()

    def is_about(self, kind: GroupKind, *, is_deleted: bool) -> bool:
        """Return whether the check runs for objects of a group and kind."""
        is_about = (not self.kinds or kind in self.kinds) and kind not in self.other_than
        return is_about and self.of_deletions is is_deleted


class DeclaredGroup(Struct, frozen=True, kw_only=True):
    """A group of checks: the scope of each check, and the kinds that the checks look up."""

    checks: tuple[CheckScope, ...]
    lookups: tuple[GroupKind, ...]


class Declarations(Struct, frozen=True, kw_only=True):
    """What the packages of checks and facts declare.

    Args:
        groups: maps the name of a group to the checks of the group.
        facts: maps the name of a fact to the kinds that the fact looks up.
        rules: maps the module of a package to the ids of its rules, in the order of the catalogue. Rows of
            `packages.py` with the same module share one list of ids.
    """

    groups: dict[str, DeclaredGroup]
    facts: dict[str, tuple[GroupKind, ...]]
    rules: dict[str, tuple[str, ...]]


@cache
def shipped_declarations() -> Declarations:
    """Return the declarations of the shipped packages."""
    return msgspec.json.decode(_FILE.read_bytes(), type=Declarations)


def no_declarations() -> Declarations:
    """Return empty declarations, for packages that are not in declared.json."""
    return Declarations(groups={}, facts={}, rules={})
