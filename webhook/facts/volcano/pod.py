"""Rules for Pods that Volcano schedules, and for the queue that a pod or a workload of another project names.

Pods that break these rules are placed without their gang, or never. The Helm chart leaves the webhook for Pods off.
Volcano makes a PodGroup for a Pod that names no PodGroup, and only then checks the queue. The webhook refuses a
PodGroup with a missing or closed queue, and the pods wait. The webhook accepts a PodGroup in a queue with children.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/podgroup, pkg/webhooks/admission/podgroups and
pkg/webhooks/admission/pods/validate/admit_pod.go; the batch schedulers of ray-project/kuberay, kubernetes-sigs/lws and
kubeflow/spark-operator; kubeflow/trainer release-1.9 pkg/controller.v1/common.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import merge_train_job
from webhook.facts.volcano.gang_resources import amounts_in_thousandths
from webhook.facts.volcano.groups import VOLCANO_POD
from webhook.facts.volcano.pod_group import (
    ANNOTATIONS,
    OTHER_GROUP_NAME,
    group_absent_problem,
    warn_of_ignored_group_annotation,
)
from webhook.facts.volcano.queue_tree import QueueRules, read_queues, validate_queue, warn_of_amounts_above_capability
from webhook.facts.volcano_objects import types
from webhook.facts.volcano_objects.types import PodGroup
from webhook.rules.problem import Problem
from webhook.typed.collections import Entries
from webhook.typed.fields import Amounts, Part, Text
from webhook.typed.objects import Object
from webhook.typed.pods import Pod
from webhook.typed.spark import SparkApplication
from webhook.typed.view import Typed
from webhook.yamltext.placeholders import is_placeholder

POD_QUEUE_EXISTS: Final = VOLCANO_POD.rule(
    "volcano-pod/queue-exists",
    title="The Volcano queue of the pod does not exist",
    why="Volcano's webhook refuses the PodGroup of the workload, and the pods wait for the PodGroup.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/podgroup",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/452",
        "https://github.com/volcano-sh/volcano/issues/1863",
    ),
)
POD_QUEUE_OPEN: Final = VOLCANO_POD.rule(
    "volcano-pod/queue-open",
    title="The Volcano queue of the pod is not open",
    why="Volcano's webhook refuses the PodGroup of the workload, and the pods wait for the PodGroup.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/podgroup",
)
POD_QUEUE_LEAF: Final = VOLCANO_POD.rule(
    "volcano-pod/queue-leaf",
    title="The queue of the pod has child queues",
    why=(
        "Volcano accepts the PodGroup, but does not place its pods. With the hierarchy of the capacity plugin, one "
        "gang in a queue with children blocks the scheduler for all jobs."
    ),
    refused_by="nothing; the scheduler stops",
    source="https://github.com/volcano-sh/volcano/issues/4227",
    severity="high",
)
POD_CAPABILITY: Final = VOLCANO_POD.rule(
    "volcano-pod/capability",
    title="The gang of the pod needs more than the queue's capability",
    why=(
        "The operator writes minResources of a schedulingPolicy into the PodGroup. Volcano admits the PodGroup only if "
        "minResources are within the capability of the queue. Otherwise the pods wait for ever."
    ),
    refused_by="nothing; the gang stays pending",
    source="https://github.com/volcano-sh/volcano/issues/3220",
    severity="high",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/452",
        "https://github.com/volcano-sh/volcano/issues/1863",
    ),
)
BUDGET: Final = VOLCANO_POD.rule(
    "volcano-pod/budget",
    title="The Pod has two disruption budgets, or an invalid one",
    why="jdb-min-available and jdb-max-unavailable cannot be combined, and each is a number or a percentage.",
    refused_by="Volcano's webhook for pods, where it is on",
    function="validateAnnotation",
    level="deny",
    fails="create",
)
OTHER_SCHEDULER: Final = VOLCANO_POD.rule(
    "volcano-pod/other-scheduler",
    title="A pod of the PodGroup uses another scheduler",
    why="The other scheduler places the pod at once. Volcano does not count this pod, so the gang may never start.",
    refused_by="nothing; the gang is incomplete",
)
POD_QUEUE_RULES: Final = QueueRules(POD_QUEUE_EXISTS, POD_QUEUE_OPEN, POD_QUEUE_LEAF, POD_CAPABILITY)
RAY_KINDS: Final = frozenset(("ray.io", kind) for kind in ("RayCluster", "RayJob"))
TRAINING_JOBS: Final = frozenset(
    ("kubeflow.org", f"{kind}Job") for kind in ("PyTorch", "TF", "MPI", "XGBoost", "Paddle", "JAX")
)
_BUDGETS: Final = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
READ_ANNOTATIONS: Final = frozenset((*_BUDGETS, types.GROUP_NAME, types.QUEUE_NAME, OTHER_GROUP_NAME))
"""The annotations of a Pod that these rules read."""
_RAY_LABEL: Final = "volcano.sh/queue-name"
_CONTROLLED: Final = ("apps", "batch", "jobset.x-k8s.io")
"""API groups of the kinds for which Volcano creates a PodGroup; other operators create their own PodGroups."""
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,18}")


class SchedulingPolicy(Typed):
    """kubeflow.org SchedulingPolicy."""

    queue = Text()
    min_resources = Amounts()


class RunPolicy(Typed):
    """kubeflow.org RunPolicy."""

    scheduling_policy = Part(SchedulingPolicy)


class TrainingJobSpec(Typed):
    """The fields that all jobs of the Training Operator have."""

    run_policy = Part(RunPolicy)


class TrainingJob(Object):
    """kubeflow.org PyTorchJob, and the other jobs of the Training Operator."""

    gvk = GroupVersionKind("kubeflow.org", "v1", "PyTorchJob")
    spec = Part(TrainingJobSpec)


def check_queue_of_ray_cluster(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the queue that a RayCluster or a RayJob names."""
    labels = subject.metadata.labels
    yield from validate_queue(labels.get(_RAY_LABEL, ""), ("metadata", "labels", _RAY_LABEL), subject, POD_QUEUE_RULES)


