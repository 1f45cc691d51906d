"""The checks of Volcano's kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from webhook.apimachinery.paths import path_as_text
from webhook.facts.check import changes_fields_that_checks_read
from webhook.facts.kinds import LEADER_WORKER_SET, TRAIN_JOB
from webhook.facts.priority_classes import PRIORITY_CLASS_LOOKUP
from webhook.facts.subject import Check, Subject, group_kinds_of_types
from webhook.facts.train_job_pods.types import RUNTIMES
from webhook.facts.volcano import pod
from webhook.facts.volcano.cron_job import check_cron_job
from webhook.facts.volcano.gang_resources import requests_of_gang
from webhook.facts.volcano.hyper_node import check_hyper_node
from webhook.facts.volcano.job import (
    validate_create,
    validate_update,
    warn_of_task_minima_above_gang,
    warn_of_tasks_without_pods,
)
from webhook.facts.volcano.job_commands import warn_of_setup_missing_for_commands, warn_of_tasks_with_plugin_roles
from webhook.facts.volcano.job_dependencies_and_deadlocks import warn_of_gang_deadlock
from webhook.facts.volcano.job_events_actions_and_exit_codes import advise_policies
from webhook.facts.volcano.job_flow import check_job_flow
from webhook.facts.volcano.job_names import warn_of_invalid_host_names
from webhook.facts.volcano.job_plugins import warn_of_plugin_arguments_and_tasks
from webhook.facts.volcano.job_scheduling import (
    JOB_QUEUE_RULES,
    advise_job_topology,
    warn_of_endless_restarts,
    warn_of_missing_priority_class,
    warn_of_other_schedulers,
    warn_of_queue_name_or_closed_ancestor,
)
from webhook.facts.volcano.job_template import template_refused_problem, warn_of_claims_and_unmounted_volumes
from webhook.facts.volcano.pod import READ_ANNOTATIONS, check_pod
from webhook.facts.volcano.pod_group import check_pod_group
from webhook.facts.volcano.queue import (
    advise_unknown_resource,
    check_queue_deletion,
    validate_hierarchical_attributes,
    validate_parent,
    validate_quantity,
    warn_of_dropped_status,
)
from webhook.facts.volcano.queue_amounts import validate_deserved_capability, validate_guarantee_deserved
from webhook.facts.volcano.queue_tree import read_queues, warn_of_amounts_above_capability
from webhook.facts.volcano.scheduler import check_scheduler_conf, may_be_scheduler_conf
from webhook.facts.volcano.sent_job import is_create_request, read_job, spec_without_defaults
from webhook.facts.volcano_objects import types
from webhook.facts.volcano_objects.defaults import object_with_defaults
from webhook.facts.volcano_objects.types import Job, Queue
from webhook.rules.problem import Problem
from webhook.typed.spark import SparkApplication


def check_job(subject: Subject) -> Iterator[Problem]:
    """Report what Volcano would refuse in a Job, and probable mistakes in a Job that Volcano accepts."""
    if not subject.typed(Job).spec:
        return
    job = subject.once(read_job)
    if is_create_request(subject):
        yield from _problems_without_placeholders(validate_create(job, subject), subject)
    elif subject.typed_old(Job):
        yield from _problems_without_placeholders(validate_update(job, subject), subject)
    yield from _problems_without_placeholders(_warn_of_job_settings(job, subject), subject)


def check_job_template(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of Jobs created from a template as warnings, because Volcano checks the Jobs only later."""
    if not spec_without_defaults(subject).json:
        return
    job = subject.once(read_job)
    for refused in _problems_without_placeholders(validate_create(job, subject), subject):
        yield template_refused_problem(refused)
    yield from _problems_without_placeholders(_warn_of_job_settings(job, subject), subject)


def _warn_of_job_settings(job: Job, subject: Subject) -> Iterator[Problem]:
    yield from warn_of_tasks_without_pods(job)
    yield from warn_of_task_minima_above_gang(job, spec_without_defaults(subject))
    yield from warn_of_gang_deadlock(job, subject)
    yield from warn_of_other_schedulers(job)
    yield from warn_of_endless_restarts(job, subject)
    yield from warn_of_invalid_host_names(job)
    yield from advise_policies(job)
    yield from warn_of_plugin_arguments_and_tasks(job)
    yield from warn_of_tasks_with_plugin_roles(job)
    yield from warn_of_claims_and_unmounted_volumes(job)
    yield from warn_of_missing_priority_class(job, subject)
    yield from warn_of_queue_name_or_closed_ancestor(job, subject)
    yield from _check_capability(job, subject)
    yield from warn_of_setup_missing_for_commands(job, subject)
    yield from advise_job_topology(job, subject)


