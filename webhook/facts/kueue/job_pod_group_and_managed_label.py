"""Rules of Kueue's webhook for the labels and annotations of a Pod.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs; functions are named like those there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_JOB
from webhook.facts.kueue.managed import KueueManagement
from webhook.facts.kueue.objects import (
    MANAGED,
    POD_GROUP,
    POD_GROUP_COUNT,
)
from webhook.facts.subject import Subject
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.objects import Metadata

MANAGED_LABEL: Final = KUEUE_JOB.rule(
    "kueue-job/managed-label",
    title="The label kueue.x-k8s.io/managed is true or not set.",
    why="Kueue sets it itself on the pods that it manages.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/pod/pod_webhook.go",
    function="validateCommon",
)
KUEUE_JOB_POD_GROUP: Final = KUEUE_JOB.rule(
    "kueue-job/pod-group",
    title="A pod of a group has the name of the group and the number of its pods.",
    why="Kueue admits a group when all of its pods are there.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/pod/pod_webhook.go",
    function="validatePodGroupMetadata",
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
        message = f"must be set because the label {POD_GROUP} makes the pod a member of a group"
        yield KUEUE_JOB_POD_GROUP.problem(path, message, "set the number of pods of the group")
    elif count is not None and not group:
        message = f"must be set because the annotation {POD_GROUP_COUNT} counts the pods of a group"
        yield KUEUE_JOB_POD_GROUP.problem(
            metadata.path("labels", POD_GROUP), message, "set the label to the name of the group"
        )
    elif count is not None and not _is_positive_count(count):
        yield KUEUE_JOB_POD_GROUP.problem(
            path, "must be a whole number of pods, at least 1", "set the number of pods", count
        )


def _is_positive_count(given: str) -> bool:
    return is_placeholder(given) or (_NUMBER.fullmatch(given) is not None and int(given) > 0)
