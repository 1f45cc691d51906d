"""The checks of updates, drains and scaling."""

from __future__ import annotations

from functools import partial
from typing import Final

from webhook.facts.check import Check
from webhook.facts.kinds import LEADER_WORKER_SET
from webhook.facts.nodes.node_offers import CLASS_LOOKUPS, NODE_LOOKUPS
from webhook.facts.nodes.node_pools import NODE_POOL_LOOKUPS
from webhook.facts.updates.budgets_and_scaling import (
    SCALED_LOOKUPS,
    check_autoscaler,
    check_budget,
    check_scaled_object,
)
from webhook.facts.updates.spare_devices import check_updates

_NODES: Final = (*NODE_LOOKUPS, *CLASS_LOOKUPS, *NODE_POOL_LOOKUPS)
_UPDATED: Final = frozenset(
    (
        ("apps", "Deployment"),
        LEADER_WORKER_SET,
        ("ray.io", "RayService"),
        ("argoproj.io", "Rollout"),
        ("serving.kserve.io", "InferenceService"),
    )
)
_BUDGETS: Final = frozenset((("policy", "PodDisruptionBudget"),))
_AUTOSCALERS: Final = frozenset((("autoscaling", "HorizontalPodAutoscaler"),))
_check: Final = partial(Check, group="update", lookups_of_audits=SCALED_LOOKUPS)

CHECKS: Final = (
    Check(group="update", run=check_updates, kinds=_UPDATED, lookups=_NODES, of_made_objects=False),
    _check(run=check_budget, kinds=_BUDGETS),
    _check(run=check_autoscaler, kinds=_AUTOSCALERS, lookups=_NODES),
    _check(run=check_scaled_object, kinds=frozenset((("keda.sh", "ScaledObject"),)), lookups=_NODES),
)
