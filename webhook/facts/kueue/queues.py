"""The ClusterQueues and cohorts of a cluster as trees of quota, made once for each state of the cluster.

A view gives the same sequence of objects until one of them changes: what is made of it is kept under that sequence, and
what is made of one object under that object. A cohort that is named exists, whether there is a Cohort or not
(kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy). Stopped and inactive ClusterQueues still lend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from webhook.attributes import JSON, GroupVersionKind
from webhook.facts.kueue.objects import CLUSTER_QUEUE, COHORT
from webhook.facts.kueue.quota import FlavorResource, Node, Quota, Tree, adopt
from webhook.facts.kueue.reservations import Reservations, reservations
from webhook.facts.resource_units import amount
from webhook.facts.values import items, mapping, text
from webhook.facts.view import View
from webhook.paths import get
from webhook.same import Same

_KEPT_STATES: Final = 4
"""States of the cluster: an audit has one, a server the one before while it changes."""
_KEPT_OBJECTS: Final = 8192


@dataclass(frozen=True, slots=True)
class Group:
    """A resource group: the resources that it covers and the flavors in which they are tried."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Declared:
    """What a ClusterQueue or a Cohort says, read.

    Args:
        name: its name.
        spec: its spec, decoded.
        above: the cohort that it belongs to, "" for none.
        groups: its resource groups.
        quotas: what it says of each flavor's resource.
        usage: what its status says is reserved.
        status: its status as it is.
    """

    name: str
    spec: Mapping[str, JSON]
    above: str
    groups: tuple[Group, ...]
    quotas: Mapping[FlavorResource, Quota]
    usage: Mapping[FlavorResource, int]
    status: Mapping[str, JSON]

    def group_of(self, resource: str) -> Group | None:
        """The group that covers a resource."""
        return next((each for each in self.groups if resource in each.resources), None)


@lru_cache(maxsize=_KEPT_OBJECTS)
def _declared(key: Same, kind: GroupVersionKind) -> Declared:
    return declared(key.held, kind)


def declared(obj: JSON, kind: GroupVersionKind) -> Declared:
    """What a ClusterQueue or a Cohort says; what is not of its type says nothing."""
    spec, status = mapping(obj.get("spec")), mapping(obj.get("status"))
    above = spec.get("parentName") if kind is COHORT else spec.get("cohortName") or spec.get("cohort")
    groups = [mapping(each) for each in items(spec.get("resourceGroups"))]
    return Declared(
        name=name_of(obj),
        spec=spec,
        above=text(above),
        groups=tuple(_group(each) for each in groups),
        quotas=dict(_quotas(groups)),
        usage=dict(_usage(status)),
        status=status,
    )


def _group(group: Mapping[str, JSON]) -> Group:
    flavors = (text(mapping(each).get("name")) for each in items(group.get("flavors")))
    return Group(tuple(map(text, items(group.get("coveredResources")))), tuple(flavors))


def name_of(obj: JSON) -> str:
    """The name of an object."""
    return text(get(obj, ("metadata", "name")))


def _quotas(groups: Sequence[Mapping[str, JSON]]) -> Iterator[tuple[FlavorResource, Quota]]:
    for group in groups:
        for flavor in map(mapping, items(group.get("flavors"))):
            of = text(flavor.get("name"))
            for each in map(mapping, items(flavor.get("resources"))):
                name = text(each.get("name"))
                yield (of, name), _quota(name, each)


def _quota(resource: str, given: Mapping[str, JSON]) -> Quota:
    nominal, borrowing, lending = map(given.get, ("nominalQuota", "borrowingLimit", "lendingLimit"))
    return _made_quota(resource == "cpu", *map(_scalar, (nominal, borrowing, lending)))


def _scalar(value: JSON) -> str | float | None:
    return value if isinstance(value, str | int | float) else None


@lru_cache(maxsize=4096, typed=True)
def _made_quota(
    is_cpu: bool, nominal: str | float | None, borrowing: str | float | None, lending: str | float | None
) -> Quota:
    """Queues have few different quotas, and thousands of them are read at once."""
    resource = "cpu" if is_cpu else ""
    return Quota(
        nominal=amount(resource, nominal) or 0,
        borrowing_limit=amount(resource, borrowing),
        lending_limit=amount(resource, lending),
    )


def _usage(status: Mapping[str, JSON]) -> Iterator[tuple[FlavorResource, int]]:
    for flavor in map(mapping, items(status.get("flavorsReservation"))):
        for each in map(mapping, items(flavor.get("resources"))):
            name = text(each.get("name"))
            yield (text(flavor.get("name")), name), amount(name, each.get("total")) or 0


