"""Rules for PodGroups: size, queue, network topology, gangs that are never placed, and Pods that name a PodGroup.

The queue must exist, be open, have no queues below it, and have enough capacity. The webhook validates a PodGroup only
when it is created, and accepts a PodGroup in a queue with queues below it. hyper_node.py compares the tiers of network
topologies. A Pod must name an existing PodGroup, in the annotation that the scheduler reads.

Files show how many pods a PodGroup has: the files have the Pods and the workloads that create pods. In a live cluster
the number is not known, because a live view has no pods, and a new PodGroup has no pods yet.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/podgroups/validate and pkg/scheduler, api/job_info.go
getJobID, which reads only one annotation, and plugins/gang/gang.go, which counts the pods that exist and have not
failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from webhook.apimachinery.attributes import POD
from webhook.apimachinery.paths import FieldPath
from webhook.facts.check import is_made_by_controller
from webhook.facts.command_lines.command import launch_of_json, node_count_range_of_launch
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.facts.volcano.gang_resources import amounts_in_thousandths, is_unknown_resource
from webhook.facts.volcano.groups import VOLCANO_POD, VOLCANO_POD_GROUP, VOLCANO_POD_GROUP_ADVICE
from webhook.facts.volcano.hyper_node import (
    TopologyRules,
    validate_network_topology,
    warn_of_missing_tiers,
    warn_of_tiers_of_gang_part,
)
from webhook.facts.volcano.queue_tree import QueueRules, read_queues, validate_queue, warn_of_amounts_above_capability
from webhook.facts.volcano.sent_job import is_create_request
from webhook.facts.volcano_objects import types
from webhook.facts.volcano_objects.defaults import object_with_defaults
from webhook.facts.volcano_objects.types import PodGroup, SubGroupPolicy
from webhook.rules.problem import MissingObject, Problem
from webhook.text.caches import IdentityKey
from webhook.text.wording import counted
from webhook.typed.collections import Entries
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.workloads.podsets import PodSet, pod_templates
from webhook.yamltext.placeholders import is_placeholder

POD_GROUP_QUEUE_EXISTS: Final = VOLCANO_POD_GROUP.rule(
    "volcano-pod-group/queue-exists",
    title="The queue of the PodGroup does not exist",
    why="Volcano's webhook refuses the PodGroup. Each namespace may have its own default queue.",
    function="checkQueueState",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/452",
        "https://github.com/volcano-sh/volcano/issues/1863",
    ),
)
POD_GROUP_QUEUE_OPEN: Final = VOLCANO_POD_GROUP.rule(
    "volcano-pod-group/queue-open",
    title="The queue of the PodGroup is not open",
    why="A queue that is closed, or not yet opened by its controller, accepts no gangs.",
    function="checkQueueState",
)
POD_GROUP_QUEUE_LEAF: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/queue-leaf",
    title="The queue of the PodGroup has child queues",
    why=(
        "Volcano's webhook refuses a queue with children only for Jobs. With the hierarchy of the capacity plugin, one "
        "gang in a queue with children blocks the scheduler for all jobs."
    ),
    refused_by="nothing; the scheduler stops",
    source="https://github.com/volcano-sh/volcano/issues/4227",
    severity="high",
    issues=("https://github.com/volcano-sh/volcano/pull/5590",),
)
POD_GROUP_CAPABILITY: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/capability",
    title="minResources of the PodGroup are above the queue's capability",
    why=(
        "Volcano admits a gang if its minResources are within the capability of the queue. Otherwise the gang waits "
        "for ever."
    ),
    source="https://github.com/volcano-sh/volcano/issues/3220",
    severity="high",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/452",
        "https://github.com/volcano-sh/volcano/issues/1863",
    ),
)
QUEUE_CHANGED: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/queue-changed",
    title="The queue of the PodGroup was changed",
    why=(
        "Volcano accepts the change, but keeps the PodGroup in the list of the old queue, which then cannot be "
        "closed. The new queue is not checked."
    ),
    refused_by="nothing; the group is in the lists of two queues",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/queue/queue_controller_handler.go",
    function="updatePodGroup",
    fails="silent",
)
POD_GROUP_TIER: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/tier",
    title="No HyperNode is of a tier that the PodGroup allows",
    why=(
        "A gang with a hard network topology is placed within one HyperNode, with at most the highest tier of the "
        "topology. If all HyperNodes have higher tiers, the gang waits for ever."
    ),
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go",
    function="isEligibleHyperNode",
)
POD_GROUP_TIER_NAME: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/tier-name",
    title="No HyperNode has the tier name of the PodGroup",
    why=("The scheduler logs a warning and ignores the topology, so the pods may be placed far from each other."),
    refused_by="nothing; the topology has no effect",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/framework/session.go",
    function="adjustNetworkTopologySpec",
    fails="silent",
)
POD_GROUP_TIER_ORDER: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/tier-order",
    title="A subgroup allows a higher tier than the whole PodGroup",
    why=(
        "The scheduler keeps the whole gang in one HyperNode, and looks for a HyperNode for each part inside it. So "
        "a higher tier of a part has no effect."
    ),
    refused_by="nothing; the topology of the part has no effect",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/actions/allocate/allocate.go",
    function="allocateForJob",
    severity="low",
    fails="silent",
)
POD_GROUP_HIGHEST_TIER: Final = VOLCANO_POD_GROUP.rule(
    "volcano-pod-group/highest-tier",
    title="The highest tier of the PodGroup is given both by number and by name",
    why="The number and the name could contradict each other, so Volcano accepts only one of the two.",
    function="validateNetworkTopology",
)
UNKNOWN_RESOURCE: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/unknown-resource",
    title="minResources has a resource that no node can have",
    why="Kubernetes has only a few resources without a domain. No node has `gpu`, for example.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/podgroups/validate/validate_podgroup.go",
    severity="high",
)
SUB_GROUPS: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/sub-groups",
    title="The gang needs more subgroups than it can have",
    why="Subgroups differ in the values of matchLabelKeys. Without these keys all selected pods form one subgroup.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/api/sub_job_info.go",
    function="getSubJobMatchValues",
)
TASK_MEMBERS: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/task-members",
    title="minMember is below the sum of minTaskMember",
    why="The scheduler reads minTaskMember only if minMember is at least the sum of minTaskMember.",
    refused_by="nothing; minTaskMember has no effect",
    function="CheckTaskValid",
    fails="silent",
)
TASK_PODS: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/task-pods",
    title="A task of the gang has too few pods",
    why=(
        "Volcano counts the pods of a task by the annotation or the label volcano.sh/task-spec. While a task has fewer "
        "pods than minTaskMember, Volcano places no pod of the gang. Only audit and replay check this, if the pods "
        "are among the objects."
    ),
    function="CheckTaskValid",
)
MEMBERS: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/members",
    title="minMember is above the number of pods",
    why=(
        "Pods name their PodGroup by the annotation scheduling.k8s.io/group-name. The scheduler waits until "
        "minMember pods exist, and reports this only in a condition of the PodGroup. Pods are counted only in "
        "files, because a live view has no pods."
    ),
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/gang/gang.go",
    function="OnSessionOpen",
    severity="high",
)
PARTIAL_GANG: Final = VOLCANO_POD_GROUP_ADVICE.rule(
    "volcano-pod-group/partial-gang",
    title="minMember is below the number of pods that train together",
    why="With a smaller minMember the first pods start and wait on their devices for pods that may never be placed.",
    refused_by="nothing; pods wait for each other",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/gang/gang.go",
    function="OnSessionOpen",
    fails="waiting",
)
GROUP_ANNOTATION: Final = VOLCANO_POD.rule(
    "volcano-pod/group-annotation",
    title="The Pod names its PodGroup by an annotation that Volcano does not read",
    why=(
        "The scheduler finds the gang of a pod by the annotation scheduling.k8s.io/group-name. It does not read "
        "scheduling.volcano.sh/group-name."
    ),
    refused_by="nothing; the pod is not part of the gang",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/api/job_info.go",
    function="getJobID",
)
GROUP_EXISTS: Final = VOLCANO_POD.rule(
    "volcano-pod/group-exists",
    title="The PodGroup does not exist",
    why="Volcano creates no PodGroup for a Pod that names a PodGroup, and the Pod waits until the PodGroup exists.",
    refused_by="nothing; the pod stays pending",
)
POD_GROUP_QUEUE_RULES: Final = QueueRules(
    POD_GROUP_QUEUE_EXISTS, POD_GROUP_QUEUE_OPEN, POD_GROUP_QUEUE_LEAF, POD_GROUP_CAPABILITY
)
POD_GROUP_TIER_RULES: Final = TopologyRules(
    POD_GROUP_HIGHEST_TIER, POD_GROUP_TIER, POD_GROUP_TIER_NAME, POD_GROUP_TIER_ORDER
)
ANNOTATIONS: Final[FieldPath] = ("metadata", "annotations")
OTHER_GROUP_NAME: Final = "scheduling.volcano.sh/group-name"
_MIN_MEMBER: Final = ("spec", "minMember")
_KEPT: Final = 128
"""At most this many lists are cached, one per kind and namespace. An audit reads one namespace after another."""


def advise_queue_change(group: PodGroup, before: PodGroup) -> Iterator[Problem]:
    """Yield the problem of a changed queue, unless the old or new queue is a placeholder or not set."""
    old, new = before.spec.queue, group.spec.queue
    if old and new and old != new and not is_placeholder(old + new):
        message = f"must stay `{old}` because Volcano does not move a PodGroup to another queue"
        fix = f"set `{old}`, or delete the PodGroup, and create it again in queue `{new}`"
        yield QUEUE_CHANGED.problem(group.spec.path("queue"), message, fix, new)


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
    yield from warn_of_missing_tiers(gang, subject, POD_GROUP_TIER_RULES)
    for policy in group.spec.sub_group_policy:
        yield from warn_of_tiers_of_gang_part(policy.network_topology, gang, subject, POD_GROUP_TIER_RULES)
        yield from _check_min_sub_groups(policy)


def _validate_topologies(group: PodGroup) -> Iterator[Problem]:
    yield from validate_network_topology(group.spec.network_topology, POD_GROUP_TIER_RULES)
    for policy in group.spec.sub_group_policy:
        yield from validate_network_topology(policy.network_topology, POD_GROUP_TIER_RULES)


def _validate_queue(group: PodGroup, subject: Subject) -> Iterator[Problem]:
    """Yield a queue that does not exist, is closed, has queues below it, or cannot give what the gang requests."""
    name, path, queues = group.spec.queue, group.spec.path("queue"), subject.once(read_queues)
    yield from validate_queue(name, path, subject, POD_GROUP_QUEUE_RULES)
    if queues.is_leaf(name):  # queue-leaf reports other queues
        yield from warn_of_amounts_above_capability(
            amounts_in_thousandths(group.spec.min_resources), name, path, queues, POD_GROUP_QUEUE_RULES
        )


def _check_unknown_resource(group: PodGroup) -> Iterator[Problem]:
    for resource in group.spec.min_resources:
        if is_unknown_resource(resource) and not is_placeholder(resource):
            message = "is a resource that no node has because the name has no domain, so no pod is ever placed"
            path = group.spec.path("minResources", resource)
            yield UNKNOWN_RESOURCE.problem(path, message, "write a full name such as nvidia.com/gpu", resource)


def _check_min_member_covers_tasks(group: PodGroup) -> Iterator[Problem]:
    """Yield a minMember below the sum of minTaskMember, with which Volcano ignores minTaskMember."""
    least, total = group.spec.min_member, sum(group.spec.min_task_member.values())
    if total > least > 0:
        message = f"is less than {total}, the sum of minTaskMember, so Volcano ignores minTaskMember"
        fix = f"set {total}, or lower the numbers of minTaskMember"
        yield TASK_MEMBERS.problem(group.spec.path("minMember"), message, fix, least)


def _check_min_sub_groups(policy: SubGroupPolicy) -> Iterator[Problem]:
    if policy.min_sub_groups > 1 and not policy.match_label_keys:
        message = "is above 1, but without matchLabelKeys the pods form one subgroup, so no pod is ever placed"
        fix = "set 1, or set matchLabelKeys"
        yield SUB_GROUPS.problem(policy.path("minSubGroups"), message, fix, policy.min_sub_groups)


def warn_of_group_size(group: PodGroup, subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the size of a PodGroup, unless a controller made the PodGroup."""
    least = group.spec.min_member
    if not group.name or is_placeholder(group.name) or not least or subject.once(is_made_by_controller):
        return
    pods, missing = pods_of_group(subject, group.name)
    yield from _check_enough_pods_for_group(least, pods, missing)
    if not missing:
        yield from _check_partial_gang(least, pods)
        yield from _check_enough_pods_for_tasks(group, pods)


