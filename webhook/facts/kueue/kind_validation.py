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
from webhook.facts.kueue.job_validation import annotations_of, labels_of
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
from webhook.facts.values import items, mapping, text
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

problem: Final = Group("kueue-job").problem
_NOTES: Final[FieldPath] = ("metadata", "annotations")
_SPEC: Final[FieldPath] = ("spec",)
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")


def validate_partial_admission(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As validatePartialAdmissionCreate of batch/job."""
    if how.framework != "batch/job":
        return
    notes, count = annotations_of(subject.object), _pods(subject.object)
    given = notes.get(MIN_PARALLELISM)
    if isinstance(given, str) and not is_placeholder(given):
        path = (*_NOTES, MIN_PARALLELISM)
        if not _NUMBER.fullmatch(given) or not 0 < int(given) < count:
            message = f"must be a whole number above 0 and below {count}, the number of pods of the Job"
            fix, number = "remove the annotation", "1" if count == 2 else f"1 to {count - 1}"
            yield problem("min-parallelism", path, message, f"set {number}, or {fix}" if count > 1 else fix, given)
        elif notes.get(ELASTIC) == "true":
            message = "must not be set on an elastic job, which changes its size by itself"
            yield problem("min-parallelism", path, message, "remove one of the two annotations", given)
    yield from _validate_equal_completions(subject)


def _pods(obj: JSON) -> int:
    parallelism, completions = get(obj, ("spec", "parallelism")), get(obj, ("spec", "completions"))
    count = 1 if not isinstance(parallelism, int) else parallelism
    return min(count, completions) if isinstance(completions, int) else count


def _validate_equal_completions(subject: Subject) -> Iterator[Problem]:
    """As validateSyncCompletionCreate."""
    given, spec = annotations_of(subject.object).get(EQUAL_COMPLETIONS), mapping(get(subject.object, ("spec",)))
    if not isinstance(given, str) or is_placeholder(given):
        return
    path = (*_NOTES, EQUAL_COMPLETIONS)
    if given not in BOOLEANS:
        yield problem("equal-completions", path, "must be true or false", "set true or false", given)
    elif BOOLEANS[given]:
        parallelism = spec.get("parallelism", 1)
        if spec.get("completionMode") != "Indexed":
            message = "is not allowed on a Job whose completionMode is not Indexed"
            yield problem("equal-completions", path, message, "set spec.completionMode to Indexed", given)
        elif spec.get("completions") != parallelism:
            message = f"must be {parallelism}, as spec.parallelism, because the annotation {EQUAL_COMPLETIONS} is true"
            given = spec.get("completions")
            yield problem("equal-completions", "spec.completions", message, "set both to the same number", given)


def validate_pod(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As validateCommon of the pod webhook: the managed label, and groups of pods."""
    if how.framework != "pod":
        return
    own, notes = labels_of(subject.object), annotations_of(subject.object)
    if own.get(MANAGED) not in (None, "true") and not how.queue:
        message = "must be true, or not set, because Kueue sets this label itself"
        yield problem("managed-label", ("metadata", "labels", MANAGED), message, "remove the label", own.get(MANAGED))
    group, count = text(own.get(POD_GROUP)), notes.get(POD_GROUP_COUNT)
    if not (how.queue or own.get(MANAGED)):
        return
    if group and count is None:
        message = f"must be set because the label {POD_GROUP} makes the pod a member of a group"
        yield problem("pod-group", (*_NOTES, POD_GROUP_COUNT), message, "set the number of pods of the group")
    elif count is not None and not group:
        message = f"must be set because the annotation {POD_GROUP_COUNT} counts the pods of a group"
        yield problem("pod-group", ("metadata", "labels", POD_GROUP), message, "set the label to the name of the group")
    elif count is not None and not _is_count(text(count)):
        message = "must be a whole number of pods, at least 1"
        yield problem("pod-group", (*_NOTES, POD_GROUP_COUNT), message, "set the number of pods", text(count))


def _is_count(given: str) -> bool:
    return is_placeholder(given) or (_NUMBER.fullmatch(given) is not None and int(given) > 0)


def validate_ray(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As the webhooks of RayCluster, RayJob and RayService, of what Kueue manages."""
    if not how.framework.startswith("ray.io/") or not (how.queue or subject.once(configuration).manages_all):
        return
    spec, at = mapping(get(subject.object, ("spec",))), _SPEC
    cluster: JSON = spec
    if how.framework == "ray.io/rayjob":
        yield from _validate_ray_job(spec)
        cluster, at = mapping(spec.get("rayClusterSpec")), ("spec", "rayClusterSpec")
    elif how.framework == "ray.io/rayservice":
        cluster, at = mapping(spec.get("rayClusterConfig")), ("spec", "rayClusterConfig")
    yield from _validate_ray_cluster(cluster, at, subject)


def _validate_ray_job(spec: JSON) -> Iterator[Problem]:
    if spec.get("clusterSelector") and spec.get("rayClusterSpec"):
        message = "must not be set with rayClusterSpec because a job that Kueue manages has its own Ray cluster"
        yield problem("ray-cluster", "spec.clusterSelector", message, "remove clusterSelector")
    if not spec.get("clusterSelector") and not spec.get("rayClusterSpec"):
        yield problem(
            "ray-cluster",
            "spec.rayClusterSpec",
            "must be set because Kueue counts the pods of the Ray cluster",
            "set rayClusterSpec",
        )
    if spec.get("shutdownAfterJobFinishes") is not True:
        message = "must be true because the job keeps its quota as long as its Ray cluster runs"
        yield problem("ray-shutdown", "spec.shutdownAfterJobFinishes", message, "set shutdownAfterJobFinishes to true")


def _validate_ray_cluster(cluster: JSON, at: FieldPath, subject: Subject) -> Iterator[Problem]:
    is_elastic = annotations_of(subject.object).get(ELASTIC) == "true"
    if cluster.get("enableInTreeAutoscaling") is True and not is_elastic:
        message = f"must not be true without the annotation {ELASTIC} because Kueue counts the pods only once"
        fix = f"remove the field, or set {ELASTIC} to true"
        yield problem("ray-autoscaling", (*at, "enableInTreeAutoscaling"), message, fix)
    groups, most = items(cluster.get("workerGroupSpecs")), most_pod_sets(subject.assumptions.kueue)
    if len(groups) + 1 > most:
        message = f"are more than the {most - 1} that are allowed because a Workload has at most {most} pod sets"
        fix = f"use at most {most - 1} groups, and more replicas of those that are alike"
        yield problem("ray-groups", (*at, "workerGroupSpecs"), message, fix, shown=f"{len(groups)} groups")
    for index, group in enumerate(subject.deadline.paced(groups)):
        if mapping(group).get("groupName") == "head":
            path = (*at, "workerGroupSpecs", index, "groupName")
            yield problem("ray-groups", path, "is the name of the head group", "rename the worker group", "head")


def validate_spark(subject: Subject, how: Managed) -> Iterator[Problem]:
    """As the webhook of SparkApplication."""
    if how.framework != "sparkoperator.k8s.io/sparkapplication" or not how.queue:
        return
    mode = get(subject.object, ("spec", "mode"))
    if mode not in (None, "cluster"):
        message = "must be cluster because Kueue manages only applications of this mode"
        yield problem("spark-mode", "spec.mode", message, "set cluster", mode)
    if get(subject.object, ("spec", "dynamicAllocation", "enabled")) is True:
        message = "must not be enabled because Kueue counts the executors only once"
        yield problem("spark-mode", "spec.dynamicAllocation.enabled", message, "set it to false")
