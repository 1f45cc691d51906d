"""The view of the cluster from an object in a file: the objects of --context, of its own file, and of its unit.

The first layer that has an object with the name counts. If this layer has several different objects, or one with an
unknown namespace, the answer is unknown. An object is never known to be absent, unless the user says that the files are
whole. Then the files have all objects, and an object without a namespace is in `default`.

CustomResourceDefinitions and the Deployments of controllers are those of all files: a tree that defines a kind in one
folder, or installs its controller, uses it in others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from webhook.apimachinery.attributes import CRD, JSON, NAMESPACE, GroupVersionKind
from webhook.cluster.candidates import NAMELESS, UNSAID, FileObject, FileObjects
from webhook.cluster.controllers import DEPLOYMENT
from webhook.cluster.interest import Index, objects_by_key
from webhook.cluster.lookup import describe_lookup
from webhook.errors import AmbiguousObject, UnknownNamespaceOrName

DEFAULT: Final = "default"
Place: TypeAlias = tuple[str, str]
"""Namespace and name."""


class ClusterViewFromFile:
    """The view of the cluster from one file, or from one of its objects.

    Args:
        layers: the candidates, in the order in which they count.
        unsaid: the namespace of the request, although the namespace of the object is not known; "" if it is known.
        is_whole: whether there is nothing else.
        definitions: the CustomResourceDefinitions of all files.
        controllers: the Deployments of controllers with releases in the files, by namespace and name.
        configurations: the Configurations of Kueue in all files, for `elsewhere`.
        tell: is called with a description of the difference and the files that differ.
    """

    def __init__(
        self,
        layers: Sequence[FileObjects],
        *,
        unsaid: str = "",
        is_whole: bool = False,
        definitions: Sequence[JSON] = (),
        controllers: Mapping[Place, FileObject] | None = None,
        configurations: Sequence[JSON] = (),
        tell: Callable[[str, Sequence[str]], None] = lambda _what, _files: None,
    ) -> None:
        self._layers: Final = layers
        self._unsaid: Final = unsaid
        self._is_whole: Final = is_whole
        self._definitions: Final = definitions
        self._controllers: Final = controllers or {}
        self._configurations: Final = configurations
        self._tell: Final = tell
        self._listed: Final[dict[tuple[GroupVersionKind, str | None], Sequence[JSON]]] = {}
        self._indexed: Final[dict[tuple[GroupVersionKind, str | None, Index], Mapping[str, Sequence[JSON]]]] = {}

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return the object, or None if no file has it.

        Raises:
            UnknownNamespaceOrName: a candidate has an unknown namespace or name.
            Ambiguous: there are several candidates.
        """
        if gvk == NAMESPACE and name == self._unsaid:
            return None
        where = self._namespace_or_unknown(namespace)
        for layer in self._layers:
            if named := layer.objects_with_name((gvk.group, gvk.kind), name):
                if meant := [each for each in named if namespace == "" or self._namespace_of_object(each) == where]:
                    return self._require_unambiguous_object(meant, describe_lookup(gvk, namespace, name)).value
                what = describe_lookup(gvk, "" if where is UNSAID else namespace, name)
                self._check_namespaces(named, where, what)
        is_stated = gvk == DEPLOYMENT and (namespace, name) in self._controllers
        return self._controllers[namespace, name].value if is_stated else None

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:  # noqa: ARG002
        """Return the objects with a known namespace, by namespace and name.

        Raises:
            Ambiguous: one of them may be one of several that differ.
        """
        if (gvk.group, gvk.kind) == (CRD.group, CRD.kind):
            return self._definitions
        known = self._listed.get((gvk, namespace))
        if known is None:
            known = self._listed[gvk, namespace] = self._objects_of_namespace(gvk, namespace)
        return known

    def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        """Return the objects of `list` that an index has under a key.

        Raises:
            Ambiguous: one of the objects of `list` may be one of several that differ.
        """
        known = self._indexed.get((gvk, namespace, index))
        if known is None:
            known = self._indexed[gvk, namespace, index] = objects_by_key(self.list(gvk, namespace), index)
        return known.get(key, ())

    def _objects_of_namespace(self, gvk: GroupVersionKind, namespace: str | None) -> Sequence[JSON]:
        listed: dict[Place, FileObject] = {}
        for layer in self._layers:
            for place, meant in self._objects_by_place(gvk, layer, namespace).items():
                if place not in listed:
                    listed[place] = self._require_unambiguous_object(meant, describe_lookup(gvk, *place))
        return tuple(listed[place].value for place in sorted(listed))

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """Return whether an object of the kind in the files has a namespace."""
        kind = gvk.group, gvk.kind
        every = [each for layer in self._layers for named in layer.of_kind(kind).values() for each in named]
        return any(each.namespace for each in every) if every else None

    def is_synced(self, gvk: GroupVersionKind) -> bool:  # noqa: ARG002 - of every kind
        """Return True: files are read before the first lookup."""
        return True

    def revision(self, gvk: GroupVersionKind) -> object:  # noqa: ARG002 - of every kind
        """Return the view itself, since it never changes."""
        return self

    def is_whole(self) -> bool:
        """Return whether the user says that the files hold everything that the cluster has."""
        return self._is_whole

    def file_of_object(self, obj: JSON) -> str:
        """Return the name of the file that an object was read from."""
        stated = {id(each.value): each.file for each in self._controllers.values()}
        return next((layer.files[id(obj)] for layer in self._layers if id(obj) in layer.files), stated.get(id(obj), ""))

    def objects_in_other_files(self, gvk: GroupVersionKind) -> Sequence[JSON]:
        """Return the Configurations of Kueue in all files of the tree; no rule looks up other kinds so."""
        return self._configurations if (gvk.group, gvk.kind) in NAMELESS else ()

    def _namespace_or_unknown(self, namespace: str) -> str | None:
        return UNSAID if self._unsaid and namespace == self._unsaid else namespace

    def _namespace_of_object(self, each: FileObject) -> str | None:
        return DEFAULT if self._is_whole and each.namespace is UNSAID else each.namespace

    def _require_unambiguous_object(self, meant: Sequence[FileObject], what: str) -> FileObject:
        """Return the object that a name refers to; raise Ambiguous if there are different ones."""
        first = meant[0]
        if any(not each.is_named for each in meant):
            raise UnknownNamespaceOrName(f"{what}: kustomizations may give the one in {first.file} another name")
        if any(each.value != first.value for each in meant[1:]):
            files = list(dict.fromkeys(each.file for each in meant))
            self._tell(what, files)
            raise AmbiguousObject(f"{what} is defined differently in {' and '.join(files)}")
        return first

    def _check_namespaces(self, named: Iterable[FileObject], where: str | None, what: str) -> None:
        """Raise UnknownNamespaceOrName if it is not known whether an object is in the namespace."""
        for each in named:
            namespace = self._namespace_of_object(each)
            if (namespace is UNSAID) != (where is UNSAID):
                known = f"is in namespace {namespace}, and this object names none"
                why = "names no namespace" if namespace is UNSAID else known
                raise UnknownNamespaceOrName(f"{what}: the one in {each.file} {why}")

    def _objects_by_place(
        self, gvk: GroupVersionKind, layer: FileObjects, namespace: str | None
    ) -> Mapping[Place, Sequence[FileObject]]:
        """Return the objects of a kind by namespace and name, without those that may be absent."""
        places: dict[Place, list[FileObject]] = {}
        for each in self._visible_objects(gvk, layer):
            where = self._namespace_of_object(each)
            shown = self._unsaid if where is UNSAID else where
            if namespace is None or namespace == shown:
                places.setdefault((shown, each.name), []).append(each)
        return places

    def _visible_objects(self, gvk: GroupVersionKind, layer: FileObjects) -> Iterator[FileObject]:
        for named in layer.of_kind((gvk.group, gvk.kind)).values():
            for each in named:
                where = self._namespace_of_object(each)
                is_namesake = gvk == NAMESPACE and each.name == self._unsaid
                if not is_namesake and (where is not UNSAID or self._unsaid) and (where != self._unsaid or not where):
                    yield each
