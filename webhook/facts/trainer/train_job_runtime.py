"""The runtime that a TrainJob names: its kind, and whether it exists.

Source: kubeflow/trainer@8c0f5059bd51 pkg/webhooks and pkg/runtime/core.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kinds import TRAINER
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.groups import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.trainer.train_job import _RUNTIMES
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

RUNTIME_KIND: Final = TRAIN_JOB.rule(
    "train-job/runtime-kind",
    title="runtimeRef names a TrainingRuntime or a ClusterTrainingRuntime.",
    why="Trainer knows no other runtimes.",
)
RUNTIME_EXISTS: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/runtime-exists",
    title="The runtime of a TrainJob exists.",
    why="Trainer refuses a TrainJob until its runtime is there.",
    refused_by="Trainer's webhook or the rules of its CustomResourceDefinition",
    fails="create",
)


def validate_runtime_kind(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of a spec.runtimeRef that names neither of the two kinds of runtimes."""
    reference = job.spec.runtime_ref
    kind, group = reference.kind, reference.api_group
    if (kind not in _RUNTIMES or group != TRAINER) and not is_placeholder(kind + group):
        message = f"names kind `{kind}` of API group `{group}`, which is not a runtime of Trainer"
        fixes = [f"set kind to {' or '.join(_RUNTIMES)}"] if kind not in _RUNTIMES else []
        fixes += [f"set apiGroup to {TRAINER}"] if group != TRAINER else []
        yield RUNTIME_KIND.problem(reference.at, message, ", and ".join(fixes))


def validate_runtime_exists(job: MergedTrainJob, subject: Subject) -> Iterator[Problem]:
    """Yield the problem of a runtime that certainly does not exist."""
    if job.runtime.is_found or not job.runtime.name:
        return
    view = subject.cluster_view()
    kind = type(job.runtime.object)
    if view.is_whole(kind.gvk):
        near = view.nearest_here(job.runtime.name, kind.gvk)
        message = f"names {job.runtime}, which does not exist, so Trainer refuses the job"
        fix = (
            f"write `{near}`, or create the runtime first" if near else "correct the name, or create the runtime first"
        )
        yield RUNTIME_EXISTS.problem("spec.runtimeRef.name", message, fix)
    else:
        yield RUNTIME_EXISTS.problem("spec.runtimeRef.name", missing=job.missing)
