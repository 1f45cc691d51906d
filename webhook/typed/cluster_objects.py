"""Objects of the cluster with the fields that checks read: Deployment, Rollout, DaemonSet, StatefulSet,
PersistentVolumeClaim, Service, LimitRange, Node, PodDisruptionBudget, RuntimeClass and CustomResourceDefinition.

CustomResourceDefinitions are read from apiextensions.k8s.io/v1, and from v1beta1, which Kubernetes 1.22 removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.apimachinery.attributes import CRD, JSON, GroupVersionKind
from webhook.typed.fields import Amounts, Labels, Number, OptionalNumber, Part, Parts, Raw, Text, Truth, ValueMap
from webhook.typed.objects import Object, Status
from webhook.typed.pods import LabelSelector, PodTemplate, Taint
from webhook.typed.view import Typed
from webhook.typed.volumes import VolumeClaimSpec


class RollingUpdate(Typed):
    """apps/v1 RollingUpdateDeployment. maxSurge and maxUnavailable are numbers or percentages."""

    max_surge = Raw()
    max_unavailable = Raw()


class DeploymentStrategy(Typed):
    """apps/v1 DeploymentStrategy."""

    type = Text()
    rolling_update = Part(RollingUpdate)


class DeploymentSpec(Typed):
    """apps/v1 DeploymentSpec."""

    replicas = OptionalNumber()
    strategy = Part(DeploymentStrategy)
    template = Part(PodTemplate)


class Deployment(Object):
    """apps/v1 Deployment."""

    gvk = GroupVersionKind("apps", "v1", "Deployment")
    spec = Part(DeploymentSpec)


class CanaryStrategy(RollingUpdate):
    """argoproj.io/v1alpha1 CanaryStrategy."""

    traffic_routing = Raw()


class RolloutStrategy(Typed):
    """argoproj.io/v1alpha1 RolloutStrategy."""

    blue_green = Raw()
    canary = Part(CanaryStrategy)


class RolloutSpec(Typed):
    """argoproj.io/v1alpha1 RolloutSpec."""

    replicas = OptionalNumber()
    strategy = Part(RolloutStrategy)


class Rollout(Object):
    """argoproj.io/v1alpha1 Rollout."""

    gvk = GroupVersionKind("argoproj.io", "v1alpha1", "Rollout")
    spec = Part(RolloutSpec)


class DaemonSetSpec(Typed):
    """apps/v1 DaemonSetSpec."""

    template = Part(PodTemplate)


class DaemonSet(Object):
    """apps/v1 DaemonSet."""

    gvk = GroupVersionKind("apps", "v1", "DaemonSet")
    spec = Part(DaemonSetSpec)


class VolumeClaimStatus(Typed):
    """core/v1 PersistentVolumeClaimStatus."""

    phase = Text()


class PersistentVolumeClaim(Object):
    """core/v1 PersistentVolumeClaim."""

    gvk = GroupVersionKind("", "v1", "PersistentVolumeClaim")
    spec = Part(VolumeClaimSpec)
    status = Part(VolumeClaimStatus)


class PodCounts(Typed):
    """The number of pods and the number of ready pods."""

    replicas = Number()
    ready_replicas = Number()


class StatefulSetSpec(Typed):
    """apps/v1 StatefulSetSpec."""

    pod_management_policy = Text()
    replicas = Number(1)
    service_name = Text()
    template = Part(PodTemplate)
    volume_claim_templates = Parts(PersistentVolumeClaim)


class StatefulSet(Object):
    """apps/v1 StatefulSet."""

    gvk = GroupVersionKind("apps", "v1", "StatefulSet")
    spec = Part(StatefulSetSpec)
    status = Part(PodCounts)


class ServicePort(Typed):
    """core/v1 ServicePort."""

    name = Text()
    port = OptionalNumber()
    protocol = Text()
    target_port = Raw()

    @property
    def port_of_pods(self) -> JSON:
        """Return the number or the name of the port of the pods: `targetPort`, by default `port`."""
        return self.port if self.target_port is None else self.target_port


class ServiceSpec(Typed):
    """core/v1 ServiceSpec."""

    type = Text()
    cluster_ip = Text(name="clusterIP")
    ports = Parts(ServicePort)
    publish_not_ready_addresses = Truth()
    selector = Labels()


class Service(Object):
    """core/v1 Service."""

    gvk = GroupVersionKind("", "v1", "Service")
    spec = Part(ServiceSpec)


class LimitRangeItem(Typed):
    """core/v1 LimitRangeItem: the bounds and defaults of containers, or the bounds of pods."""

    type = Text()
    max = Amounts()
    min = Amounts()
    default = Amounts()
    default_request = Amounts()
    max_limit_request_ratio = Amounts()

    def fields_with(self, resource: str) -> Iterator[str]:
        """Yield the fields that name a resource, also with the amount null."""
        for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            amounts = self.json.get(field)
            if isinstance(amounts, dict) and resource in amounts:
                yield field


class LimitRangeSpec(Typed):
    """core/v1 LimitRangeSpec."""

    limits = Parts(LimitRangeItem)


class LimitRange(Object):
    """core/v1 LimitRange."""

    gvk = GroupVersionKind("", "v1", "LimitRange")
    spec = Part(LimitRangeSpec)


class RuntimeClassOverhead(Typed):
    """node.k8s.io/v1 Overhead."""

    pod_fixed = Amounts()


class RuntimeClassScheduling(Typed):
    """node.k8s.io/v1 Scheduling: the nodes to which a RuntimeClass sends its pods."""

    node_selector = Labels()


class RuntimeClass(Object):
    """node.k8s.io/v1 RuntimeClass."""

    gvk = GroupVersionKind("node.k8s.io", "v1", "RuntimeClass")
    overhead = Part(RuntimeClassOverhead)
    scheduling = Part(RuntimeClassScheduling)


class NodeSpec(Typed):
    """core/v1 NodeSpec."""

    taints = Parts(Taint)
    unschedulable = Truth()


class NodeStatus(Status):
    """core/v1 NodeStatus."""

    allocatable = Amounts()


class Node(Object):
    """core/v1 Node."""

    gvk = GroupVersionKind("", "v1", "Node")
    spec = Part(NodeSpec)
    status = Part(NodeStatus)


class CustomResourceNames(Typed):
    """apiextensions/v1 CustomResourceDefinitionNames."""

    kind = Text()


class SpecSchema(Typed):
    """apiextensions/v1 JSONSchemaProps of spec."""

    properties = ValueMap()


class ObjectProperties(Typed):
    """The properties of the schema of an object."""

    spec = Part(SpecSchema)


class ObjectSchema(Typed):
    """apiextensions/v1 JSONSchemaProps of an object."""

    properties = Part(ObjectProperties)


class CustomResourceValidation(Typed):
    """apiextensions/v1 CustomResourceValidation."""

    root = Part(ObjectSchema, name="openAPIV3Schema")


class CustomResourceVersion(Typed):
    """apiextensions/v1 CustomResourceDefinitionVersion."""

    name = Text()
    schema = Part(CustomResourceValidation)
    served = Truth()


class CustomResourceDefinitionSpec(Typed):
    """apiextensions/v1 CustomResourceDefinitionSpec. In v1beta1, `version` may name the only version."""

    group = Text()
    names = Part(CustomResourceNames)
    versions = Parts(CustomResourceVersion)
    version = Text()


class CustomResourceDefinition(Object):
    """apiextensions/v1 CustomResourceDefinition."""

    gvk = CRD

    spec = Part(CustomResourceDefinitionSpec)

    def serves(self, group: str, version: str, kind: str) -> bool:
        """Return whether the definition is of this kind, and serves the version."""
        if (self.spec.group, self.spec.names.kind) != (group, kind):
            return False
        return self.spec.version == version or any(each.name == version and each.served for each in self.spec.versions)


class PodDisruptionBudgetSpec(Typed):
    """policy/v1 PodDisruptionBudgetSpec."""

    selector = Part(LabelSelector)
    min_available = Raw()
    max_unavailable = Raw()


class PodDisruptionBudget(Object):
    """policy/v1 PodDisruptionBudget."""

    gvk = GroupVersionKind("policy", "v1", "PodDisruptionBudget")
    spec = Part(PodDisruptionBudgetSpec)
