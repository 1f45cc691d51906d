"""Rules of Kueue for amounts of a ClusterQueue or a Cohort: quotas, borrowing, lending, fair sharing, and cohorts.

If cohorts form a cycle, the ClusterQueues stay active, but every job waits (observed in a cluster).

Source: kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go validateFlavorQuotas, validateLimit and
validateFairSharing, cohort_webhook.go, pkg/cache/hierarchy and pkg/cache/scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery import quantity
from webhook.apimachinery.paths import path_as_text
from webhook.facts.kueue.groups import KUEUE_QUEUE, KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.queue_flavors import cluster_queue_or_cohort
from webhook.facts.kueue.quota_tree import others_in_tree_of_cohort, read_cluster_queue, read_quota_trees
from webhook.facts.resource_units import format_amount_with_resource_name
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.typed.collections import Items
from webhook.typed.kueue import ClusterQueue, Cohort, ResourceQuota
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_non_text

COHORT_CYCLE: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/cohort-cycle",
    title="The parents of the Cohort form a cycle",
    why="The ClusterQueues in the cycle look active and admit no job. Kueue reports the cycle only in its log.",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/hierarchy",
)
LIMIT_WITHOUT_COHORT: Final = KUEUE_QUEUE.rule(
    "kueue-queue/limit-without-cohort",
    title="A borrowing or lending limit is set without a cohort",
    why="Without a cohort the queue cannot borrow or lend.",
    function="validateLimit",
)
QUOTA_AMOUNT: Final = KUEUE_QUEUE.rule(
    "kueue-queue/quota-amount",
    title="A quota is negative or missing, or not a quantity",
    why="Kueue computes with these amounts and accepts no other values.",
    function="validateResourceQuota",
)
LENDING_ABOVE_NOMINAL: Final = KUEUE_QUEUE.rule(
    "kueue-queue/lending-above-nominal",
    title="The lending limit is above the nominal quota",
    why="A queue can lend at most its nominal quota.",
    function="validateLendingLimit",
)
NOTHING_TO_BORROW: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/nothing-to-borrow",
    title="The cohort has nothing that the queue could borrow",
    why="No other member of the cohort has quota for this resource and flavor, so borrowingLimit has no effect.",
    refused_by="nothing; the limit has no effect",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/resource_node.go",
    fails="silent",
)
FAIR_SHARING: Final = KUEUE_QUEUE.rule(
    "kueue-queue/fair-sharing",
    title="The fair sharing weight is negative, too small or not a quantity",
    why="Kueue divides the share of a queue by its weight.",
    function="validateFairSharing",
)
FAIR_SHARING_ZERO: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/fair-sharing-zero",
    title="The fair sharing weight of the queue is 0",
    why="With fair sharing, all other queues borrow before this queue.",
    refused_by="nothing; other queues borrow first",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/fair_sharing.go",
    fails="silent",
)


def advise_cohort_cycle(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a Cohort with parents that form a cycle, or that lead back to the Cohort."""
    cohort = subject.typed(Cohort)
    parent = cohort.parent
    closes = _cohort_that_closes_cycle(cohort.name, parent, subject.cluster_view())
    if closes:
        message = f"leads to a cycle through cohort `{closes}`, so Kueue admits no job in any cohort of the cycle"
        fix = "name a parent that leads to no cycle"
        yield COHORT_CYCLE.problem(cohort.spec.path(cohort.parent_field), message, fix, parent)


def _cohort_that_closes_cycle(name: str, parent: str, view: ClusterView) -> str:
    """Return the first cohort that occurs twice on the way up from a cohort; "" without a cycle."""
    trees, passed = read_quota_trees(view), {name}
    while parent and parent not in passed:
        passed.add(parent)
        parent = trees.parent_of(parent)
    return parent


def cohort_above(subject: Subject) -> str:
    """Return the parent cohort of a ClusterQueue or a Cohort. v1beta1 and v1beta2 have different fields for the name of
    the cohort.
    """
    if subject.group_kind[1] == Cohort.gvk.kind:
        return subject.typed(Cohort).parent
    spec = subject.typed(ClusterQueue).spec
    return spec.cohort if subject.attributes.kind.version == "v1beta1" else spec.cohort_name


def name_of_cohort_field(subject: Subject) -> str:
    """Return the name of the field with the parent cohort, in the API version of the object."""
    if subject.group_kind[1] == Cohort.gvk.kind:
        return subject.typed(Cohort).parent_field
    return "cohort" if subject.attributes.kind.version == "v1beta1" else "cohortName"


def validate_limits_without_cohort(subject: Subject) -> Iterator[Problem]:
    """Yield one problem for all limits of borrowing and lending, because the single mistake is the missing cohort."""
    if cohort_above(subject):
        return
    limits = [
        (quota.path(name), limit, verb)
        for group in cluster_queue_or_cohort(subject).spec.resource_groups
        for flavor in group.flavors
        for quota in flavor.resources
        for name, limit, verb in (
            ("borrowingLimit", quota.borrowing_limit, "borrow from"),
            ("lendingLimit", quota.lending_limit, "lend to"),
        )
        if limit is not None
    ]
    if limits:
        (path, limit, verb), *others = limits
        field = name_of_cohort_field(subject)
        message = f"must not be set without {field} because there is no cohort to {verb}"
        problem = LIMIT_WITHOUT_COHORT.problem(path, message, f"set spec.{field}, or remove the limit", limit)
        yield replace(problem, also=tuple(path_as_text(each) for each, _, _ in others))


