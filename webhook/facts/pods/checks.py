"""The checks of pods and pod templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Check
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.pods import container_validation, placement_validation, pod_level_resources, resource_validation
from webhook.facts.pods.container_validation import validate_service_account
from webhook.facts.pods.template_changes import validate_template_update
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.virtual_pods import problems_of_pods
from webhook.problem import Problem
from webhook.schema.kinds import is_builtin

_POD: Final = frozenset((("", "Pod"),))
_TRAIN_JOB: Final = frozenset((TRAIN_JOB,))


def pod_resources(subject: Subject) -> Iterator[Problem]:
    """What Kubernetes refuses of the resources of a pod."""
    spec = subject.object.get("spec")
    if not isinstance(spec, dict):
        return
    places = resource_validation.places(subject)
    for place in places:
        if place.part == "ephemeralContainers":
            yield from resource_validation.validate_ephemeral_container(place)
            continue
        yield from resource_validation.validate_resource_requirements(place, subject)
        yield from resource_validation.validate_hugepages_are_not_alone(place, subject)
    if "overhead" in spec:
        yield from pod_level_resources.validate_overhead(spec)
    if "resources" in spec:
        yield from pod_level_resources.validate_windows(spec)
        yield from pod_level_resources.validate_pod_resource_consistency(places, subject)


def generated_pod_resources(subject: Subject) -> Iterator[Problem]:
    """What Kubernetes refuses of the resources of the pods that Trainer makes of a TrainJob."""
    yield from problems_of_pods(subject, pod_resources)


def generated_pod_templates(subject: Subject) -> Iterator[Problem]:
    """What Kubernetes refuses of those pods besides."""
    yield from problems_of_pods(subject, template_problems)


def pod_template(subject: Subject) -> Iterator[Problem]:
    """What Kubernetes refuses of a pod besides; it says so itself of Pods and of its own kinds."""
    if subject.template_of is not None and not is_builtin(subject.template_of):
        yield from template_problems(subject)


def template_problems(subject: Subject) -> Iterator[Problem]:
    """What Kubernetes refuses of a pod besides, whatever it is made from."""
    pod, metadata, deadline = subject.object.get("spec") or {}, subject.object.get("metadata") or {}, subject.deadline
    yield from container_validation.validate_containers(subject)
    yield from container_validation.validate_volumes(subject)
    if context := pod.get("securityContext"):
        yield from container_validation.validate_user(context, ("spec", "securityContext"))
    yield from validate_service_account(pod)
    yield from placement_validation.validate_affinity(pod, deadline)
    yield from placement_validation.validate_tolerations(pod, deadline)
    yield from placement_validation.validate_scheduling_gates(pod, deadline)
    if selector := pod.get("nodeSelector"):
        yield from placement_validation.validate_labels(selector, ("spec", "nodeSelector"), deadline, "node-selector")
    if labels := metadata.get("labels"):
        yield from placement_validation.validate_labels(labels, ("metadata", "labels"), deadline)
    if annotations := metadata.get("annotations"):
        yield from placement_validation.validate_annotations(annotations, ("metadata", "annotations"), deadline)


CHECKS: Final = (
    Check(group="pod-resources", run=pod_resources, kinds=_POD),
    Check(group="pod-resources", run=generated_pod_resources, kinds=_TRAIN_JOB),
    Check(group="pod-template", run=pod_template, kinds=_POD),
    Check(group="pod-template", run=generated_pod_templates, kinds=_TRAIN_JOB),
    Check(group="workload-update", run=validate_template_update),
)
