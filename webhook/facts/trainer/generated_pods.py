"""The pods that Trainer creates for a replicated job, for checks of the API server's rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.typed.collections import Items
from webhook.typed.job_sets import ReplicatedJob
from webhook.typed.pods import PodClaim, PodSpec
from webhook.typed.volumes import Volume


@dataclass(frozen=True, slots=True)
class GeneratedPods:
    """The pods of a replicated job.

    `before`: the same job in the runtime, before the patches; None if the runtime does not have the job.
    """

    replicated: ReplicatedJob
    before: ReplicatedJob | None
    job: MergedTrainJob

    @property
    def spec(self) -> PodSpec:
        """Return the spec of the pods, with the patches merged."""
        return self.replicated.pod

    def __str__(self) -> str:
        return f"replicated job `{self.replicated.name}` of {self.job.runtime}"


def sentence_about_several_sources(
    named: Volume | PodClaim, what: str, before: Mapping[str, list[str]], pods: GeneratedPods
) -> tuple[str, str]:
    """Return the message and the fix for a volume or claim with several sources."""
    sources = " and ".join(source_fields_of(named))
    first = before.get(named.name, [])
    keep = f"set only {first[0]}, as the runtime does" if len(first) == 1 else "set only one of them"
    message = f"merged with {pods}, {what} `{named.name}` has both {sources}, but must have only one of them"
    return message, f"{keep}, or give the {what} another name"


def sources_by_name(listed: Items[Volume] | Items[PodClaim]) -> Mapping[str, list[str]]:
    """Return the source fields of volumes or claims, by name."""
    return {named.name: source_fields_of(named) for named in listed}


def source_fields_of(named: Volume | PodClaim) -> list[str]:
    """Return the fields that give a volume or a claim its source."""
    return sorted(key for key, value in named.json.items() if value not in (None, "") and key != "name")
