"""The HorizontalPodAutoscaler that the operator creates for an elastic PyTorchJob with spec.elasticPolicy.metrics.

The autoscaler changes the number of workers. Sources: kubeflow/trainer@3a3a1da8d528 (release-1.9)
pkg/controller.v1/pytorch/hpa.go; k8s.io/kubernetes v1.36 pkg/controller/podautoscaler for the requests that metrics
need.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.facts.command_lines.command import cached_launch_of_container, node_count_range_of_launch
from webhook.facts.subject import Subject
from webhook.facts.training_jobs.typed_job import TRAINING_JOB, TRAINING_JOB_ADVICE, PyTorchJob, TrainingJobOfKind
from webhook.rules.problem import Problem
from webhook.typed.autoscaling import Metric
from webhook.typed.cluster_objects import LimitRange
from webhook.typed.collections import Items
from webhook.typed.pods import Container, PodSpec
from webhook.typed.view import ReadingContext

AUTOSCALER_REQUESTS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/autoscaler-requests",
    title="A worker does not request the resource that the autoscaler measures",
    why=(
        "The autoscaler computes utilization from the requests of all containers. Without a request, the autoscaler "
        "reports FailedGetResourceMetric and never changes the number of workers."
    ),
    source="k8s.io/kubernetes v1.36 pkg/controller/podautoscaler/replica_calculator.go",
    function="calculatePodRequestsFromContainers",
    fails="silent",
)

_POLICY: Final = ("spec", "elasticPolicy")
_NODES_OF_OPERATOR: Final = "PET_NNODES"
"""The operator sets this variable to `minReplicas:maxReplicas`: pkg/controller.v1/pytorch/elastic.go."""
_AT: Final = (*_POLICY, "metrics")

AUTOSCALER_LIMITS: Final = TRAINING_JOB.rule(
    "training-job/autoscaler-limits",
    title="The elastic limits are not valid for an autoscaler",
    why="The operator creates a HorizontalPodAutoscaler with these limits, and the API server refuses the limits.",
    refused_by="the API server",
    source="kubeflow/trainer release-1.9 (3a3a1da8d528) pkg/controller.v1/pytorch/hpa.go",
    function="ReconcileHPA",
    fails="controller",
)


def max_pods_of_job(job: TrainingJobOfKind) -> int | None:
    """Return the largest number of pods that a job may have while its current pods wait; None if the number is not
    known.

    Waiting workers use no CPU or memory, so an autoscaler for CPU or memory adds workers only up to minReplicas. An
    autoscaler for other metrics may add workers up to maxReplicas.
    """
    pods, metrics = job.count_pods(), _metrics_of_elastic_policy(job)
    if pods is None or job.is_placeholder_at("elasticPolicy", "metrics"):
        return None
    if not metrics:
        return pods
    is_load = all(metric.resource.name in ("cpu", "memory") and metric.type == "Resource" for metric in metrics)
    workers, limit = (
        job.roles.get("Worker"),
        job.number_at("elasticPolicy", "minReplicas" if is_load else "maxReplicas"),
    )
    if workers is None or workers.replicas is None or (limit is None and not is_load):
        return None
    return pods + max(0, (limit or 0) - workers.replicas)


def _metrics_of_elastic_policy(job: TrainingJobOfKind) -> Items[Metric]:
    listed = Items[JSON](job.value_at("elasticPolicy", "metrics") or [], job.deadline)
    reading_of = ReadingContext(job.deadline)
    return listed.of([Metric.of(each, (*_AT, index), reading_of) for index, each in enumerate(listed)])


def validate_autoscaler_limits(job: TrainingJobOfKind, least: int | None, most: int | None) -> Iterator[Problem]:
    """Yield minReplicas and maxReplicas that the API server refuses in the HorizontalPodAutoscaler of a job with
    elasticPolicy.metrics.
    """
    if (
        job.value_at("elasticPolicy", "metrics") is not None
    ):  # hpa.go; autoscaling/v2: maxReplicas from 1, minReplicas from 0
        if most is not None and most < 1:
            message = (
                "must be at least 1 because elasticPolicy.metrics is set and the HorizontalPodAutoscaler needs 1 or "
                "more"
            )
            yield AUTOSCALER_LIMITS.problem((*_POLICY, "maxReplicas"), message, "set 1 or more", most)
        elif least is not None and least < 0:
            message = (
                "must not be negative because elasticPolicy.metrics is set and the HorizontalPodAutoscaler refuses "
                "less than 0"
            )
            yield AUTOSCALER_LIMITS.problem((*_POLICY, "minReplicas"), message, "set 1 or more", least)


def validate_autoscaler_requests(job: TrainingJobOfKind, subject: Subject) -> Iterator[Problem]:
    """Yield containers of workers that lack a request for a resource that the autoscaler measures.

    Jobs with a fixed number of nodes are not checked. Pods above --nnodes cannot join, so these jobs lose nothing if
    the autoscaler adds no pods.
    """
    if job.kind != "PyTorchJob" or job.is_open or not (metrics := _metrics_of_elastic_policy(job)):
        return
    least, most = (job.number_at("elasticPolicy", name) for name in ("minReplicas", "maxReplicas"))
    if most is not None and most <= (1 if least is None else least):  # autoscaling/v2: minReplicas is 1 by default
        return
    worker = subject.typed(PyTorchJob).spec.roles.get("Worker")
    if worker is None:
        return
    pod = worker.template.spec
    if any(_may_have_fixed_node_count(container, subject) for container in pod.containers):
        return
    names = {metric.resource_and_container: None for metric in metrics if metric.resource_and_container[0]}
    for name, container in names:
        for each in pod.running_containers():
            if (
                container in ("", each.name)
                and not _has_request_or_limit(name, each, pod)
                and not _has_default_request(name, subject)
            ):
                message = f"requests no {name}, so the autoscaler of elasticPolicy.metrics cannot tell how much is used"
                at = each.path("resources", "requests")
                yield AUTOSCALER_REQUESTS.problem(at, message, f"set {name} to what a worker needs")


def _may_have_fixed_node_count(container: Container, subject: Subject) -> bool:
    """Return whether a command sets a fixed or unknown number of nodes. PET_NNODES of the operator is a range."""
    launch = cached_launch_of_container(container, subject)
    limits = node_count_range_of_launch(launch)
    return limits[0] == limits[1] if limits else launch.nodes != "" and _NODES_OF_OPERATOR not in launch.nodes


def _has_request_or_limit(name: str, container: Container, pod: PodSpec) -> bool:
    """Return whether a container has or may have a request. A limit counts, because it is the default of the request.
    Resources of the pod count too.
    """
    resources = container.resources
    if container.is_omitted("resources") or any(resources.is_omitted(side) for side in ("requests", "limits")):
        return True
    amounts = (resources.written_requests, resources.written_limits)
    return (
        bool(pod.resources)
        or any(side.get(name) is not None for side in amounts)
        or _is_amount_placeholder(name, container)
    )


def _is_amount_placeholder(name: str, container: Container) -> bool:
    sides = (container.path("resources", side, name) for side in ("requests", "limits"))
    return any(path in container.reading.omitted for path in sides)


def _has_default_request(name: str, subject: Subject) -> bool:
    """Return whether a LimitRange of the namespace gives containers a default request or limit."""
    ranges = subject.cluster_view().typed_here(LimitRange)
    items = (item for each in ranges for item in each.spec.limits if item.type == "Container")
    return any(name in item.default or name in item.default_request for item in items)
