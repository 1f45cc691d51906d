"""The runtime that a TrainJob names, and the ClusterTrainingRuntimes that each release of Kubeflow Trainer ships.

This module contains the shipped runtimes, with only the fields that rules need. If the files with a TrainJob do not
contain its runtime, the shipped runtime of this name is assumed. Runtimes of torchtune are left out, because their
initializers and commands differ with each model.

Source: kubeflow/trainer@8c0f5059b manifests/base/runtimes, release-2.0 to 2.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.releases import Release
from webhook.facts.train_job_pods.releases import FLUX_AND_MORE, NUMBERS_ONLY, OLDEST, TEMPLATES, WHOLE_JOBSET
from webhook.facts.train_job_pods.types import CLUSTER_RUNTIME, ClusterTrainingRuntime, RuntimeSpec, TrainingRuntime
from webhook.typed.collections import Items
from webhook.typed.job_sets import ReplicatedJob

_RELEASES: Final[tuple[Release, ...]] = (OLDEST, TEMPLATES, FLUX_AND_MORE, WHOLE_JOBSET)
NEWEST_WITH_RUNTIMES: Final = WHOLE_JOBSET
"""The newest release with known runtimes. Later releases are assumed to ship the same runtimes."""
_STEP: Final = {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}}


class ReferencedRuntime(Struct, frozen=True, kw_only=True):
    """A reference to a runtime, with the runtime. `object` is not set if the runtime does not exist.

    assumed: the assumption if no file has the runtime: "torch-distributed as Trainer 2.3 ships it"; "" otherwise.

    `str()` returns the name for messages: "ClusterTrainingRuntime `torch`", or "… in runtimes.yaml" for files.
    """

    kind: GroupVersionKind
    name: str
    object: TrainingRuntime
    origin: str = ""
    assumed: str = ""

    @property
    def is_found(self) -> bool:
        """Return whether the runtime exists in the view of the cluster, or is assumed."""
        return self.object.is_set

    @property
    def is_of_cluster(self) -> bool:
        """Return whether the runtime is cluster-scoped, so that only administrators can change it."""
        return self.kind == CLUSTER_RUNTIME

    @property
    def spec(self) -> RuntimeSpec:
        """Return the spec of the runtime; empty if the runtime was not found."""
        return self.object.spec

    @property
    def replicated_jobs(self) -> Items[ReplicatedJob]:
        """Return the replicated jobs of the runtime; an empty list if the runtime was not found."""
        return self.spec.template.spec.replicated_jobs

    def __str__(self) -> str:
        return f"{self.kind.kind} `{self.name}`{self.origin}"


class ShippedRuntime(Struct, frozen=True, kw_only=True):
    """A runtime of one or more releases."""

    name: str
    plugin: str
    image: str
    releases: tuple[Release, ...] = _RELEASES


_TRAINER_IMAGES: Final = "ghcr.io/kubeflow/trainer"
_ROWS: Final = (
    ShippedRuntime(name="torch-distributed", plugin="torch", image="pytorch/pytorch"),
    ShippedRuntime(name="deepspeed-distributed", plugin="mpi", image=f"{_TRAINER_IMAGES}/deepspeed-runtime"),
    ShippedRuntime(name="mlx-distributed", plugin="mpi", image=f"{_TRAINER_IMAGES}/mlx-runtime"),
    ShippedRuntime(
        name="jax-distributed", plugin="jax", image="nvcr.io/nvidia/jax", releases=(FLUX_AND_MORE, WHOLE_JOBSET)
    ),
    ShippedRuntime(
        name="xgboost-distributed",
        plugin="xgboost",
        image=f"{_TRAINER_IMAGES}/xgboost-runtime",
        releases=(FLUX_AND_MORE, WHOLE_JOBSET),
    ),
)


_NOT_ASSUMED: Final[Mapping[str, tuple[Release, ...]]] = {
    "mpi-distributed": (OLDEST,),
    "torchtune-llama3.2-1b": _RELEASES,
    "torchtune-llama3.2-3b": _RELEASES,
    "torchtune-qwen2.5-1.5b": (TEMPLATES, FLUX_AND_MORE, WHOLE_JOBSET),
}
"""Shipped runtimes that are left out here and never assumed, and the releases that ship these runtimes."""


def shipped_runtime(name: str, release: Release) -> JSON | None:
    """Return the runtime of this name that a release ships, or None. A later release counts as NEWEST_WITH_RUNTIMES."""
    return _RUNTIMES.get((name, min(release, NEWEST_WITH_RUNTIMES)))


def releases_with_runtime(name: str) -> tuple[Release, ...]:
    """Return the releases that ship a runtime, in order; () if no release ships it."""
    return _NOT_ASSUMED.get(name) or next((row.releases for row in _ROWS if row.name == name), ())


def _runtime(row: ShippedRuntime, release: Release) -> JSON:
    kind = ClusterTrainingRuntime.gvk
    policy: dict[str, JSON] = {}
    if row.plugin == "torch" and release < NUMBERS_ONLY:
        policy = {"numProcPerNode": "auto"}
    elif row.plugin == "mpi":
        policy = {"numProcPerNode": 1, "mpiImplementation": "OpenMPI", "runLauncherAsNode": True}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": row.name},
        "spec": {"mlPolicy": {"numNodes": 1, row.plugin: policy}, "template": {"spec": {"replicatedJobs": _jobs(row)}}},
    }


def _jobs(row: ShippedRuntime) -> list[JSON]:
    pod = {"template": {"spec": {"containers": [{"name": "node", "image": row.image}]}}}
    if row.plugin != "mpi":
        return [{"name": "node", "template": {**_STEP, "spec": pod}}]
    daemon = {"name": "node", "image": row.image, "command": ["/usr/sbin/sshd"]}
    servers = {"name": "node", "template": {"spec": {"template": {"spec": {"containers": [daemon]}}}}}
    return [servers, {"name": "launcher", "template": {**_STEP, "spec": pod}}]


_RUNTIMES: Final[Mapping[tuple[str, Release], JSON]] = {
    (row.name, release): _runtime(row, release) for row in _ROWS for release in row.releases
}
