"""What Workloads with reserved quota use of each ClusterQueue, and which wait: asked where a view has Workloads.

Source: kubernetes-sigs/kueue@ff69552e pkg/workload/workload.go totalRequestsFromAdmission, HasQuotaReservation and
IsActive. Kueue sums the same Workloads up in the status of each ClusterQueue, which is read where a view has none, or
not all of them: a live one holds none, for they are many and change with every job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from webhook.attributes import JSON
from webhook.facts.kueue.objects import LOCAL_QUEUE, WORKLOAD
from webhook.facts.kueue.quota import FlavorResource
from webhook.facts.resource_units import amount
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.facts.view import View
from webhook.paths import get
from webhook.same import Same

Owner: TypeAlias = tuple[str, str, str, str]
"""Namespace, group, kind and name of the object that a Workload is made of."""
_KEPT_STATES: Final = 4


@dataclass(slots=True, eq=False)
class Reservations:
    """What Workloads use and how many wait.

    Args:
        usage: what is reserved, by ClusterQueue.
        holders: how many Workloads have quota, by ClusterQueue.
        admitted: the objects whose Workloads have quota.
        waiting: how many Workloads wait, by namespace and LocalQueue.
        queued: the objects whose Workloads wait.
    """

    usage: dict[str, Counter[FlavorResource]] = field(default_factory=dict)
    holders: Counter[str] = field(default_factory=Counter)
    admitted: set[Owner] = field(default_factory=set)
    waiting: Counter[tuple[str, str]] = field(default_factory=Counter)
    queued: set[Owner] = field(default_factory=set)

    @property
    def holding(self) -> int:
        """How many Workloads have quota."""
        return self.holders.total()


def reservations(view: View) -> Reservations | None:
    """What the Workloads of a view say, None where it has none."""
    listed = view.unnoted().all(WORKLOAD)
    return _read(Same(listed)) if listed else None


@lru_cache(maxsize=_KEPT_STATES)
def _read(workloads: Same) -> Reservations:
    made = Reservations()
    for each in map(mapping, workloads.held):
        spec, status = mapping(each.get("spec")), mapping(each.get("status"))
        if condition(status, "Finished").get("status") == "True":
            continue
        namespace = _namespace(each)
        if has_quota(status):
            queue = text(get(status, ("admission", "clusterQueue")))
            made.holders[queue] += 1
            made.admitted.update(_owners(each, namespace))
            made.usage.setdefault(queue, Counter()).update(_usage(spec, status))
        elif spec.get("active") is not False:
            made.waiting[namespace, text(spec.get("queueName"))] += 1
            made.queued.update(_owners(each, namespace))
    return made


def has_quota(status: JSON) -> bool:
    """Whether the status of a Workload says that quota is reserved for it."""
    return condition(status, "QuotaReserved").get("status") == "True"


def condition(status: JSON, kind: str) -> Mapping[str, JSON]:
    """The condition of a type, {} where there is none."""
    listed = map(mapping, items(mapping(status).get("conditions")))
    return next((each for each in listed if each.get("type") == kind), {})


def _namespace(obj: JSON) -> str:
    return text(get(obj, ("metadata", "namespace"))) or "default"


def _owners(workload: Mapping[str, JSON], namespace: str) -> Iterator[Owner]:
    for each in map(mapping, items(get(workload, ("metadata", "ownerReferences")))):
        group = text(each.get("apiVersion")).rpartition("/")[0]
        yield namespace, group, text(each.get("kind")), text(each.get("name"))


def _usage(spec: Mapping[str, JSON], status: Mapping[str, JSON]) -> Counter[FlavorResource]:
    """What was admitted, without pods that have ended and give their part back."""
    counts = {text(each.get("name")): each.get("count", 1) for each in map(mapping, items(spec.get("podSets")))}
    left = {**counts}
    for each in map(mapping, items(status.get("reclaimablePods"))):
        name = text(each.get("name"))
        left[name] = max(0, _whole(left.get(name)) - _whole(each.get("count")))
    used: Counter[FlavorResource] = Counter()
    for each in map(mapping, items(get(status, ("admission", "podSetAssignments")))):
        name, flavors = text(each.get("name")), mapping(each.get("flavors"))
        count = _whole(each.get("count", counts.get(name)))
        kept = min(count, _whole(left.get(name, count)))
        for resource, value in mapping(each.get("resourceUsage")).items():
            total = amount(resource, value) or 0
            used[text(flavors.get(resource)), resource] += total if kept == count else total // count * kept
    return used


def _whole(value: JSON) -> int:
    return value if isinstance(value, int) else 0


def owner(subject: Subject) -> Owner:
    """How the Workload of an object names it."""
    return subject.namespace or "default", *subject.group_kind, text(get(subject.object, ("metadata", "name")))


def is_admitted(subject: Subject, view: View) -> bool:
    """Whether the Workload of an object has quota already: Kueue has answered then."""
    known = reservations(view)
    return known is not None and owner(subject) in known.admitted


def waiting_before(subject: Subject, queue: str, view: View) -> int:
    """How many Workloads of a view other than the object's own wait for a ClusterQueue."""
    count = _waiting(Same(view.all(WORKLOAD)), Same(view.all(LOCAL_QUEUE)))[queue]
    return count - is_queued(subject, view)


def is_queued(subject: Subject, view: View) -> bool:
    """Whether the Workload of an object waits."""
    known = reservations(view)
    return known is not None and owner(subject) in known.queued


@lru_cache(maxsize=_KEPT_STATES)
def _waiting(workloads: Same, local_queues: Same) -> Counter[str]:
    """How many Workloads wait, by ClusterQueue."""
    waiting, made = _read(workloads).waiting, Counter[str]()
    for each in local_queues.held:
        made[text(get(each, ("spec", "clusterQueue")))] += waiting[
            _namespace(each), text(get(each, ("metadata", "name")))
        ]
    return made
