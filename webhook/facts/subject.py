"""The input of facts and checks: one object of one request, and everything that they may read.

Made once for each object and what is assumed of the cluster, and shared by all that ask: a fact, or another result that
several of them need, is computed once. An object is the request's own, one inside it, or a virtual Pod of a template.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from webhook.apimachinery.attributes import JSON, Attributes, GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.deadline import Deadline
from webhook.facts.assumptions import ClusterAssumptions
from webhook.facts.check import WORK
from webhook.facts.fact import FactResult
from webhook.facts.kinds import POD
from webhook.facts.registry import SHIPPED, ChecksOfKind, FactRegistry
from webhook.facts.view import ClusterView
from webhook.schema import Mismatch, decode_object
from webhook.typed.objects import Metadata, Object
from webhook.typed.pods import Pod
from webhook.typed.view import ReadingContext
from webhook.workloads.table import Table

_T = TypeVar("_T")
Whole = TypeVar("Whole", bound=Object)
_UNKNOWN: Final = object()


@dataclass(slots=True, kw_only=True, eq=False)
class Subject:
    """One object.

    Args:
        object: the object; null on DELETE.
        old_object: what it was before, null if it was not.
        attributes: kind, operation and namespace of the request; for a virtual Pod those of a Pod.
        cluster: the other objects of the cluster, as seen from the request's namespace.
        table: the kinds that hold pods.
        assumptions: releases, from the policy's param.
        pods: how many pods a virtual Pod represents, None if it is not known; 1 for other objects.
        template_of: the kind of the object that holds the template of a virtual Pod; None for other objects.
        pod_set: the name of the pod set of a virtual Pod, such as its role in a job; "" for other objects.
        is_decoded: whether an API server has decoded the object.
        is_patch: whether a virtual Pod is a part that is merged into a template of another object.
        registry: the existing facts and checks.
        mismatches: the values of wrong types; only checks about types run for such an object.
        deadline: every walk is charged to it.
        group_kind: group and kind of the object.
        checks: those about objects of its kind, by their groups.
        omitted: the places where `object` lacks a written part, a placeholder for a value of its type or a pod template
            that cannot be decoded: a check that reports a missing field reads this first.
        typed_objects: the object as types have read it; shared with the same object where something else is assumed.
        pod_parts: the rare parts of a Pod (typed/pod_parts.py); None before they are read.
        results: what `once` has computed, by its function, and what checks have said, by their groups.

    """

    object: JSON
    old_object: JSON
    attributes: Attributes
    cluster: ClusterView
    table: Table
    assumptions: ClusterAssumptions = field(default_factory=ClusterAssumptions)
    pods: int | None = 1
    template_of: GroupVersionKind | None = None
    pod_set: str = ""
    is_decoded: bool = False
    is_patch: bool = False
    registry: FactRegistry = SHIPPED
    mismatches: tuple[Mismatch, ...] = ()
    omitted: frozenset[FieldPath] = frozenset()
    typed_objects: dict[type[Object], Any] = field(default_factory=dict, repr=False)
    deadline: Deadline = field(init=False)
    group_kind: tuple[str, str] = field(init=False)
    checks: ChecksOfKind = field(init=False, repr=False)
    pod_parts: AbstractSet[str] | None = field(default=None, init=False, repr=False)
    results: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.deadline = self.cluster.deadline
        self.group_kind = self.attributes.kind.group, self.attributes.kind.kind
        self.checks = self.registry.checks_of_kind(self.group_kind, is_deleted=self.object is None)

    @property
    def namespace(self) -> str:
        """Return the namespace of the request, "" for cluster-scoped objects."""
        return self.attributes.namespace

    def cluster_view(self) -> ClusterView:
        """Return the cluster as seen from the object's namespace, with nothing noted as missing yet."""
        return self.cluster.copy_without_missing_objects()

    def typed(self, kind: type[Whole]) -> Whole:
        """Return the object with typed fields; it is false on DELETE."""
        known = self.typed_objects.get(kind)
        if known is None:
            reading = ReadingContext(self.deadline, self.omitted, self.is_decoded)
            known = self.typed_objects[kind] = kind.of(self.object, (), reading)
        typed: Whole = known
        return typed

    @property
    def reading_context(self) -> ReadingContext:
        """Return the context in which typed objects read the object: its deadline and its omitted fields."""
        return ReadingContext(self.deadline, self.omitted)

    @property
    def metadata(self) -> Metadata:
        """Return the object's metadata, as most checks of its kind read it."""
        return self.typed(Pod if self.group_kind == POD else Object).metadata

    def typed_old(self, kind: type[Whole]) -> Whole:
        """Return the old object with typed fields; it is false if there was none."""
        return kind.of(self.old_object, (), ReadingContext(self.deadline))

    def fact(self, name: str) -> JSON:
        """Return the value of a fact of the object."""
        return self.fact_result(name).value

    def fact_result(self, name: str) -> FactResult:
        """Return a fact of the object, with what it could not be computed from.

        Raises:
            KeyError: the fact does not exist.
        """
        return self.once(self.registry.fact(name).compute)

    def once(self, compute: Callable[[Subject], _T]) -> _T:
        """Return what a function computes from the object, which is computed when it is first asked for."""
        known: Any = self.results.get(compute, _UNKNOWN)
        if known is _UNKNOWN:
            until = self.deadline
            until.left -= WORK  # as `spend`, without a call; asked again once the time is up, a result costs nothing
            if until.left < 0:
                until.check_clock()
            known = self.results[compute] = compute(self)
        result: _T = known
        return result

    def subject_of_inner_object(self, obj: JSON) -> Subject:
        """Return the subject for an object inside this one, decoded as a separate object."""
        group, version, kind = (*str(obj["apiVersion"]).rpartition("/")[::2], str(obj["kind"]))
        return self.subject_of_other_object(
            decode_object(obj, GroupVersionKind(group, version, kind), self.deadline).value
        )

    def subject_of_other_object(
        self, obj: JSON, attributes: Attributes | None = None, template_of: GroupVersionKind | None = None
    ) -> Subject:
        """Return the subject for another decoded object in the same cluster, with the request's attributes unless
        given.
        """
        return Subject(
            object=obj,
            old_object=None,
            attributes=attributes or self.attributes,
            cluster=self.cluster,
            table=self.table,
            assumptions=self.assumptions,
            template_of=template_of,
            registry=self.registry,
        )
