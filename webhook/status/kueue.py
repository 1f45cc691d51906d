"""Reads what Kueue writes about a Workload: quota, queues, admission checks, evictions.

Source: kubernetes-sigs/kueue@ff69552e apis/kueue/v1beta2/workload_types.go (conditions and reasons),
pkg/scheduler/flavorassigner/flavorassigner.go (messages), pkg/cache/scheduler/clusterqueue.go (reasons of Active).
Releases before 0.19 write only the reasons Pending and Inadmissible, so the message decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import get
from webhook.apimachinery.quantity import Quantity, from_int, read_quantity_or_none
from webhook.status.owned_objects import WORKLOAD
from webhook.status.sources import ClusterReading, name_in_namespace
from webhook.status.statement import (
    Condition,
    Standing,
    Statement,
    Turn,
    conditions_of,
    items_at,
    map_at,
    name_of,
    text_at,
    true_condition,
)
from webhook.text.wording import counted

_GROUP: Final = "kueue.x-k8s.io"
QUEUE_LABEL: Final = f"{_GROUP}/queue-name"
_LOCAL_QUEUE: Final = GroupVersionKind(_GROUP, "v1beta2", "LocalQueue")
_CLUSTER_QUEUE: Final = GroupVersionKind(_GROUP, "v1beta2", "ClusterQueue")
_MORE: Final = re.compile(r"insufficient unused quota for ([^ ,]+) in flavor ([^ ,]+), ([^ ,]+) more needed")
_PREEMPTS: Final = re.compile(r"Pending the preemption of (\d+) workload")
_REJECTED: Final = ("Admission check(s): ", ", were rejected")
"""The texts before and after the names of the checks in the message of Kueue."""
_MOST_NAMED: Final = 3

_REASONS: Final[Mapping[str, tuple[Standing, str, str]]] = {
    "ExceedsMaxQuota": (
        "stuck",
        "Kueue can never admit it, because it asks for too much",
        "ask for less, use another queue, or ask the administrator to raise the quota",
    ),
    "NoMatchingFlavor": (
        "stuck",
        "Kueue finds no flavor for it",
        "ask for resources, labels and tolerations of a flavor of the queue, or use another queue",
    ),
    "TopologyPlacementFailed": (
        "stuck",
        "Kueue finds no place for it in the topology",
        "ask for a higher level of the topology or fewer pods, or wait for nodes",
    ),
    "Misconfigured": (
        "stuck",
        "Kueue cannot use what the job requests",
        "fix what the message names, then create it again",
    ),
    "WaitingForPreemptedWorkloads": ("waits", "Kueue stops other jobs to make room for it", ""),
    "WaitingForPodsReady": ("waits", "Kueue waits until the pods of an earlier job are ready", ""),
    "AdmissionGated": (
        "waits",
        "an admission gate of another controller blocks its admission",
        "ask the administrator of that controller",
    ),
    "PendingEvaluation": ("waits", "Kueue has not evaluated it yet", ""),
}
"""The reasons of QuotaReserved=False that mean the same with any message."""
_INACTIVE: Final[Mapping[str, str]] = {
    "Stopped": "it was stopped with spec.stopPolicy",
    "FlavorNotFound": "a ResourceFlavor that it names does not exist",
    "TopologyNotFound": "a Topology that it names does not exist",
    "AdmissionCheckNotFound": "an AdmissionCheck that it names does not exist",
    "AdmissionCheckInactive": "an AdmissionCheck that it names is inactive",
    "Terminating": "it is being deleted",
}
"""The meanings of the reasons of Active=False of a ClusterQueue."""
_REASON_BY_MESSAGE: Final[Mapping[str, str]] = {
    "untolerated taint": "NoMatchingFlavor",
    "doesn't match node affinity": "NoMatchingFlavor",
    "unavailable in ClusterQueue": "NoMatchingFlavor",
    "TopologyAwareScheduling": "NoMatchingFlavor",
    "does not contain the requested level": "NoMatchingFlavor",
    "no topology domains at level": "TopologyPlacementFailed",
    "resources validation failed": "Misconfigured",
    "didn't satisfy LimitRange constraints": "Misconfigured",
}
"""The reasons for parts of messages, because releases before 0.19 write the reason Pending."""
_NO_FLAVOR: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    (
        "{2} of {0}, but flavor {1} has at most {3}",
        re.compile(
            r"insufficient quota for ([^ ,]+) in flavor ([^ ,]+), request > maximum capacity \(([^ )]+) > ([^ )]+)\)"
        ),
    ),
    (
        "{2} of {0}, but flavor {1} has at most {3}",
        re.compile(
            r"insufficient quota for ([^ ,]+) in flavor ([^ ,]+), previously considered podsets requests \(0\) \+ "
            r"current podset request \(([^ )]+)\) > maximum capacity \(([^ )]+)\)"
        ),
    ),
    (
        "{2} and {3} of {0} in its pod sets, but flavor {1} has at most {4}",
        re.compile(
            r"insufficient quota for ([^ ,]+) in flavor ([^ ,]+), previously considered podsets requests "
            r"\(([1-9][^ )]*)\) \+ current podset request \(([^ )]+)\) > maximum capacity \(([^ )]+)\)"
        ),
    ),
    (
        "the job does not tolerate taint {0}={1}:{2} of flavor {3}",
        re.compile(r"untolerated taint \{([^ }]*) ([^ }]*) ([^ }]+) <nil>\} in flavor ([^ ,;]+)"),
    ),
    (
        "the node selector or node affinity of the job excludes flavor {0}",
        re.compile(r"flavor ([^ ,]+) doesn't match node affinity"),
    ),
    ("the ClusterQueue has no quota for {0}", re.compile(r"resource ([^ ,]+) unavailable in ClusterQueue")),
)
"""Sentences about a flavor that does not fit, each with the message of Kueue."""
_EVICTED: Final[Mapping[str, str]] = {
    "Preempted": "Kueue preempted it for another job",
    "PodsReadyTimeout": "Kueue evicted it because its pods were not ready in time",
    "AdmissionCheck": "Kueue evicted it because an admission check demanded the eviction",
    "ClusterQueueStopped": "Kueue evicted it because its ClusterQueue was stopped",
    "LocalQueueStopped": "Kueue evicted it because its LocalQueue was stopped",
    "NodeFailures": "Kueue evicted it because a node failed",
}
_ABSENT: Final[Mapping[str, str]] = {
    " doesn't exist": " does not exist",
    " is terminating or missing": " does not exist, or is being deleted",
}
"""The ends of messages about a queue that does not exist, each with its meaning."""
_NO_CLUSTER_QUEUE: Final = "ask the administrator of the queue to create it, or use another LocalQueue"
_CHECK: Final = "ask the owner of the admission check; the ClusterQueue names it in spec.admissionChecksStrategy"


def read_workload(workload: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield the statements about a Workload that Kueue has not admitted, or that Kueue stops."""
    conditions = conditions_of(workload)
    if true_condition(conditions, "Finished"):
        return
    if get(workload, ("spec", "active"), True) is False:
        yield _statement_about_deactivated_workload(workload, conditions)
    elif true_condition(conditions, "Admitted"):
        if evicted := true_condition(conditions, "Evicted"):
            sentence = f"{_why_evicted(evicted)}, and its pods are being stopped"
            yield Statement(
                about=name_of(workload), standing="waits", turn=Turn.QUEUE, sentence=sentence, words=evicted.words
            )
    elif true_condition(conditions, "QuotaReserved"):
        yield _statement_about_admission_checks(workload)
    else:
        yield _statement_about_missing_quota(workload, conditions, reading)


