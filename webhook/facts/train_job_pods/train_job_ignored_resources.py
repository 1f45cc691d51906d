"""Where resourcesPerNode of a TrainJob has no effect.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/jobset/builder.go.
"""

from __future__ import annotations

from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.runtime_reference import ReferencedRuntime
from webhook.problem import Problem
from webhook.releases import Release, release_as_text
from webhook.typed.pods import Resources

IGNORED_RESOURCES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/ignored-resources",
    title="resourcesPerNode needs a runtime with mlPolicy.",
    why="Since 2.3 Trainer leaves resourcesPerNode out where the runtime has no mlPolicy.",
)


def ignored_resources_problem(asked: Resources, runtime: ReferencedRuntime, release: Release) -> Problem:
    """Return the problem of resourcesPerNode under a runtime without mlPolicy."""
    message = f"is ignored by Trainer {release_as_text(release)} because {runtime} has no mlPolicy"
    return IGNORED_RESOURCES.problem(asked.at, message, "add an mlPolicy to the runtime")
