"""Which webhooks to register for a phase: frequently created kinds have separate webhooks, with conditions about the
concerns of policies.

Most objects that a cluster creates are Pods, and objects of Kubernetes' own kinds that create Pods. Few of them have a
device, a claim or a queue. Each place of pod templates has a separate webhook with matchConditions that follow from the
policies (concerns.py). All other resources have two webhooks: one without updates of bookkeeping fields, and one with
every update for resources whose policies need it. No resource is in two webhooks, so the API server calls once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from webhook.apimachinery.attributes import Phase
from webhook.export.concerns import bookkeeping_condition, concerns_condition
from webhook.export.webhook_rules import (
    MatchedResource,
    WebhookRule,
    matched_resources_of_policies,
    merge_into_webhook_rules,
)
from webhook.policy.compiled import BOOKKEEPING, Policy
from webhook.policy.policy_set import PolicySet

NOT_A_MIRROR: Final = (
    "not-a-mirror-pod",
    (
        '!(object.?metadata.?annotations[?"kubernetes.io/config.mirror"].hasValue()) || '
        "request.userInfo.?groups.orValue([]).size() > 1000 || "
        '!("system:nodes" in request.userInfo.?groups.orValue([]))'
    ),
)
"""A kubelet shows its static Pods to the API server as mirror Pods: they run already."""


class PodLocation(NamedTuple):
    """CEL for the PodSpec in objects of some kinds, and for the metadata of the objects and their templates; the object
    is `o`.
    """

    name: str
    spec: str
    metadata: tuple[str, ...]
    resources: frozenset[tuple[str, str]]


_TEMPLATE: Final = "o.?spec.?template"
_CRON: Final = "o.?spec.?jobTemplate"
PLACES: Final = (
    PodLocation("pods", "o.?spec", ("o.?metadata",), frozenset((("", "pods"),))),
    PodLocation(
        "templates",
        f"{_TEMPLATE}.?spec",
        ("o.?metadata", f"{_TEMPLATE}.?metadata"),
        frozenset(
            (
                *(("apps", name) for name in ("daemonsets", "deployments", "replicasets", "statefulsets")),
                ("batch", "jobs"),
                ("", "replicationcontrollers"),
            )
        ),
    ),
    PodLocation(
        "cronjobs",
        f"{_CRON}.?spec.?template.?spec",
        ("o.?metadata", f"{_CRON}.?metadata", f"{_CRON}.?spec.?template.?metadata"),
        frozenset((("batch", "cronjobs"),)),
    ),
    PodLocation(
        "podtemplates",
        "o.?template.?spec",
        ("o.?metadata", "o.?template.?metadata"),
        frozenset((("", "podtemplates"),)),
    ),
)
_COMMON: Final = frozenset().union(*(place.resources for place in PLACES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """One entry of `webhooks`: its name before that of the phase, "" for none, its rules, and matchConditions."""

    name: str
    rules: tuple[WebhookRule, ...]
    conditions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksOfPhase:
    """The webhooks of a phase; `left_out` are policies with their rules about any Pod, which are not registered."""

    webhooks: tuple[Webhook, ...]
    left_out: dict[str, tuple[str, ...]] = field(default_factory=dict)


def webhook_registrations(policies: PolicySet, phase: Phase, *, any_pod: bool = False) -> WebhooksOfPhase:
    """Return the webhooks of a phase, first those of all kinds except the common kinds.

    Args:
        policies: all that are loaded.
        phase: the phase.
        any_pod: also call the webhook for Pods and workloads that only rules about any Pod concern.
    """
    wanted = matched_resources_of_policies(policies, phase)
    if any("*" in (wish.group, wish.resource) or wish.resource.startswith("*/") for _, wish in wanted):
        return WebhooksOfPhase(webhooks=_webhooks_without_places(wanted))
    general = [(policy, wish) for policy, wish in wanted if (wish.group, wish.resource) not in _COMMON]
    special: list[Webhook] = []
    for place in PLACES:
        listed = [(policy, wish) for policy, wish in wanted if (wish.group, wish.resource) in place.resources]
        unconditional = {
            (wish.group, wish.resource) for policy, wish in listed if _needs_no_match_condition(policy, any_pod=any_pod)
        }
        general += [(policy, wish) for policy, wish in listed if (wish.group, wish.resource) in unconditional]
        special += _webhooks_of_pod_location(
            place, [each for each in listed if (each[1].group, each[1].resource) not in unconditional]
        )
    left_out = {} if any_pod else {policy.name: policy.any_pod for policy, _ in wanted if policy.any_pod}
    return WebhooksOfPhase(webhooks=(*_webhooks_without_places(general), *special), left_out=left_out)


def _webhooks_without_places(wanted: Collection[tuple[Policy, MatchedResource]]) -> tuple[Webhook, ...]:
    """Return a webhook that leaves out updates of bookkeeping fields, for resources whose policies ignore such updates,
    and a webhook with every update for the other resources.
    """
    seen = {_resource_without_part(wish) for policy, wish in wanted if not _unseen_bookkeeping([policy])}
    if any("*" in each for each in seen):
        seen = {_resource_without_part(wish) for _, wish in wanted}  # the wildcard also covers the other resources
    every = [(policy, wish) for policy, wish in wanted if _resource_without_part(wish) in seen]
    others = [(policy, wish) for policy, wish in wanted if _resource_without_part(wish) not in seen]
    listed = (("", others), ("every-update", every))
    return tuple(
        Webhook(name=name, rules=rules, conditions=_bookkeeping_conditions([policy for policy, _ in pairs]))
        for name, pairs in listed
        if (rules := merge_into_webhook_rules({wish for _, wish in pairs}))
    )


def _resource_without_part(wish: MatchedResource) -> tuple[str, str]:
    return wish.group, wish.resource.partition("/")[0]


def _bookkeeping_conditions(policies: Iterable[Policy]) -> tuple[tuple[str, str], ...]:
    unseen = _unseen_bookkeeping(policies)
    return (("not-bookkeeping", bookkeeping_condition(unseen)),) if unseen else ()


def _unseen_bookkeeping(policies: Iterable[Policy]) -> frozenset[str]:
    """Return the fields of BOOKKEEPING that no policy reads; none if a policy gets every update."""
    fields = (BOOKKEEPING - policy.named_bookkeeping if policy.ignores_bookkeeping else () for policy in policies)
    return BOOKKEEPING.intersection(*fields)


def _needs_no_match_condition(policy: Policy, *, any_pod: bool) -> bool:
    return not (policy.concerns or policy.any_pod) or bool(any_pod and policy.any_pod)


def _webhooks_of_pod_location(place: PodLocation, listed: list[tuple[Policy, MatchedResource]]) -> Iterator[Webhook]:
    words = sorted({word for policy, _ in listed for word in policy.concerns})
    concerned = concerns_condition(words, place.spec, place.metadata)
    rules = merge_into_webhook_rules({wish for policy, wish in listed if set(policy.concerns) - {"custom-kinds"}})
    if rules and concerned != "false":
        mirror = (NOT_A_MIRROR,) if place.name == "pods" else ()
        tracked = _bookkeeping_conditions([policy for policy, _ in listed])
        yield Webhook(name=place.name, rules=rules, conditions=(*mirror, *tracked, ("concerns-a-policy", concerned)))
