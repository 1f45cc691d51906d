"""A PodGroup against the pods that name it: gangs that wait for pods which nobody makes, or that start in part.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/gang/gang.go: with fewer pods than minMember the gang is
not valid, and "Not enough valid tasks for gang-scheduling" is all that is heard of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, whole
from webhook.facts.volcano.group_members import Member, members
from webhook.facts.volcano_objects import kinds
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.wording import counted

problem: Final = Group("volcano-pod-group").problem
_AT: Final = ("spec", "minMember")


def advise_members(subject: Subject) -> Iterator[Problem]:
    """The size of a PodGroup that no controller made."""
    least = whole(get(subject.object, _AT))
    name = get(subject.object, ("metadata", "name"), "")
    owners = items(get(subject.object, ("metadata", "ownerReferences")))
    if not name or is_placeholder(name) or not least or any(mapping(each).get("controller") for each in owners):
        return
    known, missing = members(subject, name)
    if missing:
        if least > 1:
            yield problem("members", _AT, missing=missing)
        return
    yield from _too_few(least, known)
    yield from _in_part(least, known)
    yield from _tasks(least, known, subject)


def _too_few(least: int, known: Sequence[Member]) -> Iterator[Problem]:
    counts = [each.pods for each in known if each.scheduler != kinds.DEFAULT_SCHEDULER]
    pods = sum(each or 0 for each in counts)
    if None in counts or least <= pods:
        return
    elsewhere = sum(each.pods or 0 for each in known if each.scheduler == kinds.DEFAULT_SCHEDULER)
    others = f" ({counted(elsewhere, 'other')} not placed by Volcano)" if elsewhere else ""
    named = f"{counted(pods, 'pod')} that {'names' if pods == 1 else 'name'} the PodGroup{others}"
    message = f"is more than the {named}, so no pod is ever placed"
    fix = (
        "set schedulerName: volcano in all of these pods"
        if least <= pods + elsewhere
        else f"set {pods}, or create more pods"
    )
    yield problem("members", _AT, message, fix, least)


def _in_part(least: int, known: Sequence[Member]) -> Iterator[Problem]:
    """A gang that may start before there is room for all the nodes that its launcher waits for."""
    waiting = max(known, key=lambda each: each.nodes)
    if least < waiting.nodes <= sum(each.pods or 0 for each in known):
        fix = f"set {waiting.nodes}"
        yield problem("partial-gang", _AT, partial(least, waiting.maker, waiting.nodes), fix, least)


def _tasks(least: int, known: Sequence[Member], subject: Subject) -> Iterator[Problem]:
    """Pods that tasks of the gang need and nobody makes; looked at where the gang needs what all tasks need."""
    wanted = mapping(get(subject.object, ("spec", "minTaskMember")))
    placed = [each for each in known if each.scheduler != kinds.DEFAULT_SCHEDULER]
    if sum(wanted.values()) > least or any(each.pods is None for each in placed):
        return
    pods: Counter[str] = Counter()
    for each in placed:
        pods[each.task] += each.pods or 0
    for task, count in subject.deadline.each(wanted.items()):
        if count > pods[task]:
            most = f"only {counted(pods[task], 'pod')}" if pods[task] else "no pod"
            have = f"{most} of the PodGroup {'have' if pods[task] > 1 else 'has'} the annotation {kinds.TASK}: {task}"
            message = f"can never be reached because {have}, so no pod is placed"
            fix = "set the annotation on the other pods of the task, or lower the number"
            yield problem("task-pods", ("spec", "minTaskMember", task), message, fix, count)


def partial(least: int, waiting: str, nodes: int) -> str:
    """What comes of a gang that is smaller than the training of its pods."""
    started = f"{counted(least, 'pod')} start and hold {'its' if least == 1 else 'their'} devices"
    return f"lets {started} while {waiting} waits for {nodes} pods"