def is_admitted(workload: JSON) -> bool:
    """Return whether Kueue allows the job of a Workload to run."""
    return true_condition(conditions_of(workload), "Admitted") is not None


def _statement_about_deactivated_workload(workload: JSON, conditions: Mapping[str, Condition]) -> Statement:
    evicted = true_condition(conditions, "Evicted", "DeactivationTarget")
    reason = evicted.reason if evicted else ""
    deactivated = "Kueue deactivated it"
    if reason in ("", "Deactivated"):
        deactivated = "spec.active of its Workload was set to false"
    elif "RequeuingLimitExceeded" in reason:
        deactivated += " because its pods were repeatedly not ready in time"
    elif "MaximumExecutionTime" in reason:
        deactivated += " because it ran longer than its maximum execution time"
    elif "AdmissionCheck" in reason:
        before, after = _REJECTED
        checks, is_named, _ = (evicted.message if evicted else "").partition(before)[2].partition(after)
        deactivated += f" because {f'admission check {checks}' if is_named else 'an admission check'} rejected it"
    return Statement(
        about=name_of(workload),
        standing="stuck" if reason in ("", "Deactivated") else "failed",
        turn=Turn.QUEUE,
        sentence=deactivated,
        fix=f"find why, then set spec.active to true on {name_of(workload)}",
        words=evicted.words if evicted else "spec.active is false",
    )


