"""What the webhook of LeaderWorkerSet refuses.

Source: kubernetes-sigs/lws@060ab4d pkg/webhooks/leaderworkerset_webhook.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.serving_kinds.groups import SERVING_KIND
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.worker_sets import LeaderWorkerSet

WORKER_SET: Final = SERVING_KIND.rule(
    "serving-kind/worker-set",
    title="A LeaderWorkerSet has a name, subGroupSize or rolling update that its webhook refuses",
    why="The webhook refuses an update strategy without any room, and subgroups that do not divide a group.",
    refused_by="LeaderWorkerSet's webhook",
    source="kubernetes-sigs/lws@060ab4d pkg/webhooks/leaderworkerset_webhook.go",
    function="generalValidate",
)
_ZERO: Final = (0, "0", "0%")


def check_worker_set(subject: Subject) -> Iterator[Problem]:
    """Report what the webhook of LeaderWorkerSet refuses."""
    groups = subject.typed(LeaderWorkerSet)
    settings = groups.spec.rollout_strategy.rolling_update_configuration
    surge = 0 if settings.max_surge is None else settings.max_surge
    if surge in _ZERO and settings.max_unavailable in _ZERO:
        message = "has maxUnavailable 0 and maxSurge 0, so no group can be updated"
        yield WORKER_SET.problem(settings.at, message, "set maxUnavailable 1")
    template = groups.spec.leader_worker_template
    size, part = template.size, template.sub_group_policy.sub_group_size
    if part is not None and (part < 1 or (size % part and (size - 1) % part)):
        message = f"must divide the size {size} of a group, or {size - 1}"
        path = template.sub_group_policy.path("subGroupSize")
        yield WORKER_SET.problem(path, message, "set a divisor of the size", part)
    name = groups.name
    if name[:1].isdigit():
        message = "must begin with a letter because the group gets a Service of this name"
        yield WORKER_SET.problem(
            groups.metadata.path("name"), message, f"write a name such as `group-{name[:40]}`", name
        )
