"""What the webhook of LeaderWorkerSet refuses.

Source: kubernetes-sigs/lws@060ab4d pkg/webhooks/leaderworkerset_webhook.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.paths import get
from webhook.facts.serving_kinds.groups import SERVING_KIND
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem

WORKER_SET: Final = SERVING_KIND.rule(
    "serving-kind/worker-set",
    title="A LeaderWorkerSet is refused by its webhook",
    why="The webhook refuses an update strategy without any room, and subgroups that do not divide a group.",
    refused_by="LeaderWorkerSet's webhook",
    source="kubernetes-sigs/lws@060ab4d pkg/webhooks/leaderworkerset_webhook.go",
    function="generalValidate",
)
_STRATEGY: Final = ("spec", "rolloutStrategy", "rollingUpdateConfiguration")
_SUBGROUP: Final = ("spec", "leaderWorkerTemplate", "subGroupPolicy", "subGroupSize")
_ZERO: Final = (0, "0", "0%")


def check_worker_set(subject: Subject) -> Iterator[Problem]:
    """Report what the webhook of LeaderWorkerSet refuses."""
    strategy = get(subject.object, _STRATEGY)
    if isinstance(strategy, dict):
        surge, unavailable = strategy.get("maxSurge", 0), strategy.get("maxUnavailable", 1)
        if surge in _ZERO and unavailable in _ZERO:
            message = "has maxUnavailable 0 and maxSurge 0, so no group can be updated"
            yield WORKER_SET.problem(_STRATEGY, message, "set maxUnavailable 1")
    size, part = get(subject.object, ("spec", "leaderWorkerTemplate", "size"), 1), get(subject.object, _SUBGROUP)
    is_number = isinstance(size, int) and isinstance(part, int) and not isinstance(part, bool)
    if is_number and (part < 1 or (size % part and (size - 1) % part)):
        message = f"must divide the size {size} of a group, or {size - 1}"
        yield WORKER_SET.problem(_SUBGROUP, message, "set a divisor of the size", part)
