"""Arguments of the runtime that follow the command of a TrainJob.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/jobset/builder.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB_ADVICE
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.problem import Problem
from webhook.typed.pods import Container

RUNTIME_ARGS: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/runtime-args",
    title="A TrainJob that sets a command sets its args too.",
    why="Trainer replaces command and args each by itself, so the command runs with the args of the runtime.",
)
_SHOWN: Final = 80


def advise_runtime_args(job: MergedTrainJob, node: Container) -> Iterator[Problem]:
    """Yield the problem of a command without args, which runs with those of the runtime."""
    if job.trainer.command and not job.trainer.has("args") and node.args:
        args = " ".join(node.args)
        shown = args if len(args) <= _SHOWN else f"{args[:_SHOWN]} …"
        message = f"runs with the args of {job.runtime}, `{shown}`"
        yield RUNTIME_ARGS.problem("spec.trainer.command", message, "set spec.trainer.args too")
