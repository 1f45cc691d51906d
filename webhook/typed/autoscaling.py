"""HorizontalPodAutoscalers and ScaledObjects of KEDA with their metrics. Elastic jobs of the Training Operator have the
same metrics.
"""

from __future__ import annotations

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.typed.fields import Labels, OptionalNumber, Part, Parts, Text
from webhook.typed.objects import Object
from webhook.typed.view import Typed


class MetricTarget(Typed):
    """autoscaling/v2 MetricTarget."""

    average_utilization = OptionalNumber()


class ResourceMetric(Typed):
    """autoscaling/v2 ResourceMetricSource and ContainerResourceMetricSource, which names a container."""

    name = Text()
    container = Text()
    target = Part(MetricTarget)


class Metric(Typed):
    """autoscaling/v2 MetricSpec."""

    type = Text()
    resource = Part(ResourceMetric)
    container_resource = Part(ResourceMetric)

    @property
    def resource_and_container(self) -> tuple[str, str]:
        """Return the resource with a target in percent of its requests, and its container; "" for all containers. Both
        values are "" without such a target.
        """
        source = {"Resource": self.resource, "ContainerResource": self.container_resource}.get(self.type)
        if source is None or source.target.average_utilization is None:
            return "", ""
        return source.name, source.container


class ScaleTarget(Typed):
    """autoscaling/v2 CrossVersionObjectReference."""

    kind = Text()
    name = Text()


class HorizontalPodAutoscalerSpec(Typed):
    """autoscaling/v2 HorizontalPodAutoscalerSpec."""

    scale_target_ref = Part(ScaleTarget)
    max_replicas = OptionalNumber()
    metrics = Parts(Metric)


class HorizontalPodAutoscaler(Object):
    """autoscaling/v2 HorizontalPodAutoscaler."""

    gvk = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
    spec = Part(HorizontalPodAutoscalerSpec)


class ScaleTrigger(Typed):
    """keda.sh/v1alpha1 ScaleTriggers."""

    type = Text()
    metric_type = Text()
    metadata = Labels()

    @property
    def resource_and_container(self) -> tuple[str, str]:
        """Return the resource with a target in percent of its requests, and its container; "" for all containers. Both
        values are "" without such a target.
        """
        metric_type = self.metric_type or self.metadata.get("type", "")
        if self.type not in ("cpu", "memory") or metric_type != "Utilization":
            return "", ""
        return self.type, self.metadata.get("containerName", "")


class ScaledObjectSpec(Typed):
    """keda.sh/v1alpha1 ScaledObjectSpec."""

    triggers = Parts(ScaleTrigger)
    scale_target_ref = Part(ScaleTarget)
    min_replica_count = OptionalNumber()
    max_replica_count = OptionalNumber()


class ScaledObject(Object):
    """keda.sh/v1alpha1 ScaledObject, from which KEDA creates a HorizontalPodAutoscaler."""

    gvk = GroupVersionKind("keda.sh", "v1alpha1", "ScaledObject")
    spec = Part(ScaledObjectSpec)
