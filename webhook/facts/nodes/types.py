"""The groups of rules of this package, and the objects of Karpenter and of device plugins that the rules read."""

from __future__ import annotations

from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.rules.rule import RuleGroup
from webhook.typed.fields import Amounts, Labels, Number, OptionalNumber, OptionalTruth, Part, Parts, Text, ValueMap
from webhook.typed.objects import Object
from webhook.typed.pods import SelectorRequirement, Taint
from webhook.typed.view import Typed

NODE_DEVICES: Final = RuleGroup(
    "node-devices",
    source="k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources/fit.go",
    level="warn",
    fails="pending",
)
"""The devices of all nodes of a cluster, if there is no sign of an autoscaler."""
NODE_POOL: Final = RuleGroup(
    "node-pool",
    source="kubernetes-sigs/karpenter@226646810 pkg/controllers/provisioning/scheduling/nodeclaim.go",
    level="warn",
    fails="pending",
)
"""Nodes that Karpenter would add, if only NodePools add nodes."""
SHARED_GPU: Final = RuleGroup(
    "shared-gpu",
    source="NVIDIA/k8s-device-plugin@1b826acc6 internal/rm/rm.go",
    level="warn",
    fails="pending",
)
"""Requests for shares of GPUs."""
TPU: Final = RuleGroup(
    "tpu",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/tpus",
    level="warn",
    fails="pending",
)
"""Slices of TPUs: topologies, chips and pods."""
DEVICE_PLUGIN: Final = RuleGroup(
    "device-plugin",
    source="NVIDIA/k8s-device-plugin@1b826acc6 cmd/config-manager/main.go",
    level="warn",
    fails="silent",
)
"""Labels by which nodes choose the configuration of NVIDIA's device plugin and MIG manager."""


class TemplateMetadata(Typed):
    """karpenter.sh/v1 ObjectMeta of the template."""

    labels = Labels()


class NodeClassReference(Typed):
    """karpenter.sh/v1 NodeClassReference."""

    group = Text()
    kind = Text()
    name = Text()


class NodePoolTemplateSpec(Typed):
    """karpenter.sh/v1 NodeClaimTemplateSpec."""

    taints = Parts(Taint)
    requirements = Parts(SelectorRequirement)
    node_class_ref = Part(NodeClassReference)


class NodePoolTemplate(Typed):
    """karpenter.sh/v1 NodeClaimTemplate."""

    metadata = Part(TemplateMetadata)
    spec = Part(NodePoolTemplateSpec)


class NodePoolSpec(Typed):
    """karpenter.sh/v1 NodePoolSpec."""

    replicas = OptionalNumber()
    template = Part(NodePoolTemplate)
    limits = Amounts()


class NodePool(Object):
    """karpenter.sh/v1 NodePool."""

    gvk = GroupVersionKind("karpenter.sh", "v1", "NodePool")
    spec = Part(NodePoolSpec)


class NodeOverlay(Object):
    """karpenter.sh/v1alpha1 NodeOverlay, which may add resources to instance types."""

    gvk = GroupVersionKind("karpenter.sh", "v1alpha1", "NodeOverlay")


class SharedResource(Typed):
    """A resource that NVIDIA's device plugin shares."""

    name = Text()
    replicas = OptionalNumber()


class SharingSettings(Typed):
    """The settings of NVIDIA's device plugin for time slices, or for MPS."""

    fail_requests_greater_than_one = OptionalTruth()
    resources = Parts(SharedResource)


class Sharing(Typed):
    """How NVIDIA's device plugin shares GPUs."""

    time_slicing = Part(SharingSettings)
    mps = Part(SharingSettings)


class PluginConfiguration(Typed):
    """A configuration of NVIDIA's device plugin, api/config/v1; `mig_configs` has the profiles of a MIG manager."""

    sharing = Part(Sharing)
    mig_configs = ValueMap(name="mig-configs")


class NamedConfigMap(Typed):
    """The name of a ConfigMap."""

    name = Text()


class MigManager(Typed):
    """nvidia.com/v1 MIGManagerSpec."""

    config = Part(NamedConfigMap)
    enabled = OptionalTruth()


class DevicePluginConfig(NamedConfigMap):
    """nvidia.com/v1 DevicePluginConfig; `default` is the configuration of nodes without a label."""

    default = Text()


class DevicePlugin(Typed):
    """nvidia.com/v1 DevicePluginSpec."""

    config = Part(DevicePluginConfig)


class ClusterPolicySpec(Typed):
    """nvidia.com/v1 ClusterPolicySpec."""

    device_plugin = Part(DevicePlugin)
    mig_manager = Part(MigManager)


class ClusterPolicy(Object):
    """nvidia.com/v1 ClusterPolicy of the GPU operator."""

    gvk = GroupVersionKind("nvidia.com", "v1", "ClusterPolicy")
    spec = Part(ClusterPolicySpec)


class GpuDevicePluginSpec(Typed):
    """deviceplugin.intel.com/v1 GpuDevicePluginSpec."""

    node_selector = Labels()
    preferred_allocation_policy = Text()
    shared_dev_num = Number()


class GpuDevicePlugin(Object):
    """deviceplugin.intel.com/v1 GpuDevicePlugin."""

    gvk = GroupVersionKind("deviceplugin.intel.com", "v1", "GpuDevicePlugin")
    spec = Part(GpuDevicePluginSpec)
