"""Rules of Kueue for the amounts of a ClusterQueue or a Cohort: quotas, and limits of borrowing and lending.

Sources: kubernetes-sigs/kueue@ff69552e pkg/webhooks/clusterqueue_webhook.go validateFlavorQuotas and validateLimit, and
cohort_webhook.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook import quantity
from webhook.facts.kueue.groups import KUEUE_QUEUE, KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.queue_cohorts import cohort_above, name_of_cohort_field, validate_limit_without_cohort
from webhook.facts.kueue.queue_flavors import cluster_queue_or_cohort
from webhook.facts.kueue.quota_tree import others_in_tree_of_cohort
from webhook.facts.kueue.quota_types import read_cluster_queue
from webhook.facts.kueue.types import ClusterQueue, ResourceQuota
from webhook.facts.resource_units import format_amount_with_resource_name
from webhook.facts.subject import Subject
from webhook.placeholders import is_placeholder_for_non_text
from webhook.problem import Problem

QUOTA_AMOUNT: Final = KUEUE_QUEUE.rule(
    "kueue-queue/quota-amount",
    title="Quotas are quantities that are not negative, and every resource has a nominal one.",
    why="Kueue calculates with them.",
    function="validateResourceQuota",
)
LENDING_ABOVE_NOMINAL: Final = KUEUE_QUEUE.rule(
    "kueue-queue/lending-above-nominal",
    title="A ClusterQueue lends no more than its nominal quota.",
    why="It has no more.",
    function="validateLendingLimit",
)
NOTHING_TO_BORROW: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/nothing-to-borrow",
    title="A borrowing limit is for what another member of the cohort has.",
    why="Without a lender nothing can be borrowed, whatever the limit.",
    refused_by="nobody; nothing can be borrowed",
    source="kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/resource_node.go",
    fails="silent",
)


def validate_quotas(subject: Subject) -> Iterator[Problem]:
    """Yield negative amounts and limits without a cohort (validateFlavorQuotas and validateLimit)."""
    cohort = cohort_above(subject)
    for group in cluster_queue_or_cohort(subject).spec.resource_groups:
        for flavor in group.flavors:
            for quota in flavor.resources:
                yield from _validate_amounts(quota)
                if not cohort:
                    yield from validate_limit_without_cohort(quota, name_of_cohort_field(subject))
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
        message = f"must not be above the nominalQuota of {nominal} because a queue lends what it has"
        path = quota.path("lendingLimit")
        yield LENDING_ABOVE_NOMINAL.problem(path, message, "lower the limit", quota.lending_limit)


def advise_useless_borrowing_limits(subject: Subject) -> Iterator[Problem]:
    """Yield borrowing limits for resources that no other member of the cohort has, if the view shows other members."""
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