def _statement_about_admission_checks(workload: JSON) -> Statement:
    """Return the statement about a Workload that has quota and waits for its admission checks."""
    checks = [each for each in items_at(workload, ("status", "admissionChecks")) if each.get("state") != "Ready"]
    for state in ("Rejected", "Retry", "Pending"):
        for check in checks:
            if check.get("state") == state:
                name, message = text_at(check, ("name",)), text_at(check, ("message",)).strip()
                verb = {"Rejected": "rejects it", "Retry": "demands another try later"}.get(
                    state, "has not accepted it yet"
                )
                return Statement(
                    about=name_of(workload),
                    standing="stuck" if state == "Rejected" else "waits",
                    turn=Turn.QUEUE,
                    sentence=f"Kueue has quota for it, but admission check {name} {verb}",
                    fix=_CHECK,
                    words=f"admission check {name} is {state}{f': {message}' if message else ''}",
                )
    return Statement(
        about=name_of(workload),
        standing="starting",
        turn=Turn.QUEUE,
        sentence="Kueue has quota for it and is about to admit it",
    )


def _statement_about_missing_quota(
    workload: JSON, conditions: Mapping[str, Condition], reading: ClusterReading
) -> Statement:
    quota = conditions.get("QuotaReserved")
    standing, sentence, fix = _why_without_quota(workload, quota, reading)
    evicted = true_condition(conditions, "Evicted")
    words = quota.words if quota else ""
    if evicted is not None:
        # after an eviction, Kueue first copies the message of the eviction into this condition
        is_new = quota is not None and quota.message != evicted.message
        sentence = f"{_why_evicted(evicted)}, and it waits again{f': {sentence}' if is_new else ''}"
        words = "; ".join(filter(None, (evicted.words, words if is_new else "")))
        next_try = text_at(workload, ("status", "requeueState", "requeueAt"))
        sentence += f"; Kueue tries it again at {next_try}" if next_try else ""
        if evicted.reason == "PodsReadyTimeout":
            fix = "find why its pods are not ready, such as a slow image, a missing node or a container that fails"
    return Statement(
        about=name_of(workload), standing=standing, turn=Turn.QUEUE, sentence=sentence, fix=fix, words=words
    )


def _why_evicted(evicted: Condition) -> str:
    return _EVICTED.get(evicted.reason, f"Kueue evicted it ({evicted.reason})")


