"""Rules of Kueue for the resource groups of a ClusterQueue or a Cohort: resources, flavors, their order and number.

webhook/facts/gpu/portable.py translates requests for the portable name `gpu` into the resource of a vendor. So a
quota for `gpu` limits nothing.

Source: kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go validateResourceGroups, cohort_webhook.go,
and the bounds of config/components/crd/bases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.apimachinery.names import (
    dns1123_subdomain_errors,
    qualified_name_errors,
    qualified_name_fault,
    qualified_name_fix,
    subdomain_fault,
    subdomain_fix,
)
from webhook.apimachinery.paths import FieldPath
from webhook.facts.kueue.configuration import read_kueue_configuration
from webhook.facts.kueue.groups import KUEUE_QUEUE, KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.quota_tree import read_quota_trees
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.wording import counted, did_you_mean, some_of
from webhook.typed.kueue import (
    ClusterQueue,
    ClusterQueueSpec,
    Cohort,
    FlavorQuotas,
    ResourceFlavor,
    ResourceGroup,
)
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_name

TOO_MANY: Final = KUEUE_QUEUE.rule(
    "kueue-queue/too-many",
    title="A list of the queue or the flavor has too many entries, or none",
    why="The CustomResourceDefinition and the webhook of Kueue limit the length of the lists.",
    function="validateResourceGroups",
)
RAW_GPU: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/raw-gpu",
    title="The quota is for `gpu`, which no pod can request",
    why="Pods request the resource of a vendor, such as nvidia.com/gpu, so no job ever uses the quota.",
    refused_by="nothing; the quota is never used",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="silent",
)
RESOURCE_NAME: Final = KUEUE_QUEUE.rule(
    "kueue-queue/resource-name",
    title="The covered resource has an invalid name",
    why="No pod can request a resource with this name.",
    function="validateResourceGroups",
)
COVERED_TWICE: Final = KUEUE_QUEUE.rule(
    "kueue-queue/covered-twice",
    title="Two groups cover the same resource",
    why="Kueue takes each resource of a pod from the flavors of one group, so only one group may cover a resource.",
    function="validateResourceGroups",
)
NO_RESOURCES: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/no-resources",
    title="The ClusterQueue has no resource group",
    why="Without a resource group the queue admits no job at all.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner",
)
FLAVOR_NAME: Final = KUEUE_QUEUE.rule(
    "kueue-queue/flavor-name",
    title="The flavor has an invalid name",
    why="No ResourceFlavor can have this name.",
    function="validateResourceGroups",
)
FLAVOR_TWICE: Final = KUEUE_QUEUE.rule(
    "kueue-queue/flavor-twice",
    title="The flavor is listed twice",
    why="Kueue could not tell which of the two quotas counts.",
    function="validateResourceGroups",
)
FLAVOR_RESOURCES: Final = KUEUE_QUEUE.rule(
    "kueue-queue/flavor-resources",
    title="The resources of the flavor differ from the covered resources",
    why="Kueue requires the resources of each flavor in the order of coveredResources.",
    function="validateFlavorQuotas",
)
FLAVOR_MISSING: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/flavor-missing",
    title="The ResourceFlavor does not exist",
    why="One missing flavor makes the whole ClusterQueue inactive.",
    refused_by="nothing; the queue is inactive",
    issues=("https://github.com/headlamp-k8s/plugins/issues/1191",),
)
FLAVOR_UNUSED: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/flavor-unused",
    title="No ClusterQueue or Cohort uses the flavor",
    why="No queue has quota for this flavor, so no job gets the flavor.",
    refused_by="nothing; no pods get the flavor",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler",
    level="advice",
    fails="silent",
)
_RAW_GPU: Final = "gpu"
_MOST: Final = 256
"""The largest number of flavors, and of covered resources, in all resource groups together."""
_MOST_NAMED: Final = 4
"""A message names the first resource, and at most this number of other resources."""
_MOST_PAIRS: Final = 512
_MOST_GROUPS: Final = 16
_MOST_IN_GROUP: Final = 64


def validate_resource_groups(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that validateResourceGroups would report: covered resources, flavors and their order."""
    spec = cluster_queue_or_cohort(subject).spec
    covered = {name for group in spec.resource_groups for name in group.covered_resources}
    flavors: set[str] = set()
    count, path = len(spec.resource_groups), spec.path("resourceGroups")
    if count > _MOST_GROUPS:
        message = f"are more than the {_MOST_GROUPS} that are allowed"
        yield too_many_entries_problem(path, message, "join some groups", counted(count, "group"))
    for group in spec.resource_groups:
        yield from _validate_covered_names(group)
        for flavor in group.flavors:
            yield from _validate_flavor_name(flavor, flavors)
            yield from _validate_resource_order(flavor, group)
        yield from _validate_size(group)
    yield from _check_covered_twice(spec.resource_groups)
    for count, what in ((len(flavors), "flavors"), (len(covered), "resources")):
        if count > _MOST:
            message = f"in all groups are more than the {_MOST} that are allowed"
            yield too_many_entries_problem(path, message, f"use fewer {what}", f"{count} {what}")


