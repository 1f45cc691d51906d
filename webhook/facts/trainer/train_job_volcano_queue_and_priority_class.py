"""The queue of Volcano and the priority class that a TrainJob and its runtime name.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/volcano/volcano.go. Of TrainJobs without Volcano, a
class that is not there is refused when the pods are made, by the plugin Priority of the API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.fact import FactResult
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.groups import TRAIN_JOB
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.releases import QUEUES
from webhook.problem import MissingObject, Problem
from webhook.typed.collections import Items

VOLCANO_QUEUE: Final = TRAIN_JOB.rule(
    "train-job/volcano-queue",
    title="The annotation for the queue of Volcano is not empty.",
    why="The volcano plugin refuses an empty name.",
    function="Validate of plugins/volcano/volcano.go",
)
PRIORITY_CLASS: Final = TRAIN_JOB.rule(
    "train-job/priority-class",
    title="The pods of a TrainJob name a PriorityClass that exists.",
    why="The volcano plugin refuses the TrainJob, and the API server the pods of others.",
    source="https://github.com/kubeflow/trainer/issues/2437",
    fails="controller",
)
_QUEUE: Final = "scheduling.volcano.sh/queue-name"


def validate_volcano_queue(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of an empty annotation for the Volcano queue of the gang (volcano.go, since Trainer 2.1)."""
    if job.scheduler == "volcano" and job.release >= QUEUES and job.merged.annotations.get(_QUEUE) == "":
        message = (
            f"must not set the annotation {_QUEUE} to an empty string because Trainer refuses it for {job.runtime}"
        )
        yield VOLCANO_QUEUE.problem(
            job.merged.annotated[_QUEUE], message, "name a queue of Volcano, or remove the annotation"
        )


def validate_priority_class(job: MergedTrainJob, subject: Subject) -> Iterator[Problem]:
    """Yield priority classes that certainly do not exist."""
    result = subject.fact_result("priorities")
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
            yield PRIORITY_CLASS.problem(priority["path"], message, fix)
        else:
            yield PRIORITY_CLASS.problem(priority["path"], missing=_missing_priority_classes(result, priority["name"]))


def _missing_priority_classes(priorities: FactResult, name: str) -> tuple[MissingObject, ...]:
    return tuple(missing for missing in priorities.missing_objects_of_fields(("classes",)) if missing.name == name)