def _why_without_quota(workload: JSON, quota: Condition | None, reading: ClusterReading) -> tuple[Standing, str, str]:
    """Return the standing, the sentence and the fix for a Workload without quota."""
    name = text_at(workload, ("spec", "queueName"))
    if quota is None:
        return _behind_others(workload, reading)
    if preempts := _PREEMPTS.search(quota.message):
        return "waits", f"Kueue stops {counted(int(preempts[1]), 'other job')} to make room for it", ""
    if more := list(_MORE.finditer(quota.message)):
        return (
            "waits",
            _used_quota(workload, more, reading),
            "wait until other jobs end, ask for less, or use another queue",
        )
    for absent, does_not_exist in _ABSENT.items():
        if absent in quota.message:
            missing_queue, _, _ = quota.message.partition(absent)
            is_local = missing_queue.startswith("LocalQueue ")
            fix = f"name a LocalQueue of the namespace in the label {QUEUE_LABEL}" if is_local else _NO_CLUSTER_QUEUE
            return "stuck", f"{missing_queue}{does_not_exist}", fix
    if "is inactive" in quota.message or "is stopped" in quota.message:
        return _inactive_queue(workload, reading)
    if "namespace doesn't match ClusterQueue selector" in quota.message:
        return _unselected_namespace(workload, reading)
    if (reason := _reason(quota)) in _REASONS:
        standing, sentence, fix = _REASONS[reason]
        reason_of_flavors = _why_no_flavor(quota.message) or quota.message
        return standing, f"{sentence}: {reason_of_flavors}" if reason_of_flavors else sentence, fix
    if quota.reason in ("Inadmissible", "Pending", "Waiting") and quota.message:
        standing = "stuck" if quota.reason == "Inadmissible" else "waits"
        return standing, f"Kueue does not admit it: {quota.message}", f"look at LocalQueue {name} and its ClusterQueue"
    return _behind_others(workload, reading)


def _reason(quota: Condition) -> str:
    """Return the reason as Kueue writes it since 0.19. For an earlier release, the message shows the reason."""
    if quota.reason in _REASONS:
        return quota.reason
    if "insufficient quota" in quota.message:
        return "ExceedsMaxQuota"
    return next((reason for part, reason in _REASON_BY_MESSAGE.items() if part in quota.message), "")


def _why_no_flavor(message: str) -> str:
    """Return what Kueue says about each flavor in plain words, or ""."""
    sentences = (sentence.format(*each.groups()) for sentence, form in _NO_FLAVOR for each in form.finditer(message))
    return "; ".join(dict.fromkeys(sentences)).replace("=:", ":")


def _unselected_namespace(workload: JSON, reading: ClusterReading) -> tuple[Standing, str, str]:
    queue = name_of(_cluster_queue(workload, reading)).name
    which = f"ClusterQueue {queue}" if queue else "the ClusterQueue"
    fix = "ask the administrator of the queue to select the namespace in spec.namespaceSelector, or use another queue"
    return "stuck", f"{which} admits no jobs of namespace {name_of(workload).namespace}", fix


def _behind_others(workload: JSON, reading: ClusterReading) -> tuple[Standing, str, str]:
    """Explain a Workload that Kueue has not written about: other jobs come first, or Kueue does not run."""
    queue = _cluster_queue(workload, reading)
    name, strategy = name_of(queue).name, text_at(queue, ("spec", "queueingStrategy"))
    if queue is None:
        local = text_at(workload, ("spec", "queueName"))
        if reading.get(_LOCAL_QUEUE, name_of(workload).namespace, local) is None and local:
            return "stuck", f"LocalQueue {local} does not exist, or may not be read", f"correct the label {QUEUE_LABEL}"
        return "waits", "Kueue has not said why the job waits", "check whether Kueue's controller runs"
    if not _is_active(queue):
        return _inactive_queue(workload, reading)
    if strategy == "StrictFIFO":
        reason = f"an earlier job goes first, because ClusterQueue {name} admits jobs in strict order"
        return (
            "waits",
            reason,
            "look at the earlier jobs with `claimgate queues --live` and `kubectl get workloads -A`",
        )
    return "waits", "Kueue has not said why the job waits", "check whether Kueue's controller runs"