def cluster_queue_or_cohort(subject: Subject) -> ClusterQueue | Cohort:
    """Return the reviewed object as a ClusterQueue or a Cohort."""
    return subject.typed(Cohort) if subject.group_kind[1] == Cohort.gvk.kind else subject.typed(ClusterQueue)


def _validate_size(group: ResourceGroup) -> Iterator[Problem]:
    resources, flavors = len(group.covered_resources), len(group.flavors)
    for name, count, noun in (("coveredResources", resources, "resource"), ("flavors", flavors, "flavor")):
        if message := fault_of_count(count, _MOST_IN_GROUP):
            fix = fix_for_count(count, _MOST_IN_GROUP, noun)
            yield too_many_entries_problem(group.path(name), message, fix, counted(count, noun))
    if resources * flavors > _MOST_PAIRS:
        message = f"of flavors and resources are more than the {_MOST_PAIRS} that are allowed"
        yield too_many_entries_problem(group.at, message, "split the group", f"{resources * flavors} combinations")


def _validate_flavor_name(flavor: FlavorQuotas, before: set[str]) -> Iterator[Problem]:
    name, path = flavor.name, flavor.path("name")
    if dns1123_subdomain_errors(name) and not is_placeholder_for_name(name):
        message = f"cannot be the name of a ResourceFlavor because {subdomain_fault(name)}"
        yield FLAVOR_NAME.problem(path, message, subdomain_fix(name), name)
    if name in before:
        message = "is listed twice, but a flavor can occur only once in all groups"
        yield FLAVOR_TWICE.problem(path, message, f"remove one `{name}`", name)
    before.add(name)


def _validate_resource_order(flavor: FlavorQuotas, group: ResourceGroup) -> Iterator[Problem]:
    """Report resources of a flavor that are not in the order of coveredResources."""
    covered, quotas = group.covered_resources, flavor.resources
    left = len(covered) - len(quotas)
    if left:
        given = counted(len(quotas), "entry", "entries")
        message = f"has {given}, but needs {len(covered)}, one for each resource in coveredResources"
        fix = f"{'add' if left > 0 else 'remove'} {counted(abs(left), 'entry', 'entries')}"
        yield FLAVOR_RESOURCES.problem(flavor.path("resources"), message, fix)
        return
    for quota, name in zip(quotas, covered, strict=True):
        if quota.name != name:
            message = f"must be {name} because coveredResources has {name} at this place"
            fix = "list the resources in the order of coveredResources"
            yield FLAVOR_RESOURCES.problem(quota.path("name"), message, fix, quota.name)
            return


def advise_resource_groups(spec: ClusterQueueSpec, subject: Subject) -> Iterator[Problem]:
    """Report missing groups, missing flavors, and groups for the resource `gpu`, which no pod requests. Groups for
    `gpu` are allowed if Kueue's Configuration counts devices as `gpu`.
    """
    view = subject.cluster_view()
    yield from advise_no_resources(spec)
    if not subject.once(read_kueue_configuration).defines_resource(_RAW_GPU):
        for group in spec.resource_groups:
            yield from advise_raw_gpu(group)
    for group in spec.resource_groups:
        for flavor in group.flavors:
            yield from _check_flavor_missing(flavor, view)


