"""Rules of Kueue for Workloads: their pod sets, their priority, and changes of a Workload that has quota.

Source: kubernetes-sigs/kueue@ff69552e pkg/webhooks/workload_webhook.go and the rules of config/components/crd/bases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.facts.kueue.configuration import (
    ELASTIC_JOBS_GATE,
    NON_NEGATIVE_RESOURCES_GATE,
    PRIORITY_BOOST_GATE,
    is_gate_on,
    may_gate_be_on,
    missing_configuration_of_gate,
)
from webhook.facts.kueue.groups import KUEUE_QUEUE
from webhook.facts.kueue.job import is_elastic_job
from webhook.facts.kueue.objects import BOOST, GROUP
from webhook.facts.kueue.queue_flavors import fault_of_count, fix_for_count
from webhook.facts.kueue.quota import has_quota
from webhook.facts.kueue.releases import find_kueue_release, max_pod_sets_per_workload
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import change, counted
from webhook.typed.kueue import Workload, WorkloadPodSet, WorkloadSpec
from webhook.typed.pods import Resources
from webhook.typed.view import Typed
from webhook.yamltext.placeholders import is_placeholder

WORKLOAD_POD_SETS: Final = KUEUE_QUEUE.rule(
    "kueue-queue/workload-pod-sets",
    title="The Workload has an invalid list of pod sets",
    why="Kueue admits all pod sets of a Workload together.",
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/workload_webhook.go",
    function="ValidateWorkload",
)
WORKLOAD_RESOURCES: Final = KUEUE_QUEUE.rule(
    "kueue-queue/workload-resources",
    title="The pods of the Workload request `pods` or a negative amount",
    why="Kueue counts the pods under the name `pods` itself, and no pod can request a negative amount.",
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/workload_webhook.go",
    function="validateContainer",
)
WORKLOAD_IMMUTABLE: Final = KUEUE_QUEUE.rule(
    "kueue-queue/workload-immutable",
    title="The Workload was changed although it has quota",
    why="Kueue reserved quota for the old values. An elastic job may shrink, and the WorkloadPriorityClass may change.",
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/workload_webhook.go",
    function="ValidateWorkloadUpdate",
)
WORKLOAD_PRIORITY_BOOST: Final = KUEUE_QUEUE.rule(
    "kueue-queue/priority-boost",
    title="The priority boost is not a whole number",
    why=(
        "Kueue adds the number to the priority. This applies only if the feature gate PriorityBoost is on. The gate is "
        "off by default."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/workload_webhook.go",
    function="ValidateWorkload",
)

_POD_SETS_REQUIRED_IN: Final = "v1beta1"
"""The API version that requires podSets.

In later versions podSets is optional, but an empty list is refused. Source: config/components/crd/bases.
"""
_AMOUNTS: Final = frozenset(("requests", "limits", "overhead"))
"""Fields with quantities, which are compared by value and not by notation."""
_PRIORITY_CLASS: Final = ("scheduling.k8s.io", "PriorityClass")
_WORKLOAD_PRIORITY_CLASS: Final = f"{GROUP}/workloadpriorityclass"
_BOOST: Final = re.compile(r"[+-]?[0-9]{1,20}")
_BOOSTS: Final = range(-(2**31), 2**31)


def validate_workload(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that ValidateWorkload would report, except problems that depend on the Workload's status."""
    spec = subject.typed(Workload).spec
    yield from _validate_pod_set_count(spec, subject)
    for pod_set in spec.pod_sets:
        if pod_set.min_count is not None and pod_set.min_count > pod_set.count:
            message = f"must not be above {pod_set.count}, the count of the pod set"
            yield _pod_sets_problem(pod_set.path("minCount"), message, "lower minCount", pod_set.min_count)
        pod = pod_set.template.spec
        for container in pod.all_containers():
            yield from _validate_pod_resources(container.resources, subject)
        yield from _validate_pod_resources(pod.resources, subject)


def _validate_pod_set_count(spec: WorkloadSpec, subject: Subject) -> Iterator[Problem]:
    path, count = spec.path("podSets"), len(spec.pod_sets)
    message = fault_of_count(count, max_pod_sets_per_workload(find_kueue_release(subject)))
    is_optional = subject.attributes.kind.version != _POD_SETS_REQUIRED_IN
    if message and (spec.has("podSets") or not is_optional):
        fix = fix_for_count(count, max_pod_sets_per_workload(find_kueue_release(subject)), "pod set")
        yield _pod_sets_problem(path, message, fix, shown=counted(count, "pod set"))
    partial = sum(pod_set.min_count is not None for pod_set in spec.pod_sets)
    if partial > 1:
        yield _pod_sets_problem(path, "must have at most one pod set with minCount", "keep one minCount")
    if partial and is_elastic_job(subject.typed(Workload), subject):
        message = "must have no pod set with minCount because the Workload belongs to an elastic job"
        yield _pod_sets_problem(path, message, "remove minCount")


def _pod_sets_problem(path: FieldPath, message: str, fix: str, value: JSON = None, shown: str = "") -> Problem:
    return WORKLOAD_POD_SETS.problem(path, message, fix, value, shown=shown)


def _validate_pod_resources(resources: Resources, subject: Subject) -> Iterator[Problem]:
    """Yield the problems that validatePodSet would report about the resources of a container or a pod."""
    for side, amounts in (("requests", resources.requests), ("limits", resources.limits)):
        for name, value in amounts.items():
            path = resources.path(side, name)
            if name == "pods":
                message = "must not be set because Kueue counts pods under this name"
                yield WORKLOAD_RESOURCES.problem(path, message, "remove the entry")
            amount = quantity.read_quantity_or_none(value)
            if amount is not None and amount.sign() < 0 and is_gate_on(NON_NEGATIVE_RESOURCES_GATE, subject):
                yield WORKLOAD_RESOURCES.problem(path, "must not be negative", "set 0 or more", value)


