"""Objects in files that a name may refer to, with the file of each.

The namespace of an object that says none is unknown: `kubectl apply` puts it into any. Objects with placeholders as
names are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.object_lists import objects_of_list
from webhook.apimachinery.paths import get as at
from webhook.cluster.known_kinds import CLUSTER_SCOPED
from webhook.cluster.naming import AS_WRITTEN, NameChanges, group_kind
from webhook.yamltext.placeholders import is_placeholder

Kind: TypeAlias = tuple[str, str]
NAMELESS: Final = frozenset((("config.kueue.x-k8s.io", "Configuration"),))
"""Kinds that no API server serves; their objects need no name."""
UNSAID: Final = None
"""The namespace of an object with an unknown namespace."""


class FileObject(Struct, frozen=True):
    """An object of a file.

    Args:
        file: the file of the object.
        namespace: its namespace, "" for a kind without namespaces, UNSAID if it is not known.
        name: its name in the file.
        value: the object.
        is_named: whether that is its name in the cluster.
    """

    file: str
    namespace: str | None
    name: str
    value: JSON
    is_named: bool = True


class FileObjects:
    """Objects indexed by kind and name, in the order in which they were read."""

    def __init__(self, objects: Iterable[FileObject]) -> None:
        self._kinds: Final[dict[Kind, dict[str, list[FileObject]]]] = {}
        self.files: Final[dict[int, str]] = {}
        for each in objects:
            self._kinds.setdefault(group_kind(each.value), {}).setdefault(each.name, []).append(each)
            self.files[id(each.value)] = each.file

    def objects_with_name(self, kind: Kind, name: str) -> Sequence[FileObject]:
        """Return the objects of a kind and a name."""
        return self._kinds.get(kind, {}).get(name, ())

    def of_kind(self, kind: Kind) -> Mapping[str, Sequence[FileObject]]:
        """Return the objects of a kind, by name."""
        return self._kinds.get(kind, {})


def objects_with_final_names(
    file: str, values: Iterable[JSON], naming: NameChanges = AS_WRITTEN
) -> Iterator[FileObject]:
    """Yield the objects of a file, with the names that kustomizations give them."""
    for value in values:
        for _, obj in objects_of_list(value):
            if isinstance(obj, dict) and "kind" in obj:
                yield from _file_object(file, naming.apply_to_object(obj), naming)


def _file_object(file: str, obj: JSON, naming: NameChanges) -> Iterator[FileObject]:
    kind, namespace = group_kind(obj), at(obj, ("metadata", "namespace"))
    name = "" if kind in NAMELESS else at(obj, ("metadata", "name"))
    is_scoped = kind in CLUSTER_SCOPED or kind in NAMELESS
    if isinstance(name, str) and not is_placeholder(name):
        says = isinstance(namespace, str) and namespace and naming.is_known
        where = "" if is_scoped else namespace if says else UNSAID
        yield FileObject(file, where, name, obj, naming.is_known)
