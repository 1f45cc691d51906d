"""The result of merging a runtime with the patches of a TrainJob."""

from __future__ import annotations

from dataclasses import dataclass, field

from webhook.attributes import JSON
from webhook.facts.train_job_pods.processes import UNKNOWN, ProcessesPerNode
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.typed.job_sets import JobSetSpec
from webhook.typed.objects import Metadata


@dataclass(slots=True)
class MergedJobSet:
    """The JobSet that Trainer would create, and the problems of merging it.

    Args:
        spec: its spec.
        patched: the spec of the runtime with the patches, before Trainer and its plugins add to it, standing
            where the runtime has it.
        labels, annotations: of the JobSet. annotated: where each annotation stands.
        problems: what was refused, dropped, appended or replaced.
        unknown: replicated jobs and containers of them that patches name and the runtime does not have.
        lost_claims: those that the container `node` no longer refers to.
        processes: how many start on each node.
    """

    spec: JSON
    patched: JobSetSpec
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    annotated: dict[str, FieldPath] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unknown: set[tuple[str, str]] = field(default_factory=set)
    lost_claims: list[str] = field(default_factory=list)
    processes: ProcessesPerNode = UNKNOWN

    def add_labels_and_annotations(self, metadata: Metadata, at: FieldPath) -> None:
        """Add labels and annotations of the JobSet; later ones win, and the path of each annotation is kept."""
        if not metadata:
            return
        self.labels |= metadata.labels
        self.annotations |= metadata.annotations
        self.annotated |= dict.fromkeys(metadata.annotations, at)
