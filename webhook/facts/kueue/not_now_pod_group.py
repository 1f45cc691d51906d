"""Checks that files have all Pods of a group, because Kueue waits for all of them.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/pod/pod_controller.go validatePodGroupMetadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_NOT_NOW
from webhook.facts.kueue.managed import KueueManagement
from webhook.facts.kueue.never_pod_group import GROUP_COUNT, pod_group_of
from webhook.facts.kueue.objects import POD_GROUP, POD_GROUP_COUNT, POD_GROUP_FAST
from webhook.facts.kueue.place import QueuePlace
from webhook.facts.kueue.types import PodWithStatus
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.typed.objects import Object
from webhook.wording import counted

POD_GROUP_INCOMPLETE: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/pod-group-incomplete",
    title="All pods of a group exist.",
    why="Kueue makes no Workload before, so that the pods that exist wait, unless the group has fast admission.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/pod/pod_controller.go",
    function="validatePodGroupMetadata",
)


def validate_pod_group_is_complete(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Yield the problem of a pod whose group has fewer pods in the files of a whole cluster than its annotation
    says.
    """
    group, pod, view = pod_group_of(subject, how), subject.typed(Object), subject.cluster_view()
    count, fast = pod.annotations.get(POD_GROUP_COUNT, ""), pod.annotations.get(POD_GROUP_FAST)
    if not group or not count.isdecimal() or fast == "true" or not view.is_whole(PodWithStatus.gvk):
        return
    members = [other for other in view.list_typed(PodWithStatus, subject.namespace) if _is_live_member(other, group)]
    there = len({pod.name, *(member.name for member in members)})
    if there < int(count) and not view.missing_objects_by_field():
        message = f"is more than the {counted(there, 'pod')} of group `{group}` in this namespace"
        message = f"{message}, so Kueue waits for the others"
        yield POD_GROUP_INCOMPLETE.problem(GROUP_COUNT, message, "create the other pods of the group", count)


def _is_live_member(pod: PodWithStatus, group: str) -> bool:
    return pod.labels.get(POD_GROUP) == group and not pod.is_failed_or_terminating
