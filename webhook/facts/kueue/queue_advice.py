"""What Kueue takes of queue objects and what is probably not meant: cycles, and quota that nobody can use.

Sources: kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy and pkg/cache/scheduler; a cycle of cohorts was observed to
leave the ClusterQueue active and every job waiting.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook import quantity
from webhook.facts.kueue.absence import is_absent, lacks
from webhook.facts.kueue.cluster_queues import Queue, read_cluster_queue
from webhook.facts.kueue.group_validation import cluster_queue_or_cohort
from webhook.facts.kueue.groups import KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.managed import takes_namespace
from webhook.facts.kueue.queues import others_of, queues
from webhook.facts.kueue.quota_validation import cohort_of
from webhook.facts.kueue.types import ClusterQueue, Cohort, FlavorQuotas, LocalQueue, ResourceFlavor, ResourceGroup
from webhook.facts.resource_units import of_resource
from webhook.facts.subject import Subject
from webhook.facts.view import View
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.wording import did_you_mean

FLAVOR_MISSING: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/flavor-missing",
    title="The flavors of a ClusterQueue exist.",
    why="One that is missing makes the whole ClusterQueue inactive.",
    refused_by="nobody; the queue is inactive",
    issues=("https://github.com/headlamp-k8s/plugins/issues/1191",),
)
CLUSTER_QUEUE_MISSING: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/cluster-queue-missing",
    title="The ClusterQueue that a LocalQueue names exists.",
    why="Jobs wait until it is created.",
    refused_by="nobody; jobs wait",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/queue",
)
NAMESPACE_NOT_SELECTED: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/namespace-not-selected",
    title="The ClusterQueue of a LocalQueue takes jobs of its namespace.",
    why="Jobs of other namespaces are never admitted.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/scheduler.go",
)
NO_NAMESPACE: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/no-namespace",
    title="A ClusterQueue selects namespaces.",
    why="Without a selector it takes jobs of none; an empty selector means all.",
    source="kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go",
)
NO_RESOURCES: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/no-resources",
    title="A ClusterQueue has a resource group.",
    why="Without one it admits not even a job without requests.",
    source="kubernetes-sigs/kueue@ff69552e pkg/scheduler/flavorassigner",
)
RAW_GPU: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/raw-gpu",
    title="Quota for GPUs is for the resource of a vendor.",
    why="Pods cannot ask for `gpu`, so the quota is never used.",
    refused_by="nobody; the quota is never used",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="silent",
)
COHORT_CYCLE: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/cohort-cycle",
    title="The parents of a Cohort do not lead back to it.",
    why="The ClusterQueues below stay active and admit nothing; only a log tells.",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy",
)
NOTHING_TO_BORROW: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/nothing-to-borrow",
    title="A borrowing limit is for what another member of the cohort has.",
    why="Without a lender nothing can be borrowed, whatever the limit.",
    refused_by="nobody; nothing can be borrowed",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/resource_node.go",
    fails="silent",
)
FLAVOR_UNUSED: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/flavor-unused",
    title="A flavor is used by a ClusterQueue or a Cohort.",
    why="Nobody has quota for it.",
    refused_by="nobody; no pods get the flavor",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler",
    fails="silent",
)
FAIR_SHARING_ZERO: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/fair-sharing-zero",
    title="A queue that borrows has a weight above 0.",
    why="With fair sharing, a weight of 0 means that others borrow first.",
    refused_by="nobody; others come first",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/fair_sharing.go",
    fails="silent",
)

_RAW: Final = "gpu"


def advise_cohort(subject: Subject) -> Iterator[Problem]:
    """A Cohort whose parents lead back to it."""
    cohort = subject.typed(Cohort)
    parent = cohort.spec.parent_name
    closes = _cycle(cohort.name, parent, subject.view())
    if closes:
        message = f"makes a cycle through cohort `{closes}`, so Kueue admits no job in any cohort of the cycle"
        fix = "set a parent that is not below this Cohort"
        yield COHORT_CYCLE.problem(cohort.spec.path("parentName"), message, fix, parent)


def _cycle(name: str, parent: str, view: View) -> str:
    """The cohort at which the parents of a cohort come round to one before; "" where they do not."""
    everything, passed = queues(view), {name}
    while parent and parent not in passed:
        passed.add(parent)
        parent = everything.parent_of(parent)
    return parent


def advise_cluster_queue(subject: Subject) -> Iterator[Problem]:
    """A ClusterQueue that admits nothing, or says what has no effect."""
    queue, view = subject.typed(ClusterQueue), subject.view()
    if not queue.spec.has("namespaceSelector"):
        message = "is not set, so no namespace may use the ClusterQueue"
        path, fix = queue.spec.path("namespaceSelector"), "set {} for every namespace, or a selector"
        yield NO_NAMESPACE.problem(path, message, fix)
    if not queue.spec.resource_groups:
        fix = "add a group with coveredResources and flavors"
        yield NO_RESOURCES.problem(queue.spec.path("resourceGroups"), "is empty, so no job is admitted", fix)
    for group in queue.spec.resource_groups:
        yield from _raw_gpu(group)
    for group in queue.spec.resource_groups:
        for flavor in group.flavors:
            yield from _flavor_missing(flavor, view)
    yield from _nothing_to_borrow(subject)


def _raw_gpu(group: ResourceGroup) -> Iterator[Problem]:
    if _RAW in group.covered_resources:
        message = "has quota for `gpu`, but pods ask for GPUs by the resource of a vendor"
        fix = "cover nvidia.com/gpu or the resource of another vendor"
        yield RAW_GPU.problem(group.path("coveredResources"), message, fix)


def _flavor_missing(flavor: FlavorQuotas, view: View) -> Iterator[Problem]:
    if lacks(view, ResourceFlavor.gvk, flavor.name):
        near = view.nearest(flavor.name, (other.name for other in view.list(ResourceFlavor)))
        message, fix = "does not exist, so the whole ClusterQueue is inactive", "create the ResourceFlavor"
        yield FLAVOR_MISSING.problem(flavor.path("name"), message, did_you_mean(near, fix), flavor.name)


def _nothing_to_borrow(subject: Subject) -> Iterator[Problem]:
    """Borrowing limits in a cohort where nobody else has any of it, as far as the view shows other members."""
    cohort, written = cohort_of(subject), subject.typed(ClusterQueue)
    others = others_of(written.name, cohort, subject.view()) if cohort else ()
    if all(node.is_cohort for node in others):
        return
    queue = read_cluster_queue(written)
    lent = {pair for node in others for pair, quota in node.quotas.items() if quota.nominal > 0}
    for (flavor, resource), quota in queue.quotas.items():
        if quota.borrowing_limit and (flavor, resource) not in lent:
            limit = of_resource(resource, quota.borrowing_limit)
            message = (
                f"lets flavor `{flavor}` borrow {limit}, which has no effect because no other member of cohort "
                f"`{cohort}` has quota for {resource} of this flavor"
            )
            fix = f"remove the borrowingLimit of {resource} from flavor `{flavor}`"
            yield NOTHING_TO_BORROW.problem("spec.resourceGroups", message, fix)


def advise_fair_sharing(subject: Subject) -> Iterator[Problem]:
    """A weight of 0."""
    sharing = cluster_queue_or_cohort(subject).spec.fair_sharing
    weight = quantity.read(sharing.weight)
    if weight is not None and weight.sign() == 0:
        message = "is 0, which means that with fair sharing all other queues borrow first"
        yield FAIR_SHARING_ZERO.problem(sharing.path("weight"), message, "set 1, which is the default")


def advise_local_queue(subject: Subject) -> Iterator[Problem]:
    """A LocalQueue that leads nowhere."""
    view, local = subject.view(), subject.typed(LocalQueue)
    name, path = local.spec.cluster_queue, local.spec.path("clusterQueue")
    queue = view.find(ClusterQueue, name, namespaced=False) if name else None
    if queue:
        yield from _namespace_not_selected(read_cluster_queue(queue), path, subject)
    elif name and is_absent(view, ClusterQueue.gvk):
        near = view.nearest(name, queues(view).cluster_queues)
        message = "is a ClusterQueue that does not exist, so the jobs of this LocalQueue wait"
        fix = did_you_mean(near, "create the ClusterQueue, or correct the name")
        yield CLUSTER_QUEUE_MISSING.problem(path, message, fix, name)


def _namespace_not_selected(queue: Queue, path: FieldPath, subject: Subject) -> Iterator[Problem]:
    selector = queue.namespace_selector
    if selector is None or takes_namespace(selector, subject.namespace, subject.view()) is False:
        message = (
            f"takes no jobs from namespace `{subject.namespace}` because the namespaceSelector of the ClusterQueue "
            f"{'is not set' if selector is None else 'does not match the namespace'}"
        )
        fix = "ask the administrator of the ClusterQueue to admit the namespace, or name another ClusterQueue"
        yield NAMESPACE_NOT_SELECTED.problem(path, message, fix, queue.name)


def advise_flavor(subject: Subject) -> Iterator[Problem]:
    """A flavor that exists and that no ClusterQueue or Cohort has quota for; a new one comes before its queues."""
    name, view = subject.typed(ResourceFlavor).name, subject.view()
    if not view.find(ResourceFlavor, name, namespaced=False):
        return
    everyone = queues(view).everyone()
    if everyone and not any(name in group.flavors for queue in everyone for group in queue.groups):
        message = "the flavor is used by no ClusterQueue and no Cohort, so no pods ever get it"
        fix = "add the flavor to spec.resourceGroups of a ClusterQueue, or delete the flavor"
        yield FLAVOR_UNUSED.problem("", message, fix)
