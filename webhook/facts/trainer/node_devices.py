"""Counts the GPUs of a TrainJob's training container, with and without the patches of the runtime."""

from __future__ import annotations

from webhook.facts.gpu.resources import devices_of
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.nodes import container_of, node_job
from webhook.typed.pods import Container


def pod_gpus(job: MergedTrainJob) -> int:
    """Return how many GPUs the container requests."""
    return _devices(job.node)


def runtime_gpus(job: MergedTrainJob) -> int:
    """Return how many GPUs the container requests in the runtime."""
    return _devices(container_of(node_job(job.runtime.spec.template.spec), "node"))


def _devices(node: Container | None) -> int:
    return 0 if node is None else devices_of(node.resources.json, node.reading.deadline)
