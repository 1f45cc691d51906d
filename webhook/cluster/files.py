"""A view of objects from files of one cluster. An object that no file has may still exist.

An object without a namespace is in `default`, as with kubectl. A cluster-scoped object is looked up with any namespace,
because the API server clears the namespace in its metadata (k8s.io/apiserver v1.36 pkg/registry/rest/meta.go
EnsureObjectNamespaceMatchesRequestNamespace).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.object_lists import objects_of_list
from webhook.apimachinery.paths import get as at
from webhook.cluster.interest import Index, objects_by_key
from webhook.cluster.known_kinds import CLUSTER_SCOPED
from webhook.yamltext import yamlfile


class FilesCluster:
    """Objects by group, kind, namespace and name. If two objects have the same key, the first is used.

    `is_whole`: the cluster has no other objects.
    """

    def __init__(self, objects: Iterable[JSON | yamlfile.Document] = (), *, is_whole: bool = False) -> None:
        self._is_whole = is_whole
        self._files: dict[int, str] = {}
        self._objects: dict[tuple[str, str], dict[tuple[str, str], JSON]] = {}
        self._listed: dict[tuple[str, str], Mapping[str | None, Sequence[JSON]]] = {}
        self._indexed: dict[tuple[tuple[str, str], str | None, Index], Mapping[str, Sequence[JSON]]] = {}
        for item in objects:
            for _, obj in objects_of_list(item.value if isinstance(item, yamlfile.Document) else item):
                if not isinstance(obj, dict):
                    continue
                kind, place = object_identity(obj)
                first = self._objects.setdefault(kind, {}).setdefault(place, obj)
                if first is obj and isinstance(item, yamlfile.Document):
                    self._files[id(obj)] = item.file

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        by_place = self._objects.get((gvk.group, gvk.kind))
        return None if by_place is None else by_place.get((namespace or "default", name))

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:  # noqa: ARG002
        """Return the objects of a kind, sorted by namespace and name. `labels` is ignored."""
        kind = gvk.group, gvk.kind
        if kind not in self._objects:
            return ()
        if kind not in self._listed:
            self._listed[kind] = _objects_by_namespace(self._objects[kind])
        return self._listed[kind].get(None if namespace is None else namespace or "default", ())

    def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        """Return the objects that an index has under a key in a namespace (None: in all)."""
        if not (objects := self.list(gvk, namespace)):  # no empty index is stored: requests can name any namespace
            return ()
        index_key = (gvk.group, gvk.kind), namespace, index
        if index_key not in self._indexed:
            self._indexed[index_key] = objects_by_key(objects, index)
        return self._indexed[index_key].get(key, ())

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """Return whether an object of the kind has a namespace; None if the files have no such object."""
        objects = self._objects.get((gvk.group, gvk.kind), {}).values()
        return any(at(obj, ("metadata", "namespace")) for obj in objects) if objects else None

    def is_synced(self, gvk: GroupVersionKind) -> bool:  # noqa: ARG002 - files hold every kind
        """Return True: files are read first."""
        return True

    def revision(self, gvk: GroupVersionKind) -> object:  # noqa: ARG002 - the same for every kind
        """Return the view itself, which never changes."""
        return self

    def is_whole(self) -> bool:
        """Return whether the user says that the files are whole."""
        return self._is_whole

    def objects_in_other_files(self, gvk: GroupVersionKind) -> Sequence[JSON]:  # noqa: ARG002 - the same for every kind
        return ()

    def file_of_object(self, obj: JSON) -> str:
        return self._files.get(id(obj), "")


def object_identity(obj: JSON) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the identity of an object: group and kind, namespace and name."""
    kind = _group_of_object(obj), _text_or_empty(obj.get("kind"))
    namespace = None if kind in CLUSTER_SCOPED else at(obj, ("metadata", "namespace"))
    return kind, (_namespace_or_default(namespace), _text_or_empty(at(obj, ("metadata", "name"))))


def _group_of_object(obj: JSON) -> str:
    group, slash, _ = str(obj.get("apiVersion") or "").partition("/")
    return group if slash else ""


def _namespace_or_default(namespace: JSON) -> str:
    return _text_or_empty(namespace) or "default"


def _text_or_empty(value: JSON) -> str:
    # in a template that was not rendered, `{name}` is a map
    return value if isinstance(value, str) else ""


def _objects_by_namespace(objects: Mapping[tuple[str, str], JSON]) -> Mapping[str | None, Sequence[JSON]]:
    """Return objects by namespace, sorted by name. The key None has the objects of all namespaces."""
    places = sorted(objects)
    spaces: dict[str | None, list[JSON]] = {}
    for place in places:
        spaces.setdefault(place[0], []).append(objects[place])
    return {None: tuple(objects[place] for place in places), **{key: tuple(each) for key, each in spaces.items()}}
