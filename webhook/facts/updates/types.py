"""The group of rules of this package, and the objects that it reads."""

from __future__ import annotations

from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.rules.rule import RuleGroup
from webhook.typed.fields import OptionalNumber, Part, Raw, Text
from webhook.typed.objects import Object
from webhook.typed.view import Typed

UPDATE: Final = RuleGroup(
    "update",
    source="k8s.io/kubernetes v1.36 pkg/controller/deployment/util/deployment_util.go",
    level="warn",
    fails="disruption",
)
"""What an update, a drain or an autoscaler needs beside the pods of today."""


class RollingUpdateConfiguration(Typed):
    """leaderworkerset.x-k8s.io/v1 RollingUpdateConfiguration."""

    max_surge = Raw()
    max_unavailable = Raw()


class RolloutStrategy(Typed):
    """leaderworkerset.x-k8s.io/v1 RolloutStrategy."""

    type = Text()
    rolling_update_configuration = Part(RollingUpdateConfiguration)


class LeaderWorkerSetSpec(Typed):
    """leaderworkerset.x-k8s.io/v1 LeaderWorkerSetSpec."""

    replicas = OptionalNumber()
    rollout_strategy = Part(RolloutStrategy)


class LeaderWorkerSet(Object):
    """leaderworkerset.x-k8s.io/v1 LeaderWorkerSet."""

    gvk = GroupVersionKind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet")
    spec = Part(LeaderWorkerSetSpec)
