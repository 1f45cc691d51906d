"""The types of leaderworkerset.x-k8s.io and disaggregatedset.x-k8s.io, with the fields that checks read.

Source: kubernetes-sigs/lws@060ab4d api/leaderworkerset/v1/leaderworkerset_types.go and
api/disaggregatedset/v1/disaggregatedset_types.go.
"""

from __future__ import annotations

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.typed.fields import Number, OptionalNumber, Part, Parts, Raw, Text
from webhook.typed.objects import Metadata, Object
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
    """leaderworkerset.x-k8s.io/v1 RollingUpdateConfiguration. maxSurge and maxUnavailable are numbers or
    percentages.
    """

    max_surge = Raw()
    max_unavailable = Raw()
    partition = OptionalNumber()


class RolloutStrategy(Typed):
    """leaderworkerset.x-k8s.io/v1 RolloutStrategy."""

    type = Text()
    rolling_update_configuration = Part(RollingUpdateConfiguration)


class NetworkConfig(Typed):
    """leaderworkerset.x-k8s.io/v1 NetworkConfig."""

    subdomain_policy = Text()


class LeaderWorkerSetSpec(Typed):
    """leaderworkerset.x-k8s.io/v1 LeaderWorkerSetSpec: groups of pods; each group is a leader and its workers."""

    replicas = Number(1)
    explicit_replicas = OptionalNumber(name="replicas")
    startup_policy = Text()
    leader_worker_template = Part(LeaderWorkerTemplate)
    rollout_strategy = Part(RolloutStrategy)
    network_config = Part(NetworkConfig)

    @property
    def has_known_replicas(self) -> bool:
        """Return whether the number of groups is a number or absent, and not a placeholder."""
        return self.explicit_replicas is not None or not self.has("replicas")


class LeaderWorkerSet(Object):
    """leaderworkerset.x-k8s.io/v1 LeaderWorkerSet."""

    gvk = GroupVersionKind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet")
    spec = Part(LeaderWorkerSetSpec)


class RoleScaling(Typed):
    """disaggregatedset.x-k8s.io/v1 RoleScaling."""

    mode = Text()


class DisaggregatedRole(Typed):
    """disaggregatedset.x-k8s.io/v1 DisaggregatedRoleSpec: the groups of one role."""

    name = Text()
    scaling = Part(RoleScaling)
    metadata = Part(Metadata)
    spec = Part(LeaderWorkerSetSpec)


class PlacementPolicy(Typed):
    """disaggregatedset.x-k8s.io/v1 PlacementPolicy."""

    type = Text()
    topology = Text()


class DisaggregatedSetSpec(Typed):
    """disaggregatedset.x-k8s.io/v1 DisaggregatedSetSpec."""

    roles = Parts(DisaggregatedRole)
    slices = Number(1)
    placement_policy = Part(PlacementPolicy)


class DisaggregatedSet(Object):
    """disaggregatedset.x-k8s.io/v1 DisaggregatedSet: roles that are updated together, such as prefill and decode."""

    gvk = GroupVersionKind("disaggregatedset.x-k8s.io", "v1", "DisaggregatedSet")
    spec = Part(DisaggregatedSetSpec)
