"""GPUs that the container of a TrainJob that trains requests, merged with its runtime and in the runtime alone."""

from __future__ import annotations

from webhook.facts.gpu.resources import devices_of
from webhook.facts.train_job_pods.nodes import container_of, node_job
from webhook.facts.train_job_pods.train_job import TrainJob
from webhook.paths import get


def pod_gpus(job: TrainJob) -> int:
    """GPUs that it has."""
    return devices_of(get(job.node, ("resources",)), job.deadline)


def runtime_gpus(job: TrainJob) -> int:
    """GPUs that it has in the runtime."""
    of_runtime = node_job(get(job.runtime.spec, ("template", "spec")))
    return devices_of(get(container_of(of_runtime, "node"), ("resources",)), job.deadline)
