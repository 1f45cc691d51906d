"""The runtime that a TrainJob names, and its name in messages."""

from __future__ import annotations

from msgspec import Struct

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.facts.train_job_pods.types import CLUSTER_RUNTIME, RuntimeSpec, TrainingRuntime
from webhook.typed.collections import Items
from webhook.typed.job_sets import ReplicatedJob


class ReferencedRuntime(Struct, frozen=True, kw_only=True):
    """A reference to a runtime, and the runtime, which is false if it does not exist.

    assumed: the assumption if no file has the runtime: "torch-distributed as Trainer 2.3 ships it"; "" otherwise.

    `str()` is how messages name it: "ClusterTrainingRuntime `torch`", and of files "… in runtimes.yaml".
    """

    kind: GroupVersionKind
    name: str
    object: TrainingRuntime
    origin: str = ""
    assumed: str = ""

    @property
    def is_found(self) -> bool:
        """Return whether the runtime exists in the view of the cluster."""
        return self.object.is_set

    @property
    def is_of_cluster(self) -> bool:
        """Return whether it is cluster-scoped, so that only administrators write it."""
        return self.kind == CLUSTER_RUNTIME

    @property
    def spec(self) -> RuntimeSpec:
        """Return the spec of the runtime; empty if the runtime was not found."""
        return self.object.spec

    @property
    def replicated_jobs(self) -> Items[ReplicatedJob]:
        """Return its replicated jobs; none without the runtime."""
        return self.spec.template.spec.replicated_jobs

    def __str__(self) -> str:
        return f"{self.kind.kind} `{self.name}`{self.origin}"
