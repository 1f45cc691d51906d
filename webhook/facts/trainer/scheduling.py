"""Who schedules the pods of a TrainJob together, how many it waits for, and the queue and classes that it names.

A PodGroup has one member for each pod of one replica of each replicated job. Sources: kubeflow/trainer@8c0f5059bd51
pkg/runtime/framework/plugins/{volcano/volcano,coscheduling/coscheduling}.go. Of TrainJobs without Volcano, a class that
is not there is refused when the pods are made, by the plugin Priority of the API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.fact import Result
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.releases import GANG_RESOURCES, QUEUES
from webhook.facts.train_job_pods.train_job import MergedTrainJob
from webhook.problem import MissingObject, Problem
from webhook.releases import shown
from webhook.typed.collections import Items

problem: Final = Group("train-job").problem
_QUEUE: Final = "scheduling.volcano.sh/queue-name"


def validate_volcano_queue(job: MergedTrainJob) -> Iterator[Problem]:
    """volcano.go, since 2.1."""
    if job.scheduler == "volcano" and job.release >= QUEUES and job.merged.annotations.get(_QUEUE) == "":
        message = (
            f"must not set the annotation {_QUEUE} to an empty string because Trainer refuses it for {job.runtime}"
        )
        yield problem(
            "volcano-queue", job.merged.annotated[_QUEUE], message, "name a queue of Volcano, or remove the annotation"
        )


def validate_gang(job: MergedTrainJob) -> Iterator[Problem]:
    """Pods that the group waits for and that are made later, and until 2.1 resources that it does not count."""
    by = job.scheduler
    if not by:
        return
    if job.release < GANG_RESOURCES and job.trainer.resources_per_node:
        message = (
            f"is not counted by Trainer {shown(job.release)} in the PodGroup for {by}, which asks only for the "
            f"resources of {job.runtime}, so some pods may start before there is room for the others"
        )
        fix = "use a runtime that requests these resources"
        yield problem("gang-resources", "spec.trainer.resourcesPerNode", message, fix)
    pods = [replicated.parallelism for replicated in job.jobs]
    if sum(pods) < 1 and job.jobs:
        message = f"makes no pod for the PodGroup of {by}, which needs at least one pod, so the job is never started"
        yield problem("gang-size", "spec.trainer.numNodes", message, "set at least 1", sum(pods))
    first = sum(replicated.parallelism for replicated in job.jobs if not replicated.depends_on)
    if first != sum(pods):
        message = (
            f"names {job.runtime}, whose {sum(pods)} pods wait for each other ({by}), but {sum(pods) - first} of them "
            "are created only after another replicated job has started or completed (dependsOn), so no pod ever starts"
        )
        yield problem("gang-dependency", "spec.runtimeRef", message, f"use a runtime without {by} or without dependsOn")


def validate_priority_class(job: MergedTrainJob, subject: Subject) -> Iterator[Problem]:
    """Classes that are known not to be there; of others nobody knows."""
    result = subject.result("priorities")
    for priority in Items(result.value["classes"], subject.deadline):
        if priority["found"]:
            continue
        if priority["absent"]:
            message = (
                f"leads to pods that are refused because replicated job `{priority['podSet']}` of {job.runtime} names "
                f"PriorityClass `{priority['name']}`, which does not exist"
            )
            near = priority["nearest"]
            where = "in the runtime, " if priority["path"] == "spec.runtimeRef" else ""
            fix = f"{where}write `{near}`, or create the class" if near else f"create the class, or {where}name another"
            yield problem("priority-class", priority["path"], message, fix)
        else:
            yield problem("priority-class", priority["path"], missing=_lacking(result, priority["name"]))


def _lacking(priorities: Result, name: str) -> tuple[MissingObject, ...]:
    return tuple(missing for missing in priorities.lacks(("classes",)) if missing.name == name)
