"""Rules of Kueue's webhooks for single kinds: Pod, Job, RayCluster, RayJob, RayService and SparkApplication.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.configuration import ELASTIC_JOBS_GATE, is_gate_on, read_kueue_configuration
from webhook.facts.kueue.groups import KUEUE_JOB
from webhook.facts.kueue.managed import KueueManagement
from webhook.facts.kueue.objects import (
    BOOLEANS,
    ELASTIC,
    EQUAL_COMPLETIONS,
    MANAGED,
    MIN_PARALLELISM,
    POD_GROUP,
    POD_GROUP_COUNT,
)
from webhook.facts.kueue.releases import find_kueue_release, max_pod_sets_per_workload
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.jobs import Job, JobSpec
from webhook.typed.objects import Metadata, Object
from webhook.typed.ray import RayCluster, RayClusterSpec, RayJob, RayService
from webhook.typed.spark import SparkApplication
from webhook.yamltext.placeholders import is_placeholder

MANAGED_LABEL: Final = KUEUE_JOB.rule(
    "kueue-job/managed-label",
    title="The label kueue.x-k8s.io/managed has another value than true",
    why="Kueue sets this label itself on the pods that it manages.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/pod/pod_webhook.go",
    function="validateCommon",
)
KUEUE_JOB_POD_GROUP: Final = KUEUE_JOB.rule(
    "kueue-job/pod-group",
    title="The pod's group name or group size is missing or invalid",
    why="Kueue admits a group only when all of its pods exist, so it needs the name and the size of the group.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/pod/pod_webhook.go",
    function="validatePodGroupMetadata",
)
KUEUE_JOB_MIN_PARALLELISM: Final = KUEUE_JOB.rule(
    "kueue-job/min-parallelism",
    title="The minimum parallelism is invalid or not below the number of pods, or the Job is elastic",
    why=(
        "Kueue may admit the Job with fewer pods than parallelism, but not with fewer pods than this number. An "
        "elastic Job changes its number of pods in another way."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/job/job_webhook.go",
    function="validatePartialAdmissionCreate",
    refused_on_updates="",
)
KUEUE_JOB_EQUAL_COMPLETIONS: Final = KUEUE_JOB.rule(
    "kueue-job/equal-completions",
    title="The annotation job-completions-equal-parallelism does not fit the Job",
    why="When Kueue admits the Job with fewer pods, it changes completions and parallelism together.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/job/job_webhook.go",
    function="validateSyncCompletionCreate",
)
RAY_CLUSTER: Final = KUEUE_JOB.rule(
    "kueue-job/ray-cluster",
    title="A RayJob with a queue selects an existing cluster or has no cluster",
    why="Kueue counts the pods of the RayJob's own cluster, and refuses a RayJob that selects an existing cluster.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/rayjob/rayjob_webhook.go",
    function="validateCreate",
)
RAY_SHUTDOWN: Final = KUEUE_JOB.rule(
    "kueue-job/ray-shutdown",
    title="A RayJob with a queue keeps its Ray cluster after the job ends",
    why="A Ray cluster that keeps running also keeps its quota.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/rayjob/rayjob_webhook.go",
    function="validateCreate",
)
RAY_AUTOSCALING: Final = KUEUE_JOB.rule(
    "kueue-job/ray-autoscaling",
    title="A Ray cluster with a queue scales by itself but is not elastic",
    why="Kueue counts the pods of a job that is not elastic only once, so pods that are added later run without quota.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/raycluster/raycluster_webhook.go",
    function="validateCreate",
)
RAY_GROUPS: Final = KUEUE_JOB.rule(
    "kueue-job/ray-groups",
    title="The Ray cluster has too many groups, or a worker group called head",
    why="The head and each group become a pod set of the Workload, and a Workload has a limited number of pod sets.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/raycluster/raycluster_webhook.go",
    function="validateCreate",
)
SPARK_MODE: Final = KUEUE_JOB.rule(
    "kueue-job/spark-mode",
    title="A SparkApplication with a queue is not in cluster mode, or allocates executors dynamically",
    why="Kueue counts the pods of the application only once, so their number must be fixed.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/sparkapplication",
)
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")


def validate_pod(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Yield the problems that validateCommon of the pod webhook would report: the managed label, and groups of pods."""
    if how.framework != "pod":
        return
    metadata = subject.metadata
    label = metadata.labels.get(MANAGED)
    if label not in (None, "true") and not how.queue:
        message = "must be true, or not set, because Kueue sets this label itself"
        yield MANAGED_LABEL.problem(metadata.path("labels", MANAGED), message, "remove the label", label)
    if how.queue or label:
        yield from _validate_pod_group(metadata)


def _validate_pod_group(metadata: Metadata) -> Iterator[Problem]:
    group, count = metadata.labels.get(POD_GROUP, ""), metadata.annotations.get(POD_GROUP_COUNT)
    path = metadata.path("annotations", POD_GROUP_COUNT)
    if group and count is None:
        message = f"is not set, but the label {POD_GROUP} makes the pod a member of a group"
        yield KUEUE_JOB_POD_GROUP.problem(path, message, "set the number of pods of the group")
    elif count is not None and not group:
        message = f"is not set, but the annotation {POD_GROUP_COUNT} counts the pods of a group"
        yield KUEUE_JOB_POD_GROUP.problem(
            metadata.path("labels", POD_GROUP), message, "set the label to the name of the group"
        )
    elif count is not None and not _is_positive_count(count):
        yield KUEUE_JOB_POD_GROUP.problem(
            path, "must be a whole number of pods, at least 1", "set the number of pods", count
        )


