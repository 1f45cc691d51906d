"""Rules of Volcano's webhook for a PodGroup, and gangs that are never placed.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/podgroups/validate. A PodGroup is validated when it is
created; unlike a Job it is taken into a queue that has others below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from webhook.facts.check import is_made_by_controller
from webhook.facts.subject import Subject
from webhook.facts.volcano.gang_resources import amounts_in_thousandths, is_unknown_resource
from webhook.facts.volcano.groups import VOLCANO_POD_GROUP_ADVICE
from webhook.facts.volcano.member_pods import PodGroupMember, pods_of_group
from webhook.facts.volcano.network_topology import (
    validate_network_topology,
    warn_of_missing_tiers,
    warn_of_tiers_of_gang_part,
)
from webhook.facts.volcano.pod_group_queue_and_capability import OF_POD_GROUPS, advise_queue_change
from webhook.facts.volcano.pod_group_tiers import OF_POD_GROUPS as TOPOLOGIES
from webhook.facts.volcano.queue_tree import read_queues
from webhook.facts.volcano.referenced_queue import validate_queue, warn_of_amounts_above_capability
from webhook.facts.volcano.sent_job import is_create_request
from webhook.facts.volcano_objects import kinds
from webhook.facts.volcano_objects.defaults import object_with_defaults
from webhook.facts.volcano_objects.types import PodGroup, SubGroupPolicy
from webhook.placeholders import is_placeholder
from webhook.problem import MissingObject, Problem
from webhook.wording import counted

UNKNOWN_RESOURCE: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/unknown-resource",
    title="A gang needs resources that nodes have.",
    why="No node has a resource without a domain that Kubernetes does not know, such as gpu.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/podgroups/validate/validate_podgroup.go",
    severity="high",
)
SUB_GROUPS: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/sub-groups",
    title="A gang can have as many subgroups as it needs.",
    why="Subgroups are told apart by the values of labels. Without matchLabelKeys all pods that are selected make one.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/api/sub_job_info.go",
    function="getSubJobMatchValues",
)
TASK_MEMBERS: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/task-members",
    title="A gang needs all that its tasks need.",
    why="The scheduler looks at minTaskMember only where minMember is not less than its sum.",
    refused_by="nobody; minTaskMember has no effect",
    function="CheckTaskValid",
    fails="silent",
)
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


def check_pod_group(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a PodGroup."""
    group = PodGroup.of(subject.once(object_with_defaults), (), subject.reading_context)
    if is_create_request(subject):
        yield from _validate_topologies(group)
        yield from _validate_queue(group, subject)
    else:
        yield from advise_queue_change(group, subject.typed_old(PodGroup))
    yield from _check_unknown_resource(group)
    yield from _check_min_member_covers_tasks(group)
    yield from warn_of_group_size(group, subject)
    gang = group.spec.network_topology
    yield from warn_of_missing_tiers(gang, subject, TOPOLOGIES)
    for policy in group.spec.sub_group_policy:
        yield from warn_of_tiers_of_gang_part(policy.network_topology, gang, subject, TOPOLOGIES)
        yield from _check_min_sub_groups(policy)


def _validate_topologies(group: PodGroup) -> Iterator[Problem]:
    yield from validate_network_topology(group.spec.network_topology, TOPOLOGIES)
    for policy in group.spec.sub_group_policy:
        yield from validate_network_topology(policy.network_topology, TOPOLOGIES)


def _validate_queue(group: PodGroup, subject: Subject) -> Iterator[Problem]:
    """Yield a queue that does not exist, is closed, has queues below it, or cannot give what the gang requests."""
    name, path, queues = group.spec.queue, group.spec.path("queue"), subject.once(read_queues)
    yield from validate_queue(name, path, subject, OF_POD_GROUPS)
    if queues.is_leaf(name):  # of another one, queue-leaf speaks
        yield from warn_of_amounts_above_capability(
            amounts_in_thousandths(group.spec.min_resources), name, path, queues, OF_POD_GROUPS
        )


