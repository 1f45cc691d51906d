"""The roles of a job of the Training Operator or the MPI Operator: their pods, devices and how processes start.

Null-tolerant at every level; what is of a wrong type is named, and a role whose containers cannot be told is `open`.
Sources: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/apis/kubeflow.org/v1; kubeflow/mpi-operator@caa3c47fc42e
pkg/apis/kubeflow/v2beta1/default.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from webhook import paths
from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.gpu.resources import devices_of
from webhook.facts.launch.command import launch
from webhook.facts.pods.containers import Container, items, names, text
from webhook.facts.trainer.processes import cpu_count
from webhook.facts.training_jobs.settings import Shape, fits, mismatch
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder

KINDS: Final = {
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch"),
    "TFJob": ("tfReplicaSpecs", "tensorflow"),
    "MPIJob": ("mpiReplicaSpecs", ""),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost"),
    "PaddleJob": ("paddleReplicaSpecs", "paddle"),
    "JAXJob": ("jaxReplicaSpecs", "jax"),
}
"""Where each kind keeps its roles, and the container that gets the environment; "" is the first one."""
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount inside a container
_CONTAINER: Final[dict[str, Shape]] = {
    "name": "text",
    "image": "text",
    "command": "list",
    "args": "list",
    "env": "list",
    "volumeMounts": "list",
    "resources": "map",
}


@dataclass(slots=True)
class Roles:
    """`found`: one JSON object per role. `odd`: values of a wrong type. `open`: whether the roles cannot be told.

    `name` is that of the job, "" where it has none yet.
    """

    name: str = ""
    found: list[JSON] = field(default_factory=list)
    odd: list[JSON] = field(default_factory=list)
    open: bool = False


def roles(obj: JSON, kind: str, deadline: Deadline | None = None) -> Roles:
    """Every role of a job of one of KINDS; a role that is null does not exist."""
    name, main = KINDS[kind]
    called = get(obj, ("metadata", "name"))
    made = Roles(name=called if fits(called, "text") else "")
    for at in (("spec",), ("spec", name)):
        value = get(obj, at)
        made.odd.extend(mismatch(value, "map", at))
        made.open = made.open or (value is not None and not isinstance(value, dict))
    listed = get(obj, ("spec", name))
    for role, value in listed.items() if isinstance(listed, dict) else ():
        if value is not None:
            reader = _Reader(("spec", name, role), made.odd, deadline or Deadline())
            # an MPIJob of either version has no workers where it does not say so
            made.found.append(reader.role(str(role), value, main, 0 if (kind, role) == ("MPIJob", "Worker") else 1))
    return made


class _Reader:
    """Reads one role; `odd` takes what is of a wrong type."""

    def __init__(self, at: FieldPath, odd: list[JSON], deadline: Deadline) -> None:
        self.at = at
        self.odd = odd
        self.deadline = deadline

    def role(self, name: str, value: JSON, main: str, default: int) -> JSON:
        self.deadline.spend(10)  # a role is as much work as some loops
        replicas = self._get(value, ("replicas",), "number")
        self._get(value, ("template", "metadata"), "map")
        listed, is_open = self._containers(value)
        chosen = next((each for each in listed if each.name == main or not main), None)
        template = get(value, ("template",))
        return {
            "name": name,
            "path": paths.render(self.at),
            "given": get(value, ("replicas",)) is not None,
            "replicas": default if get(value, ("replicas",)) is None else replicas,
            "restartPolicy": self._get(value, ("restartPolicy",), "text"),
            "podRestartPolicy": self._get(value, ("template", "spec", "restartPolicy"), "text"),
            "containers": [self._shown(each) for each in listed],
            "open": is_open,
            "found": chosen is not None or any(is_placeholder(each.name) for each in listed),
            "shm": _shares_memory(template, chosen),
            "gpuNamed": any("gpu" in name for each in listed for name in each.amounts("limits")),
            **_described(chosen, self.deadline),
        }

    def _get(self, value: JSON, path: FieldPath, shape: Shape) -> JSON:
        """A value of the role where it fits; else null, or for texts ""."""
        found = get(value, path)
        self.odd.extend(mismatch(found, shape, (*self.at, *path)))
        return found if fits(found, shape) else "" if shape == "text" else None

    def _containers(self, value: JSON) -> tuple[list[Container], bool]:
        """The containers of a role, and whether there may be others or they may say something else."""
        before = len(self.odd)
        steps: tuple[tuple[FieldPath, Shape], ...] = (
            ((), "map"),
            (("template",), "map"),
            (("template", "spec"), "map"),
            (("template", "spec", "containers"), "list"),
        )
        unfit = [path for path, shape in steps if get(value, path) is not None and not fits(get(value, path), shape)]
        for path, shape in steps:
            self._get(value, path, shape)
        listed = []
        for index, each in enumerate(self.deadline.paced(items(get(value, steps[-1][0])))):
            at: FieldPath = ("template", "spec", "containers", index)
            self._get(value, at, "map")
            if isinstance(each, dict):
                self._container(value, at)
                listed.append(Container(at, each, init=False))
            elif each is not None:
                unfit.append(at)
        return listed, bool(unfit) or len(self.odd) > before

    def _container(self, value: JSON, at: FieldPath) -> None:
        for name, shape in _CONTAINER.items():
            self._get(value, (*at, name), shape)
        for name in ("command", "args"):
            for index in self.deadline.paced(range(len(items(get(value, (*at, name)))))):
                self._get(value, (*at, name, index), "text")
        for name in ("limits", "requests"):
            self._get(value, (*at, "resources", name), "map")

    def _shown(self, container: Container) -> JSON:
        path = paths.render((*self.at, *container.path))
        return {"name": container.name, "path": path, "image": text(container.value.get("image"))}


def _shares_memory(template: JSON, container: Container | None) -> bool:
    """Whether something is mounted over the 64 MiB that a container runtime gives /dev/shm."""
    mounts = items(container.value.get("volumeMounts")) if container is not None else []
    return any(text(get(mount, ("mountPath",))).rstrip("/") == _SHARED_MEMORY for mount in mounts) or (
        get(template, ("spec", "hostIPC")) is True
    )


def _described(container: Container | None, deadline: Deadline) -> JSON:
    """The devices, variables and command of a role's main container; `*` stands for variables from elsewhere."""
    value = container.value if container is not None else {}
    asked = get(value, ("resources",)) or {}
    sides = [get(asked, (side,)) for side in ("limits", "requests")]
    amounts = [each for side in sides if isinstance(side, dict) for each in side.items() if "gpu" in each[0]]
    return {
        "gpus": devices_of(asked),
        "gpusOpen": any(isinstance(amount, str) and is_placeholder(amount) for _, amount in amounts),
        "nullGpus": [name for name, amount in amounts if amount is None],
        "claims": len(items(get(asked, ("claims",)))),
        "env": [*names(value.get("env")), *(["*"] if value.get("envFrom") else [])],
        "cpus": cpu_count(asked),
        "launch": launch(value, deadline),
    }
