"""Devices that an object asks for outside its pod templates: fields that become the resources of a container.

The gpu field of a SparkApplication's driver and executors (kubeflow/spark-operator@38082f33 internal/webhook/
sparkpod_defaulter.go addGPU: a limit, where the name is set and the quantity positive), and the resources of a KServe
component such as `model` (kserve/kserve@aaac4e29 pkg/apis/serving/v1beta1). Knows no devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.attributes import JSON
from webhook.facts.pods.containers import text
from webhook.paths import FieldPath, get
from webhook.workloads.podsets import group_kind

_SPARK = {"SparkApplication": ("spec",), "ScheduledSparkApplication": ("spec", "template")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """Resources of one container of a pod set: `of` is its name, `count` its pods where it has no template.

    `path` is where they stand; of a field that is no resources at all, the field.
    """

    of: str
    name: str
    path: FieldPath
    resources: JSON
    count: int | None
    is_field: bool = False


def asides(obj: JSON) -> list[Aside]:
    """All of an object, in their order; none of most kinds."""
    group, kind = group_kind(obj)
    if group == "sparkoperator.k8s.io" and kind in _SPARK:
        return list(_spark(get(obj, _SPARK[kind]), _SPARK[kind]))
    if group == "serving.kserve.io" and kind == "InferenceService":
        return list(_served(get(obj, ("spec",))))
    return []


def _spark(spec: JSON, at: FieldPath) -> Iterator[Aside]:
    dynamic = get(spec, ("dynamicAllocation", "enabled")) is True
    pods = {"driver": 1, "executor": None if dynamic else _count(get(spec, ("executor", "instances")))}
    for role, count in pods.items():
        name, quantity = (get(spec, (role, "gpu", field)) for field in ("name", "quantity"))
        if (
            isinstance(name, str)
            and name
            and isinstance(quantity, int)
            and not isinstance(quantity, bool)
            and quantity > 0
        ):
            yield Aside(
                of=role,
                name=f"spark-kubernetes-{role}",
                path=(*at, role, "gpu"),
                resources={"limits": {name: quantity}},
                count=count,
                is_field=True,
            )


def _served(spec: JSON) -> Iterator[Aside]:
    for part in ("predictor", "transformer", "explainer"):
        component = get(spec, (part,))
        for field, value in component.items() if isinstance(component, dict) else ():
            if isinstance(resources := get(value, ("resources",)), dict):
                yield Aside(
                    of=part,
                    name=text(get(value, ("name",))) or "kserve-container",
                    path=("spec", part, field),
                    resources=resources,
                    count=_count(component.get("minReplicas")),
                )


def _count(value: JSON) -> int:
    """Pods, by default one."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 1