def _inactive_queue(workload: JSON, reading: ClusterReading) -> tuple[Standing, str, str]:
    local_name, namespace = text_at(workload, ("spec", "queueName")), name_of(workload).namespace
    queue = _cluster_queue(workload, reading)
    active = conditions_of(queue).get("Active")
    if active is not None and active.status == "False":
        cause = _INACTIVE.get(active.reason, active.message or active.reason)
        more = f" ({active.message})" if active.reason in _INACTIVE and active.message else ""
        reason = f"ClusterQueue {name_of(queue).name} admits nothing: {cause}{more}"
        return "stuck", reason, "ask the administrator of the queue to fix this, or use another queue"
    local = reading.get(_LOCAL_QUEUE, namespace, local_name)
    stop = text_at(local, ("spec", "stopPolicy")) or text_at(queue, ("spec", "stopPolicy"))
    cause = f": it was stopped with stopPolicy {stop}" if stop not in ("", "None") else ""
    which = f"LocalQueue {local_name}" if text_at(local, ("spec", "stopPolicy")) not in ("", "None") else "its queue"
    return "stuck", f"{which} admits nothing{cause}", "ask the administrator of the queue, or use another queue"


def _is_active(queue: JSON) -> bool:
    active = conditions_of(queue).get("Active")
    return active is None or active.status != "False"


def _cluster_queue(workload: JSON, reading: ClusterReading) -> JSON | None:
    local = reading.get(_LOCAL_QUEUE, name_of(workload).namespace, text_at(workload, ("spec", "queueName")))
    name = text_at(local, ("spec", "clusterQueue"))
    return reading.get(_CLUSTER_QUEUE, "", name) if name else None


def _used_quota(workload: JSON, more: list[re.Match[str]], reading: ClusterReading) -> str:
    """Name the missing quota of the flavor that Kueue tried last, and the jobs that use this quota."""
    resource, flavor, amount = more[-1].groups()
    requested = _requested_amount(workload, resource)
    amount_text = f"{requested} of {resource}" if requested else resource
    reason = f"Kueue has no free quota for {amount_text} in flavor {flavor}: {amount} more needed"
    queue = name_of(_cluster_queue(workload, reading)).name
    users = sorted(
        _workloads_using_quota(workload, queue, resource, flavor, reading),
        reverse=True,
        key=lambda user: (user[0], user[1]),
    )
    if not users:
        return reason
    total = users[0][0]
    for used, _ in users[1:]:
        total = total.add(used)
    named = ", ".join(f"{name} ({used})" for used, name in users[:_MOST_NAMED])
    left = len(users) - _MOST_NAMED
    others = f" and {counted(left, 'other job')}" if left > 0 else ""
    return f"{reason}, {total} in use by {named}{others}"


def _requested_amount(workload: JSON, resource: str) -> str:
    """Return how much of a resource a Workload asks for, as Kueue wrote it, or ""."""
    total = from_int(0)
    for each in items_at(workload, ("status", "resourceRequests")):
        amount = read_quantity_or_none(map_at(each, ("resources",)).get(resource))
        total = total.add(amount) if amount is not None else total
    return str(total) if total else ""


def _workloads_using_quota(
    workload: JSON, queue: str, resource: str, flavor: str, reading: ClusterReading
) -> Iterator[tuple[Quantity, str]]:
    """Yield the Workloads that use quota of a flavor, with the amounts. If the queue is unknown, all ClusterQueues
    count.
    """
    own = name_of(workload)
    for other in reading.list(WORKLOAD, ""):
        workload_name, admission = name_of(other), map_at(other, ("status", "admission"))
        if workload_name == own or (queue and text_at(admission, ("clusterQueue",)) not in ("", queue)):
            continue
        if true_condition(conditions_of(other), "Finished"):
            continue
        used = from_int(0)
        for each in items_at(admission, ("podSetAssignments",)):
            if map_at(each, ("flavors",)).get(resource) == flavor:
                amount = read_quantity_or_none(map_at(each, ("resourceUsage",)).get(resource))
                used = used.add(amount) if amount is not None else used
        if used:
            yield used, name_in_namespace(workload_name)