def _check_unknown_resource(group: PodGroup) -> Iterator[Problem]:
    for resource in group.spec.min_resources:
        if is_unknown_resource(resource) and not is_placeholder(resource):
            message = "is a resource that no node has because the name has no domain, so no pod is ever placed"
            path = group.spec.path("minResources", resource)
            yield UNKNOWN_RESOURCE.problem(path, message, "write a full name such as nvidia.com/gpu", resource)


def _check_min_member_covers_tasks(group: PodGroup) -> Iterator[Problem]:
    """Yield a minMember below the sum of minTaskMember, for which Volcano ignores minTaskMember."""
    least, total = group.spec.min_member, sum(group.spec.min_task_member.values())
    if total > least > 0:
        message = f"is less than {total}, the sum of minTaskMember, so Volcano ignores minTaskMember"
        fix = f"set {total}, or lower the numbers of minTaskMember"
        yield TASK_MEMBERS.problem(group.spec.path("minMember"), message, fix, least)


def _check_min_sub_groups(policy: SubGroupPolicy) -> Iterator[Problem]:
    if policy.min_sub_groups > 1 and not policy.match_label_keys:
        message = "is more than the one subgroup that the pods form without matchLabelKeys, so no pod is ever placed"
        fix = "set 1, or set matchLabelKeys"
        yield SUB_GROUPS.problem(policy.path("minSubGroups"), message, fix, policy.min_sub_groups)


def warn_of_group_size(group: PodGroup, subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the size of a PodGroup that no controller owns."""
    least = group.spec.min_member
    if not group.name or is_placeholder(group.name) or not least or subject.once(is_made_by_controller):
        return
    pods, missing = pods_of_group(subject, group.name)
    yield from _check_enough_pods_for_group(least, pods, missing)
    if not missing:
        yield from _check_partial_gang(least, pods)
        yield from _check_enough_pods_for_tasks(group, pods)


def _check_enough_pods_for_group(
    least: int, members: Sequence[PodGroupMember], missing: tuple[MissingObject, ...]
) -> Iterator[Problem]:
    placed = [member for member in members if member.scheduler != kinds.DEFAULT_SCHEDULER]
    pods = sum(member.pods or 0 for member in placed)
    if missing:
        if least > 1:
            yield MEMBERS.problem(_MIN_MEMBER, missing=missing)
    elif least > pods and all(member.pods is not None for member in placed):
        elsewhere = sum(member.pods or 0 for member in members if member.scheduler == kinds.DEFAULT_SCHEDULER)
        message, fix = _sentence_about_too_few_pods(least, pods, elsewhere)
        yield MEMBERS.problem(_MIN_MEMBER, message, fix, least)


def _sentence_about_too_few_pods(least: int, pods: int, elsewhere: int) -> tuple[str, str]:
    """Return the message and the fix for too few pods; `elsewhere` are those that another scheduler places."""
    others = f" ({counted(elsewhere, 'other')} not placed by Volcano)" if elsewhere else ""
    named = f"{counted(pods, 'pod')} that {'names' if pods == 1 else 'name'} the PodGroup{others}"
    fix = f"set {pods}, or create more pods"
    if least <= pods + elsewhere:
        fix = "set schedulerName: volcano in all of these pods"
    return f"is more than the {named}, so no pod is ever placed", fix


def _check_partial_gang(least: int, members: Sequence[PodGroupMember]) -> Iterator[Problem]:
    """Yield a gang that may start before there is room for all the nodes that its launcher waits for."""
    waiting = max(members, key=lambda member: member.nodes)
    if least < waiting.nodes <= sum(member.pods or 0 for member in members):
        fix = f"set {waiting.nodes}"
        yield PARTIAL_GANG.problem(_MIN_MEMBER, describe_partial_gang(least, waiting.maker, waiting.nodes), fix, least)


def _check_enough_pods_for_tasks(group: PodGroup, members: Sequence[PodGroupMember]) -> Iterator[Problem]:
    """Yield pods that tasks of the gang need and nobody creates."""
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


def describe_partial_gang(least: int, waiting: str, nodes: int) -> str:
    """Return the effect of a gang that is smaller than the training of its pods."""
    started = f"{counted(least, 'pod')} start and hold {'its' if least == 1 else 'their'} devices"
    return f"lets {started} while {waiting} waits for {nodes} pods"
