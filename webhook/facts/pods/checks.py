"""The checks of pods and pod templates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.pods import pod_resources, pod_template, pod_template_scheduling
from webhook.facts.pods.pod_requests import LIMIT_RANGE_LOOKUPS, limits_of_namespace
from webhook.facts.pods.workload_update import validate_template_update
from webhook.facts.subject import Check, Subject
from webhook.patch.schema import is_builtin
from webhook.rules.problem import Problem
from webhook.typed.pod_parts import POD_RESOURCES, RESOURCES, TEMPLATE
from webhook.typed.pods import Pod, PodSpec, Resources
from webhook.workloads.embedded import embedded_objects, holds_objects
from webhook.workloads.podsets import group_kind
from webhook.workloads.resource_fields import resource_fields

_POD: Final = frozenset((("", "Pod"),))
_TRAIN_JOB: Final = frozenset((TRAIN_JOB,))


def validate_pod_resources(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that Kubernetes would report about the resources of a pod."""
    pod = subject.typed(Pod).spec
    places = pod_resources.resources_in_pod(pod)
    is_completed = subject.template_of is not None and pod_resources.may_be_for_autopilot(pod)
    may_be_for_podman = subject.template_of is None or is_builtin(subject.template_of)
    for place in map(pod_resources.without_devices_of_podman, places) if may_be_for_podman else places:
        if place.part == "ephemeralContainers":
            yield from pod_resources.validate_no_ephemeral_resources(place)
            continue
        yield from pod_resources.validate_resource_requirements(
            place, is_completed=is_completed, has_default=partial(_has_default_limit, subject)
        )
        yield from pod_resources.validate_hugepages_are_not_alone(place)
    if pod.has("overhead"):
        yield from pod_resources.validate_overhead(pod)
    if pod.has("resources"):
        yield from pod_resources.check_no_pod_resources_on_windows(pod)
        yield from pod_resources.validate_pod_resource_consistency(places)


def _has_default_limit(subject: Subject, name: str) -> bool:
    """Return whether a LimitRange sets the limit of a resource in a Pod. In a template the limit must be written."""
    return subject.template_of is None and name in limits_of_namespace(subject.cluster_view()).default


def check_resources_outside_templates(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of fields outside pod templates that a controller copies into the resources of a container.

    The fields of a TrainJob are checked in the pods that Trainer creates. A Pod has no fields of this kind.
    """
    table, paced = subject.table, subject.deadline.items_with_clock_checks
    inner = (
        paced(embedded_objects(subject.object, table, subject.deadline)) if holds_objects(subject.object, table) else ()
    )
    for path, obj in [((), subject.object), *((each.path, each.object) for each in inner)]:
        fields = resource_fields(obj, table, subject.deadline) if group_kind(obj) != TRAIN_JOB else ()
        for field in paced(fields):
            if not field.is_device:
                resources = Resources.of(field.resources, (*path, *field.path), subject.reading_context)
                yield from pod_resources.validate_amounts(resources)


def check_generated_pod_templates(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that Kubernetes would report about the pods of Trainer, except those of resources."""
    from webhook.facts.train_job_pods.virtual_pods import run_check_on_virtual_pods

    yield from run_check_on_virtual_pods(subject, template_problems)


def validate_pod_template(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a pod template, except those of resources, if the API server does not check the templates
    of the object's kind.
    """
    if subject.template_of is not None and not is_builtin(subject.template_of):
        yield from template_problems(subject)


def template_problems(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that Kubernetes would report about a pod, except those of resources. If a program replaces the
    name of the object, such as `APPNAME`, it also replaces this word in values of the pod.
    """
    name = subject.attributes.name
    problems = _problems_of_pod(subject)
    if pod_template.is_name_to_fill_in(name, subject.typed(Pod)):
        return (problem for problem in problems if name not in problem.found)
    return problems


def _problems_of_pod(subject: Subject) -> Iterator[Problem]:
    template = subject.typed(Pod)
    pod, metadata = template.spec, template.metadata
    yield from pod_template.validate_host_users(pod)
    yield from pod_template.validate_active_deadline(pod)
    yield from pod_template.validate_containers(pod)
    yield from pod_template.validate_volumes(pod)
    if pod.has("securityContext"):
        yield from pod_template.validate_pod_user(pod.security_context)
    if not _is_of_cloud_run(subject, pod):
        yield from pod_template.validate_service_account(pod)
    if pod.has("affinity"):
        yield from pod_template_scheduling.validate_affinity(pod.affinity)
    yield from pod_template_scheduling.validate_tolerations(pod)
    yield from pod_template.validate_scheduling_gates(pod)
    yield from pod_template_scheduling.validate_node_selector_labels(pod)
    yield from pod_template_scheduling.validate_labels(metadata)
    yield from pod_template_scheduling.validate_annotations(metadata)


def _is_of_cloud_run(subject: Subject, pod: PodSpec) -> bool:
    """Return whether a Service of Knative is for Cloud Run: its service account has the address of a Google account."""
    is_of_knative = subject.template_of is not None and subject.template_of.group == "serving.knative.dev"
    return is_of_knative and pod.service_account_name.endswith(".gserviceaccount.com")


CHECKS: Final = (
    Check(
        group="pod-resources",
        run=validate_pod_resources,
        kinds=_POD,
        lookups=LIMIT_RANGE_LOOKUPS,
        of_pods_with=frozenset((RESOURCES, POD_RESOURCES)),
    ),
    Check(group="pod-resources", run=check_resources_outside_templates, other_than=_POD),
    Check(group="pod-template", run=validate_pod_template, kinds=_POD, of_pods_with=frozenset((TEMPLATE,))),
    Check(group="pod-template", run=check_generated_pod_templates, kinds=_TRAIN_JOB),
    Check(group="workload-update", run=validate_template_update),
)
