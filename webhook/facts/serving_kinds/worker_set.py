"""What the webhooks of LeaderWorkerSet and DisaggregatedSet refuse, and what the schema of DisaggregatedSet refuses.

The defaulting webhook of LeaderWorkerSet runs first. The defaults are maxUnavailable 1, maxSurge 0 and partition 0. The
schema of DisaggregatedSet has the defaults maxUnavailable 1, maxSurge 0 and 1 replica.

Source: kubernetes-sigs/lws@060ab4d pkg/webhooks/leaderworkerset_webhook.go and
pkg/webhooks/disaggregatedset/disaggregatedset_webhook.go, and the rule of
config/crd/bases/disaggregatedset.x-k8s.io_disaggregatedsets.yaml about replicas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from webhook.apimachinery.names import (
    DNS_1035_LABEL,
    label_fault,
    label_fix,
)
from webhook.facts.serving_kinds.groups import SERVING_KIND, Refusal
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.worker_sets import (
    DisaggregatedRole,
    DisaggregatedSet,
    DisaggregatedSetSpec,
    LeaderWorkerSet,
    LeaderWorkerSetSpec,
    LeaderWorkerTemplate,
    RollingUpdateConfiguration,
)
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_name

WORKER_SET: Final = SERVING_KIND.rule(
    "serving-kind/worker-set",
    title="A LeaderWorkerSet has a name, size, subgroup or update that its webhook refuses",
    why=(
        "The webhook refuses groups without pods, updates that may neither add nor stop a group, and subgroups that do "
        "not divide a group."
    ),
    refused_by="LeaderWorkerSet's webhook",
    source="kubernetes-sigs/lws@060ab4d pkg/webhooks/leaderworkerset_webhook.go",
    function="generalValidate",
)
_EXCLUSIVE: Final = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
_LEADER_EXCLUDED: Final = "LeaderExcluded"
_LONGEST_NAME: Final = 63
_MOST_PODS: Final = (1 << 31) - 1
_PERCENTAGE: Final = re.compile(r"[0-9]{1,9}%", re.ASCII)


def check_worker_set(subject: Subject) -> Iterator[Problem]:
    """Report what the webhook of LeaderWorkerSet refuses."""
    for each in _refusals(subject):
        yield WORKER_SET.problem(*each)


def _refusals(subject: Subject) -> Iterator[Refusal]:
    groups = subject.typed(LeaderWorkerSet)
    spec = groups.spec
    yield from _refusals_of_sizes(spec)
    yield from _refusals_of_update(spec)
    yield from _refusals_of_subgroups(spec.leader_worker_template)
    if _EXCLUSIVE in groups.metadata.annotations and not spec.leader_worker_template.sub_group_policy:
        message = "needs spec.leaderWorkerTemplate.subGroupPolicy, without which the webhook refuses the annotation"
        path = groups.metadata.path("annotations", _EXCLUSIVE)
        yield Refusal(path, message, "set subGroupSize, or remove the annotation")
    yield from _refusals_of_name(groups)


def _refusals_of_name(groups: LeaderWorkerSet) -> Iterator[Refusal]:
    name = groups.name
    if not name or is_placeholder_for_name(name):
        return
    path = groups.metadata.path("name")
    if name[:1].isdigit():
        message = "must begin with a letter because the group gets a Service of this name"
        yield Refusal(path, message, f"write a name such as `group-{name[:40]}`", name)
    elif len(name) > _LONGEST_NAME or not DNS_1035_LABEL.fullmatch(name):
        fault = label_fault(name, begins_with_letter=True)
        message = f"must be the name of a Service, which each group gets, but {fault}"
        yield Refusal(path, message, label_fix(name, begins_with_letter=True), name)


def _refusals_of_sizes(spec: LeaderWorkerSetSpec) -> Iterator[Refusal]:
    template = spec.leader_worker_template
    if template.size < 1:
        yield Refusal(template.path("size"), "must be 1 or more", "set the number of pods", template.size)
    elif spec.replicas * template.size > _MOST_PODS:
        message = f"times size {template.size} is above {_MOST_PODS} pods, which the webhook refuses"
        yield Refusal(spec.path("replicas"), message, "set fewer", spec.replicas)


def _refusals_of_update(spec: LeaderWorkerSetSpec) -> Iterator[Refusal]:
    settings = spec.rollout_strategy.rolling_update_configuration
    if not settings:
        return
    amounts = {"maxUnavailable": settings.max_unavailable, "maxSurge": settings.max_surge}
    for name, amount in amounts.items():
        yield from refusals_of_amount(settings, name, amount)
    if settings.partition is not None and settings.partition < 0:
        yield Refusal(settings.path("partition"), "must be 0 or more", "set 0", settings.partition)
    unavailable = groups_of_amount(1 if settings.max_unavailable is None else settings.max_unavailable, spec.replicas)
    surge = groups_of_amount(0 if settings.max_surge is None else settings.max_surge, spec.replicas, rounds_up=True)
    if unavailable == surge == 0 and spec.replicas > 0 and spec.has_known_replicas:
        written = "0" if settings.max_unavailable in (0, "0%") else f"{settings.max_unavailable} of {spec.replicas}"
        message = f"has maxUnavailable {written} and maxSurge 0, so no group can be updated"
        yield Refusal(settings.at, message, "set maxUnavailable 1")


def refusals_of_amount(settings: RollingUpdateConfiguration, name: str, amount: Any) -> Iterator[Refusal]:
    """Yield the refusal of an amount that is neither a number of at least 0 nor a percentage of at most 100 %."""
    if isinstance(amount, str) and not is_placeholder(amount):
        is_valid = _PERCENTAGE.fullmatch(amount) is not None and int(amount[:-1]) <= 100
    else:
        is_valid = not isinstance(amount, int) or amount >= 0
    if not is_valid:
        message = "must be a number of at least 0, or a percentage of at most 100%"
        yield Refusal(settings.path(name), message, "write a value such as 1 or 25%", amount)


def groups_of_amount(amount: Any, replicas: int, *, rounds_up: bool = False) -> int | None:
    """Return the number of groups that a number or a percentage means; None for another value."""
    if isinstance(amount, int):
        return amount
    if not isinstance(amount, str) or not _PERCENTAGE.fullmatch(amount):
        return None
    hundredths = int(amount[:-1]) * replicas
    return -(-hundredths // 100) if rounds_up else hundredths // 100


def _refusals_of_subgroups(template: LeaderWorkerTemplate) -> Iterator[Refusal]:
    size, policy = template.size, template.sub_group_policy
    part, path = policy.sub_group_size, policy.path("subGroupSize")
    if not policy or size < 1 or not template.has_known_size:
        return
    if part is None:
        yield Refusal(path, "is required in subGroupPolicy", "set a divisor of the size")
    elif part < 1 or (size % part and (size - 1) % part):
        message = f"must divide {size}, the size of a group, or {size - 1}, the size without the leader"
        yield Refusal(path, message, f"set a divisor of {size} or {size - 1}", part)
    elif part > size:
        message = f"is above the size {size} of a group"
        yield Refusal(path, message, "set a divisor of the size", part)
    elif policy.type == _LEADER_EXCLUDED and (size - 1) % part:
        message = f"must divide {size - 1}, the size of a group without its leader, because the leader is excluded"
        yield Refusal(path, message, f"set a divisor of {size - 1}", part)


DISAGGREGATED_SET: Final = SERVING_KIND.rule(
    "serving-kind/disaggregated-set",
    title="A role, the slices or the placement of a DisaggregatedSet is not valid",
    why=(
        "All roles of a DisaggregatedSet are created, updated and placed together. So no role can have a partition, "
        "0 replicas beside roles with replicas, or a placement of its own."
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
"""The most characters of the name of the set, the name of a role and the number of a slice together. The name of a
Service contains these texts and a revision of 8 letters.
"""


def check_disaggregated_set(subject: Subject) -> Iterator[Problem]:
    """Report what the webhook or the schema of DisaggregatedSet refuses."""
    for each in _refusals_of_set(subject.typed(DisaggregatedSet)):
        yield DISAGGREGATED_SET.problem(*each)


def _refusals_of_set(roles: DisaggregatedSet) -> Iterator[Refusal]:
    spec = roles.spec
    for role in spec.roles:
        if not role.has("spec") and role.scaling.mode != _EXTERNAL:
            yield Refusal(
                role.path("spec"), "must be set, because the schema compares the replicas of roles", "set spec"
            )
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
        yield Refusal(role.path("name"), message, f"remove {counted(both - most, 'character')}", role.name)


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
    """Yield the refusal of a set in which some roles have replicas and other roles have 0 replicas."""
    roles = [role for role in spec.roles if role.scaling.mode != _EXTERNAL and role.has("spec")]
    if any(not role.spec.has_known_replicas or role.is_omitted("scaling") for role in roles):
        return
    none = next((role for role in roles if role.spec.replicas == 0), None)
    other = next((role for role in roles if role.spec.replicas), None)
    if none is not None and other is not None:
        message = f"is 0, but role `{other.name}` has {other.spec.replicas}, and only all roles together may be 0"
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
