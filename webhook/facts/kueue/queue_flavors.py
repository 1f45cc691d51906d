"""Rules of Kueue for the resource groups of a ClusterQueue or a Cohort: resources, flavors, and their order.

Sources: kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go validateResourceGroups, cohort_webhook.go
and the bounds of config/components/crd/bases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_QUEUE, KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.queue_covered_resources import advise_no_resources, validate_covered_resources
from webhook.facts.kueue.queue_raw_gpu import advise_raw_gpu
from webhook.facts.kueue.queue_too_many_entries import fault_of_count, fix_for_count, too_many_entries_problem
from webhook.facts.kueue.quota_tree import read_quota_tree
from webhook.facts.kueue.types import (
    ClusterQueue,
    ClusterQueueSpec,
    Cohort,
    FlavorQuotas,
    ResourceFlavor,
    ResourceGroup,
)
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.name_faults import subdomain_fault
from webhook.names import USE_SUBDOMAIN, dns1123_subdomain_errors
from webhook.placeholders import is_placeholder_for_name
from webhook.problem import Problem
from webhook.wording import counted, did_you_mean

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
FLAVOR_MISSING: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/flavor-missing",
    title="The flavors of a ClusterQueue exist.",
    why="One that is missing makes the whole ClusterQueue inactive.",
    refused_by="nobody; the queue is inactive",
    issues=("https://github.com/headlamp-k8s/plugins/issues/1191",),
)

_MOST: Final = 256
"""The most flavors, and the most covered resources, of all resource groups together."""
_MOST_PAIRS: Final = 512
_MOST_GROUPS: Final = 16
_MOST_IN_GROUP: Final = 64
FLAVOR_UNUSED: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/flavor-unused",
    title="A flavor is used by a ClusterQueue or a Cohort.",
    why="Nobody has quota for it.",
    refused_by="nobody; no pods get the flavor",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler",
    level="advice",
    fails="silent",
)


def validate_resource_groups(subject: Subject) -> Iterator[Problem]:
    """Yield the problems that validateResourceGroups would report: covered resources, flavors and their order."""
    spec = cluster_queue_or_cohort(subject).spec
    covered: set[str] = set()
    flavors: set[str] = set()
    count, path = len(spec.resource_groups), spec.path("resourceGroups")
    if count > _MOST_GROUPS:
        message = f"are more than the {_MOST_GROUPS} that are allowed"
        yield too_many_entries_problem(path, message, "join some groups", counted(count, "group"))
    for group in spec.resource_groups:
        yield from validate_covered_resources(group, covered)
        for flavor in group.flavors:
            yield from _validate_flavor_name(flavor, flavors)
            yield from _validate_resource_order(flavor, group)
        yield from _validate_size(group)
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
        yield FLAVOR_NAME.problem(path, message, USE_SUBDOMAIN, name)
    if name in before:
        message = "is listed twice, but a flavor can be in only one place of one group"
        yield FLAVOR_TWICE.problem(path, message, f"remove one `{name}`", name)
    before.add(name)


def _validate_resource_order(flavor: FlavorQuotas, group: ResourceGroup) -> Iterator[Problem]:
    """Yield resources of a flavor that are not in the order of coveredResources."""
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


def advise_resource_groups(spec: ClusterQueueSpec, view: ClusterView) -> Iterator[Problem]:
    """Yield problems of missing groups, of groups for a resource that no pod asks for, and of missing flavors."""
    yield from advise_no_resources(spec)
    for group in spec.resource_groups:
        yield from advise_raw_gpu(group)
    for group in spec.resource_groups:
        for flavor in group.flavors:
            yield from _check_flavor_missing(flavor, view)


def _check_flavor_missing(flavor: FlavorQuotas, view: ClusterView) -> Iterator[Problem]:
    if view.lacks(ResourceFlavor.gvk, flavor.name):
        near = view.nearest(flavor.name, (other.name for other in view.list_typed(ResourceFlavor)))
        message, fix = "does not exist, so the whole ClusterQueue is inactive", "create the ResourceFlavor"
        yield FLAVOR_MISSING.problem(flavor.path("name"), message, did_you_mean(near, fix), flavor.name)


def advise_unused_flavor(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a flavor that no ClusterQueue or Cohort uses."""
    name, view = subject.typed(ResourceFlavor).name, subject.cluster_view()
    is_whole = view.is_whole(ClusterQueue.gvk) and view.is_whole(Cohort.gvk)
    if not is_whole or not view.find(ResourceFlavor, name, namespaced=False):
        return
    everyone = read_quota_tree(view).all_queues_and_cohorts()
    if everyone and not any(name in group.flavors for queue in everyone for group in queue.groups):
        message = "the flavor is used by no ClusterQueue and no Cohort, so no pods ever get it"
        fix = "add the flavor to spec.resourceGroups of a ClusterQueue, or delete the flavor"
        yield FLAVOR_UNUSED.problem("", message, fix)