def check_queue_of_leader_worker_set(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the queue that a LeaderWorkerSet names."""
    annotations, path = subject.metadata.annotations, ("metadata", "annotations", types.QUEUE_NAME)
    yield from validate_queue(annotations.get(types.QUEUE_NAME, ""), path, subject, POD_QUEUE_RULES)


def check_queue_of_spark_application(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the queue that a SparkApplication names, if its scheduler is Volcano."""
    spec = subject.typed(SparkApplication).spec
    options = spec.batch_scheduler_options
    if spec.batch_scheduler == types.SCHEDULER:
        yield from validate_queue(options.queue, options.path("queue"), subject, POD_QUEUE_RULES)


def check_queue_of_training_job(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the queue that a job of the Training Operator names, if the cluster has Volcano queues."""
    if subject.once(read_queues).is_whole:
        policy = subject.typed(TrainingJob).spec.run_policy.scheduling_policy
        yield from validate_queue(policy.queue, policy.path("queue"), subject, POD_QUEUE_RULES)
        needed = amounts_in_thousandths(policy.min_resources)
        yield from warn_of_amounts_above_capability(
            needed, policy.queue, policy.path("queue"), subject.once(read_queues), POD_QUEUE_RULES
        )


def check_queue_of_train_job(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the queue that a TrainJob and its runtime name, if the runtime has a policy for Volcano."""
    job = subject.once(merge_train_job)
    if job.runtime.is_found and job.scheduler == types.SCHEDULER and types.QUEUE_NAME in job.merged.annotations:
        path = job.merged.annotated[types.QUEUE_NAME]
        yield from validate_queue(job.merged.annotations[types.QUEUE_NAME], path, subject, POD_QUEUE_RULES)


def check_pod(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the annotations that Volcano reads."""
    pod = subject.typed(Pod)
    annotations = pod.metadata.annotations
    if pod.spec.scheduler_name == types.SCHEDULER:
        yield from _check_disruption_budget_annotations(annotations)
        if types.GROUP_NAME not in annotations and _gets_pod_group_from_volcano(subject):
            path = (*ANNOTATIONS, types.QUEUE_NAME)
            yield from validate_queue(annotations.get(types.QUEUE_NAME, ""), path, subject, POD_QUEUE_RULES)
    name = annotations.get(types.GROUP_NAME, "")
    if name and not is_placeholder(name):
        yield from _check_pod_group_and_scheduler(name, pod, subject)
    if not name and _has_no_annotations_of_operators(subject):
        yield from warn_of_ignored_group_annotation(annotations)


def _gets_pod_group_from_volcano(subject: Subject) -> bool:
    """Return whether Volcano creates the PodGroup of the pod, in the queue that the pod names."""
    return subject.template_of is None or subject.template_of.group in _CONTROLLED


def _has_no_annotations_of_operators(subject: Subject) -> bool:
    """Return whether no operator adds annotations to the pods."""
    return subject.template_of is None or subject.template_of.group in ("apps", "batch")


def _check_disruption_budget_annotations(annotations: Entries[str]) -> Iterator[Problem]:
    """Yield the problems that validateAnnotation would report."""
    given = [name for name in _BUDGETS if name in annotations]
    for name in given:
        value = annotations[name]
        if not is_placeholder(value) and not _is_budget_value(value):
            message = "must be a number of at least 1, or a percentage from 1% to 99%"
            yield BUDGET.problem((*ANNOTATIONS, name), message, "write a value such as 1 or 20%", value)
    if len(given) > 1:
        message, path = f"must not be set together with {given[0]}", (*ANNOTATIONS, given[1])
        yield BUDGET.problem(path, message, "remove one of the two", annotations[given[1]])


def _is_budget_value(value: str) -> bool:
    """Return whether a text is a valid budget for validateIntPercentageStr, which drops percent signs."""
    text = value.replace("%", "")
    if not _NUMBER.fullmatch(text):
        return False
    return int(text) > 0 and (text == value or int(text) < 100)


def _check_pod_group_and_scheduler(name: str, pod: Pod, subject: Subject) -> Iterator[Problem]:
    """Report a PodGroup that does not exist, or that a Pod of the default scheduler names."""
    view, scheduler = subject.cluster_view(), pod.spec.scheduler_name or types.DEFAULT_SCHEDULER
    group = view.find(PodGroup, name)
    if group and scheduler == types.DEFAULT_SCHEDULER:
        yield _other_scheduler_problem(name, scheduler)
    if not group and scheduler == types.SCHEDULER:
        yield group_absent_problem(
            name, view, is_known=view.is_whole(PodGroup.gvk) or subject.once(read_queues).is_whole
        )


def _other_scheduler_problem(group: str, scheduler: str) -> Problem:
    message = f"places the pod on its own, but Volcano places the other pods of PodGroup `{group}`"
    return OTHER_SCHEDULER.problem(("spec", "schedulerName"), message, "set schedulerName to volcano", scheduler)
