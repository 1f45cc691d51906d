"""What Kueue takes of queue objects and what is probably not meant: cycles, and quota that nobody can use.

Sources: kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy and pkg/cache/scheduler; a cycle of cohorts was observed to
leave the ClusterQueue active and every job waiting.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook import quantity
from webhook.facts.check import Group
from webhook.facts.kueue.absence import is_absent, lacks
from webhook.facts.kueue.managed import takes_namespace
from webhook.facts.kueue.objects import CLUSTER_QUEUE, RESOURCE_FLAVOR
from webhook.facts.kueue.queue_validation import cohort_of, groups_of, spec_of
from webhook.facts.kueue.queues import Declared, declared, name_of, queues
from webhook.facts.resource_units import of_resource
from webhook.facts.subject import Subject
from webhook.paths import get
from webhook.problem import Problem
from webhook.wording import did_you_mean

problem: Final = Group("kueue-queue").problem
_ADD_GROUP: Final = "add a group with coveredResources and flavors"
_RAW: Final = "gpu"


def advise_cohorts(subject: Subject) -> Iterator[Problem]:
    """A Cohort whose parents lead back to it."""
    name, parent = name_of(subject.object), cohort_of(subject)
    if not parent:
        return
    known, seen, above = queues(subject.view()), {name}, parent
    while above and above not in seen:
        seen.add(above)
        subject.deadline.spend(1)
        above = known.cohorts[above].above if above in known.cohorts else ""
    if above:
        message = f"makes a cycle through cohort `{above}`, so Kueue admits no job in any cohort of the cycle"
        yield problem("cohort-cycle", "spec.parentName", message, "set a parent that is not below this Cohort", parent)


def advise_cluster_queue(subject: Subject) -> Iterator[Problem]:
    """A ClusterQueue that admits nothing, or says what has no effect."""
    spec = spec_of(subject)
    if spec.get("namespaceSelector") is None:
        message = "is not set, so no namespace may use the ClusterQueue"
        yield problem("no-namespace", "spec.namespaceSelector", message, "set {} for every namespace, or a selector")
    if not groups_of(spec):
        yield problem("no-resources", "spec.resourceGroups", "is empty, so no job is admitted", _ADD_GROUP)
    for index, group in enumerate(subject.deadline.paced(groups_of(spec))):
        path = ("spec", "resourceGroups", index, "coveredResources")
        if _RAW in group.get("coveredResources", []):
            message = "has quota for `gpu`, but pods ask for GPUs by the resource of a vendor"
            yield problem("raw-gpu", path, message, "cover nvidia.com/gpu or the resource of another vendor")
    yield from _absent_flavors(subject)
    yield from _nothing_to_borrow(subject)


def _absent_flavors(subject: Subject) -> Iterator[Problem]:
    view = subject.view()
    for index, group in enumerate(groups_of(spec_of(subject))):
        for place, flavor in enumerate(subject.deadline.paced(group.get("flavors", []))):
            name = flavor.get("name", "")
            if lacks(view, RESOURCE_FLAVOR, name):
                path = ("spec", "resourceGroups", index, "flavors", place, "name")
                near = view.nearest(name, (name_of(each) for each in view.all(RESOURCE_FLAVOR)))
                message = "does not exist, so the whole ClusterQueue is inactive"
                yield problem("flavor-missing", path, message, did_you_mean(near, "create the ResourceFlavor"), name)


def _nothing_to_borrow(subject: Subject) -> Iterator[Problem]:
    """Borrowing limits in a cohort where nobody else has any of it, as far as the view shows other members."""
    cohort, own = cohort_of(subject), declared(subject.object, CLUSTER_QUEUE)
    known = queues(subject.view())
    tree = known.tree_of(cohort) if cohort else None
    if tree is None or not any(node.name != own.name and not node.is_cohort for node in tree.nodes()):
        return
    others = [node for node in tree.nodes() if node.name != own.name]
    lent = {pair for node in subject.deadline.paced(others) for pair, quota in node.quotas.items() if quota.nominal > 0}
    for pair, quota in subject.deadline.paced(own.quotas.items()):
        if quota.borrowing_limit and pair not in lent:
            limit = of_resource(pair[1], quota.borrowing_limit)
            message = (
                f"lets flavor `{pair[0]}` borrow {limit}, which has no effect because no other member of cohort "
                f"`{cohort}` has quota for {pair[1]} of this flavor"
            )
            fix = f"remove the borrowingLimit of {pair[1]} from flavor `{pair[0]}`"
            yield problem("nothing-to-borrow", "spec.resourceGroups", message, fix)


def advise_fair_sharing(subject: Subject) -> Iterator[Problem]:
    """A weight of 0."""
    weight = quantity.read(get(spec_of(subject), ("fairSharing", "weight")))
    if weight is not None and weight.sign() == 0:
        message = "is 0, which means that with fair sharing all other queues borrow first"
        yield problem("fair-sharing-zero", "spec.fairSharing.weight", message, "set 1, which is the default")


def advise_local_queue(subject: Subject) -> Iterator[Problem]:
    """A LocalQueue that leads nowhere."""
    view, name = subject.view(), str(spec_of(subject).get("clusterQueue", ""))
    obj = view.get(CLUSTER_QUEUE, name, namespaced=False) if name else None
    if obj is None:
        if name and is_absent(view, CLUSTER_QUEUE):
            near = view.nearest(name, queues(view).cluster_queues)
            message = "is a ClusterQueue that does not exist, so the jobs of this LocalQueue wait"
            fix = did_you_mean(near, "create the ClusterQueue, or correct the name")
            yield problem("cluster-queue-missing", "spec.clusterQueue", message, fix, name)
        return
    yield from _closed(declared(obj, CLUSTER_QUEUE), subject)


def _closed(queue: Declared, subject: Subject) -> Iterator[Problem]:
    selector = queue.spec.get("namespaceSelector")
    if selector is None or takes_namespace(selector, subject.namespace, subject.view()) is False:
        message = (
            f"takes no jobs from namespace `{subject.namespace}` because the namespaceSelector of the ClusterQueue "
            f"{'is not set' if selector is None else 'does not match the namespace'}"
        )
        fix = "ask the administrator of the ClusterQueue to admit the namespace, or name another ClusterQueue"
        yield problem("namespace-not-selected", "spec.clusterQueue", message, fix, queue.name)


def advise_flavor(subject: Subject) -> Iterator[Problem]:
    """A flavor that exists and that no ClusterQueue or Cohort has quota for; a new one comes before its queues."""
    name, view = name_of(subject.object), subject.view()
    if view.get(RESOURCE_FLAVOR, name, namespaced=False) is None:
        return
    known = queues(view)
    everybody = (*known.cluster_queues.values(), *known.cohorts.values())
    if everybody and not any(name in group.flavors for each in everybody for group in each.groups):
        message = "the flavor is used by no ClusterQueue and no Cohort, so no pods ever get it"
        yield problem(
            "flavor-unused",
            "",
            message,
            "add the flavor to spec.resourceGroups of a ClusterQueue, or delete the flavor",
        )