def _check_flavor_missing(flavor: FlavorQuotas, view: ClusterView) -> Iterator[Problem]:
    if view.lacks(ResourceFlavor.gvk, flavor.name):
        near = view.nearest(flavor.name, (other.name for other in view.list_typed(ResourceFlavor)))
        message, fix = (
            "does not exist, so the whole ClusterQueue is inactive",
            "create the ResourceFlavor, or correct the name",
        )
        yield FLAVOR_MISSING.problem(flavor.path("name"), message, did_you_mean(near, fix), flavor.name)


def advise_unused_flavor(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a flavor that no ClusterQueue or Cohort uses."""
    name, view = subject.typed(ResourceFlavor).name, subject.cluster_view()
    is_whole = view.is_whole(ClusterQueue.gvk) and view.is_whole(Cohort.gvk)
    if not is_whole or not view.find(ResourceFlavor, name, namespaced=False):
        return
    queues_and_cohorts = read_quota_trees(view).all_queues_and_cohorts()
    if queues_and_cohorts and not any(name in group.flavors for queue in queues_and_cohorts for group in queue.groups):
        message = "no ClusterQueue or Cohort uses the flavor, so no pod ever gets the flavor"
        fix = "add the flavor to spec.resourceGroups of a ClusterQueue, or delete the flavor"
        yield FLAVOR_UNUSED.problem("", message, fix)


def too_many_entries_problem(path: FieldPath, message: str, fix: str, shown: str) -> Problem:
    """Return the problem of a list with too many or too few entries."""
    return TOO_MANY.problem(path, message, fix, shown=shown)


def fault_of_count(count: int, most: int) -> str:
    """Return what is wrong with the length of a list that must have 1 to `most` entries; "" for a valid length."""
    return "" if 1 <= count <= most else f"are given, but 1 to {most} are allowed"


def fix_for_count(count: int, most: int, noun: str) -> str:
    """Return the fix for a list with too many entries, or with no entry."""
    return f"remove {counted(count - most, noun)}" if count else f"add a {noun}"


def advise_raw_gpu(group: ResourceGroup) -> Iterator[Problem]:
    """Yield the problem of quota for `gpu`: pods request the resource of a vendor."""
    if _RAW_GPU in group.covered_resources:
        message = "has quota for `gpu`, but pods ask for GPUs by the resource of a vendor"
        fix = "write nvidia.com/gpu, or the resource of another vendor, here and in the flavors"
        yield RAW_GPU.problem(group.path("coveredResources"), message, fix)


def _validate_covered_names(group: ResourceGroup) -> Iterator[Problem]:
    """Report invalid names of covered resources."""
    for index, name in enumerate(group.covered_resources):
        if qualified_name_errors(name) and not is_placeholder(name):
            message = f"cannot be the name of a resource because {qualified_name_fault(name)}"
            path = group.path("coveredResources", index)
            yield RESOURCE_NAME.problem(path, message, qualified_name_fix(name), name)


def _check_covered_twice(groups: Sequence[ResourceGroup]) -> Iterator[Problem]:
    """Yield one problem for all resources that several groups cover, at the first resource."""
    covered: set[str] = set()
    twice: dict[str, FieldPath] = {}
    for group in groups:
        for index, name in enumerate(group.covered_resources):
            if name in covered:
                twice.setdefault(name, group.path("coveredResources", index))
            covered.add(name)
    if twice:
        first, *others = twice
        likewise = f" (likewise {some_of([f'`{name}`' for name in others], _MOST_NAMED)})" if others else ""
        message = f"is covered twice{likewise}, but a resource can have quota in only one group"
        fix = (
            "cover these resources in only one group" if others else f"remove `{first}` from one group and its flavors"
        )
        yield COVERED_TWICE.problem(twice[first], message, fix, first)


def advise_no_resources(spec: ClusterQueueSpec) -> Iterator[Problem]:
    """Yield the problem of a ClusterQueue that covers no resources."""
    if not spec.resource_groups:
        fix = "add a group with coveredResources and flavors"
        yield NO_RESOURCES.problem(spec.path("resourceGroups"), "is empty, so no job is admitted", fix)
