"""What Kueue's webhooks refuse of single kinds: Job, Pod, the kinds of Ray, SparkApplication.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs; functions are named like those there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.kueue.configuration import configuration
from webhook.facts.kueue.job_types import (
    BatchJob,
    BatchJobSpec,
    RayCluster,
    RayClusterSpec,
    RayJob,
    RayService,
    SparkApplication,
)
from webhook.facts.kueue.managed import Managed
from webhook.facts.kueue.objects import (
    BOOLEANS,
    ELASTIC,
    EQUAL_COMPLETIONS,
    MANAGED,
    MIN_PARALLELISM,
    POD_GROUP,
    POD_GROUP_COUNT,
)
from webhook.facts.kueue.releases import most_pod_sets
from webhook.facts.subject import Subject
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.objects import Metadata, Object

problem: Final = Group("kueue-job").problem
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")


def validate_partial_admission(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As validatePartialAdmissionCreate of batch/job."""
    if how.framework == "batch/job":
        job = subject.typed(BatchJob)
        metadata = subject.metadata
        yield from _validate_min_parallelism(job, metadata)
        yield from _validate_equal_completions(job.spec, metadata)


def _validate_min_parallelism(job: BatchJob, metadata: Metadata) -> Iterator[Problem]:
    notes, count = metadata.annotations, job.pods
    given = notes.get(MIN_PARALLELISM)
    if given is None or is_placeholder(given):
        return
    if not _NUMBER.fullmatch(given) or not 0 < int(given) < count:
        message = f"must be a whole number above 0 and below {count}, the number of pods of the Job"
        fix, number = "remove the annotation", "1" if count == 2 else f"1 to {count - 1}"
        yield _min_parallelism(metadata, message, f"set {number}, or {fix}" if count > 1 else fix, given)
    elif notes.get(ELASTIC) == "true":
        message = "must not be set on an elastic job, which changes its size by itself"
        yield _min_parallelism(metadata, message, "remove one of the two annotations", given)


def _min_parallelism(metadata: Metadata, message: str, fix: str, value: str) -> Problem:
    return problem("min-parallelism", metadata.path("annotations", MIN_PARALLELISM), message, fix, value)


def _validate_equal_completions(spec: BatchJobSpec, metadata: Metadata) -> Iterator[Problem]:
    """As validateSyncCompletionCreate."""
    given = metadata.annotations.get(EQUAL_COMPLETIONS)
    if given is None or is_placeholder(given):
        return
    path = metadata.path("annotations", EQUAL_COMPLETIONS)
    if given not in BOOLEANS:
        yield _equal_completions(path, "must be true or false", "set true or false", given)
    elif BOOLEANS[given] and spec.completion_mode != "Indexed":
        message = "is not allowed on a Job whose completionMode is not Indexed"
        yield _equal_completions(path, message, "set spec.completionMode to Indexed", given)
    elif BOOLEANS[given] and spec.completions != spec.parallelism:
        must = f"must be {spec.parallelism}, as spec.parallelism,"
        message = f"{must} because the annotation {EQUAL_COMPLETIONS} is true"
        fix = "set both to the same number"
        yield _equal_completions(spec.path("completions"), message, fix, spec.completions)


def _equal_completions(path: FieldPath, message: str, fix: str, value: str | int | None) -> Problem:
    return problem("equal-completions", path, message, fix, value)


