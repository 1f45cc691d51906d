"""The type of leaderworkerset.x-k8s.io, with the fields that checks read.

Source: kubernetes-sigs/lws@060ab4d api/leaderworkerset/v1/leaderworkerset_types.go.
"""

from __future__ import annotations

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.typed.fields import Number, OptionalNumber, Part, Raw, Text
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.typed.view import Typed


class SubGroupPolicy(Typed):
    """leaderworkerset.x-k8s.io/v1 SubGroupPolicy."""

    sub_group_size = OptionalNumber()
    type = Text(name="subGroupPolicyType")


class LeaderWorkerTemplate(Typed):
    """leaderworkerset.x-k8s.io/v1 LeaderWorkerTemplate: the pods of one group."""

    size = Number(1)
    explicit_size = OptionalNumber(name="size")
    leader_template = Part(PodTemplate)
    worker_template = Part(PodTemplate)
    sub_group_policy = Part(SubGroupPolicy)

    @property
    def has_known_size(self) -> bool:
        """Return whether the size is a number or absent, and not a placeholder."""
        return self.explicit_size is not None or not self.has("size")


class RollingUpdateConfiguration(Typed):
    """leaderworkerset.x-k8s.io/v1 RollingUpdateConfiguration; both are numbers or percentages."""

    max_surge = Raw()
    max_unavailable = Raw()
    partition = OptionalNumber()


class RolloutStrategy(Typed):
    """leaderworkerset.x-k8s.io/v1 RolloutStrategy."""

    type = Text()
    rolling_update_configuration = Part(RollingUpdateConfiguration)


class LeaderWorkerSetSpec(Typed):
    """leaderworkerset.x-k8s.io/v1 LeaderWorkerSetSpec: groups of pods; each group is a leader and its workers."""

    replicas = Number(1)
    explicit_replicas = OptionalNumber(name="replicas")
    startup_policy = Text()
    leader_worker_template = Part(LeaderWorkerTemplate)
    rollout_strategy = Part(RolloutStrategy)

    @property
    def has_known_replicas(self) -> bool:
        """Return whether the number of groups is a number or absent, and not a placeholder."""
        return self.explicit_replicas is not None or not self.has("replicas")


class LeaderWorkerSet(Object):
    """leaderworkerset.x-k8s.io/v1 LeaderWorkerSet."""

    gvk = GroupVersionKind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet")
    spec = Part(LeaderWorkerSetSpec)