def _check_capability(job: Job, subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a queue with a capability below what the pods of the gang request together."""
    spec = job.spec
    if spec.has_no_placeholders and spec.queue in subject.once(read_queues).all:
        queues, path = subject.once(read_queues), spec.path("queue")
        yield from warn_of_amounts_above_capability(requests_of_gang(job), spec.queue, path, queues, JOB_QUEUE_RULES)


def check_queue(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a queue that is created or changed."""
    queue = Queue.of(subject.once(object_with_defaults), (), subject.reading_context)
    yield from validate_quantity(queue)
    yield from validate_guarantee_deserved(queue)
    yield from validate_deserved_capability(queue)
    yield from validate_hierarchical_attributes(queue, subject)
    yield from validate_parent(queue, subject)
    yield from advise_unknown_resource(queue)
    if is_create_request(subject):
        yield from warn_of_dropped_status(queue)


def _problems_without_placeholders(problems: Iterable[Problem], subject: Subject) -> Iterable[Problem]:
    """Yield the problems that are not about placeholders."""
    if not subject.omitted:
        return problems
    unfilled = tuple(map(path_as_text, subject.omitted))
    return (broken for broken in problems if not any(path.startswith(broken.path) for path in unfilled))


def _wrap_check_to_skip_placeholders(
    run: Callable[[Subject], Iterator[Problem]],
) -> Callable[[Subject], Iterable[Problem]]:
    """Return a check that runs the given check and yields no problems about placeholders."""

    def check_filled_parts(subject: Subject) -> Iterable[Problem]:
        return _problems_without_placeholders(run(subject), subject)

    return check_filled_parts


_QUEUES: Final = (types.QUEUE_LOOKUP, types.NAMESPACE_LOOKUP)
_OF_JOBS: Final = (*_QUEUES, types.HYPER_NODE_LOOKUP, PRIORITY_CLASS_LOOKUP)
CHECKS: Final = (
    Check(group="volcano-job", run=check_job, kinds=frozenset((types.JOB,)), lookups=_OF_JOBS),
    Check(
        group="volcano-job",
        run=check_job_template,
        kinds=frozenset((types.CRON_JOB, types.JOB_TEMPLATE)),
        lookups=_OF_JOBS,
    ),
    Check(
        group="volcano-cron-job",
        run=_wrap_check_to_skip_placeholders(check_cron_job),
        kinds=frozenset((types.CRON_JOB,)),
    ),
    Check(
        group="volcano-job-flow",
        run=_wrap_check_to_skip_placeholders(check_job_flow),
        kinds=frozenset((types.JOB_FLOW,)),
        lookups=(*_OF_JOBS, types.JOB_TEMPLATE_LOOKUP),
    ),
    Check(
        group="volcano-queue",
        run=_wrap_check_to_skip_placeholders(check_queue),
        kinds=frozenset((types.QUEUE,)),
        lookups=(types.QUEUE_LOOKUP,),
        when=changes_fields_that_checks_read,
    ),
    Check(
        group="volcano-queue",
        run=check_queue_deletion,
        kinds=frozenset((types.QUEUE,)),
        lookups=(types.QUEUE_LOOKUP,),
        of_deletions=True,
    ),
    Check(
        group="volcano-pod-group",
        run=_wrap_check_to_skip_placeholders(check_pod_group),
        kinds=frozenset((types.POD_GROUP,)),
        lookups=(types.QUEUE_LOOKUP, types.NAMESPACE_LOOKUP, types.HYPER_NODE_LOOKUP),
    ),
    Check(
        group="volcano-hyper-node",
        run=_wrap_check_to_skip_placeholders(check_hyper_node),
        kinds=frozenset((types.HYPER_NODE,)),
        lookups=(types.HYPER_NODE_LOOKUP,),
        when=changes_fields_that_checks_read,
    ),
    Check(
        group="volcano-pod",
        run=_wrap_check_to_skip_placeholders(check_pod),
        kinds=frozenset((("", "Pod"),)),
        lookups=(types.POD_GROUP_LOOKUP, types.QUEUE_LOOKUP, types.NAMESPACE_LOOKUP),
        of_pods_with=READ_ANNOTATIONS,
    ),
    Check(
        group="volcano-pod",
        run=_wrap_check_to_skip_placeholders(pod.check_queue_of_ray_cluster),
        kinds=pod.RAY_KINDS,
        lookups=_QUEUES,
        of_made_objects=False,
    ),
    Check(
        group="volcano-pod",
        run=_wrap_check_to_skip_placeholders(pod.check_queue_of_leader_worker_set),
        kinds=frozenset((LEADER_WORKER_SET,)),
        lookups=_QUEUES,
        of_made_objects=False,
    ),
    Check(
        group="volcano-pod",
        run=_wrap_check_to_skip_placeholders(pod.check_queue_of_spark_application),
        kinds=group_kinds_of_types(SparkApplication),
        lookups=_QUEUES,
        of_made_objects=False,
    ),
    Check(
        group="volcano-pod",
        run=_wrap_check_to_skip_placeholders(pod.check_queue_of_training_job),
        kinds=pod.TRAINING_JOBS,
        lookups=_QUEUES,
        of_made_objects=False,
    ),
    Check(
        group="volcano-pod",
        run=pod.check_queue_of_train_job,
        kinds=frozenset((TRAIN_JOB,)),
        lookups=(*_QUEUES, *RUNTIMES),
        of_made_objects=False,
    ),
    Check(
        group="volcano-scheduler",
        run=check_scheduler_conf,
        kinds=frozenset((("", "ConfigMap"),)),
        concerns=may_be_scheduler_conf,
    ),
)
