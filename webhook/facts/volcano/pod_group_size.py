"""A PodGroup against the pods that name it: gangs that wait for pods which nobody makes, or that start in part.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/gang/gang.go: with fewer pods than minMember the gang is
not valid, and "Not enough valid tasks for gang-scheduling" is all that is heard of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano.groups import VOLCANO_POD_GROUP_ADVICE
from webhook.facts.volcano.pods_of_group import Member, members
from webhook.facts.volcano_objects import kinds
from webhook.facts.volcano_objects.types import PodGroup
from webhook.placeholders import is_placeholder
from webhook.problem import MissingObject, Problem
from webhook.wording import counted

TASK_PODS: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/task-pods",
    title="A gang has the pods that its tasks need.",
    why=(
        "Volcano counts the pods of a task by the annotation or the label volcano.sh/task-spec, and places none of "
        "the gang while a task has fewer than minTaskMember. Counted in an audit or a replay, where the pods are "
        "among the objects."
    ),
    function="CheckTaskValid",
)
MEMBERS: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/members",
    title="A PodGroup asks for no more pods than name it.",
    why=(
        "Pods name their PodGroup by the annotation scheduling.k8s.io/group-name. The scheduler waits until as many "
        "exist as minMember says, and says so only in a condition of the PodGroup. Pods are counted where all objects "
        "are files; a live view does not hold them."
    ),
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/gang/gang.go",
    function="OnSessionOpen",
    severity="high",
)
PARTIAL_GANG: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/partial-gang",
    title="A PodGroup asks for all the pods that train together.",
    why=(
        "With a smaller minMember the first pods start and wait on their devices for others that may never get a place."
    ),
    refused_by="nobody; pods wait for each other",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/gang/gang.go",
    function="OnSessionOpen",
    fails="waiting",
)

_MIN_MEMBER: Final = ("spec", "minMember")


def advise_members(group: PodGroup, subject: Subject) -> Iterator[Problem]:
    """The size of a PodGroup that no controller made."""
    least = group.spec.min_member
    if not group.name or is_placeholder(group.name) or not least or group.metadata.is_controlled:
        return
    pods, missing = members(subject, group.name)
    yield from _members(least, pods, missing)
    if not missing:
        yield from _partial_gang(least, pods)
        yield from _task_pods(group, pods)


def _members(least: int, members: Sequence[Member], missing: tuple[MissingObject, ...]) -> Iterator[Problem]:
    placed = [member for member in members if member.scheduler != kinds.DEFAULT_SCHEDULER]
    pods = sum(member.pods or 0 for member in placed)
    if missing:
        if least > 1:
            yield MEMBERS.problem(_MIN_MEMBER, missing=missing)
    elif least > pods and all(member.pods is not None for member in placed):
        elsewhere = sum(member.pods or 0 for member in members if member.scheduler == kinds.DEFAULT_SCHEDULER)
        message, fix = _too_few(least, pods, elsewhere)
        yield MEMBERS.problem(_MIN_MEMBER, message, fix, least)


def _too_few(least: int, pods: int, elsewhere: int) -> tuple[str, str]:
    """What is wrong with too few pods, and what to do; `elsewhere` are pods that another scheduler places."""
    others = f" ({counted(elsewhere, 'other')} not placed by Volcano)" if elsewhere else ""
    named = f"{counted(pods, 'pod')} that {'names' if pods == 1 else 'name'} the PodGroup{others}"
    fix = f"set {pods}, or create more pods"
    if least <= pods + elsewhere:
        fix = "set schedulerName: volcano in all of these pods"
    return f"is more than the {named}, so no pod is ever placed", fix


def _partial_gang(least: int, members: Sequence[Member]) -> Iterator[Problem]:
    """A gang that may start before there is room for all the nodes that its launcher waits for."""
    waiting = max(members, key=lambda member: member.nodes)
    if least < waiting.nodes <= sum(member.pods or 0 for member in members):
        fix = f"set {waiting.nodes}"
        yield PARTIAL_GANG.problem(_MIN_MEMBER, partial(least, waiting.maker, waiting.nodes), fix, least)


def _task_pods(group: PodGroup, members: Sequence[Member]) -> Iterator[Problem]:
    """Pods that tasks of the gang need and nobody makes; looked at where the gang needs what all tasks need."""
    wanted = group.spec.min_task_member
    placed = [member for member in members if member.scheduler != kinds.DEFAULT_SCHEDULER]
    if sum(wanted.values()) > group.spec.min_member or any(member.pods is None for member in placed):
        return
    pods: Counter[str] = Counter()
    for member in placed:
        pods[member.task] += member.pods or 0
    for task, count in wanted.items():
        if count > pods[task]:
            most = f"only {counted(pods[task], 'pod')}" if pods[task] else "no pod"
            have = f"{most} of the PodGroup {'have' if pods[task] > 1 else 'has'} the annotation {kinds.TASK}: {task}"
            message = f"can never be reached because {have}, so no pod is placed"
            fix = "set the annotation on the other pods of the task, or lower the number"
            yield TASK_PODS.problem(group.spec.path("minTaskMember", task), message, fix, count)


def partial(least: int, waiting: str, nodes: int) -> str:
    """What comes of a gang that is smaller than the training of its pods."""
    started = f"{counted(least, 'pod')} start and hold {'its' if least == 1 else 'their'} devices"
    return f"lets {started} while {waiting} waits for {nodes} pods"