def _check_enough_pods_for_group(
    least: int, members: Sequence[PodsOfTemplate], missing: tuple[MissingObject, ...]
) -> Iterator[Problem]:
    of_volcano = [member for member in members if member.scheduler != types.DEFAULT_SCHEDULER]
    pods = sum(member.pods or 0 for member in of_volcano)
    if missing:
        if least > 1:
            yield MEMBERS.problem(_MIN_MEMBER, missing=missing)
    elif least > pods and all(member.pods is not None for member in of_volcano):
        elsewhere = sum(member.pods or 0 for member in members if member.scheduler == types.DEFAULT_SCHEDULER)
        message, fix = _sentence_about_too_few_pods(least, pods, elsewhere)
        yield MEMBERS.problem(_MIN_MEMBER, message, fix, least)


def _sentence_about_too_few_pods(least: int, pods: int, elsewhere: int) -> tuple[str, str]:
    """Return the message and the fix for too few pods; `elsewhere` is the number of pods of the default scheduler."""
    others = f" ({counted(elsewhere, 'other')} not placed by Volcano)" if elsewhere else ""
    named = f"{counted(pods, 'pod')} that {'names' if pods == 1 else 'name'} the PodGroup{others}"
    fix = f"set {pods}, or create more pods"
    if least <= pods + elsewhere:
        fix = "set schedulerName: volcano in all of these pods"
    return f"is more than the {named}, so no pod is ever placed", fix


