"""Finds the parts of an object that become pods but are not read.

Some controllers create pods from fields that are not pod templates. Other kinds have no row in the workload table. In
both cases the pods are unknown; the object does not count as an object without pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.cluster.known_kinds import CLUSTER_SCOPED, is_built_in
from webhook.deadline import Deadline
from webhook.rules.problem import MissingObject
from webhook.text.wording import some_of
from webhook.workloads.embedded import EmbeddedObject, embedded_objects
from webhook.workloads.podsets import (
    OF_RUNTIME,
    group_kind,
    partial_pod_templates,
    places_of_path,
    pod_templates,
)
from webhook.workloads.rows import Row
from webhook.workloads.table import Table

_WITH_WORKLOADS: Final = ("nvidia.com", "trainer.kubeflow.org")
"""API groups with workloads and with cluster-scoped kinds."""
_QUEUES: Final = frozenset(group for group, _ in CLUSTER_SCOPED if group not in _WITH_WORKLOADS)
"""API groups of other projects. Kinds of these groups that are not in the workload table create no pods: they are
queues, topologies or reports.
"""


def makes_no_pods(group: str, kind: str, table: Table) -> bool:
    """Return whether objects of a kind are known to create no pods, such as a ConfigMap or a ClusterQueue."""
    if table.row(group, kind) is not None:
        return False
    is_group_without_pods = group == "claimgate.dev" or group in _QUEUES
    return is_group_without_pods or is_built_in(GroupVersionKind(group, "", kind))


def looks_like_pods(obj: JSON) -> bool:
    """Return whether an object of an unknown kind has, at any depth, a field that is usual in objects with pods."""
    left, deadline = [obj], Deadline()
    while left:
        deadline.spend(1)
        value = left.pop()
        if isinstance(value, dict):
            if not _FIELDS_OF_PODS.isdisjoint(value):
                return True
            left += value.values()
        elif isinstance(value, list):
            left += value
    return False


_FIELDS_OF_PODS: Final = frozenset(("containers", "image", "podSpec", "podTemplate", "replicas", "resources"))


def unread_parts(obj: JSON, table: Table, deadline: Deadline) -> tuple[str, ...]:
    """Return the paths of the parts with pods that are not read, "" for the whole object; () if all pods are read.

    The pods of a TrainJob come from its runtime. Other facts report a missing runtime.
    """
    group, kind = group_kind(obj)
    row = table.row(group, kind)
    if row is None:
        return () if makes_no_pods(group, kind, table) else ("",)
    unread = [*_unread_parts_of_row(obj, row, table, deadline)]
    for inner in deadline.items_with_clock_checks(embedded_objects(obj, table, deadline)):
        unread += (inner.path + part for part in _unread_parts_of_row(inner.object, inner.row, table, deadline))
    return tuple(dict.fromkeys(map(path_as_text, deadline.charge_for_items(unread))))


def unread_pods(obj: JSON, table: Table, deadline: Deadline) -> Iterator[MissingObject]:
    """Yield why pods of the object, or of objects inside the object, are not known.

    For each kind, there are at most two reasons. A controller builds pods from parts, or a part that becomes pods is
    not a whole pod template. A patch changes some pods of a template. Kinds of Kubernetes always have whole templates.
    """
    row = table.row(*group_kind(obj))
    whole = [] if row is None else [EmbeddedObject(path=(), object=obj, row=row)]
    reasons: dict[str, str] = {}
    parts: dict[str, list[FieldPath]] = {}
    patches: dict[str, list[FieldPath]] = {}
    for each in deadline.charge_for_items([*whole, *embedded_objects(obj, table, deadline)]):
        of = each.row
        if has_pods_in_parts(of):
            reasons[of.kind] = f"{'builds pods from parts' if of.makes else 'has parts of pods'}, which are not read"
        elif of.podSets and not is_built_in(of.gvk):
            for part in _unread_parts_of_row(each.object, of, table, deadline):
                parts.setdefault(of.kind, []).append((*each.path, *part) if part else ())
            for patch in partial_pod_templates(each.object, table, deadline, of_runtime=False):
                patches.setdefault(of.kind, []).append((*each.path, *patch.path))
    for kind, places in parts.items():
        where = "" if () in places else f" at {_some_paths(places, deadline)}"
        reasons.setdefault(kind, f"has no whole pod template{where}")
    for kind, reason in reasons.items():
        yield MissingObject(kind=kind, name="", why=reason, is_absent=False)
    for kind, places in patches.items():
        text = f"patches some of its pods at {_some_paths(places, deadline)}, which is not read"
        yield MissingObject(kind=kind, name="", why=text, is_absent=False)


def _some_paths(places: list[FieldPath], deadline: Deadline) -> str:
    return some_of([*map(path_as_text, deadline.charge_for_items(places))], _MOST_PLACES)


_MOST_PLACES: Final = 5


def has_pods_in_parts(row: Row) -> bool:
    """Return whether no whole pod of a kind can be read. The controller builds the pods from parts or from other
    objects, or the objects are templates of such parts, as a WorkflowTemplate is.
    """
    is_merged = bool(row.objects) or any(fragment.of == OF_RUNTIME for fragment in row.fragments)
    return row.pods == "parts" or not (row.podSets or is_merged)


def _unread_parts_of_row(obj: JSON, row: Row, table: Table, deadline: Deadline) -> Iterator[FieldPath]:
    if row.objects or any(fragment.of == OF_RUNTIME for fragment in row.fragments):
        return
    if row.pods == "parts":
        yield ()
        return
    read: set[FieldPath] = set()
    for podset in deadline.charge_for_items(pod_templates(obj, table, deadline)):
        read.update(podset.path[:length] for length in range(len(podset.path) + 1))
    is_empty = not read
    for rule in row.podSets:
        for place in places_of_path(obj, rule.template, deadline=deadline):
            is_object = isinstance(place.value, dict) and place.value
            if not is_object or place.path in read:
                continue
            inner = group_kind(place.value)
            is_empty = False
            if rule.embeds != "object" or not (table.row(*inner) or makes_no_pods(*inner, table)):
                yield place.path
    if is_empty:
        yield ()
