"""The checks of Volcano's kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from webhook.facts.check import Check
from webhook.facts.scheduling.priority_classes import LOOKUP as PRIORITY_CLASSES
from webhook.facts.subject import Subject
from webhook.facts.trainer.lookups import RUNTIMES, TRAIN_JOB
from webhook.facts.volcano import (
    dependencies,
    gang_resources,
    job_advice,
    job_update,
    kinds,
    lifecycle_policies,
    named_queue,
    plugin_commands,
    plugin_tasks,
    plugins,
    queue_reference,
    restarts,
    volumes,
)
from webhook.facts.volcano.cron_job import cron_job
from webhook.facts.volcano.hyper_node import hyper_node
from webhook.facts.volcano.job import is_created, problem, read_job
from webhook.facts.volcano.job_flow import job_flow
from webhook.facts.volcano.pod import pod
from webhook.facts.volcano.pod_group import pod_group
from webhook.facts.volcano.queue_deletion import queue_deletion
from webhook.facts.volcano.queue_validation import queue
from webhook.facts.volcano.scheduler_conf import scheduler_conf
from webhook.facts.volcano.topology import advise_part, advise_tier
from webhook.facts.volcano.validation import validate_create
from webhook.paths import render
from webhook.problem import Problem

_ADVICE: Final = (
    job_advice.advise_pods,
    job_advice.advise_minima,
    dependencies.advise_start,
    job_advice.advise_schedulers,
    restarts.advise_restarts,
    job_advice.advise_host_names,
    lifecycle_policies.advise_policies,
    plugins.advise_plugins,
    plugin_tasks.advise_tasks,
    volumes.advise_volumes,
)
_LOOKING_UP: Final = (
    job_advice.advise_priority,
    queue_reference.advise_queue,
    gang_resources.advise_capability,
    plugin_commands.advise_commands,
)


def job(subject: Subject) -> Iterator[Problem]:
    """What Volcano refuses of a Job, and what it takes and never runs."""
    if subject.object.get("spec") is None:
        return
    yield from _but_unfilled(
        validate_create(subject.once(read_job), subject) if is_created(subject) else _update(subject), subject
    )
    yield from _but_unfilled(_advice(subject), subject)


def job_template(subject: Subject) -> Iterator[Problem]:
    """The same of the Jobs that a template makes. Volcano looks at them when they are made, so nothing is denied."""
    if not subject.once(read_job).sent:
        return
    for each in _but_unfilled(validate_create(subject.once(read_job), subject), subject):
        message = f"{each.message} (Volcano accepts the template, but refuses every Job made from it)"
        yield replace(each, code="volcano-job/template-refused", message="" if each.missing else message)
    yield from _but_unfilled(_advice(subject), subject)


def _update(subject: Subject) -> Iterator[Problem]:
    if subject.old_object is not None:
        yield from job_update.validate_update(subject.once(read_job), subject)


def _advice(subject: Subject) -> Iterator[Problem]:
    read = subject.once(read_job)
    for advise in _ADVICE:
        yield from advise(read)
    for look_up in _LOOKING_UP:
        yield from look_up(read, subject)
    yield from advise_tier(read.spec, read.at, subject, problem)
    for task in read.deadline.each(read.tasks):
        policy = task.value.get("partitionPolicy") or {}
        yield from advise_part(policy, (*task.at, "partitionPolicy"), (read.spec, read.at), subject, problem)


def _but_unfilled(problems: Iterable[Problem], subject: Subject) -> Iterable[Problem]:
    """Problems of what is not a placeholder still."""
    if not subject.omitted:
        return problems
    unfilled = tuple(map(render, subject.omitted))
    return (each for each in problems if not any(path.startswith(each.path) for path in unfilled))


def _filled(run: Callable[[Subject], Iterator[Problem]]) -> Callable[[Subject], Iterable[Problem]]:
    """A check without problems of what is a placeholder still."""

    def filled(subject: Subject) -> Iterable[Problem]:
        return _but_unfilled(run(subject), subject)

    return filled


_OF_JOBS: Final = (kinds.OF_QUEUES, kinds.OF_NAMESPACES, kinds.OF_HYPER_NODES, PRIORITY_CLASSES)
CHECKS: Final = (
    Check(group="volcano-job", run=job, kinds=frozenset((kinds.JOB,)), lookups=_OF_JOBS),
    Check(
        group="volcano-job", run=job_template, kinds=frozenset((kinds.CRON_JOB, kinds.JOB_TEMPLATE)), lookups=_OF_JOBS
    ),
    Check(group="volcano-cron-job", run=_filled(cron_job), kinds=frozenset((kinds.CRON_JOB,))),
    Check(
        group="volcano-job-flow",
        run=_filled(job_flow),
        kinds=frozenset((kinds.JOB_FLOW,)),
        lookups=(*_OF_JOBS, kinds.OF_JOB_TEMPLATES),
    ),
    Check(group="volcano-queue", run=_filled(queue), kinds=frozenset((kinds.QUEUE,)), lookups=(kinds.OF_QUEUES,)),
    Check(
        group="volcano-queue",
        run=queue_deletion,
        kinds=frozenset((kinds.QUEUE,)),
        lookups=(kinds.OF_QUEUES,),
        of_deletions=True,
    ),
    Check(
        group="volcano-pod-group",
        run=_filled(pod_group),
        kinds=frozenset((kinds.POD_GROUP,)),
        lookups=(kinds.OF_QUEUES, kinds.OF_NAMESPACES, kinds.OF_HYPER_NODES),
    ),
    Check(
        group="volcano-hyper-node",
        run=_filled(hyper_node),
        kinds=frozenset((kinds.HYPER_NODE,)),
        lookups=(kinds.OF_HYPER_NODES,),
    ),
    Check(
        group="volcano-pod",
        run=_filled(pod),
        kinds=frozenset((("", "Pod"),)),
        lookups=(kinds.OF_POD_GROUPS, kinds.OF_QUEUES, kinds.OF_NAMESPACES),
    ),
    Check(
        group="volcano-pod",
        run=_filled(named_queue.named_queue),
        kinds=frozenset(named_queue.NAMED),
        lookups=(kinds.OF_QUEUES, kinds.OF_NAMESPACES),
    ),
    Check(
        group="volcano-pod",
        run=named_queue.queue_of_train_job,
        kinds=frozenset((TRAIN_JOB,)),
        lookups=(kinds.OF_QUEUES, kinds.OF_NAMESPACES, *RUNTIMES),
    ),
    Check(group="volcano-scheduler", run=scheduler_conf, kinds=frozenset((("", "ConfigMap"),))),
)
