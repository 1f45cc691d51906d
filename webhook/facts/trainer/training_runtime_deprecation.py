"""Runtimes that are labelled deprecated, and TrainJobs that name such a runtime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME_ADVICE
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.types import SUPPORT, TrainingRuntime
from webhook.paths import FieldPath
from webhook.problem import Problem

DEPRECATED: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/deprecated",
    title="A runtime is not labelled deprecated.",
    why="A later release of Trainer removes it.",
)


def advise_deprecation(runtime: TrainingRuntime) -> Iterator[Problem]:
    """A runtime whose label says so."""
    if runtime.is_deprecated:
        yield _deprecated()


def advise_deprecated_runtime(job: MergedTrainJob) -> Iterator[Problem]:
    """A TrainJob that names such a runtime."""
    if job.runtime.object.is_deprecated:
        yield _deprecated(str(job.runtime))


def _deprecated(runtime: str = "") -> Problem:
    """The problem of a runtime that is labelled so, or of a TrainJob that names such a runtime."""
    path: FieldPath = ("metadata", "labels", SUPPORT)
    message = "says that the runtime is deprecated, so a later release of Trainer removes it"
    fix = "use another runtime for new TrainJobs"
    if runtime:
        path, fix = ("spec", "runtimeRef", "name"), "choose another runtime"
        message = f"names {runtime}, which is labelled deprecated and will be removed"
    return DEPRECATED.problem(path, message, fix)
