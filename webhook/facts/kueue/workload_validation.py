"""What Kueue refuses of Workloads, and of changes of one that has quota.

Sources: kubernetes-sigs/kueue@ff69552e pkg/webhooks/workload_webhook.go, after whose functions these are named, and the
rules of config/components/crd/bases. Kueue writes Workloads itself; the status is a subresource that only it writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from webhook import quantity
from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.kueue.feature_gates import ELASTIC_JOBS, NON_NEGATIVE, PRIORITY_BOOST, is_on, unsaid
from webhook.facts.kueue.job_validation import annotations_of, is_elastic
from webhook.facts.kueue.objects import BOOST, GROUP
from webhook.facts.kueue.queue_validation import count_errors, spec_of
from webhook.facts.kueue.releases import most_pod_sets
from webhook.facts.kueue.reservations import condition, has_quota
from webhook.facts.pods.containers import containers
from webhook.facts.subject import Subject
from webhook.facts.values import mapping
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import change, counted

problem: Final = Group("kueue-queue").problem
_BOOST: Final = re.compile(r"[+-]?[0-9]{1,20}")
_BOOSTS: Final = range(-(2**31), 2**31)
_AMOUNTS: Final = frozenset(("requests", "limits", "overhead"))
"""Fields whose values are quantities, which are the same however they are written."""
_FIX: Final = "restore the old value, or create another Workload"
_OF_PODS: Final = ("scheduling.k8s.io", "PriorityClass")
_OF_WORKLOADS: Final = f"{GROUP}/workloadpriorityclass"


def validate_workload(subject: Subject) -> Iterator[Problem]:
    """As ValidateWorkload, of what does not depend on its status."""
    pod_sets, most = spec_of(subject).get("podSets", []), most_pod_sets(subject.assumptions.kueue)
    yield from count_errors("workload-pod-sets", ("spec", "podSets"), len(pod_sets), most, "pod set")
    partial = sum(each.get("minCount") is not None for each in pod_sets)
    if partial > 1:
        message = "must have at most one pod set with minCount"
        yield problem("workload-pod-sets", "spec.podSets", message, "keep one minCount")
    if partial and is_elastic(subject.object, subject):
        message = "must have no pod set with minCount because the Workload is of an elastic job"
        yield problem("workload-pod-sets", "spec.podSets", message, "remove minCount")
    for index, each in enumerate(subject.deadline.paced(pod_sets)):
        at: FieldPath = ("spec", "podSets", index)
        least, count = each.get("minCount"), each.get("count", 1)
        if least is not None and least > count:
            message = f"must not be above {count}, the count of the pod set"
            yield problem("workload-pod-sets", (*at, "minCount"), message, "lower minCount", least)
        yield from _validate_pod_resources(each.get("template", {}), (*at, "template"), subject)


def _validate_pod_resources(template: JSON, at: FieldPath, subject: Subject) -> Iterator[Problem]:
    """As validatePodSet: of its containers, and of the pod as a whole."""
    for container in subject.deadline.paced(containers(template)):
        yield from _validate_amounts(container.value, (*at, *container.path), subject)
    yield from _validate_amounts(mapping(get(template, ("spec",))), (*at, "spec"), subject)


def _validate_amounts(of: JSON, at: FieldPath, subject: Subject) -> Iterator[Problem]:
    for side in ("requests", "limits"):
        for name, value in subject.deadline.paced(mapping(get(of, ("resources", side))).items()):
            path = (*at, "resources", side, name)
            if name == "pods":
                message = "must not be set because Kueue counts pods under this name"
                yield problem("workload-resources", path, message, "remove the entry")
            amount = quantity.read(value)
            if amount is not None and amount.sign() < 0 and is_on(NON_NEGATIVE, subject):
                yield problem("workload-resources", path, "must not be negative", "set 0 or more", value)


def validate_priority_boost(subject: Subject) -> Iterator[Problem]:
    """The annotation is a signed number, where the gate for it is on."""
    given = annotations_of(subject.object).get(BOOST)
    if not isinstance(given, str) or is_placeholder(given):
        return
    if _BOOST.fullmatch(given) and int(given) in _BOOSTS:
        return
    path, message = ("metadata", "annotations", BOOST), "must be a whole number because it is added to the priority"
    if is_on(PRIORITY_BOOST, subject):
        yield problem(
            "priority-boost", path, message, "set a number such as 10 or -10, or remove the annotation", given
        )
    elif missing := unsaid(PRIORITY_BOOST, subject):
        yield problem("priority-boost", path, missing=missing)


def validate_workload_update(subject: Subject) -> Iterator[Problem]:
    """As ValidateWorkloadUpdate: what stays while quota is reserved."""
    old, new = subject.old_object, subject.object
    if old is None or not has_quota(old.get("status")):
        return
    before, after = mapping(old.get("spec")), spec_of(subject)
    yield from _validate_pod_sets(before, after, subject)
    is_kept, is_admitted = has_quota(new.get("status")), all(map(_is_admitted, (old, new)))
    if is_kept and before.get("queueName", "") != after.get("queueName", ""):
        yield _fixed(("spec", "queueName"), before.get("queueName"), after.get("queueName"))
    name = "maximumExecutionTimeSeconds"
    if is_admitted and before.get(name, 0) != after.get(name, 0):
        yield _fixed(("spec", name), before.get(name), after.get(name))
    yield from _validate_priority(before, after)


def _fixed(path: FieldPath, before: JSON, after: JSON) -> Problem:
    message = f"{change(before, after)} while quota is reserved"
    return problem("workload-immutable", path, message, _FIX)


def _is_admitted(obj: JSON) -> bool:
    return condition(obj.get("status"), "Admitted").get("status") == "True"


def _validate_pod_sets(before: Mapping[str, JSON], after: Mapping[str, JSON], subject: Subject) -> Iterator[Problem]:
    """As validateImmutablePodSets: an elastic job may have fewer pods."""
    old, new = before.get("podSets", []), after.get("podSets", [])
    if len(old) != len(new):
        count = counted(len(new), "entry", "entries")
        message = f"cannot change from {len(old)} to {count} because quota is reserved for these pods"
        yield problem("workload-immutable", "spec.podSets", message, _FIX)
        return
    for index, (one, other) in enumerate(zip(old, new, strict=True)):
        if other.get("count", 1) < one.get("count", 1) and is_on(ELASTIC_JOBS, subject):
            other = {**other, "count": one.get("count", 1)}  # noqa: PLW2901 - as upstream compares them
        changed = next(_differences(one, other, ("spec", "podSets", index), subject), None)
        if changed is not None:
            message = "cannot change because quota is reserved for the pods"
            yield problem("workload-immutable", changed, message, _FIX)


def _validate_priority(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> Iterator[Problem]:
    """The rules of both versions: only the name of a WorkloadPriorityClass may become another one."""
    at, old, new = ("spec", "priorityClassRef"), before.get("priorityClassRef"), after.get("priorityClassRef")
    if (old is None) != (new is None):
        yield _fixed(at, mapping(old).get("name"), mapping(new).get("name"))
    elif old is not None and new is not None:
        is_fixed = (new.get("group"), new.get("kind")) == _OF_PODS
        for name in ("group", "kind", *(("name",) if is_fixed else ())):
            if old.get(name) != new.get(name):
                yield _fixed((*at, name), old.get(name), new.get(name))
    for name in ("priorityClassSource", "priorityClassName"):  # of v1beta1
        is_fixed = name == "priorityClassSource" or after.get("priorityClassSource", _OF_WORKLOADS) != _OF_WORKLOADS
        if before.get(name) and after.get(name) and before[name] != after[name] and is_fixed:
            yield _fixed(("spec", name), before[name], after[name])


def _differences(old: JSON, new: JSON, at: FieldPath, subject: Subject) -> Iterator[FieldPath]:
    """Where two values differ; what is empty is as good as absent, and amounts compare by what they are worth."""
    subject.deadline.spend(1)
    if old == new or (not old and not new and not isinstance(old or new, int)):
        return
    if isinstance(old or {}, dict) and isinstance(new or {}, dict):
        one, other = old or {}, new or {}
        for name in sorted(one.keys() | other.keys()):
            yield from _differences(one.get(name), other.get(name), (*at, name), subject)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, (*at, index), subject)
    elif not _AMOUNTS.intersection(map(str, at)) or (quantity.read(old) or old) != (quantity.read(new) or new):
        yield at
