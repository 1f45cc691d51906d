"""What Kueue refuses of the resource groups of a ClusterQueue or a Cohort: resources, flavors, and their order.

Sources: kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go validateResourceGroups, cohort_webhook.go
and the bounds of config/components/crd/bases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_QUEUE, KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.types import (
    ClusterQueue,
    ClusterQueueSpec,
    Cohort,
    FlavorQuotas,
    ResourceFlavor,
    ResourceGroup,
)
from webhook.facts.subject import Subject
from webhook.facts.view import View
from webhook.name_faults import key_fault, subdomain_fault
from webhook.names import USE_KEY, USE_SUBDOMAIN, dns1123_subdomain, qualified_name
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted, did_you_mean

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
FLAVOR_NAME: Final = KUEUE_QUEUE.rule(
    "kueue-queue/flavor-name",
    title="A flavor is named as a ResourceFlavor can be.",
    why="No flavor has another name.",
    function="validateResourceGroups",
)
FLAVOR_TWICE: Final = KUEUE_QUEUE.rule(
    "kueue-queue/flavor-twice",
    title="A flavor stands in one resource group, once.",
    why="Its quota would be ambiguous.",
    function="validateResourceGroups",
)
FLAVOR_RESOURCES: Final = KUEUE_QUEUE.rule(
    "kueue-queue/flavor-resources",
    title="A flavor has quotas for the covered resources, in their order.",
    why="Kueue compares them one by one.",
    function="validateFlavorQuotas",
)
TOO_MANY: Final = KUEUE_QUEUE.rule(
    "kueue-queue/too-many",
    title="Groups, flavors and resources are not more than Kueue takes.",
    why="The CustomResourceDefinition and the webhook bound them.",
    function="validateResourceGroups",
)
FLAVOR_MISSING: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/flavor-missing",
    title="The flavors of a ClusterQueue exist.",
    why="One that is missing makes the whole ClusterQueue inactive.",
    refused_by="nobody; the queue is inactive",
    issues=("https://github.com/headlamp-k8s/plugins/issues/1191",),
)
RAW_GPU: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/raw-gpu",
    title="Quota for GPUs is for the resource of a vendor.",
    why="Pods cannot ask for `gpu`, so the quota is never used.",
    refused_by="nobody; the quota is never used",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="silent",
)
NO_RESOURCES: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/no-resources",
    title="A ClusterQueue has a resource group.",
    why="Without one it admits not even a job without requests.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner",
)
_RAW: Final = "gpu"

_MOST: Final = 256
"""Flavors, and covered resources, of all resource groups."""
_MOST_PAIRS: Final = 512
_MOST_GROUPS: Final = 16
_MOST_IN_GROUP: Final = 64


def validate_resource_groups(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that validateResourceGroups would report: covered resources, flavors and their order."""
    spec = cluster_queue_or_cohort(subject).spec
    covered: set[str] = set()
    flavors: set[str] = set()
    count, path = len(spec.resource_groups), spec.path("resourceGroups")
    if count > _MOST_GROUPS:
        message = f"are more than the {_MOST_GROUPS} that are allowed"
        yield too_many(path, message, "join some groups", counted(count, "group"))
    for group in spec.resource_groups:
        yield from _validate_covered(group, covered)
        for flavor in group.flavors:
            yield from _validate_name(flavor, flavors)
            yield from _validate_order(flavor, group)
        yield from _validate_size(group)
    for count, what in ((len(flavors), "flavors"), (len(covered), "resources")):
        if count > _MOST:
            message = f"in all groups are more than the {_MOST} that are allowed"
            yield too_many(path, message, f"use fewer {what}", f"{count} {what}")


def cluster_queue_or_cohort(subject: Subject) -> ClusterQueue | Cohort:
    """The object, which is one of the two kinds that have quota."""
    return subject.typed(Cohort) if subject.group_kind[1] == Cohort.gvk.kind else subject.typed(ClusterQueue)


def too_many(path: FieldPath, message: str, fix: str, shown: str) -> Problem:
    """A list that has more than the definition allows, or nothing where it needs something."""
    return TOO_MANY.problem(path, message, fix, shown=shown)