def _check_partial_gang(least: int, members: Sequence[PodsOfTemplate]) -> Iterator[Problem]:
    """Yield a gang that may start with fewer pods than a launcher waits for."""
    waiting = max(members, key=lambda member: member.nodes)
    if least < waiting.nodes <= sum(member.pods or 0 for member in members):
        fix = f"set {waiting.nodes}"
        yield PARTIAL_GANG.problem(_MIN_MEMBER, describe_partial_gang(least, waiting.maker, waiting.nodes), fix, least)


def _check_enough_pods_for_tasks(group: PodGroup, members: Sequence[PodsOfTemplate]) -> Iterator[Problem]:
    """Yield tasks of the gang that need more pods than are created."""
    wanted = group.spec.min_task_member
    of_volcano = [member for member in members if member.scheduler != types.DEFAULT_SCHEDULER]
    if sum(wanted.values()) > group.spec.min_member or any(member.pods is None for member in of_volcano):
        return
    pods: Counter[str] = Counter()
    for member in of_volcano:
        pods[member.task] += member.pods or 0
    for task, count in wanted.items():
        if count > pods[task]:
            most = f"only {counted(pods[task], 'pod')}" if pods[task] else "no pod"
            have = f"{most} of the PodGroup {'have' if pods[task] > 1 else 'has'} the annotation {types.TASK}: {task}"
            message = f"can never be reached because {have}, so no pod is placed"
            fix = "set the annotation on the other pods of the task, or lower the number"
            yield TASK_PODS.problem(group.spec.path("minTaskMember", task), message, fix, count)