def _is_positive_count(given: str) -> bool:
    return is_placeholder(given) or (_NUMBER.fullmatch(given) is not None and int(given) > 0)


def validate_partial_admission(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Yield the problems that validatePartialAdmissionCreate of batch/job would report."""
    if how.framework == "batch/job":
        job = subject.typed(Job)
        metadata = subject.metadata
        yield from _validate_min_parallelism(job, metadata)
        yield from _validate_equal_completions(job.spec, metadata)


def _validate_min_parallelism(job: Job, metadata: Metadata) -> Iterator[Problem]:
    notes, count = metadata.annotations, job.pods
    given = notes.get(MIN_PARALLELISM)
    if given is None or is_placeholder(given):
        return
    if not _NUMBER.fullmatch(given) or not 0 < int(given) < count:
        message = f"must be a whole number above 0 and below {count}, the number of pods of the Job"
        fix, number = "remove the annotation", "1" if count == 2 else f"1 to {count - 1}"
        yield KUEUE_JOB_MIN_PARALLELISM.problem(
            metadata.path("annotations", MIN_PARALLELISM),
            message,
            f"set {number}, or {fix}" if count > 1 else fix,
            given,
        )
    elif notes.get(ELASTIC) == "true":
        message = "must not be set on an elastic job, which changes its size by itself"
        yield KUEUE_JOB_MIN_PARALLELISM.problem(
            metadata.path("annotations", MIN_PARALLELISM), message, "remove one of the two annotations", given
        )


def _validate_equal_completions(spec: JobSpec, metadata: Metadata) -> Iterator[Problem]:
    """Yield the problems that validateSyncCompletionCreate would report."""
    given = metadata.annotations.get(EQUAL_COMPLETIONS)
    if given is None or is_placeholder(given):
        return
    path = metadata.path("annotations", EQUAL_COMPLETIONS)
    if given not in BOOLEANS:
        yield KUEUE_JOB_EQUAL_COMPLETIONS.problem(path, "must be true or false", "set true or false", given)
    elif BOOLEANS[given] and spec.completion_mode != "Indexed":
        message = "is not allowed on a Job whose completionMode is not Indexed"
        also = "" if spec.completions == spec.parallelism else f" and spec.completions to {spec.parallelism}"
        fix = f"set spec.completionMode to Indexed{also}, or remove the annotation"
        yield KUEUE_JOB_EQUAL_COMPLETIONS.problem(path, message, fix, given)
    elif BOOLEANS[given] and spec.completions != spec.parallelism:
        must = f"must be {spec.parallelism}, the value of spec.parallelism,"
        message = f"{must} because the annotation {EQUAL_COMPLETIONS} is true"
        fix = "set both to the same number"
        yield KUEUE_JOB_EQUAL_COMPLETIONS.problem(spec.path("completions"), message, fix, spec.completions)


def validate_ray(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Yield the problems that the webhooks of RayCluster, RayJob and RayService would report about a managed object."""
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
        message = "is not set, but Kueue counts the pods of the Ray cluster"
        yield RAY_CLUSTER.problem(spec.path("rayClusterSpec"), message, "set rayClusterSpec")
    runs_on_existing_cluster = spec.cluster_selector and not spec.has_cluster  # Kueue does not manage such a job
    if not spec.shutdown_after_job_finishes and not runs_on_existing_cluster:
        path = spec.path("shutdownAfterJobFinishes")
        message = "must be true because the job keeps its quota as long as its Ray cluster runs"
        yield RAY_SHUTDOWN.problem(path, message, "set shutdownAfterJobFinishes to true")


def _validate_ray_cluster(cluster: RayClusterSpec, subject: Subject) -> Iterator[Problem]:
    is_elastic = subject.typed(Object).annotations.get(ELASTIC) == "true"
    if cluster.enable_in_tree_autoscaling and not is_elastic:
        message = f"must not be true without the annotation {ELASTIC} because Kueue counts the pods only once"
        fix = f"remove the field, or set {ELASTIC} to true"
        if not is_gate_on(ELASTIC_JOBS_GATE, subject):
            fix += f" and ask the administrator of Kueue to turn on the feature gate {ELASTIC_JOBS_GATE}"
        yield RAY_AUTOSCALING.problem(cluster.path("enableInTreeAutoscaling"), message, fix)
    groups, most = cluster.worker_group_specs, max_pod_sets_per_workload(find_kueue_release(subject))
    if len(groups) + 1 > most:
        message = f"are more than the {most - 1} that are allowed because a Workload has at most {most} pod sets"
        fix = f"use at most {most - 1} groups; join equal groups into one with more replicas"
        yield RAY_GROUPS.problem(cluster.path("workerGroupSpecs"), message, fix, shown=f"{len(groups)} groups")
    for group in groups:
        if group.group_name == "head":
            message, fix = "is the name of the head group", "rename the worker group"
            yield RAY_GROUPS.problem(group.path("groupName"), message, fix, shown="`head`")


def validate_spark(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Yield the problems that the webhook of SparkApplication would report."""
    if how.framework != "sparkoperator.k8s.io/sparkapplication" or not how.queue:
        return
    spec = subject.typed(SparkApplication).spec
    if spec.has("mode") and spec.mode != "cluster":
        message = "must be cluster because Kueue manages only applications of this mode"
        yield SPARK_MODE.problem(spec.path("mode"), message, "set cluster", spec.json.get("mode"))
    if spec.dynamic_allocation.enabled:
        message = "must not be enabled because Kueue counts the executors only once"
        yield SPARK_MODE.problem(spec.dynamic_allocation.path("enabled"), message, "set enabled to false")
