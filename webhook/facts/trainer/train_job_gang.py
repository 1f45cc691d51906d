"""Rules for gang scheduling of a TrainJob: its scheduler, the number of pods, the queue and the priority classes.

The size of a PodGroup is the sum of the parallelism of all replicated jobs; replicas do not count. Without Volcano, the
admission plugin Priority of the API server refuses pods with a PriorityClass that does not exist.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/{volcano/volcano,coscheduling/coscheduling}.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.releases import release_as_text
from webhook.facts.fact import FactResult
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.releases import GANG_RESOURCES, QUEUES
from webhook.facts.train_job_pods.types import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.volcano_objects.types import QUEUE_NAME
from webhook.rules.problem import MissingObject, Problem
from webhook.typed.collections import Items

GANG_SIZE: Final = TRAIN_JOB.rule(
    "train-job/gang-size",
    title="numNodes leaves the gang without a pod",
    why="A PodGroup of coscheduling needs at least one member, so Trainer creates neither the group nor the JobSet.",
    refused_by="the API server, when Trainer makes the PodGroup",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/coscheduling/coscheduling.go",
    fails="controller",
)
TRAIN_JOB_GANG_RESOURCES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/gang-resources",
    title="The PodGroup does not count resourcesPerNode",
    why=(
        "Until 2.1 Trainer counts only the resources of the runtime, so some pods of the gang may start before there "
        "is room for all pods."
    ),
    source="https://github.com/kubeflow/trainer/issues/2980",
    fails="waiting",
)
GANG_DEPENDENCY: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/gang-dependency",
    title="The gang of the TrainJob waits for pods that wait for the gang",
    why="The group waits for the pods of every replicated job. Some of these jobs start only after other jobs.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/coscheduling/coscheduling.go",
    fails="pending",
)
VOLCANO_QUEUE: Final = TRAIN_JOB.rule(
    "train-job/volcano-queue",
    title="The Volcano queue annotation is empty",
    why="The volcano plugin refuses an empty queue name.",
    function="Validate of plugins/volcano/volcano.go",
)
PRIORITY_CLASS: Final = TRAIN_JOB.rule(
    "train-job/priority-class",
    title="The PriorityClass of the TrainJob does not exist",
    why="The volcano plugin refuses the TrainJob. Without Volcano, the API server refuses the pods.",
    source="https://github.com/kubeflow/trainer/issues/2437",
    fails="controller",
)
_NEEDS_A_POD: Final = "coscheduling"
"""PodGroups of this scheduler must have a spec.minMember of at least 1 (kubernetes-sigs/scheduler-plugins v0.33.5
apis/scheduling/v1alpha1/types.go). In PodGroups of Volcano, minMember may be 0 (volcano-sh/volcano@ed72c7c8
scheduling.volcano.sh_podgroups.yaml).
"""


def validate_gang(job: MergedTrainJob) -> Iterator[Problem]:
    """Report a gang without pods, and a gang that waits for pods that are created only after other pods run. Until
    2.1, also report resources that the PodGroup does not count.
    """
    by = job.scheduler
    if not by:
        return
    if job.release < GANG_RESOURCES and job.trainer.resources_per_node:
        message = (
            f"is not counted in the PodGroup for {by} because Trainer {release_as_text(job.release)} counts only "
            f"the resources of {job.runtime}, so some pods may start before there is room for the other pods"
        )
        fix = "remove resourcesPerNode, and use a runtime that requests these resources"
        # the cluster may have room for all pods
        yield TRAIN_JOB_GANG_RESOURCES.problem("spec.trainer.resourcesPerNode", message, fix, is_conditional=True)
    pods = [replicated.parallelism for replicated in job.replicated_jobs]
    if sum(pods) < 1 and job.replicated_jobs and by == _NEEDS_A_POD:
        message = f"leaves the PodGroup of {by} without a pod, which the API server refuses, so Trainer creates nothing"
        yield GANG_SIZE.problem("spec.trainer.numNodes", message, "set at least 1", sum(pods))
    first = sum(replicated.parallelism for replicated in job.replicated_jobs if not replicated.depends_on)
    if first != sum(pods):
        message = (
            f"names {job.runtime}, where {sum(pods)} pods start only together ({by}), but {sum(pods) - first} of "
            "these pods are created only after other pods run (dependsOn), so no pod ever starts"
        )
        yield GANG_DEPENDENCY.problem("spec.runtimeRef", message, f"use a runtime without {by} or without dependsOn")


def validate_volcano_queue(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of an empty annotation for the Volcano queue of the gang (volcano.go, since Trainer 2.1)."""
    if job.scheduler == "volcano" and job.release >= QUEUES and job.merged.annotations.get(QUEUE_NAME) == "":
        message = (
            f"must not set the annotation {QUEUE_NAME} to an empty string because Trainer refuses an empty queue name "
            f"for {job.runtime}"
        )
        yield VOLCANO_QUEUE.problem(
            job.merged.annotated[QUEUE_NAME], message, "name a queue of Volcano, or remove the annotation"
        )


def validate_priority_class(job: MergedTrainJob, subject: Subject) -> Iterator[Problem]:
    """Yield priority classes that do not exist."""
    result = subject.fact_result("priorities")
    for priority in Items(result.value["classes"], subject.deadline):
        if priority["found"]:
            continue
        if priority["absent"]:
            message = (
                f"replicated job `{priority['podSet']}` of {job.runtime} names PriorityClass `{priority['name']}`, "
                "which does not exist, so its pods are refused"
            )
            near = priority["nearest"]
            where = "in the runtime, " if priority["path"] == "spec.runtimeRef" else ""
            name = f"write `{near}`" if near else "name another class"
            fix = f"{where}{name}, or ask the administrator to create the class"
            yield PRIORITY_CLASS.problem(priority["path"], message, fix)
        else:
            yield PRIORITY_CLASS.problem(priority["path"], missing=_missing_priority_classes(result, priority["name"]))


def _missing_priority_classes(priorities: FactResult, name: str) -> tuple[MissingObject, ...]:
    return tuple(missing for missing in priorities.missing_objects_of_fields(("classes",)) if missing.name == name)
