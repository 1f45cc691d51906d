"""What Volcano's webhook refuses of a PodGroup, and gangs that are never placed.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/podgroups/validate. A PodGroup is validated when it is
created; unlike a Job it is taken into a queue that has others below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.volcano.gang_resources import above_capability, is_unknown_resource, written_amounts
from webhook.facts.volcano.group_size import advise_members
from webhook.facts.volcano.job import is_created, spec_of
from webhook.facts.volcano.queue_reference import exists_and_is_open, holds_gangs
from webhook.facts.volcano.queues import read_queues
from webhook.facts.volcano.topology import advise_part, advise_tier
from webhook.facts.volcano_objects.defaults import defaulted
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

problem: Final = Group("volcano-pod-group").problem
_QUEUE: Final = ("spec", "queue")


def pod_group(subject: Subject) -> Iterator[Problem]:
    """A PodGroup."""
    spec = spec_of(subject.once(defaulted))
    if is_created(subject):
        yield from _validate_topology(subject)
        name = str(spec.get("queue", ""))
        if name and not is_placeholder(name):
            queues = subject.once(read_queues)
            yield from exists_and_is_open(name, _QUEUE, queues, subject, problem)
            above = list(holds_gangs(name, _QUEUE, queues, problem))
            yield from above
            if not above and name in queues.all:
                yield from _advise_capability(subject, name)
    for resource in subject.deadline.each(spec.get("minResources", {})):
        if is_unknown_resource(resource) and not is_placeholder(resource):
            message = "is a resource that no node has because the name has no domain, so no pod is ever placed"
            path = ("spec", "minResources", resource)
            yield problem("unknown-resource", path, message, "write a full name such as nvidia.com/gpu", resource)
    yield from _advise_task_members(subject)
    yield from advise_members(subject)
    yield from advise_tier(spec, ("spec",), subject, problem)
    for index, each in enumerate(subject.deadline.paced(spec.get("subGroupPolicy", []))):
        at = ("spec", "subGroupPolicy", index)
        yield from advise_part(each, at, (spec, ("spec",)), subject, problem)
        if (wanted := each.get("minSubGroups") or 0) > 1 and not each.get("matchLabelKeys"):
            message = (
                "is more than the one subgroup that the pods form without matchLabelKeys, so no pod is ever placed"
            )
            yield problem("sub-groups", (*at, "minSubGroups"), message, "set 1, or set matchLabelKeys", wanted)


def _validate_topology(subject: Subject) -> Iterator[Problem]:
    """The highest tier is given once, of the whole and of each group."""
    spec = spec_of(subject.object)
    holders = [
        (spec, ("spec",)),
        *((each, ("spec", "subGroupPolicy", i)) for i, each in enumerate(spec.get("subGroupPolicy", []))),
    ]
    for holder, at in subject.deadline.each(holders):
        topology = holder.get("networkTopology") or {}
        if topology.get("highestTierAllowed") is not None and topology.get("highestTierName"):
            message = "must not be set together with highestTierAllowed"
            path = (*at, "networkTopology", "highestTierName")
            yield problem("highest-tier", path, message, "remove one of the two", topology["highestTierName"])


def _advise_capability(subject: Subject, name: str) -> Iterator[Problem]:
    needed = written_amounts(get(subject.object, ("spec", "minResources"), {}), subject.deadline)
    yield from above_capability(needed, name, _QUEUE, subject.once(read_queues), problem)


def _advise_task_members(subject: Subject) -> Iterator[Problem]:
    """What each task needs is not more than the gang needs: otherwise it is not looked at."""
    least = get(subject.object, ("spec", "minMember"), 0)
    total = sum(get(subject.object, ("spec", "minTaskMember"), {}).values())
    if total > least > 0:
        message = f"is less than {total}, the sum of minTaskMember, so Volcano ignores minTaskMember"
        yield problem(
            "task-members", ("spec", "minMember"), message, f"set {total}, or lower the numbers of minTaskMember", least
        )