def validate_pod(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As validateCommon of the pod webhook: the managed label, and groups of pods."""
    if how.framework != "pod":
        return
    metadata = subject.metadata
    label = metadata.labels.get(MANAGED)
    if label not in (None, "true") and not how.queue:
        message = "must be true, or not set, because Kueue sets this label itself"
        yield problem("managed-label", metadata.path("labels", MANAGED), message, "remove the label", label)
    if how.queue or label:
        yield from _validate_pod_group(metadata)


def _validate_pod_group(metadata: Metadata) -> Iterator[Problem]:
    group, count = metadata.labels.get(POD_GROUP, ""), metadata.annotations.get(POD_GROUP_COUNT)
    path = metadata.path("annotations", POD_GROUP_COUNT)
    if group and count is None:
        message = f"must be set because the label {POD_GROUP} makes the pod a member of a group"
        yield _pod_group(path, message, "set the number of pods of the group")
    elif count is not None and not group:
        message = f"must be set because the annotation {POD_GROUP_COUNT} counts the pods of a group"
        yield _pod_group(metadata.path("labels", POD_GROUP), message, "set the label to the name of the group")
    elif count is not None and not _is_count(count):
        yield _pod_group(path, "must be a whole number of pods, at least 1", "set the number of pods", count)


def _pod_group(path: FieldPath, message: str, fix: str, value: str | None = None) -> Problem:
    return problem("pod-group", path, message, fix, value)


def _is_count(given: str) -> bool:
    return is_placeholder(given) or (_NUMBER.fullmatch(given) is not None and int(given) > 0)


def validate_ray(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As the webhooks of RayCluster, RayJob and RayService, of what Kueue manages."""
    if not (how.queue or subject.once(configuration).manages_all):
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
        yield _ray_cluster(spec.path("clusterSelector"), message, "remove clusterSelector")
    if not spec.cluster_selector and not spec.has_cluster:
        message = "must be set because Kueue counts the pods of the Ray cluster"
        yield _ray_cluster(spec.path("rayClusterSpec"), message, "set rayClusterSpec")
    if not spec.shutdown_after_job_finishes:
        path = spec.path("shutdownAfterJobFinishes")
        message = "must be true because the job keeps its quota as long as its Ray cluster runs"
        yield problem("ray-shutdown", path, message, "set shutdownAfterJobFinishes to true")


def _ray_cluster(path: FieldPath, message: str, fix: str) -> Problem:
    return problem("ray-cluster", path, message, fix)


def _validate_ray_cluster(cluster: RayClusterSpec, subject: Subject) -> Iterator[Problem]:
    is_elastic = subject.typed(Object).annotations.get(ELASTIC) == "true"
    if cluster.enable_in_tree_autoscaling and not is_elastic:
        message = f"must not be true without the annotation {ELASTIC} because Kueue counts the pods only once"
        fix = f"remove the field, or set {ELASTIC} to true"
        yield problem("ray-autoscaling", cluster.path("enableInTreeAutoscaling"), message, fix)
    groups, most = cluster.worker_group_specs, most_pod_sets(subject.assumptions.kueue)
    if len(groups) + 1 > most:
        message = f"are more than the {most - 1} that are allowed because a Workload has at most {most} pod sets"
        fix = f"use at most {most - 1} groups, and more replicas of those that are alike"
        yield _ray_groups(cluster.path("workerGroupSpecs"), message, fix, f"{len(groups)} groups")
    for group in groups:
        if group.group_name == "head":
            message, fix = "is the name of the head group", "rename the worker group"
            yield _ray_groups(group.path("groupName"), message, fix, "`head`")


def _ray_groups(path: FieldPath, message: str, fix: str, shown: str) -> Problem:
    return problem("ray-groups", path, message, fix, shown=shown)


def validate_spark(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As the webhook of SparkApplication."""
    if how.framework != "sparkoperator.k8s.io/sparkapplication" or not how.queue:
        return
    spec = subject.typed(SparkApplication).spec
    if spec.has("mode") and spec.mode != "cluster":
        message = "must be cluster because Kueue manages only applications of this mode"
        yield _spark_mode(spec.path("mode"), message, "set cluster", spec.json.get("mode"))
    if spec.dynamic_allocation.enabled:
        message = "must not be enabled because Kueue counts the executors only once"
        yield _spark_mode(spec.dynamic_allocation.path("enabled"), message, "set it to false")


def _spark_mode(path: FieldPath, message: str, fix: str, value: JSON = None) -> Problem:
    return problem("spark-mode", path, message, fix, value)