def _validate_size(group: ResourceGroup) -> Iterator[Problem]:
    resources, flavors = len(group.covered_resources), len(group.flavors)
    for name, count, noun in (("coveredResources", resources, "resource"), ("flavors", flavors, "flavor")):
        if message := count_fault(count, _MOST_IN_GROUP):
            fix = count_fix(count, _MOST_IN_GROUP, noun)
            yield too_many(group.path(name), message, fix, counted(count, noun))
    if resources * flavors > _MOST_PAIRS:
        message = f"of flavors and resources are more than the {_MOST_PAIRS} that are allowed"
        yield too_many(group.at, message, "split the group", f"{resources * flavors} combinations")


def count_fault(count: int, most: int) -> str:
    """What is wrong with the length of a list that must not be empty; "" for nothing."""
    return "" if 1 <= count <= most else f"are given, but 1 to {most} are allowed"


def count_fix(count: int, most: int, noun: str) -> str:
    """The fix for a list that has too many items."""
    return f"remove {counted(count - most, noun)}" if count else f"add a {noun}"


def _validate_covered(group: ResourceGroup, before: set[str]) -> Iterator[Problem]:
    for index, name in enumerate(group.covered_resources):
        path = group.path("coveredResources", index)
        if qualified_name(name) and not is_placeholder(name):
            message = f"cannot be the name of a resource because {key_fault(name)}"
            yield RESOURCE_NAME.problem(path, message, USE_KEY, name)
        if name in before:
            message = "is covered twice, but a resource can have quota in only one place"
            yield COVERED_TWICE.problem(path, message, f"remove one `{name}`", name)
        before.add(name)


def _validate_name(flavor: FlavorQuotas, before: set[str]) -> Iterator[Problem]:
    name, path = flavor.name, flavor.path("name")
    if dns1123_subdomain(name) and not is_placeholder(name):
        message = f"cannot be the name of a ResourceFlavor because {subdomain_fault(name)}"
        yield FLAVOR_NAME.problem(path, message, USE_SUBDOMAIN, name)
    if name in before:
        message = "is listed twice, but a flavor can be in only one place of one group"
        yield FLAVOR_TWICE.problem(path, message, f"remove one `{name}`", name)
    before.add(name)


def _validate_order(flavor: FlavorQuotas, group: ResourceGroup) -> Iterator[Problem]:
    """Resources of a flavor stand as in coveredResources, one for one."""
    covered, quotas = group.covered_resources, flavor.resources
    left = len(covered) - len(quotas)
    if left:
        given = counted(len(quotas), "entry", "entries")
        message = f"has {given}, but needs {len(covered)}, one for each of coveredResources"
        fix = f"{'add' if left > 0 else 'remove'} {counted(abs(left), 'entry', 'entries')}"
        yield FLAVOR_RESOURCES.problem(flavor.path("resources"), message, fix)
        return
    for quota, name in zip(quotas, covered, strict=True):
        if quota.name != name:
            message = f"must be {name} because coveredResources has {name} at this place"
            fix = "list the resources in the order of coveredResources"
            yield FLAVOR_RESOURCES.problem(quota.path("name"), message, fix, quota.name)


def advise_resource_groups(spec: ClusterQueueSpec, view: View) -> Iterator[Problem]:
    """Groups that are not there, cover what no pod asks for, or name flavors that do not exist."""
    if not spec.resource_groups:
        fix = "add a group with coveredResources and flavors"
        yield NO_RESOURCES.problem(spec.path("resourceGroups"), "is empty, so no job is admitted", fix)
    for group in spec.resource_groups:
        yield from _raw_gpu(group)
    for group in spec.resource_groups:
        for flavor in group.flavors:
            yield from _flavor_missing(flavor, view)


def _raw_gpu(group: ResourceGroup) -> Iterator[Problem]:
    if _RAW in group.covered_resources:
        message = "has quota for `gpu`, but pods ask for GPUs by the resource of a vendor"
        fix = "cover nvidia.com/gpu or the resource of another vendor"
        yield RAW_GPU.problem(group.path("coveredResources"), message, fix)


def _flavor_missing(flavor: FlavorQuotas, view: View) -> Iterator[Problem]:
    if view.lacks(ResourceFlavor.gvk, flavor.name):
        near = view.nearest(flavor.name, (other.name for other in view.list(ResourceFlavor)))
        message, fix = "does not exist, so the whole ClusterQueue is inactive", "create the ResourceFlavor"
        yield FLAVOR_MISSING.problem(flavor.path("name"), message, did_you_mean(near, fix), flavor.name)
