"""The fact `training`: what a training object says by itself, before any runtime or controller is asked.

For Kubeflow Trainer's kinds the fields that the installed release does not have, and for runtimes what JobSet will say
of them; for the Training Operator's and the MPI Operator's kinds their roles: pods, devices and how processes start.
Never lacks anything. Sources: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/apis/kubeflow.org/v1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts import steps
from webhook.facts.containers import Container, containers, items, text
from webhook.facts.fields import unknown
from webhook.facts.gpu import devices_of
from webhook.facts.jobset import findings
from webhook.facts.launch import launch
from webhook.facts.processes import cpu_count, plugin
from webhook.paths import get
from webhook.workloads.podsets import group_kind

ROLES: Final = {
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch"),
    "TFJob": ("tfReplicaSpecs", "tensorflow"),
    "MPIJob": ("mpiReplicaSpecs", ""),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost"),
    "PaddleJob": ("paddleReplicaSpecs", "paddle"),
    "JAXJob": ("jaxReplicaSpecs", "jax"),
}
"""Where each kind keeps its roles, and the container that gets the environment; "" is the first one."""
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount inside a container
_RUNTIMES: Final = ("TrainingRuntime", "ClusterTrainingRuntime")


def training(obj: JSON, version: tuple[int, int]) -> JSON:
    """The fact of one object."""
    group, kind = group_kind(obj)
    is_trainer, is_operator = group == "trainer.kubeflow.org", group == "kubeflow.org"
    runtime = get(obj, ("spec",)) if is_trainer and kind in _RUNTIMES else None
    return {
        "release": ".".join(map(str, version)),
        "minor": version[1] if version[0] == 2 else 99 if version[0] > 2 else 0,
        "plugin": plugin(runtime) if runtime is not None else "",
        "fields": list(unknown(obj, kind, version)) if is_trainer else [],
        "notes": list(_notes(runtime)) if runtime is not None else [],
        "roles": list(_roles(obj, *ROLES[kind])) if is_operator and kind in ROLES else [],
        "missing": [],
    }


def _notes(runtime: JSON) -> Iterator[JSON]:
    yield from steps.runtime_notes(runtime)
    for found in findings(get(runtime, ("template", "spec")) or {}):
        yield found.note(("spec", "template", "spec"))


def _roles(obj: JSON, field: str, main: str) -> Iterator[JSON]:
    roles = get(obj, ("spec", field))
    for role, spec in roles.items() if isinstance(roles, dict) else ():
        template = get(spec, ("template",))
        listed = [each for each in containers(template) if not each.init]
        chosen = next((each for each in listed if each.name == main or not main), None)
        replicas = get(spec, ("replicas",))
        yield {
            "name": str(role),
            "path": f"spec.{field}.{role}",
            "replicas": replicas if isinstance(replicas, int) and not isinstance(replicas, bool) else 1,
            "containers": [each.name for each in listed],
            "noImage": [each.name for each in listed if not each.value.get("image")],
            "found": chosen is not None,
            "shm": _shares_memory(template, chosen),
            **_described(chosen),
        }


def _shares_memory(template: JSON, container: Container | None) -> bool:
    """Whether something is mounted over the 64 MiB that a container runtime gives /dev/shm."""
    mounts = items(container.value.get("volumeMounts")) if container is not None else []
    return any(text(get(mount, ("mountPath",))).rstrip("/") == _SHARED_MEMORY for mount in mounts) or (
        get(template, ("spec", "hostIPC")) is True
    )


def _described(container: Container | None) -> JSON:
    """The devices and the command of a role's main container."""
    value = container.value if container is not None else {}
    asked = get(value, ("resources",)) or {}
    nulls = [
        name
        for side in ("limits", "requests")
        for name, amount in (get(asked, (side,)) or {}).items()
        if amount is None and "gpu" in text(name)
    ]
    return {
        "gpus": devices_of(asked),
        "nullGpus": nulls,
        "claims": len(items(get(asked, ("claims",)))),
        "cpus": cpu_count(asked),
        "launch": launch(value),
    }
