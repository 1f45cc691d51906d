"""Describes the objects and fields that a view of the cluster must hold.

Policies and facts say what they look up. A live view requests only these objects, and a ClusterRole allows only these
requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import get as at

Fields: TypeAlias = frozenset[str] | None
"""Paths such as `spec.devices.requests` or `metadata.annotations["volcano.sh/hierarchy"]`, with everything below. A
path continues in each item of a list. None means all fields.
"""

MOST_NAMED: Final = 64
"""The maximum number of watches for single names of a kind. With more names, whole namespaces are watched."""


class ObjectScope(Struct, frozen=True, kw_only=True, order=True):
    """Objects in one namespace, with one name, and with a labelSelector; "" means any."""

    namespace: str = ""
    name: str = ""
    labels: str = ""

    def includes(self, namespace: str, name: str) -> bool:
        """Return whether the object is certainly in the scope; False with a labelSelector: labels are not known."""
        return not self.labels and self.namespace in ("", namespace) and self.name in ("", name)

    def covers(self, other: ObjectScope) -> bool:
        """Return whether every object of the other scope is also in this scope."""
        pairs = ((self.namespace, other.namespace), (self.name, other.name), (self.labels, other.labels))
        return all(own_value in ("", other_value) for own_value, other_value in pairs)


EVERY: Final = ObjectScope()


class Index(Struct, frozen=True):
    """Finds the objects of a namespace by a key. Users may create too many objects to read each one in a review.

    Args:
        name: the name of the index in messages.
        keys: returns the keys of an object; may read only the fields that the view keeps.
    """

    name: str
    keys: Callable[[JSON], Sequence[str]]


def _name_of_object(obj: JSON) -> Sequence[str]:
    name = at(obj, ("metadata", "name"), "")
    return (name,) if isinstance(name, str) else ()  # a file may have any type here


BY_NAME: Final = Index("name", _name_of_object)
"""The index that every view has."""


@dataclass(frozen=True, slots=True)
class Interest:
    """Objects of a kind and the fields that are read.

    Attributes:
        gvk: the kind.
        fields: the fields that are read.
        scope: the objects that are read.
        only: scopes inside `scope`. Objects outside of `only` are not kept. If `only` is empty, all objects are kept.
        indexes: the indexes of the objects, in addition to the index by name.
        most_bytes: the maximum size of one object as JSON. A view keeps a stub of a larger object (object_reader.py).
    """

    gvk: GroupVersionKind
    fields: Fields = None
    scope: ObjectScope = field(default=EVERY, kw_only=True)
    only: frozenset[ObjectScope] = field(default=frozenset(), kw_only=True)
    indexes: frozenset[Index] = field(default=frozenset(), kw_only=True)
    most_bytes: int | None = field(default=None, kw_only=True)

    @property
    def kind(self) -> tuple[str, str]:
        """Return group and kind. No view has a kind in two versions."""
        return self.gvk.group, self.gvk.kind

    @property
    def reads_only_metadata(self) -> bool:
        """Return whether only fields of metadata are read."""
        return self.fields is not None and all(path.partition(".")[0] == "metadata" for path in self.fields)

    def includes(self, namespace: str, name: str) -> bool:
        """Return whether this interest certainly includes the object."""
        if not self.scope.includes(namespace, name):
            return False
        return not self.only or any(each.includes(namespace, name) for each in self.only)

    def covers(self, other: Interest) -> bool:
        """Return whether this interest includes all objects and fields of the other interest."""
        return (
            self.kind == other.kind
            and not self.only
            and self.scope.covers(other.scope)
            and includes_all_fields(self.fields, other.fields)
        )


def interest_in_fields(gvk: GroupVersionKind, *fields: str, indexes: Iterable[Index] = ()) -> Interest:
    """Return an interest in some fields of every object of a kind. Name and namespace are always kept."""
    return Interest(gvk, frozenset(fields), indexes=frozenset(indexes))


def includes_all_fields(fields: Fields, others: Fields) -> bool:
    """Return whether `fields` includes all `others` fields."""
    if fields is None or others is None:
        return fields is None
    return all(_includes_field(fields, path) for path in others)


def _includes_field(fields: Iterable[str], path: str) -> bool:
    return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in fields)


def combine_interests(interests: Iterable[Interest]) -> tuple[Interest, ...]:
    """Return the interests without duplicates, for each kind the narrowest scope first."""
    interests = tuple(interests)
    joined: dict[tuple[tuple[str, str], ObjectScope, frozenset[ObjectScope]], Interest] = {}
    for each in sorted(interests, key=_sort_key):
        key = each.kind, each.scope, each.only
        earlier = joined.get(key)
        joined[key] = replace(earlier, fields=_union_of_fields(earlier.fields, each.fields)) if earlier else each
    kinds: dict[tuple[str, str], list[Interest]] = {}
    indexes: dict[tuple[str, str], frozenset[Index]] = {}
    for each in interests:
        indexes[each.kind] = indexes.get(each.kind, frozenset()) | each.indexes
    for each in joined.values():
        kinds.setdefault(each.kind, []).append(each)
    combined = (each for of_kind in kinds.values() for each in _merge_named_interests(_without_covered(of_kind)))
    return tuple(replace(each, indexes=indexes[each.kind]) for each in combined)


def objects_by_key(objects: Iterable[JSON], index: Index) -> Mapping[str, Sequence[JSON]]:
    """Return objects by the keys of an index, for a view that never changes."""
    keys: dict[str, list[JSON]] = {}
    for obj in objects:
        for key in index.keys(obj):
            keys.setdefault(key, []).append(obj)
    return keys


def _sort_key(interest: Interest) -> tuple[object, ...]:
    """Return a sort key: first interests in names, then in namespaces, then in labels, then in everything."""
    scope = interest.scope
    place = not scope.name, not scope.namespace, not scope.labels, scope
    return (*interest.kind, interest.gvk.version, *place)


def _without_covered(interests: Sequence[Interest]) -> list[Interest]:
    return [each for each in interests if not any(other is not each and other.covers(each) for other in interests)]


def _union_of_fields(some: Fields, other: Fields) -> Fields:
    if some is None or other is None:
        return None
    paths = some | other
    return frozenset(path for path in paths if not _includes_field(paths - {path}, path))


def _merge_named_interests(interests: Sequence[Interest]) -> Iterator[Interest]:
    """Replace too many interests in single objects by interests in whole namespaces."""
    named = [each for each in interests if each.scope.name]
    if len(named) > MOST_NAMED:
        namespaces = {each.scope.namespace for each in named}
        if len(namespaces) > MOST_NAMED or "" in namespaces:
            namespaces = {""}
        for namespace in sorted(namespaces):
            inside = [each for each in named if namespace in ("", each.scope.namespace)]
            fields = inside[0].fields
            for each in inside:
                fields = _union_of_fields(fields, each.fields)
            only = frozenset(each.scope for each in inside)
            yield Interest(inside[0].gvk, fields, scope=ObjectScope(namespace=namespace), only=only)
        interests = [each for each in interests if not each.scope.name]
    yield from interests
