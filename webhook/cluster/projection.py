"""Reduces an object to the fields that are read, for a view to keep.

Most of an object is never read by any rule: of a Pod's 10 KB a name, of a JobSet a number of active pods. Kept as
decoded, each object would also bring its own copy of the name of every field.
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
    """The error for an object of which a field that is read is nested deeper than DEEPEST."""

    def __init__(self) -> None:
        super().__init__(f"is nested deeper than {DEEPEST} levels and cannot be read")


def projection_of_fields(fields: Fields, keys: SharedKeys | None = None) -> Callable[[JSON], JSON]:
    """Return a function that reduces an object to these fields, name and namespace; None keeps all but field
    managers.

    The function raises TooDeepObject. Fields that are not read may be nested as deeply as they are. `keys` are those
    that the objects of the view share.
    """
    share = (keys or SharedKeys()).share
    if fields is None:
        return lambda obj: _without_managed_fields(obj, share)
    tree = _tree_of_fields(fields | _ALWAYS, share)
    return lambda obj: _kept_fields(obj, tree, share, 0)


def _tree_of_fields(fields: frozenset[str], share: _Share) -> Tree:
    tree: dict[str, Any] = {}
    for path in sorted(fields, key=len, reverse=True):  # a field is cut where a shorter path keeps all of it
        *above, last = (share(str(step)) for step in parse_path(path))
        place = tree
        for name in above:
            place = place.setdefault(name, {})
        place[last] = {}
    return tree


def _kept_fields(value: JSON, tree: Tree, share: _Share, depth: int) -> JSON:
    if not tree:
        return _with_shared_keys(value, share, depth)
    if depth > DEEPEST or value is TOO_DEEP:
        raise TooDeepObject
    if isinstance(value, dict):
        return {
            name: _kept_fields(value[name], below, share, depth + 1) for name, below in tree.items() if name in value
        }
    if isinstance(value, list):
        return [_kept_fields(each, tree, share, depth + 1) for each in value]
    return value


def _without_managed_fields(obj: JSON, share: _Share) -> JSON:
    metadata = {key: value for key, value in obj["metadata"].items() if key != _UNREAD}
    return _with_shared_keys({**obj, "metadata": metadata}, share, 0)


def _with_shared_keys(value: JSON, share: _Share, depth: int) -> JSON:
    """Return the value with the keys that the objects of the view share, so that these take memory once."""
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