def describe_partial_gang(least: int, waiting: str, nodes: int) -> str:
    """Return what happens if a gang has fewer pods than the training needs."""
    started = f"{counted(least, 'pod')} start and hold {'its' if least == 1 else 'their'} devices"
    return f"lets {started} while {waiting} waits for {nodes} pods"


def group_absent_problem(name: str, view: ClusterView, *, is_known: bool) -> Problem:
    """Return the problem of a missing PodGroup; unless `is_known`, the PodGroup cannot be looked up."""
    path = (*ANNOTATIONS, types.GROUP_NAME)
    if not is_known:
        return GROUP_EXISTS.problem(path, missing=view.missing_objects_by_field()[""])
    message = "is a PodGroup that does not exist in the namespace, so the pod stays Pending"
    return GROUP_EXISTS.problem(path, message, "create the PodGroup, or remove the annotation", name)


def warn_of_ignored_group_annotation(annotations: Entries[str]) -> Iterator[Problem]:
    """Yield the annotation that the scheduler does not read."""
    if other := annotations.get(OTHER_GROUP_NAME):
        message = "is ignored by Volcano's scheduler, so the pod is not part of this PodGroup"
        fix = f"use the annotation {types.GROUP_NAME} instead"
        yield GROUP_ANNOTATION.problem((*ANNOTATIONS, OTHER_GROUP_NAME), message, fix, other)


