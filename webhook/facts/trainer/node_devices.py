"""Counts the GPUs of a TrainJob's training container, with and without the patches of the runtime."""

from __future__ import annotations

from webhook.facts.gpu.resources import count_gpus_of_json_resources
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.nodes import container_named, first_node_job
from webhook.typed.pods import Container


def gpus_of_node_container(job: MergedTrainJob) -> int:
    """Return how many GPUs the container requests."""
    return _gpus_of_container(job.node_container)


def gpus_of_node_in_runtime(job: MergedTrainJob) -> int:
    """Return how many GPUs the container requests in the runtime."""
    return _gpus_of_container(container_named(first_node_job(job.runtime.spec.template.spec), "node"))


def _gpus_of_container(node: Container | None) -> int:
    return 0 if node is None else count_gpus_of_json_resources(node.resources.json, node.reading.deadline)