def validate_quotas(subject: Subject) -> Iterator[Problem]:
    """Report limits without a cohort, invalid amounts, and lending limits above the nominal quota
    (validateFlavorQuotas and validateLimit).
    """
    yield from validate_limits_without_cohort(subject)
    for group in cluster_queue_or_cohort(subject).spec.resource_groups:
        for flavor in group.flavors:
            for quota in flavor.resources:
                yield from _validate_amounts(quota)
                if subject.group_kind[1] == ClusterQueue.gvk.kind:
                    yield from _check_lending_above_nominal(quota)


def _validate_amounts(quota: ResourceQuota) -> Iterator[Problem]:
    for name in ("nominalQuota", "borrowingLimit", "lendingLimit"):
        given, path = quota.json.get(name), quota.path(name)
        if given is None:
            if name == "nominalQuota":
                yield QUOTA_AMOUNT.problem(path, "must be set", "set 0 or more")
            continue
        if is_placeholder_for_non_text(str(given)):
            continue
        amount = quantity.read_quantity_or_none(given)
        if amount is None:
            yield QUOTA_AMOUNT.problem(path, "must be a quantity", "write a number such as 8 or 64Gi", given)
        elif amount.sign() < 0:
            yield QUOTA_AMOUNT.problem(path, "must not be negative", "set 0 or more", given)


def _check_lending_above_nominal(quota: ResourceQuota) -> Iterator[Problem]:
    lending, nominal = (
        quantity.read_quantity_or_none(quota.lending_limit),
        quantity.read_quantity_or_none(quota.nominal_quota),
    )
    if lending is not None and nominal is not None and lending > nominal:
        message = f"must not be above the nominalQuota of {nominal} because a queue can lend at most its nominal quota"
        path = quota.path("lendingLimit")
        yield LENDING_ABOVE_NOMINAL.problem(path, message, "lower the limit", quota.lending_limit)


def advise_useless_borrowing_limits(subject: Subject) -> Iterator[Problem]:
    """Report borrowing limits for resources without quota in other members of the cohort, if all members are known."""
    cohort, written = cohort_above(subject), subject.typed(ClusterQueue)
    others = others_in_tree_of_cohort(written.name, cohort, subject.cluster_view()) if cohort else ()
    if all(node.is_cohort for node in others):
        return
    queue = read_cluster_queue(written)
    lent = {pair for node in others for pair, quota in node.quotas.items() if quota.nominal > 0}
    for (flavor, resource), quota in queue.quotas.items():
        if quota.borrowing_limit and (flavor, resource) not in lent:
            limit = format_amount_with_resource_name(resource, quota.borrowing_limit)
            message = (
                f"lets flavor `{flavor}` borrow {limit}, which has no effect because no other member of cohort "
                f"`{cohort}` has quota for {resource} of this flavor"
            )
            fix = f"remove the borrowingLimit of {resource} from flavor `{flavor}`"
            yield NOTHING_TO_BORROW.problem("spec.resourceGroups", message, fix)


def validate_fair_sharing(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a weight that is negative, or above 0 and at most 1n (validateFairSharing)."""
    sharing = cluster_queue_or_cohort(subject).spec.fair_sharing
    given, weight = sharing.weight, quantity.read_quantity_or_none(sharing.weight)
    if given is None or is_placeholder(str(given)):
        return
    is_tiny = weight is not None and weight.sign() > 0 and weight <= quantity.parse_quantity("1n")
    if weight is None or weight.sign() < 0 or is_tiny:
        message = "must be 0, or more than 1n" if is_tiny else "must be a quantity of 0 or more"
        yield FAIR_SHARING.problem(sharing.path("weight"), message, "set 1, which is the default", given)


def advise_zero_fair_sharing_weight(subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a fair sharing weight of 0.

    A weight above 0 at another member of the cohort shows that the weights rank the members on purpose.
    """
    sharing = cluster_queue_or_cohort(subject).spec.fair_sharing
    weight = quantity.read_quantity_or_none(sharing.weight)
    if weight is not None and weight.sign() == 0 and not _has_member_with_weight(subject):
        message = "is 0, which means that with fair sharing all other queues borrow first"
        yield FAIR_SHARING_ZERO.problem(sharing.path("weight"), message, "set 1, which is the default")


def _has_member_with_weight(subject: Subject) -> bool:
    """Return whether another member of the cohort states a weight above 0."""
    above, view = cohort_above(subject), subject.cluster_view().copy_without_missing_objects()
    if not above:
        return False
    members = [
        *((each.spec.cohort_name or each.spec.cohort, each.spec) for each in view.list_typed(ClusterQueue)),
        *((each.parent, each.spec) for each in view.list_typed(Cohort)),
    ]
    weights = (
        quantity.read_quantity_or_none(spec.fair_sharing.weight)
        for parent, spec in Items(members, view.deadline)
        if parent == above
    )
    return any(weight is not None and weight.sign() > 0 for weight in weights)
