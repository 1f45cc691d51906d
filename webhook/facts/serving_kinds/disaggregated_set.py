"""What the webhook and the schema of DisaggregatedSet refuse: names, updates, replicas, scaling and placement of roles.

The schema fills in maxUnavailable 1, maxSurge 0 and 1 replica where they are absent.

Source: kubernetes-sigs/lws@060ab4d pkg/webhooks/disaggregatedset/disaggregatedset_webhook.go, and the rule of
config/crd/bases/disaggregatedset.x-k8s.io_disaggregatedsets.yaml about replicas.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.serving_kinds.groups import SERVING_KIND, Refusal
from webhook.facts.serving_kinds.worker_set import groups_of_amount, refusals_of_amount
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.worker_sets import DisaggregatedRole, DisaggregatedSet, DisaggregatedSetSpec
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_name

DISAGGREGATED_SET: Final = SERVING_KIND.rule(
    "serving-kind/disaggregated-set",
    title="A DisaggregatedSet has roles that its webhook refuses",
    why=(
        "The webhook refuses names that are too long for the Services of roles, updates without any room, partitions, "
        "slices beside external scaling, and two exclusive placements at once."
    ),
    refused_by="DisaggregatedSet's webhook, or its schema",
    source="kubernetes-sigs/lws@060ab4d pkg/webhooks/disaggregatedset/disaggregatedset_webhook.go",
    function="validate, validatePlacement",
)
_EXCLUSIVE_ROLES: Final = (
    "leaderworkerset.sigs.k8s.io/exclusive-topology",
    "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology",
)
_EXTERNAL: Final = "External"
_LONGEST: Final = 63 - len("---") - len("12345678") - len("-prv")
"""The most characters of the names of the set and a role and of the number of a slice: all are in the name of a Service
with a revision of 8 letters.
"""


def check_disaggregated_set(subject: Subject) -> Iterator[Problem]:
    """Report what the webhook or the schema of DisaggregatedSet refuses."""
    for each in _refusals_of_set(subject.typed(DisaggregatedSet)):
        yield DISAGGREGATED_SET.problem(*each)


def _refusals_of_set(roles: DisaggregatedSet) -> Iterator[Refusal]:
    spec = roles.spec
    for role in spec.roles:
        if not role.has("spec") and role.scaling.mode != _EXTERNAL:
            yield Refusal(role.path("spec"), "must be set, because the schema compares the replicas of roles", "set it")
        yield from _refusals_of_role_update(role)
        yield from _refusals_of_role_name(role, roles)
    yield from _refusals_of_replicas(spec)
    if spec.slices > 1 and any(role.scaling.mode == _EXTERNAL for role in spec.roles):
        message = "must be 1 while a role has scaling.mode External"
        yield Refusal(spec.path("slices"), message, "set 1, or scaling.mode Static", spec.slices)
    yield from _refusals_of_placement(spec)


def _refusals_of_role_name(role: DisaggregatedRole, roles: DisaggregatedSet) -> Iterator[Refusal]:
    name = roles.metadata.longest_name
    if is_placeholder_for_name(name) or is_placeholder_for_name(role.name) or roles.spec.is_omitted("slices"):
        return
    most = _LONGEST - len(str(roles.spec.slices - 1))
    if (both := len(name) + len(role.name)) > most:
        message = (
            f"and the name of the DisaggregatedSet have {both} characters, and the Service of the role allows {most}"
        )
        yield Refusal(role.path("name"), message, f"remove {both - most} of them", role.name)


def _refusals_of_role_update(role: DisaggregatedRole) -> Iterator[Refusal]:
    settings = role.spec.rollout_strategy.rolling_update_configuration
    if not settings:
        return
    if settings.partition:
        message = "must be 0, because a DisaggregatedSet updates its roles together"
        yield Refusal(settings.path("partition"), message, "remove the field", settings.partition)
    if not role.spec.has_known_replicas or role.spec.replicas == 0:
        return
    amounts = {"maxUnavailable": settings.max_unavailable, "maxSurge": settings.max_surge}
    for name, amount in amounts.items():
        yield from refusals_of_amount(settings, name, amount)
    replicas = role.spec.replicas
    unavailable = groups_of_amount(1 if settings.max_unavailable is None else settings.max_unavailable, replicas)
    surge = groups_of_amount(0 if settings.max_surge is None else settings.max_surge, replicas, rounds_up=True)
    if unavailable == surge == 0:
        written = "0" if settings.max_unavailable in (0, "0%") else f"{settings.max_unavailable} of {replicas}"
        message = f"has maxUnavailable {written} and maxSurge 0, so no group of the role can be updated"
        yield Refusal(settings.at, message, "set maxUnavailable 1")


def _refusals_of_replicas(spec: DisaggregatedSetSpec) -> Iterator[Refusal]:
    """Yield the problem of roles of which only some have replicas, which the schema refuses."""
    known = [role for role in spec.roles if role.scaling.mode != _EXTERNAL and role.has("spec")]
    if any(not role.spec.has_known_replicas or role.is_omitted("scaling") for role in known):
        return
    none = next((role for role in known if role.spec.replicas == 0), None)
    other = next((role for role in known if role.spec.replicas), None)
    if none is not None and other is not None:
        message = f"is 0, but role `{other.name}` has {other.spec.replicas}: all roles have replicas, or none has"
        yield Refusal(none.spec.path("replicas"), message, "set 1 or more, or 0 for all roles")


def _refusals_of_placement(spec: DisaggregatedSetSpec) -> Iterator[Refusal]:
    policy = spec.placement_policy
    if policy.type in ("", "None") or is_placeholder(policy.type):
        return
    if not policy.topology and not policy.is_omitted("topology"):
        message = f"must be set because placementPolicy.type is {policy.type}"
        yield Refusal(policy.path("topology"), message, "set the key of a node label")
    for role in spec.roles:
        template = role.spec.leader_worker_template
        for part in (role.metadata, template.leader_template.metadata, template.worker_template.metadata):
            for key in _EXCLUSIVE_ROLES:
                if key in part.annotations:
                    message = f"must not be set because placementPolicy.type is {policy.type}"
                    yield Refusal(part.path("annotations", key), message, "remove the annotation")
