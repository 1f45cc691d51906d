"""Checks that the priority classes exist without which Kueue creates no Workload for a job.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/reconciler.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_NOT_NOW
from webhook.facts.kueue.managed import KueueManagement
from webhook.facts.kueue.objects import PRIORITY
from webhook.facts.kueue.place import QueuePlace
from webhook.facts.kueue.workload_types import WorkloadPriorityClass
from webhook.facts.subject import Subject
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import did_you_mean

PRIORITY_CLASS: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/priority-class",
    title="The priority classes of a job exist.",
    why="Without them Kueue creates no Workload.",
    source="kubernetes-sigs/kueue#3439, kubernetes-sigs/kueue#15171",
    issues=(
        "https://github.com/kubernetes-sigs/kueue/issues/3439",
        "https://github.com/kubernetes-sigs/kueue/pull/14125",
        "https://github.com/kubernetes-sigs/kueue/issues/15171",
        "https://github.com/kubernetes-sigs/kueue/pull/15175",
    ),
)

_CREATE: Final = "create the class, or correct the name"


def validate_priority_classes(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Yield a missing WorkloadPriorityClass of the job, or a missing PriorityClass of its pods."""
    metadata = subject.metadata
    name = metadata.labels.get(PRIORITY, "")
    if name and not is_placeholder(name) and subject.cluster_view().lacks(WorkloadPriorityClass.gvk, name):
        yield _priority_class_problem(metadata.path("labels", PRIORITY), "WorkloadPriorityClass", name, _CREATE)
    for pods in subject.fact("priorities")["classes"]:
        if pods["absent"] and not name:
            fix = did_you_mean(pods["nearest"], _CREATE)
            yield _priority_class_problem(pods["path"], "PriorityClass", pods["name"], fix)
            return


def _priority_class_problem(path: FieldPath | str, kind: str, name: str, fix: str) -> Problem:
    message = f"names a {kind} that does not exist, so the job waits because Kueue creates no Workload for it"
    return PRIORITY_CLASS.problem(path, message, fix, name)
