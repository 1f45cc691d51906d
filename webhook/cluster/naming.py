"""The final names of objects in files after kustomizations, and the objects that a name may refer to.

A kustomization sets the namespace of its objects, and adds a prefix and a suffix to their names. Without
metadata.namespace, the namespace is unknown, because `kubectl apply` may use any namespace. Objects with placeholders
as names are left out.

Source: sigs.k8s.io/kustomize api v0.20 internal/konfig/builtinpluginconsts (namespace, nameprefix, namesuffix), and
internal/builtins/PrefixTransformer.go for kinds that keep their names. For a Namespace, the namespace of a
kustomization becomes the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.object_lists import objects_of_list
from webhook.apimachinery.paths import get as at
from webhook.cluster.known_kinds import CLUSTER_SCOPED, RELEASE_FIELDS
from webhook.yamltext.placeholders import is_placeholder

_NAMESPACE: Final = ("", "Namespace")
_KEEP_NAMES: Final = (
    _NAMESPACE,
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
)


class NameChanges(Struct, frozen=True, kw_only=True):
    """The changes of a name and namespace by kustomizations.

    Args:
        namespace: the new namespace; "" for no change.
        prefix, suffix: additions to the name.
        is_known: the final name is certain.
    """

    namespace: str = ""
    prefix: str = ""
    suffix: str = ""
    is_known: bool = True

    def combine_with_outer(self, outer: NameChanges) -> NameChanges:
        """Return these changes, followed by the changes of an outer kustomization. The outer namespace replaces the
        inner namespace.
        """
        return NameChanges(
            namespace=outer.namespace or self.namespace,
            prefix=f"{outer.prefix}{self.prefix}",
            suffix=f"{self.suffix}{outer.suffix}",
            is_known=self.is_known and outer.is_known,
        )

    def apply_to_object(self, obj: JSON) -> JSON:
        """Return an object with its final name. Without changes, return the same object."""
        metadata = obj.get("metadata") if isinstance(obj, dict) else None
        if not self.is_known or not isinstance(metadata, dict) or self == AS_WRITTEN:
            return obj
        kind, named = group_kind(obj), dict(metadata)
        if isinstance(name := metadata.get("name"), str) and kind not in _KEEP_NAMES:
            named["name"] = f"{self.prefix}{name}{self.suffix}"
        if self.namespace and kind == _NAMESPACE:
            named["name"] = self.namespace
        elif self.namespace and kind not in CLUSTER_SCOPED:
            named["namespace"] = self.namespace
        return obj if named == metadata else {**obj, "metadata": named}


AS_WRITTEN: Final = NameChanges()
UNKNOWN: Final = NameChanges(is_known=False)


def group_kind(obj: Mapping[str, JSON]) -> tuple[str, str]:
    """Return group and kind; "" for a value of another type."""
    version, kind = obj.get("apiVersion"), obj.get("kind")
    group, slash, _ = version.partition("/") if isinstance(version, str) else ("", "", "")
    return group if slash else "", kind if isinstance(kind, str) else ""


Kind: TypeAlias = tuple[str, str]
_FIELDS_OF_OBJECTS: Final = ("metadata", "spec")
"""Where the path to a release begins in objects of an API server. The other kinds with a release have no metadata."""
NAMELESS: Final = frozenset(
    (kind.group, kind.kind) for kind, at in RELEASE_FIELDS.items() if at[0] not in _FIELDS_OF_OBJECTS
) | {("config.kueue.x-k8s.io", "Configuration")}
"""Kinds of configuration files, which no API server serves. Objects of these kinds need no name."""
IN_OTHER_FILES: Final = frozenset(
    (
        *NAMELESS,
        *((kind.group, kind.kind) for kind in RELEASE_FIELDS),
        ("serving.kserve.io", "ClusterStorageContainer"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("helm.toolkit.fluxcd.io", "HelmRelease"),
        ("argoproj.io", "Application"),
    )
)
"""Kinds of objects that a platform team installs once, and of objects that create a cluster. If any file of a tree
has such an object, the object may be in the cluster, or may have created the cluster.
"""
UNSAID: Final = None
"""An unknown namespace."""


class FileObject(Struct, frozen=True):
    """An object of a file.

    Args:
        file: the name of the file.
        namespace: "" for a cluster-scoped kind, UNSAID if unknown.
        name: the name of the object in the file.
        value: the object.
        is_named: `name` is certainly also the name in the cluster.
    """

    file: str
    namespace: str | None
    name: str
    value: JSON
    is_named: bool = True


class FileObjects:
    """Objects by kind and name, in the order of reading."""

    def __init__(self, objects: Iterable[FileObject]) -> None:
        self._kinds: Final[dict[Kind, dict[str, list[FileObject]]]] = {}
        self.files: Final[dict[int, str]] = {}
        for each in objects:
            self._kinds.setdefault(group_kind(each.value), {}).setdefault(each.name, []).append(each)
            self.files[id(each.value)] = each.file

    def objects_with_name(self, kind: Kind, name: str) -> Sequence[FileObject]:
        return self._kinds.get(kind, {}).get(name, ())

    def objects_of_every_group(self, kind: str, name: str) -> Iterator[FileObject]:
        """Yield the objects with a kind and a name, of any API group."""
        for (_, other), named in self._kinds.items():
            yield from named.get(name, ()) if other == kind else ()

    def of_kind(self, kind: Kind) -> Mapping[str, Sequence[FileObject]]:
        return self._kinds.get(kind, {})


def objects_with_final_names(
    file: str, values: Iterable[JSON], naming: NameChanges = AS_WRITTEN
) -> Iterator[FileObject]:
    """Yield the objects of a file with their final names."""
    for value in values:
        for _, obj in objects_of_list(value):
            if isinstance(obj, dict) and "kind" in obj:
                yield from _file_object(file, naming.apply_to_object(obj), naming)


def _file_object(file: str, obj: JSON, naming: NameChanges) -> Iterator[FileObject]:
    kind, namespace = group_kind(obj), at(obj, ("metadata", "namespace"))
    name = "" if kind in NAMELESS else at(obj, ("metadata", "name"))
    is_scoped = kind in CLUSTER_SCOPED or kind in NAMELESS
    if isinstance(name, str) and not is_placeholder(name):
        names_namespace = isinstance(namespace, str) and namespace and naming.is_known
        namespace_or_unknown = "" if is_scoped else namespace if names_namespace else UNSAID
        yield FileObject(file, namespace_or_unknown, name, obj, naming.is_known)
