"""Finds gangs of a runtime whose pods never start together.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/{volcano,coscheduling}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME_ADVICE
from webhook.facts.train_job_pods.types import RuntimeSpec
from webhook.facts.trainer.training_runtime_job_names import replicated_jobs_of
from webhook.problem import Problem

ONE_SCHEDULER: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/one-scheduler",
    title="A runtime has one gang scheduler.",
    why="coscheduling and volcano both make a group of the same pods.",
    source="https://github.com/kubeflow/trainer/issues/2980",
    fails="pending",
)
GANG_DEPENDENCY: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/gang-dependency",
    title="A runtime with a gang scheduler has no dependsOn.",
    why="The group waits for the pods of every replicated job, of which some are made only after others are done.",
    source="https://github.com/kubeflow/trainer/issues/2980",
    fails="pending",
)


def advise_gangs(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Yield gangs whose pods never start together, because volcano.go and coscheduling.go count every
    replicated job.
    """
    policy = runtime.pod_group_policy
    schedulers = policy.schedulers
    if len(schedulers) > 1:
        message = "has `coscheduling` and `volcano`, which both group the same pods"
        fix = "keep the one that the scheduler of the cluster supports"
        yield ONE_SCHEDULER.problem(policy.at, message, fix)
    if schedulers and any(job.depends_on for job in replicated_jobs_of(runtime)):
        message = (
            "waits for the pods of all replicated jobs, but jobs with dependsOn are created later, so no pod starts"
        )
        yield GANG_DEPENDENCY.problem(policy.path(schedulers[0]), message, "remove dependsOn or podGroupPolicy")
