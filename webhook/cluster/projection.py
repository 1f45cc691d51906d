"""Reduces an object to the fields that are read, for a view to keep.

Most of an object is never read by any rule: of a Pod's 10 KB a name, of a JobSet a number of active pods. Kept as
decoded, each object would also bring its own copy of the name of every field (`with_shared_keys`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import parse_path
from webhook.cluster.decoding import DEEPEST, TOO_DEEP
from webhook.cluster.interest import Fields
from webhook.cluster.view_memory import SharedKeys

Tree: TypeAlias = Mapping[str, "Tree"]
"""Fields by their names; a field without any below it is kept whole."""
_Share: TypeAlias = Callable[[str], str]

_ALWAYS: Final = frozenset(("apiVersion", "kind", "metadata.name", "metadata.namespace"))
_UNREAD: Final = "managedFields"
"""The field that is never kept: half of an object's size, and no rule reads it."""


class TooDeepObject(ValueError):
    """The error for an object with a field that is read and is nested deeper than DEEPEST."""

    def __init__(self) -> None:
        super().__init__(f"is nested deeper than {DEEPEST} levels and cannot be read")


def projection_of_fields(fields: Fields) -> Callable[[JSON], JSON]:
    """Return a function that reduces an object to these fields, name and namespace; None keeps all but field
    managers.

    The function raises TooDeepObject if a field itself is too deep. A value below a field may still be too deep
    (`with_shared_keys`, `is_too_deep`). Other fields may have any depth.
    """
    if fields is None:
        return _without_managed_fields
    tree = _tree_of_fields(fields | _ALWAYS)
    return lambda obj: _kept_fields(obj, tree, 0)


def _tree_of_fields(fields: frozenset[str]) -> Tree:
    tree: dict[str, Any] = {}
    for path in sorted(fields, key=len, reverse=True):  # a field is cut if a shorter path keeps all of it
        *above, last = map(str, parse_path(path))
        place = tree
        for name in above:
            place = place.setdefault(name, {})
        place[last] = {}
    return tree


def _kept_fields(value: JSON, tree: Tree, depth: int) -> JSON:
    if not tree:
        return value
    if depth > DEEPEST or value is TOO_DEEP:
        raise TooDeepObject
    if isinstance(value, dict):
        return {name: _kept_fields(value[name], below, depth + 1) for name, below in tree.items() if name in value}
    if isinstance(value, list):
        return [_kept_fields(each, tree, depth + 1) for each in value]
    return value


def _without_managed_fields(obj: JSON) -> JSON:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != _UNREAD}}


def with_shared_keys(obj: JSON, keys: SharedKeys) -> JSON:
    """Return an object with the keys that the objects of the view share, so that these take memory once.

    Raises:
        TooDeepObject: it is nested deeper than DEEPEST.
    """
    return _with_shared_keys(obj, keys.share, 0)


def _with_shared_keys(value: JSON, share: _Share, depth: int) -> JSON:
    if isinstance(value, dict):
        if depth >= DEEPEST:
            raise TooDeepObject
        return {share(key): _with_shared_keys(below, share, depth + 1) for key, below in value.items()}
    if isinstance(value, list):
        if depth >= DEEPEST:
            raise TooDeepObject
        return [_with_shared_keys(each, share, depth + 1) for each in value]
    if value is TOO_DEEP:
        raise TooDeepObject
    return value
