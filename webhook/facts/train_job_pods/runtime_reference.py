"""The runtime that a TrainJob names, and how it is called in messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from webhook.attributes import JSON, GroupVersionKind
from webhook.facts.train_job_pods.lookups import CLUSTER_RUNTIME
from webhook.paths import get


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """A reference to a runtime, and the runtime where it is there.

    `str()` is how messages name it: "ClusterTrainingRuntime `torch`".
    """

    kind: GroupVersionKind
    name: str
    object: JSON = None

    @property
    def is_found(self) -> bool:
        """Whether it is there."""
        return self.object is not None

    @property
    def is_of_cluster(self) -> bool:
        """Whether administrators wrote it; what users write is not kept beyond a request."""
        return self.kind == CLUSTER_RUNTIME

    @cached_property
    def spec(self) -> JSON:
        """Its spec; {} without the runtime."""
        return get(self.object, ("spec",), {})

    @property
    def jobs(self) -> Sequence[JSON]:
        """Its replicated jobs; none without the runtime."""
        listed: Sequence[JSON] = get(self.spec, ("template", "spec", "replicatedJobs"), [])
        return listed

    @property
    def is_deprecated(self) -> bool:
        """Whether its label says so."""
        return bool(get(self.object, ("metadata", "labels", SUPPORT)) == "deprecated")

    def __str__(self) -> str:
        return f"{self.kind.kind} `{self.name}`"


SUPPORT = "trainer.kubeflow.org/support"
"""The label of runtimes that will be removed."""
