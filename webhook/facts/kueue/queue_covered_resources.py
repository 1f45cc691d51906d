"""Rules for the resources that a group of a ClusterQueue or a Cohort covers.

Source: kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go validateResourceGroups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_QUEUE, KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.types import ClusterQueueSpec, ResourceGroup
from webhook.name_faults import qualified_name_fault
from webhook.names import USE_KEY, qualified_name_errors
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

RESOURCE_NAME: Final = KUEUE_QUEUE.rule(
    "kueue-queue/resource-name",
    title="A covered resource is the name of a resource.",
    why="Pods cannot ask for another one.",
    function="validateResourceGroups",
)
COVERED_TWICE: Final = KUEUE_QUEUE.rule(
    "kueue-queue/covered-twice",
    title="A resource is covered by one group.",
    why="A resource of a pod is taken from one flavor.",
    function="validateResourceGroups",
)
NO_RESOURCES: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/no-resources",
    title="A ClusterQueue has a resource group.",
    why="Without one it admits not even a job without requests.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner",
)


def validate_covered_resources(group: ResourceGroup, before: set[str]) -> Iterator[Problem]:
    """Yield invalid names of covered resources, and resources that two groups cover."""
    for index, name in enumerate(group.covered_resources):
        path = group.path("coveredResources", index)
        if qualified_name_errors(name) and not is_placeholder(name):
            message = f"cannot be the name of a resource because {qualified_name_fault(name)}"
            yield RESOURCE_NAME.problem(path, message, USE_KEY, name)
        if name in before:
            message = "is covered twice, but a resource can have quota in only one place"
            yield COVERED_TWICE.problem(path, message, f"remove one `{name}`", name)
        before.add(name)


def advise_no_resources(spec: ClusterQueueSpec) -> Iterator[Problem]:
    """Yield the problem of a ClusterQueue that covers no resources."""
    if not spec.resource_groups:
        fix = "add a group with coveredResources and flavors"
        yield NO_RESOURCES.problem(spec.path("resourceGroups"), "is empty, so no job is admitted", fix)
