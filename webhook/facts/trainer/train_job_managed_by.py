"""The controller that manages a TrainJob.

Source: kubeflow/trainer@8c0f5059bd51 manifests/base/crds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

MANAGED_BY: Final = TRAIN_JOB.rule(
    "train-job/managed-by",
    title="managedBy names Trainer's controller or MultiKueue.",
    why="The rules of the CustomResourceDefinition take no other controller.",
    refused_on_updates="",
)
_MANAGERS: Final = ("trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue")


def validate_managed_by(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of a spec.managedBy that is neither of the two controllers of TrainJobs."""
    manager = job.spec.managed_by
    if manager not in _MANAGERS and not is_placeholder(manager):
        fix = f"set {' or '.join(_MANAGERS)}, or remove managedBy, which means {_MANAGERS[0]}"
        yield MANAGED_BY.problem("spec.managedBy", "must be one of the two controllers of TrainJobs", fix, manager)
