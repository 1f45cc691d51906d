"""The checks of pods and pod templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Check
from webhook.facts.pods import pod_level_resources, resource_validation
from webhook.facts.pods.template_changes import validate_template_update
from webhook.facts.subject import Subject
from webhook.problem import Problem


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
    yield from pod_level_resources.validate_overhead(spec)
    yield from pod_level_resources.validate_windows(spec)
    yield from pod_level_resources.validate_pod_resource_consistency(places, subject)


CHECKS: Final = (
    Check(group="pod-resources", run=pod_resources, kinds=frozenset((("", "Pod"),))),
    Check(group="workload-update", run=validate_template_update),
)
