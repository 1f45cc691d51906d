"""Finds the reasons why a job waits regardless of quota: a queue that is missing, stopped or inactive.

Source: kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/clusterqueue.go, pkg/scheduler and
pkg/controller/jobframework/reconciler.go. A cycle of cohorts is told nowhere but in a log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import is_made_by_controller
from webhook.facts.kueue.configuration import read_kueue_configuration
from webhook.facts.kueue.groups import KUEUE_NOT_NOW
from webhook.facts.kueue.managed import (
    SERVING,
    KueueManagement,
    how_kueue_manages,
    is_namespace_known,
    local_queue_names,
)
from webhook.facts.kueue.not_now_inactive import WAIT, causes_of_inactivity, inactive_queue_problem
from webhook.facts.kueue.objects import QUEUE_NAME
from webhook.facts.kueue.place import QueuePlace
from webhook.facts.kueue.quota_types import QueueFields
from webhook.facts.kueue.types import ClusterQueue, LocalQueue
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.wording import did_you_mean

QUEUE_REQUIRED: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/queue-required",
    title="A job names a queue where Kueue manages every job.",
    why=(
        "With manageJobsWithoutQueueName, Kueue suspends jobs of integrated kinds that name no queue, and no queue "
        "ever admits them."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/utils.go",
    function="WorkloadShouldBeSuspended",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/7929",),
)
LOCAL_QUEUE_MISSING: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/local-queue-missing",
    title="The LocalQueue that a job names exists in its namespace.",
    why="Kueue does not check it at admission; the job waits suspended.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler, kubernetes-sigs/kueue#3439",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/388",),
)
CLUSTER_QUEUE_MISSING: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/cluster-queue-missing",
    title="The ClusterQueue of a LocalQueue exists.",
    why="Jobs wait until it is created.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler",
)
STOPPED: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/stopped",
    title="The queues of a job are not stopped.",
    why="stopPolicy Hold or HoldAndDrain admits nothing until somebody resumes the queue.",
    function="inactiveReason",
)
COHORT_CYCLE: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/cohort-cycle",
    title="The cohorts above a ClusterQueue have no cycle.",
    why="The ClusterQueue stays active, and its jobs wait without a reason.",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy",
)

_MOST_NAMED: Final = 5
"""How many cohorts of a cycle a message names after the first."""


def check_queue_required(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a job without a queue name where Kueue manages all jobs."""
    how = subject.once(how_kueue_manages)
    if how.why_not != "no-queue" or how.framework in SERVING or not subject.once(read_kueue_configuration).manages_all:
        return
    if subject.once(is_made_by_controller) or not is_namespace_known(subject):
        return
    queues = local_queue_names(subject)
    message = "the object names no queue, so it stays suspended because Kueue runs with manageJobsWithoutQueueName"
    fix = f"set the label {QUEUE_NAME}" + (f", for example to `{min(queues)}`" if queues else "")
    yield QUEUE_REQUIRED.problem("", message, fix)


def validate_local_queue(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:
    """Yield the problem of a LocalQueue that does not exist or is stopped."""
    if place.local_queue:
        policy = place.local_queue.spec.stop_policy
        if policy not in ("", "None"):
            yield _stopped_queue_problem(place, LocalQueue.gvk.kind, how.queue, policy)
    elif is_namespace_known(subject) and subject.cluster_view().is_whole(LocalQueue.gvk):
        yield _local_queue_missing_problem(subject, how, place)


def _local_queue_missing_problem(subject: Subject, how: KueueManagement, place: QueuePlace) -> Problem:
    near = place.view.nearest(how.queue, local_queue_names(subject))
    message = f"is not a LocalQueue of namespace `{subject.namespace}`, so the job waits"
    fix = did_you_mean(near, "create the LocalQueue, or name another LocalQueue")
    reason = f"Kueue: LocalQueue {how.queue} doesn't exist"
    return LOCAL_QUEUE_MISSING.problem(place.at, f"{message} ({reason})", fix, how.queue)


def validate_cluster_queue(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:
    """Yield the problem of a ClusterQueue that does not exist or is inactive."""
    if place.queue is not None:
        yield from _check_queue_is_active(place, place.queue)
    elif place.local_queue and subject.cluster_view().is_whole(ClusterQueue.gvk):
        yield _cluster_queue_missing_problem(how, place)


def _check_queue_is_active(place: QueuePlace, queue: QueueFields) -> Iterator[Problem]:
    if queue.is_stopped():
        yield _stopped_queue_problem(place, ClusterQueue.gvk.kind, queue.name, queue.stop_policy)
    elif cause := next(causes_of_inactivity(queue, place.view), ""):
        yield inactive_queue_problem(place, queue, cause)
    elif place.tree is None:
        yield _cohort_cycle_problem(place, queue)


def _cluster_queue_missing_problem(how: KueueManagement, place: QueuePlace) -> Problem:
    target = place.local_queue.spec.cluster_queue
    message = f"leads to LocalQueue `{how.queue}`, whose ClusterQueue `{target}` does not exist"
    reason = f"Kueue: ClusterQueue {target} doesn't exist"
    fix = "create the ClusterQueue, or use another queue"
    return CLUSTER_QUEUE_MISSING.problem(place.at, f"{message} ({reason})", fix)


def _stopped_queue_problem(place: QueuePlace, kind: str, name: str, policy: str) -> Problem:
    message = f"leads to {kind} `{name}`, which is stopped because its stopPolicy is {policy}"
    return STOPPED.problem(place.at, f"{message} (Kueue: {kind} {name} is inactive)", WAIT)


def _cohort_cycle_problem(place: QueuePlace, queue: QueueFields) -> Problem:
    first, *others = place.queues.cycle_above(queue.cohort)
    way = ", ".join([first, *others[:_MOST_NAMED], *(["..."] if len(others) > _MOST_NAMED else []), first])
    message = (
        f"leads to ClusterQueue `{queue.name}`, but the parents of its Cohorts form a cycle ({way}), so Kueue admits "
        "no job"
    )
    fix = f"use another queue, or ask the owner of Cohort `{first}` to correct its spec.parentName"
    return COHORT_CYCLE.problem(place.at, message, fix)