@dataclass(slots=True, eq=False)
class Queues:
    """All ClusterQueues and cohorts. Trees are made when they are first asked for.

    Args:
        cluster_queues: by name.
        cohorts: Cohorts by name; a cohort need not have one.
        members: ClusterQueues by the name of their cohort.
        below: Cohorts by the name of their parent.
        reserved: what Workloads use, in place of what the status of the ClusterQueues says; None without Workloads,
            or where a status counts more of them.
    """

    cluster_queues: Mapping[str, Declared]
    cohorts: Mapping[str, Declared]
    members: dict[str, list[Declared]] = field(default_factory=dict)
    below: dict[str, list[Declared]] = field(default_factory=dict)
    reserved: Reservations | None = None
    _trees: dict[str, Tree | None] = field(default_factory=dict)
    _nodes: dict[str, Node] = field(default_factory=dict)

    def placed(self, name: str) -> tuple[Tree, Node] | None:
        """The tree that a ClusterQueue is in, and its node; None where its cohorts have a cycle.

        Raises:
            KeyError: there is no such ClusterQueue.

        """
        queue = self.cluster_queues[name]
        tree = self.tree_of(queue.above) if queue.above else self._alone(queue)
        return None if tree is None else (tree, self._nodes[name])

    def _alone(self, queue: Declared) -> Tree:
        node = self._nodes.get(queue.name)
        if node is None:
            node = self._nodes[queue.name] = self._node(queue)
            self._trees[f"/{queue.name}"] = Tree(node)
        return self._trees[f"/{queue.name}"] or Tree(node)

    def tree_of(self, cohort: str) -> Tree | None:
        """The whole tree that a cohort is in; None where it has a cycle."""
        root = self.root_of(cohort)
        if root is None:
            return None
        tree = self._trees.get(root)
        if tree is None:
            tree = self._trees[root] = Tree(self._grown(root))
        return tree

    def root_of(self, cohort: str) -> str | None:
        """The name of the cohort at the root above one; None where the parents lead back."""
        seen = set()
        while cohort not in seen:
            seen.add(cohort)
            above = self.cohorts[cohort].above if cohort in self.cohorts else ""
            if not above:
                return cohort
            cohort = above
        return None

    def cycle_above(self, cohort: str) -> tuple[str, ...]:
        """The cohorts, each before its parent, whose parents lead back to the first; () where none do."""
        seen: dict[str, int] = {}
        while cohort and cohort not in seen:
            seen[cohort] = len(seen)
            cohort = self.cohorts[cohort].above if cohort in self.cohorts else ""
        return tuple(seen)[seen[cohort] :] if cohort else ()

    def _grown(self, root: str) -> Node:
        top = self._cohort(root)
        waiting = [top]
        while waiting:
            node = waiting.pop()
            for queue in self.members.get(node.name, ()):
                child = self._nodes[queue.name] = self._node(queue)
                adopt(node, child)
            for cohort in self.below.get(node.name, ()):
                child = self._cohort(cohort.name)
                adopt(node, child)
                waiting.append(child)
        return top

    def _cohort(self, name: str) -> Node:
        known = self.cohorts.get(name)
        return Node(name=name, is_cohort=True, quotas=known.quotas if known else {})

    def _node(self, queue: Declared) -> Node:
        usage = queue.usage if self.reserved is None else self.reserved.usage.get(queue.name, {})
        return Node(name=queue.name, quotas=queue.quotas, usage=usage)


def queues(view: View) -> Queues:
    """The queues of a view's cluster; what cannot be looked up is missing in the view."""
    return _made(Same(view.all(CLUSTER_QUEUE)), Same(view.all(COHORT)), Same(reservations(view)))


@lru_cache(maxsize=_KEPT_STATES)
def _made(cluster_queues: Same, cohorts: Same, reserved: Same) -> Queues:
    listed = [_declared(Same(each), CLUSTER_QUEUE) for each in cluster_queues.held if isinstance(each, dict)]
    above = [_declared(Same(each), COHORT) for each in cohorts.held if isinstance(each, dict)]
    known = reserved.held if _are_all(reserved.held, listed) else None
    made = Queues({each.name: each for each in listed}, {each.name: each for each in above}, reserved=known)
    for queue in listed:
        made.members.setdefault(queue.above, []).append(queue)
    for cohort in above:
        if cohort.above:
            made.below.setdefault(cohort.above, []).append(cohort)
    return made


def _are_all(reserved: Reservations | None, listed: Sequence[Declared]) -> bool:
    """Whether there are as many Workloads with quota as each ClusterQueue counts."""
    if reserved is None:
        return False
    counts = ((each.name, each.status.get("reservingWorkloads")) for each in listed)
    return all(reserved.holders[name] >= count for name, count in counts if isinstance(count, int))