@dataclass(frozen=True, slots=True)
class PodsOfTemplate:
    """The pods of one template that name a PodGroup.

    Args:
        maker: kind and name of the object that makes the pods.
        pods: the number of pods, None if it is not known.
        scheduler: the scheduler of the pods.
        nodes: how many nodes the launcher in the pods waits for, 0 if the command does not set a number.
        task: the task that an annotation or a label of the pods names, as getTaskRole reads it.
    """

    maker: str
    pods: int | None
    scheduler: str
    nodes: int
    task: str


def pods_of_group(subject: Subject, name: str) -> tuple[Sequence[PodsOfTemplate], tuple[MissingObject, ...]]:
    """Return the pods that name a PodGroup of the request's namespace. The second value has the missing objects without
    which the pods cannot be counted.
    """
    view = subject.cluster_view()
    view.list_json(POD, subject.namespace)
    if unknown := view.missing_objects_by_field():
        return (), unknown[""]
    naming: list[PodsOfTemplate] = []
    for row in subject.deadline.charge_for_items(subject.table.rows):
        if row.podSets and row.group not in (
            types.BATCH,
            types.FLOW,
        ):  # Volcano itself sets the PodGroup of the pods of these kinds
            listed = view.list_json(row.gvk, subject.namespace)
            subject.deadline.spend(len(listed))
            naming += _members_by_pod_group(IdentityKey(listed), IdentityKey(subject.table)).get(name, ())
    absent = MissingObject(kind="Pod", name=f"that names PodGroup {name}", namespace=subject.namespace)
    return naming, () if naming else (absent,)


@lru_cache(maxsize=_KEPT)
def _members_by_pod_group(objects: IdentityKey, table: IdentityKey) -> Mapping[str, Sequence[PodsOfTemplate]]:
    """Return the members of each PodGroup among objects of one kind; cached by the identity of the list."""
    groups: dict[str, list[PodsOfTemplate]] = {}
    for obj in objects.value:
        for podset in pod_templates(obj, table.value):
            template = PodTemplate.of(podset.template)
            if name := template.metadata.annotations.get(types.GROUP_NAME):
                groups.setdefault(name, []).append(_pod_group_member(podset, template, Object.of(obj)))
    return groups


def _pod_group_member(podset: PodSet, template: PodTemplate, maker: Object) -> PodsOfTemplate:
    launches = (launch_of_json(container.json) for container in template.spec.containers)
    nodes = [limits[0] for started in launches if (limits := node_count_range_of_launch(started)) is not None]
    annotations, labels = template.metadata.annotations, template.metadata.labels
    return PodsOfTemplate(
        maker=f"{maker.json['kind']} `{maker.name}`",
        pods=podset.pods,
        scheduler=template.spec.scheduler_name or types.DEFAULT_SCHEDULER,
        nodes=max(nodes, default=0),
        task=annotations.get(types.TASK, "") or labels.get(types.TASK, ""),
    )
