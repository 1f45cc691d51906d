"""The declarations of checks and facts, from declared.json, so that a start does not have to import them.

The file is written from the modules by `make docs`, and tests/facts/test_declared.py compares both.
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
    """The objects that a check is about.

    Args:
        kinds: pairs of group and kind; () for every object.
        other_than: the kinds that are excluded.
        of_deletions: whether it is about objects that are being deleted; no other checks run for them.
        of_pods_with: parts of a Pod (typed/pod_parts.py), of which the check needs at least one; () for every Pod.
    """

    kinds: frozenset[GroupKind] = frozenset()
    other_than: frozenset[GroupKind] = frozenset()
    of_deletions: bool = False
    of_pods_with: frozenset[str] = frozenset()

    def is_about(self, kind: GroupKind, *, is_deleted: bool) -> bool:
        """Return whether the check is about objects of a group and kind."""
        is_about = (not self.kinds or kind in self.kinds) and kind not in self.other_than
        return is_about and self.of_deletions is is_deleted


class DeclaredGroup(Struct, frozen=True, kw_only=True):
    """A group of checks: the kinds that each of its checks concerns, and the kinds that the checks look up."""

    checks: tuple[CheckScope, ...]
    lookups: tuple[GroupKind, ...]


class Declarations(Struct, frozen=True, kw_only=True):
    """Groups of checks by name, the kinds that each fact looks up, and the ids of each package's rules.

    The ids are in the order of the catalogue; rows of `packages.py` with the same module share their ids.
    """

    groups: dict[str, DeclaredGroup]
    facts: dict[str, tuple[GroupKind, ...]]
    rules: dict[str, tuple[str, ...]]


@cache
def shipped_declarations() -> Declarations:
    """Return the declarations of the shipped packages."""
    return msgspec.json.decode(_FILE.read_bytes(), type=Declarations)


def no_declarations() -> Declarations:
    """Return the declarations of packages that are not in declared.json."""
    return Declarations(groups={}, facts={}, rules={})