def validate_priority_boost(subject: Subject) -> Iterator[Problem]:
    """Report a priority boost that is not a signed number, if the feature gate PriorityBoost is on."""
    metadata = subject.typed(Workload).metadata
    given = metadata.annotations.get(BOOST)
    if given is None or is_placeholder(given) or (_BOOST.fullmatch(given) and int(given) in _BOOSTS):
        return
    path, missing = metadata.path("annotations", BOOST), missing_configuration_of_gate(PRIORITY_BOOST_GATE, subject)
    if is_gate_on(PRIORITY_BOOST_GATE, subject):
        message = "must be a whole number because Kueue adds the number to the priority"
        yield WORKLOAD_PRIORITY_BOOST.problem(
            path, message, "set a number such as 10 or -10, or remove the annotation", given
        )
    elif missing:
        yield WORKLOAD_PRIORITY_BOOST.problem(path, missing=missing)


def validate_workload_update(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that ValidateWorkloadUpdate would report: changes of fields that are immutable while quota
    is reserved.
    """
    old, new = subject.typed_old(Workload), subject.typed(Workload)
    if not old or not has_quota(old):
        return
    yield from _validate_immutable_pod_sets(old.spec, new.spec, subject)
    if has_quota(new) and old.spec.queue_name != new.spec.queue_name:
        yield _fixed_field_problem(old.spec, new.spec, "queueName")
    is_admitted = old.status.is_true("Admitted") and new.status.is_true("Admitted")
    if is_admitted and old.spec.maximum_execution_time_seconds != new.spec.maximum_execution_time_seconds:
        yield _fixed_field_problem(old.spec, new.spec, "maximumExecutionTimeSeconds")
    yield from _validate_priority_class_change(old.spec, new.spec)


def _fixed_field_problem(old: Typed, new: Typed, name: str) -> Problem:
    message = f"{change(old.json.get(name), new.json.get(name))} while quota is reserved"
    return _workload_immutable_problem(new.path(name), message)


def _workload_immutable_problem(path: FieldPath, message: str) -> Problem:
    return WORKLOAD_IMMUTABLE.problem(path, message, "restore the old value, or create another Workload")


def _validate_immutable_pod_sets(old: WorkloadSpec, new: WorkloadSpec, subject: Subject) -> Iterator[Problem]:
    """Yield the problems that validateImmutablePodSets would report."""
    if len(old.pod_sets) != len(new.pod_sets):
        count = counted(len(new.pod_sets), "entry", "entries")
        message = f"cannot change from {len(old.pod_sets)} to {count} because quota is reserved for these pods"
        yield _workload_immutable_problem(new.path("podSets"), message)
        return
    for before, after in zip(old.pod_sets, new.pod_sets, strict=True):
        changed = next(
            _paths_of_differences(before.json, _comparable_pod_set(before, after, subject), after.at, subject), None
        )
        if changed is not None:
            yield _workload_immutable_problem(changed, "cannot change because quota is reserved for the pods")


def _comparable_pod_set(before: WorkloadPodSet, after: WorkloadPodSet, subject: Subject) -> JSON:
    """Return the new pod set for the comparison with the old pod set.

    If jobs may be elastic, a job may shrink. A lower count is then replaced by the old count.
    """
    if after.count < before.count and may_gate_be_on(ELASTIC_JOBS_GATE, subject):
        return {**after.json, "count": before.count}
    return after.json


def _validate_priority_class_change(old: WorkloadSpec, new: WorkloadSpec) -> Iterator[Problem]:
    """Report changes of the priority class that are not allowed, in the fields of both API versions."""
    before, after = old.priority_class_ref, new.priority_class_ref
    if before.is_set != after.is_set:
        message = f"{change(before.json.get('name'), after.json.get('name'))} while quota is reserved"
        yield _workload_immutable_problem(new.path("priorityClassRef"), message)
    elif before:
        is_of_pods = (after.group, after.kind) == _PRIORITY_CLASS
        for name in ("group", "kind", "name") if is_of_pods else ("group", "kind"):
            if before.differs(after, name):
                yield _fixed_field_problem(before, after, name)
    yield from _validate_priority_change_of_v1beta1(old, new)


def _validate_priority_change_of_v1beta1(old: WorkloadSpec, new: WorkloadSpec) -> Iterator[Problem]:
    before, after = old.priority_class_source, new.priority_class_source
    if before and after and before != after:
        yield _fixed_field_problem(old, new, "priorityClassSource")
    before, after = old.priority_class_name, new.priority_class_name
    if before and after and before != after and new.priority_class_source not in ("", _WORKLOAD_PRIORITY_CLASS):
        yield _fixed_field_problem(old, new, "priorityClassName")


def _paths_of_differences(old: JSON, new: JSON, at: FieldPath, subject: Subject) -> Iterator[FieldPath]:
    """Yield the paths where two values differ. An empty value counts as not set, and quantities compare by value."""
    subject.deadline.spend(1)
    if old == new or (not old and not new and not isinstance(old or new, int)):
        return
    if isinstance(old or {}, dict) and isinstance(new or {}, dict):
        one, other = old or {}, new or {}
        for name in sorted(one.keys() | other.keys()):
            yield from _paths_of_differences(one.get(name), other.get(name), (*at, name), subject)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _paths_of_differences(one, other, (*at, index), subject)
    elif not _AMOUNTS.intersection(map(str, at)) or (quantity.read_quantity_or_none(old) or old) != (
        quantity.read_quantity_or_none(new) or new
    ):
        yield at
