"""Tolerations of the runtime that a patch of a TrainJob replaces.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/core/trainingruntime.go mergeRuntimePatches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.overlays import JobOverlay
from webhook.problem import Problem
from webhook.typed.job_sets import ReplicatedJob

LOST_TOLERATION: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/lost-toleration",
    title="A patch with tolerations repeats those of the runtime.",
    why="Tolerations have no merge key, so a patch replaces all of them.",
    fails="pending",
)


def check_lost_toleration(overlay: JobOverlay, before: ReplicatedJob) -> Iterator[Problem]:
    """Yield tolerations of the runtime that a patch replaces, because tolerations have no merge key."""
    if not overlay.pod.has("tolerations"):
        return
    kept = {toleration.key for toleration in overlay.pod.tolerations}
    for lost in before.pod.tolerations:
        if lost.key not in kept and "" not in kept:
            of = f"for `{lost.key}`" if lost.key else "for every key"
            message = f"replaces the whole list, so the runtime's toleration {of} is lost"
            fix = "add that toleration to the patch too, if the pods need it"
            yield LOST_TOLERATION.problem(overlay.pod.path("tolerations"), message, fix)
