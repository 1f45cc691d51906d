"""The cluster as facts see it. Look-ups note missing objects, and which fields of a fact needed the objects.

An absent object and an object that could not be looked up are both missing, for different reasons. A fact is still
computed, as if a missing object did not exist. Results of look-ups are reused within a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON, NAMESPACE, GroupVersionKind
from webhook.cluster import Cluster
from webhook.cluster.interest import BY_NAME, Index, interest_in_fields
from webhook.cluster.known_kinds import is_cluster_scoped
from webhook.cluster.layered import AssumedNamespace
from webhook.cluster.packed import charge_for_objects, places_of_objects
from webhook.cluster.site_params import OWN_NAMESPACE
from webhook.deadline import Deadline
from webhook.errors import AmbiguousObject, DifferentDefinitions, LookupFailed
from webhook.facts.fact import Missing
from webhook.rules.problem import MissingObject
from webhook.text.similar_names import nearest_name
from webhook.typed.collections import Items
from webhook.typed.objects import Object
from webhook.typed.view import ReadingContext

T = TypeVar("T")
Whole = TypeVar("Whole", bound=Object)
_UNKNOWN: Final = object()
NAMESPACES = interest_in_fields(NAMESPACE, "metadata.labels", 'metadata.annotations["openshift.io/sa.scc.uid-range"]')
"""The parts of namespaces that facts read. OpenShift sets the annotation in each namespace."""
_MOST_COMPARED: Final = 20_000
"""The most names that one request compares with unknown names to suggest similar names. These comparisons take some
hundredths of a second.
"""


class _SeenObjects(Struct):
    """The objects of the cluster that the facts of one request have read."""

    objects: dict[tuple[GroupVersionKind, str, str], JSON] = field(default_factory=dict)
    lists: dict[GroupVersionKind, Sequence[JSON]] = field(default_factory=dict)
    results: dict[object, JSON] = field(default_factory=dict)
    failed: set[GroupVersionKind] = field(default_factory=set)
    compared: int = 0


class ClusterView(Struct):
    """Look-ups in the cluster, as seen from one namespace, until a deadline.

    `noted` has the missing objects, with the name of the field that needed the objects as key. `fields` are the fields
    of the fact that are computed now.

    A message may contain only what its reader may see. So messages may name only objects that `list_visible` returns.
    Without a namespace, `list_json` and `list_typed` list all namespaces; use the result for sums only.
    `sees_all_namespaces`: the reader is an administrator, as in an audit. `own_namespace` is the namespace where
    claimgate runs.
    """

    cluster: Cluster
    namespace: str
    deadline: Deadline = field(default_factory=Deadline)
    fields: tuple[str, ...] = ("",)
    noted: dict[str, dict[MissingObject, None]] = field(default_factory=dict)
    _seen: _SeenObjects = field(default_factory=_SeenObjects)
    sees_all_namespaces: bool = False
    own_namespace: str = OWN_NAMESPACE

    def copy_without_missing_objects(self) -> ClusterView:
        """Return a copy of the view without noted missing objects: for another fact, or for look-ups that should not
        report missing objects.
        """
        return ClusterView(
            self.cluster,
            self.namespace,
            self.deadline,
            _seen=self._seen,
            sees_all_namespaces=self.sees_all_namespaces,
            own_namespace=self.own_namespace,
        )

    def for_fields(self, *fields: str) -> ClusterView:
        """Return the view for look-ups that only these fields need."""
        return ClusterView(
            self.cluster,
            self.namespace,
            self.deadline,
            fields,
            self.noted,
            self._seen,
            self.sees_all_namespaces,
            self.own_namespace,
        )

    def missing_objects_by_field(self) -> Missing:
        """Return the missing objects, by field."""
        return {name: tuple(objects) for name, objects in self.noted.items()}

    def all_missing_objects(self) -> tuple[MissingObject, ...]:
        """Return the missing objects of all fields."""
        return tuple(each for objects in self.noted.values() for each in objects)

    def get(
        self, gvk: GroupVersionKind, name: str, *, namespaced: bool = True, namespace: str | None = None
    ) -> JSON | None:
        """Return an object of the given namespace, by default of the request's namespace. If the object is not found,
        return None and note the object as missing.
        """
        self.deadline.spend(1)
        if namespace is None:
            namespace = self.namespace if namespaced else ""
        try:
            result = self._look_up_object(gvk, namespace, name)
        except LookupFailed as failure:
            self._seen.failed.add(gvk)
            self.note_missing(_object_not_looked_up(gvk, namespace, name, failure))
            return None
        if result is None:
            self.note_missing(MissingObject(kind=gvk.kind, namespace=namespace, name=name))
        return result

    def find(self, kind: type[Whole], name: str, *, namespaced: bool = True, namespace: str | None = None) -> Whole:
        """Return the result of `get` with typed fields; the result is false if the object is absent or not known."""
        obj = self.get(kind.gvk, name, namespaced=namespaced, namespace=namespace)
        return kind.of(obj, (), ReadingContext(self.deadline))

    def list_visible(self, kind: type[Whole]) -> Items[Whole]:
        """Return the result of `list_visible_json` with typed fields."""
        reading = ReadingContext(self.deadline)
        return Items(
            [kind(obj, (), reading) for obj in charge_for_objects(self.list_visible_json(kind.gvk), self.deadline)],
            self.deadline,
        )

    def list_typed(self, kind: type[Whole], namespace: str | None = None) -> Items[Whole]:
        """Return the result of `list_json` with typed fields."""
        reading = ReadingContext(self.deadline)
        listed = charge_for_objects(self.list_json(kind.gvk, namespace), self.deadline)
        return Items([kind.of(obj, (), reading) for obj in listed], self.deadline)

    def _look_up_object(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON:
        objects, key = self._seen.objects, (gvk, namespace, name)
        known = objects.get(key, _UNKNOWN)
        if known is _UNKNOWN:
            known = objects[key] = self.cluster.get(gvk, namespace, name)
        return known

    def list_json(self, gvk: GroupVersionKind, namespace: str | None = None) -> Sequence[JSON]:
        """Return the objects of a namespace, or of all namespaces. If the objects are not known, return () and note the
        kind as missing.

        The same call returns the same sequence until the cluster changes, so that callers can cache results.
        """
        self.deadline.spend(1)
        try:
            return self.cluster.list(gvk, namespace)
        except LookupFailed as failure:
            self._seen.failed.add(gvk)
            self.note_missing(_object_not_looked_up(gvk, namespace or "", "", failure))
            return ()

    def get_without_noting(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return an object; None if it does not exist or is not known. Do not note it as missing."""
        self.deadline.left -= 1
        try:
            return self._look_up_object(gvk, namespace, name)
        except LookupFailed:
            self._seen.failed.add(gvk)
            return None

    def has_no_object(self, gvk: GroupVersionKind, namespace: str, name: str) -> bool:
        """Return whether the view has no object with this name; False if this is not known. Note nothing."""
        self.deadline.left -= 1
        try:
            return self._look_up_object(gvk, namespace, name) is None
        except LookupFailed:
            return False

    def is_absent(self, gvk: GroupVersionKind, namespace: str, name: str) -> bool:
        """Return whether an object is known not to exist: the view has all objects, and not this one. Note nothing."""
        return self.has_no_object(gvk, namespace, name) and self.is_whole(gvk)

    def has_any(self, gvk: GroupVersionKind, namespace: str) -> bool:
        """Return whether a namespace is known to have an object of a kind. Do not note missing objects.

        If several files define an object with different contents, the result is True.
        """
        self.deadline.left -= 1
        try:
            return bool(self.cluster.list(gvk, namespace))
        except LookupFailed as failure:
            self._seen.failed.add(gvk)
            return isinstance(failure, DifferentDefinitions)

    def list_visible_json(self, gvk: GroupVersionKind) -> Sequence[JSON]:
        """Return the objects of a kind that a message may name; () if the objects are not known.

        A message may name cluster-scoped objects and the objects of the request's namespace. A message for
        administrators may name objects of all namespaces.
        """
        listed = self._seen.lists.get(gvk)
        if listed is None:
            try:
                is_wide = self.sees_all_namespaces or is_cluster_scoped(gvk) or self.cluster.is_namespaced(gvk) is False
                listed = (
                    self.cluster.list(gvk, None if is_wide else self.namespace) if is_wide or self.namespace else ()
                )
            except LookupFailed:
                self._seen.failed.add(gvk)
                listed = ()
            self._seen.lists[gvk] = listed
        return listed

    def list_json_here(self, gvk: GroupVersionKind) -> Sequence[JSON]:
        """Return the objects of the request's namespace, or the cluster-scoped objects. If the objects are not known,
        return (), and from then on `is_whole` of the kind is False.
        """
        try:
            return self.cluster.list(gvk, None if is_cluster_scoped(gvk) else self.namespace)
        except LookupFailed:
            self._seen.failed.add(gvk)
            return ()

    def typed_here(self, kind: type[Whole]) -> Iterator[Whole]:
        """Yield the result of `list_json_here` with typed fields."""
        reading = ReadingContext(self.deadline)
        for obj in charge_for_objects(self.list_json_here(kind.gvk), self.deadline):
            yield kind(obj, (), reading)

    def nearest_here(self, name: str, gvk: GroupVersionKind) -> str:
        """Return the name in the request's namespace that is similar to an unknown name; "" if no name is similar."""
        names = (name for _, name in places_of_objects(self.list_json_here(gvk)))
        # in a file, a name may be any value
        return self.nearest(name, (each for each in names if isinstance(each, str)))

    def typed_under_key(self, kind: type[Whole], index: Index, key: str) -> Iterator[Whole]:
        """Yield the objects of `list_json_here` that an index has under a key."""
        reading = ReadingContext(self.deadline)
        try:
            matching = self.cluster.list_indexed(kind.gvk, self.namespace, index, key)
        except LookupFailed:
            self._seen.failed.add(kind.gvk)
            return
        for obj in charge_for_objects(matching, self.deadline):
            yield kind(obj, (), reading)

    def namespaces_with(self, gvk: GroupVersionKind, name: str) -> Sequence[str]:
        """Return the namespaces that have an object with a name; "" for an object without a namespace in its file.
        Return () if the objects are not known, or if the reader is not an administrator.
        """
        if not self.sees_all_namespaces:
            return ()
        try:
            matching = self.cluster.list_indexed(gvk, None, BY_NAME, name)
        except LookupFailed:
            return ()
        namespaces = [namespace for namespace, _ in self.deadline.items_with_clock_checks(places_of_objects(matching))]
        return [each for each in namespaces if isinstance(each, str)]

    def find_namespace(self, name: str) -> JSON | None:
        """Return a Namespace if more than its name is known, otherwise None. Do not note it as missing."""
        namespace = self.get_without_noting(NAMESPACE, "", name)
        return None if isinstance(namespace, AssumedNamespace) else namespace

    def is_whole(self, kind: GroupVersionKind | None = None) -> bool:
        """Return whether all objects are known, so that an object exists only if a look-up finds it. All objects are
        known in a live cluster, or if the user says that the files are complete.

        Args:
            kind: the kind of the object. If a look-up of this kind failed in the request, the result is False.
        """
        return (kind is None or kind not in self._seen.failed) and self.cluster.is_whole()

    def may_lack(self, kind: GroupVersionKind, name: str) -> bool:
        """Return whether incomplete files lack a cluster-scoped object. Do not note it as missing.

        The result is False in a live cluster, and if several files define the object differently.
        """
        if self.is_whole() or kind in self._seen.failed:
            return False
        return self.get_without_noting(kind, "", name) is None and kind not in self._seen.failed

    def lacks(self, kind: GroupVersionKind, name: str) -> bool:
        """Return whether it is known that a cluster-scoped object does not exist. Note an object that is not found as
        missing.
        """
        return self.get(kind, name, namespaced=False) is None and self.is_whole(kind)

    def name_with_file(self, kind: GroupVersionKind, name: str, namespace: str = "") -> str:
        """Name an object for a message, with its file if it comes from a file: "Queue `a` in queues.yaml"."""
        return f"{kind.kind} `{name}`{self.file_of_object_as_text(self.get_without_noting(kind, namespace, name))}"

    def is_of_file(self, obj: JSON) -> bool:
        """Return whether an object comes from a file. Then a missing status means nothing."""
        return bool(self.cluster.file_of_object(obj))

    def file_of_object_as_text(self, obj: JSON) -> str:
        """Return the file of an object for a message: " in queues.yaml"; "" for an object of a live cluster."""
        file = self.cluster.file_of_object(obj) if obj else ""
        return f" in {file}" if file else ""

    def files_of_objects_as_text(self, objects: Sequence[JSON]) -> str:
        """Return the files of objects for a message: " in nodes.yaml and 2 other files"; "" for objects of a live
        cluster.
        """
        files = dict.fromkeys(filter(None, map(self.cluster.file_of_object, self.deadline.charge_for_items(objects))))
        if not files:
            return ""
        first, *others = files
        more = f" and {len(others)} other file{'s' * (len(others) > 1)}" if others else ""
        return f" in {first}{more}"

    def note_missing(self, *missing: MissingObject) -> None:
        """Note objects that could not be found, for the fields that are being computed."""
        for name in self.fields:
            self.noted.setdefault(name, {}).update(dict.fromkeys(missing))

    def nearest(self, name: str, known: Iterable[str]) -> str:
        """Return the known name that is similar to an unknown name; "" if no known name is similar, or if the request
        has already compared _MOST_COMPARED names.
        """
        if self._seen.compared >= _MOST_COMPARED:
            return ""
        compared = list(islice(known, _MOST_COMPARED - self._seen.compared))
        self._seen.compared += len(compared)
        return nearest_name(name, self.deadline.items_with_clock_checks(compared))

    def once(self, key: object, make: Callable[[], T]) -> T:
        """Return the result of `make`, computed once for each key in a request. The key has all inputs of `make`."""
        known: Any = self._seen.results.get(key, _UNKNOWN)
        if known is _UNKNOWN:
            known = self._seen.results[key] = make()
        result: T = known
        return result

    def remembered(self, key: object) -> JSON | None:
        """Return the value that a fact of this request has stored under a key, or None."""
        return self._seen.results.get(key)

    def remember(self, key: object, value: JSON) -> None:
        """Store a value for the other facts of this request. The value must depend only on objects of the cluster."""
        self._seen.results[key] = value


def _object_not_looked_up(gvk: GroupVersionKind, namespace: str, name: str, failure: LookupFailed) -> MissingObject:
    """Return the missing object after a failed look-up. If several objects may be meant, the object is not absent."""
    why = f"not looked up: {failure}"
    is_absent = not isinstance(failure, AmbiguousObject)
    return MissingObject(kind=gvk.kind, namespace=namespace, name=name, why=why, is_absent=is_absent)
