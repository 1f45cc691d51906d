"""InferencePools that send requests to model servers, and the autoscalers of the servers.

clients.py and server_groups.py have the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import Index, interest_in_fields
from webhook.facts.shapes.selectors import BY_LABEL
from webhook.typed.autoscaling import HorizontalPodAutoscaler
from webhook.typed.cluster_objects import Service
from webhook.typed.fields import Labels, OptionalNumber, Part, Parts
from webhook.typed.objects import Object
from webhook.typed.view import Typed


class PoolPort(Typed):
    """inference.networking.k8s.io Port."""

    number = OptionalNumber()


class PoolSelector(Typed):
    """inference.networking.k8s.io LabelSelector."""

    match_labels = Labels()


class PoolSpec(Typed):
    """inference.networking.k8s.io InferencePoolSpec."""

    selector = Part(PoolSelector)
    target_ports = Parts(PoolPort)


class InferencePool(Object):
    """inference.networking.k8s.io InferencePool."""

    gvk = GroupVersionKind("inference.networking.k8s.io", "v1", "InferencePool")
    spec = Part(PoolSpec)

    @property
    def selected_labels(self) -> Mapping[str, str]:
        """Return the labels that the pool selects."""
        return self.spec.selector.match_labels

    @property
    def numbers(self) -> Sequence[int]:
        """Return the ports of the pool."""
        return [each.number for each in self.spec.target_ports if each.number is not None]


class AlphaPoolSpec(Typed):
    """inference.networking.x-k8s.io v1alpha2 InferencePoolSpec."""

    selector = Labels()
    target_port_number = OptionalNumber()


class AlphaInferencePool(Object):
    """inference.networking.x-k8s.io InferencePool, the API before v1."""

    gvk = GroupVersionKind("inference.networking.x-k8s.io", "v1alpha2", "InferencePool")
    spec = Part(AlphaPoolSpec)

    @property
    def selected_labels(self) -> Mapping[str, str]:
        """Return the labels that the pool selects."""
        return self.spec.selector

    @property
    def numbers(self) -> Sequence[int]:
        """Return the port of the pool, in a list."""
        number = self.spec.target_port_number
        return [] if number is None else [number]


def _scaled_object(autoscaler: JSON) -> Sequence[str]:
    """Return the kind and name of the target of an autoscaler."""
    target = HorizontalPodAutoscaler.of(autoscaler).spec.scale_target_ref
    return (f"{target.kind}/{target.name}",)


BY_TARGET: Final = Index("the object that it scales", _scaled_object)


LOOKUPS: Final = (
    interest_in_fields(
        Service.gvk,
        *("spec.selector", "spec.ports", "spec.clusterIP", "spec.publishNotReadyAddresses", "spec.type"),
        indexes=(BY_LABEL,),
    ),
    interest_in_fields(InferencePool.gvk, "spec.selector", "spec.targetPorts"),
    interest_in_fields(AlphaInferencePool.gvk, "spec.selector", "spec.targetPortNumber"),
    interest_in_fields(HorizontalPodAutoscaler.gvk, "spec.scaleTargetRef", "spec.metrics", indexes=(BY_TARGET,)),
)
