"""Rules of Kueue's webhooks for RayClusters, RayJobs and RayServices.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs; functions are named like those there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.configuration import read_kueue_configuration
from webhook.facts.kueue.groups import KUEUE_JOB
from webhook.facts.kueue.managed import KueueManagement
from webhook.facts.kueue.objects import (
    ELASTIC,
)
from webhook.facts.kueue.releases import find_kueue_release, max_pod_sets_per_workload
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.typed.objects import Object
from webhook.typed.ray import RayCluster, RayClusterSpec, RayJob, RayService

RAY_CLUSTER: Final = KUEUE_JOB.rule(
    "kueue-job/ray-cluster",
    title="A RayJob that Kueue manages has a cluster of its own.",
    why="Kueue counts the pods of this cluster.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/rayjob/rayjob_webhook.go",
    function="validateCreate",
)
RAY_SHUTDOWN: Final = KUEUE_JOB.rule(
    "kueue-job/ray-shutdown",
    title="A RayJob that Kueue manages shuts its cluster down when it ends.",
    why="A cluster that stays keeps its quota.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/rayjob/rayjob_webhook.go",
    function="validateCreate",
)
RAY_AUTOSCALING: Final = KUEUE_JOB.rule(
    "kueue-job/ray-autoscaling",
    title="A Ray cluster that Kueue manages scales by itself only as an elastic job.",
    why="Kueue counts the pods of other jobs once.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/raycluster/raycluster_webhook.go",
    function="validateCreate",
)
RAY_GROUPS: Final = KUEUE_JOB.rule(
    "kueue-job/ray-groups",
    title="A Ray cluster has no more groups than a Workload has pod sets, and none is called head.",
    why="Each group becomes a pod set, and so does the head.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/raycluster/raycluster_webhook.go",
    function="validateCreate",
)


def validate_ray(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Yield the problems that the webhooks of RayCluster, RayJob and RayService would report of a managed object."""
    if not (how.queue or subject.once(read_kueue_configuration).manages_all):
        return
    match how.framework:
        case "ray.io/raycluster":
            yield from _validate_ray_cluster(subject.typed(RayCluster).spec, subject)
        case "ray.io/rayjob":
            yield from _validate_ray_job(subject.typed(RayJob))
            yield from _validate_ray_cluster(subject.typed(RayJob).spec.ray_cluster_spec, subject)
        case "ray.io/rayservice":
            yield from _validate_ray_cluster(subject.typed(RayService).spec.ray_cluster_config, subject)


def _validate_ray_job(job: RayJob) -> Iterator[Problem]:
    spec = job.spec
    if spec.cluster_selector and spec.has_cluster:
        message = "must not be set with rayClusterSpec because a job that Kueue manages has its own Ray cluster"
        yield RAY_CLUSTER.problem(spec.path("clusterSelector"), message, "remove clusterSelector")
    if not spec.cluster_selector and not spec.has_cluster:
        message = "must be set because Kueue counts the pods of the Ray cluster"
        yield RAY_CLUSTER.problem(spec.path("rayClusterSpec"), message, "set rayClusterSpec")
    runs_on_another = spec.cluster_selector and not spec.has_cluster  # Kueue does not manage it
    if not spec.shutdown_after_job_finishes and not runs_on_another:
        path = spec.path("shutdownAfterJobFinishes")
        message = "must be true because the job keeps its quota as long as its Ray cluster runs"
        yield RAY_SHUTDOWN.problem(path, message, "set shutdownAfterJobFinishes to true")


def _validate_ray_cluster(cluster: RayClusterSpec, subject: Subject) -> Iterator[Problem]:
    is_elastic = subject.typed(Object).annotations.get(ELASTIC) == "true"
    if cluster.enable_in_tree_autoscaling and not is_elastic:
        message = f"must not be true without the annotation {ELASTIC} because Kueue counts the pods only once"
        fix = f"remove the field, or set {ELASTIC} to true"
        yield RAY_AUTOSCALING.problem(cluster.path("enableInTreeAutoscaling"), message, fix)
    groups, most = cluster.worker_group_specs, max_pod_sets_per_workload(find_kueue_release(subject))
    if len(groups) + 1 > most:
        message = f"are more than the {most - 1} that are allowed because a Workload has at most {most} pod sets"
        fix = f"use at most {most - 1} groups, and more replicas of those that are alike"
        yield RAY_GROUPS.problem(cluster.path("workerGroupSpecs"), message, fix, shown=f"{len(groups)} groups")
    for group in groups:
        if group.group_name == "head":
            message, fix = "is the name of the head group", "rename the worker group"
            yield RAY_GROUPS.problem(group.path("groupName"), message, fix, shown="`head`")
