"""Rules for the PodGroup that a Pod names: it must exist, and the annotation must be the scheduler's.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.view import ClusterView
from webhook.facts.volcano.groups import VOLCANO_POD
from webhook.facts.volcano_objects import kinds
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.typed.collections import Entries

GROUP_ANNOTATION: Final = VOLCANO_POD.rule(
    "volcano-pod/group-annotation",
    title="A Pod names its PodGroup by the annotation scheduling.k8s.io/group-name.",
    why=(
        "Volcano also declares scheduling.volcano.sh/group-name, but its scheduler does not read it when it looks for "
        "the gang of a pod."
    ),
    refused_by="nobody; the pod is not part of the gang",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/api/job_info.go",
    function="getJobID",
)
GROUP_EXISTS: Final = VOLCANO_POD.rule(
    "volcano-pod/group-exists",
    title="The PodGroup that a Pod names exists.",
    why="For a Pod that names a PodGroup, Volcano makes none, and waits for the one that is named.",
    refused_by="nobody; the pod stays pending",
)
ANNOTATIONS: Final[FieldPath] = ("metadata", "annotations")
OTHER_GROUP_NAME: Final = "scheduling.volcano.sh/group-name"


def group_absent_problem(name: str, view: ClusterView, *, is_known: bool) -> Problem:
    """Return the problem of a missing PodGroup; unless `is_known`, of one that cannot be looked up."""
    path = (*ANNOTATIONS, kinds.GROUP_NAME)
    if not is_known:
        return GROUP_EXISTS.problem(path, missing=view.missing_objects_by_field()[""])
    message = "is a PodGroup that does not exist in the namespace, so the pod waits until somebody creates one"
    return GROUP_EXISTS.problem(path, message, "create the PodGroup, or remove the annotation", name)


def warn_of_ignored_group_annotation(annotations: Entries[str]) -> Iterator[Problem]:
    """Yield the annotation that the scheduler does not read."""
    if other := annotations.get(OTHER_GROUP_NAME):
        message = "is ignored by Volcano's scheduler, so the pod is not part of this PodGroup"
        fix = f"use the annotation {kinds.GROUP_NAME} instead"
        yield GROUP_ANNOTATION.problem((*ANNOTATIONS, OTHER_GROUP_NAME), message, fix, other)
