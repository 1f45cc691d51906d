"""What a job of the Training Operator or the MPI Operator says outside its pods, each value of the type its CRD has.

A value that is still to be filled in (`$`, `{{`) is left out; one of another type is named with what was expected. A
null is as good as absent. Source of the types: kubeflow/trainer@3a3a1da8d528 (release-1.9) and
kubeflow/mpi-operator@caa3c47fc42e manifests/base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from webhook import paths
from webhook.attributes import JSON
from webhook.facts.finding import odd
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder

Shape: TypeAlias = Literal["text", "number", "long", "truth", "list", "map"]
EXPECTED: Final[Mapping[Shape, str]] = {
    "text": "a text",
    "number": "a whole number",
    "long": "a whole number",
    "truth": "true or false",
    "list": "a list",
    "map": "a map",
}
_BOUNDS: Final = {"number": 1 << 31, "long": 1 << 63}
_COMMON: Final[dict[str, Shape]] = {
    "runPolicy": "map",
    "runPolicy.cleanPodPolicy": "text",
    "runPolicy.ttlSecondsAfterFinished": "number",
    "runPolicy.activeDeadlineSeconds": "long",
    "runPolicy.backoffLimit": "number",
    "runPolicy.managedBy": "text",
    "runPolicy.suspend": "truth",
    "runPolicy.schedulingPolicy": "map",
    "runPolicy.schedulingPolicy.minAvailable": "number",
    "runPolicy.schedulingPolicy.queue": "text",
    "runPolicy.schedulingPolicy.priorityClass": "text",
    "runPolicy.schedulingPolicy.scheduleTimeoutSeconds": "number",
    "runPolicy.schedulingPolicy.minResources": "map",
}
_ELASTIC: Final[dict[str, Shape]] = {
    "elasticPolicy": "map",
    "elasticPolicy.minReplicas": "number",
    "elasticPolicy.maxReplicas": "number",
    "elasticPolicy.maxRestarts": "number",
    "elasticPolicy.metrics": "list",
}
_OWN: Final[dict[str, dict[str, Shape]]] = {
    "PyTorchJob": {
        **_ELASTIC,
        "elasticPolicy.nProcPerNode": "number",
        "elasticPolicy.rdzvBackend": "text",
        "elasticPolicy.rdzvConf": "list",
        "elasticPolicy.rdzvHost": "text",
        "elasticPolicy.rdzvId": "text",
        "elasticPolicy.rdzvPort": "number",
        "elasticPolicy.standalone": "truth",
        "nprocPerNode": "text",
    },
    "PaddleJob": _ELASTIC,
    "TFJob": {"successPolicy": "text", "enableDynamicWorker": "truth"},
    # of both versions; the field of the other one is dropped
    "MPIJob": {
        "slotsPerWorker": "number",
        "cleanPodPolicy": "text",
        "mainContainer": "text",
        "runLauncherAsWorker": "truth",
        "mpiImplementation": "text",
        "sshAuthMountPath": "text",
        "launcherCreationPolicy": "text",
    },
}


@dataclass(slots=True)
class Settings:
    """`values` by their paths below `spec`; `unfilled`: paths of what nobody can tell; `odd`: those of a wrong type."""

    values: dict[str, JSON] = field(default_factory=dict)
    unfilled: list[str] = field(default_factory=list)
    odd: list[JSON] = field(default_factory=list)


def settings(obj: JSON, kind: str) -> Settings:
    """Everything that a job says outside its roles."""
    made = Settings()
    for path, shape in (_COMMON | _OWN.get(kind, {})).items():
        at = ("spec", *path.split("."))
        value = paths.get(obj, at)
        if fits(value, shape):
            made.values[path] = value
        elif value is not None:
            made.unfilled.append(path)
            made.odd.extend(mismatch(value, shape, at))
    return made


def fits(value: JSON, shape: Shape) -> bool:
    """Whether something stands there, and it is what is expected."""
    match shape:
        case "text":
            return isinstance(value, str) and not is_placeholder(value)
        case "number" | "long":
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            return is_whole and -_BOUNDS[shape] <= value < _BOUNDS[shape]
        case "truth":
            return isinstance(value, bool)
        case _:
            return isinstance(value, list if shape == "list" else dict)


def mismatch(value: JSON, shape: Shape, at: FieldPath) -> Iterator[JSON]:
    """`{path, found, expected}` of a value that does not fit; nothing for null and what is still to be filled in."""
    if value is None or fits(value, shape) or (isinstance(value, str) and is_placeholder(value)):
        return
    if isinstance(value, float) and value.is_integer() and shape in _BOUNDS:
        return
    yield odd(value, at, EXPECTED[shape])
