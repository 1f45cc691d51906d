"""Rules of Volcano's webhook for Pods that it schedules, and Pods that are placed without their gang or never.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/pods/validate/admit_pod.go, which the Helm chart leaves
off; pkg/controllers/podgroup makes a PodGroup for a Pod that names none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_POD
from webhook.facts.volcano.pod_group_annotation_and_existence import (
    ANNOTATIONS,
    OTHER_GROUP_NAME,
    group_absent_problem,
    warn_of_ignored_group_annotation,
)
from webhook.facts.volcano.pod_queue_and_capability import OF_PODS
from webhook.facts.volcano.queue_tree import read_queues
from webhook.facts.volcano.referenced_queue import validate_queue
from webhook.facts.volcano_objects import kinds
from webhook.facts.volcano_objects.types import PodGroup
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.collections import Entries
from webhook.typed.pods import Pod

BUDGET: Final = VOLCANO_POD.rule(
    "volcano-pod/budget",
    title="A Pod has one disruption budget of Volcano.",
    why=(
        "The annotations volcano.sh/jdb-min-available and jdb-max-unavailable exclude each other, and are numbers or "
        "percentages."
    ),
    refused_by="Volcano's webhook for pods, where it is on",
    function="validateAnnotation",
    level="deny",
    fails="create",
)
OTHER_SCHEDULER: Final = VOLCANO_POD.rule(
    "volcano-pod/other-scheduler",
    title="The pods of a PodGroup are placed by Volcano.",
    why="Another scheduler places a pod at once, and the gang waits for the others without it.",
    refused_by="nobody; the gang is incomplete",
)

_BUDGETS: Final = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
READ: Final = frozenset((*_BUDGETS, kinds.GROUP_NAME, kinds.QUEUE_NAME, OTHER_GROUP_NAME))
"""The annotations of a Pod that are read."""
_CONTROLLED: Final = ("apps", "batch", "jobset.x-k8s.io")
"""Groups of kinds for whose pods Volcano creates a PodGroup; other operators create their own."""
_NUMBER: Final = re.compile(r"[-+]?[0-9]+")


def check_pod(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the annotations that Volcano reads."""
    pod = subject.typed(Pod)
    annotations = pod.metadata.annotations
    if pod.spec.scheduler_name == kinds.SCHEDULER:
        yield from _check_disruption_budget_annotations(annotations)
        if kinds.GROUP_NAME not in annotations and _gets_pod_group_from_volcano(subject):
            path = (*ANNOTATIONS, kinds.QUEUE_NAME)
            yield from validate_queue(annotations.get(kinds.QUEUE_NAME, ""), path, subject, OF_PODS)
    name = annotations.get(kinds.GROUP_NAME, "")
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
    """Return whether a text is a budget, as validateIntPercentageStr reads it without its percent signs."""
    text = value.replace("%", "")
    if not _NUMBER.fullmatch(text):
        return False
    return int(text) > 0 and (text == value or int(text) < 100)


def _check_pod_group_and_scheduler(name: str, pod: Pod, subject: Subject) -> Iterator[Problem]:
    """Yield a PodGroup that does not exist, or that another scheduler places than the Pod."""
    view, scheduler = subject.cluster_view(), pod.spec.scheduler_name or kinds.DEFAULT_SCHEDULER
    group = view.find(PodGroup, name)
    if group and scheduler == kinds.DEFAULT_SCHEDULER:
        yield _other_scheduler_problem(name, scheduler)
    if not group and scheduler == kinds.SCHEDULER:
        yield group_absent_problem(
            name, view, is_known=view.is_whole(PodGroup.gvk) or subject.once(read_queues).is_whole
        )


def _other_scheduler_problem(group: str, scheduler: str) -> Problem:
    message = f"places the pod on its own, but Volcano places the other pods of PodGroup `{group}`"
    return OTHER_SCHEDULER.problem(("spec", "schedulerName"), message, "set schedulerName to volcano", scheduler)
