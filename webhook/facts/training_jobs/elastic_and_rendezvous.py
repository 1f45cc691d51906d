"""The elastic policy of PyTorchJobs and PaddleJobs: missing workers, wrong limits, and a crash of the operator.

Source: kubeflow/trainer@3a3a1da8d528 (release-1.9) pkg/webhooks/pytorch/pytorchjob_webhook.go validateElasticPolicy,
pkg/controller.v1/pytorch/{elastic,hpa}.go, pkg/apis/kubeflow.org/v1/paddlepaddle_defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.training_jobs.autoscaler import validate_autoscaler_limits
from webhook.facts.training_jobs.processes import check_nproc_field_set_once
from webhook.facts.training_jobs.training_job import advise_deprecated_field
from webhook.facts.training_jobs.typed_job import TRAINING_JOB, TRAINING_JOB_ADVICE, TrainingJobOfKind
from webhook.rules.problem import Problem

ELASTIC_WORKERS: Final = TRAINING_JOB.rule(
    "training-job/elastic-workers",
    title="The elastic job has no workers",
    why="The webhook of PyTorchJobs refuses the job. The controller of PaddleJobs stops with an error.",
    function="validateElasticPolicy",
    issues=("https://github.com/kubeflow/trainer/issues/2278",),
)
ELASTIC_LIMITS: Final = TRAINING_JOB.rule(
    "training-job/elastic-limits",
    title="minReplicas is above maxReplicas",
    why="torchrun gets an empty range of nodes and exits.",
    refused_by="torchrun, when the pods start",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/pytorch/elastic.go",
    function="SetPodEnv",
    fails="start",
    issues=(
        "https://github.com/kubeflow/trainer/issues/1509",
        "https://github.com/kubeflow/trainer/issues/2041",
    ),
)
RENDEZVOUS_SETTINGS: Final = TRAINING_JOB.rule(
    "training-job/rendezvous-settings",
    title="The list of rendezvous settings is empty",
    why="The operator removes the last comma from an empty text and crashes, which stops all jobs of the cluster.",
    refused_by="nothing; the operator crashes",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/pytorch/elastic.go",
    function="generateEnvRDZVConf",
    fails="controller",
)
ELASTIC_REPLICAS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/elastic-replicas",
    title="The number of workers is outside the elastic limits",
    why="An autoscaler changes the number of workers. Without an autoscaler, torchrun may wait for more workers.",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/pytorch/elastic.go",
    function="SetPodEnv",
    fails="waiting",
    issues=(
        "https://github.com/kubeflow/trainer/issues/1509",
        "https://github.com/kubeflow/trainer/issues/2041",
    ),
)
ELASTIC_NODES: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/elastic-nodes",
    title="An elastic limit is below 1",
    why="torchrun needs at least one node.",
    source="pytorch/pytorch 010929fd torch/distributed/run.py",
    function="parse_min_max_nnodes",
    fails="start",
)

_POLICY: Final = ("spec", "elasticPolicy")
_LIMITS: Final = ("minReplicas", "maxReplicas")


def validate_elastic_policy(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Require workers in an elastic job, and settings that the operator can read."""
    if job.kind not in ("PyTorchJob", "PaddleJob"):
        return
    if (
        job.value_at("elasticPolicy") is not None
        and not job.is_open
        and "Worker" not in job.roles
        and _is_worker_role_required(job)
    ):
        message = "is not set, but elasticPolicy scales the workers"
        yield ELASTIC_WORKERS.problem((*job.roles_path, "Worker"), message, "add Worker, or remove elasticPolicy")
    if job.kind == "PyTorchJob":
        yield from check_nproc_field_set_once(job)
        yield from advise_deprecated_field(job)
        yield from _check_elastic_limits(job)
        yield from _check_workers_within_elastic_limits(job)
        if job.value_at("elasticPolicy", "rdzvConf") == []:  # generateEnvRDZVConf removes the last character of ""
            message, fix = (
                "must not be empty because the operator crashes on an empty list",
                "remove rdzvConf, or add an entry",
            )
            yield RENDEZVOUS_SETTINGS.problem((*_POLICY, "rdzvConf"), message, fix)


def _is_worker_role_required(job: TrainingJobOfKind) -> bool:
    """Return whether a job without a role Worker is wrong. A PaddleJob is wrong only if it also sets no limit."""
    limits_are_set = (
        job.value_at(*at) is not None or job.is_placeholder_at(*at)
        for at in (("elasticPolicy", each) for each in _LIMITS)
    )
    return job.kind == "PyTorchJob" or not any(limits_are_set)


def _check_elastic_limits(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Check the limits of a PyTorchJob, which become PET_NNODES. The limits of a PaddleJob reach no pod."""
    least, most = (job.number_at("elasticPolicy", name) for name in _LIMITS)
    if least is not None and most is not None and least > most:
        message = f"must not be more than maxReplicas, which is `{most}`, because no number of workers is then allowed"
        fix = "lower minReplicas, or raise maxReplicas"
        yield ELASTIC_LIMITS.problem((*_POLICY, "minReplicas"), message, fix, least, excess=least - most)
    yield from validate_autoscaler_limits(job, least, most)


def _check_workers_within_elastic_limits(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Report a number of workers outside the limits, or a limit below 1; an unset limit equals the other limit."""
    if any(job.is_placeholder_at("elasticPolicy", name) for name in _LIMITS):
        return
    given = {name: value for name in _LIMITS if (value := job.number_at("elasticPolicy", name)) is not None}
    limits = [*given.values()]
    worker = job.roles.get("Worker")
    if worker is not None and worker.replicas is not None and limits and limits[-1] >= max(limits[0], 1):
        low, high = limits[0], limits[-1]
        if not low <= worker.replicas <= high:
            wanted = f"{low}" if low == high else f"between {low} and {high}"
            message = f"must be {wanted} because elasticPolicy allows no other number of workers"
            fix = f"set {low}" if low == high else "set a number in that range"
            yield ELASTIC_REPLICAS.problem((*worker.path, "replicas"), message, fix, worker.replicas)
    small = next((name for name, value in given.items() if value < 1), None)
    if small is not None:
        message = "must be at least 1 because torchrun needs at least one node"
        yield ELASTIC_NODES.problem((*_POLICY, small), message, "set 1 or more", given[small])
