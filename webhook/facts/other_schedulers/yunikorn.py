"""Task groups of YuniKorn, which are JSON in an annotation: invalid groups, unknown names, and wrong placeholders.

For each task group, YuniKorn creates placeholder pods that reserve resources until pods of the job replace them.

Source: apache/yunikorn-k8shim@23b6b47f pkg/cache/amprotocol.go, placeholder_manager.go; apache/yunikorn-core@be3bb487
application.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from webhook.apimachinery.paths import FieldPath
from webhook.facts.gpu.device_pods import PLACED, located_templates, without_repeated_problems
from webhook.facts.nodes.node_offers import CLASS_LOOKUPS, NODE_LOOKUPS, known_offers, needs_of_pod
from webhook.facts.nodes.node_pools import NODE_POOL_LOOKUPS
from webhook.facts.pods.node_sources import first_node_without_amounts, source_of_new_nodes
from webhook.facts.pods.pod_requests import (
    NamespaceLimits,
    amounts_in_thousandths,
    quota_requests_of_pod,
    requests_of_containers,
)
from webhook.facts.subject import Check, Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.text.caches import IdentityKey
from webhook.text.wording import counted, either
from webhook.typed.cluster_objects import Node
from webhook.typed.fields import Number, Quantities, Text
from webhook.typed.pods import PodSpec, PodTemplate
from webhook.typed.view import ReadingContext, Typed
from webhook.workloads.podsets import PodSet

YUNIKORN: Final = RuleGroup(
    "yunikorn",
    source="apache/yunikorn-k8shim@23b6b47f pkg/cache/amprotocol.go",
    level="warn",
    fails="silent",
)
"""Pods that YuniKorn places."""
GROUPS: Final = YUNIKORN.rule(
    "yunikorn/task-groups",
    title="YuniKorn ignores the task groups",
    why="If one group is invalid, YuniKorn writes an event and ignores all groups. Pods then start one by one.",
)
GROUP_NAME: Final = YUNIKORN.rule(
    "yunikorn/task-group-name",
    title="The task group of a pod is not in task-groups",
    why="The pod replaces no placeholder, so placeholders keep devices until their timeout.",
)
SMALLER: Final = YUNIKORN.rule(
    "yunikorn/placeholder-smaller",
    title="A placeholder of YuniKorn reserves less than a pod requests",
    why="YuniKorn releases the placeholder if the pod requests more, so the pods may not start together.",
    source="apache/yunikorn-core@be3bb487 pkg/scheduler/objects/application.go",
)
MORE_MEMBERS: Final = YUNIKORN.rule(
    "yunikorn/more-members-than-pods",
    title="A task group has more members than pods",
    why="No pod replaces the additional placeholders, so these keep devices until their timeout.",
    level="advice",
)
SELECTOR: Final = YUNIKORN.rule(
    "yunikorn/placeholder-selector",
    title="Placeholders of a task group may get other nodes than its pods",
    why=(
        "Placeholders get nodeSelector, tolerations and affinity from the task group, not from the pod. Placeholders "
        "on other nodes reserve devices that the pods cannot use."
    ),
    source="apache/yunikorn-k8shim@23b6b47f pkg/cache/placeholder.go",
    level="advice",
)
SCHEDULER: Final = "yunikorn"
_GROUPS: Final = "yunikorn.apache.org/task-groups"
_NAME: Final = "yunikorn.apache.org/task-group-name"
TASK_GROUPS: Final = frozenset((_GROUPS, _NAME))
"""The annotations of pods about task groups."""
_PLACEMENT: Final = {
    "nodeSelector": "may run where the pods cannot",
    "affinity": "may run where the pods cannot",
    "tolerations": "may fit no node",
}
"""Fields of a pod that a placeholder has only if the task group has them, each with the effect on a placeholder without
the field.
"""
_LONGEST: Final = 100_000


class TaskGroup(Typed):
    """A task group in an annotation of YuniKorn."""

    name = Text()
    min_member = Number()
    min_resource = Quantities()


class YuniKornPods(NamedTuple):
    """The pods of one template that YuniKorn places."""

    podset: PodSet
    template: PodTemplate

    def annotation(self, name: str) -> FieldPath:
        """Return the path of a template's annotation in the object."""
        return self.podset.locate(("metadata", "annotations", name))


def check_task_groups(subject: Subject) -> Iterator[Problem]:
    """Report task groups that YuniKorn ignores, or that never have enough pods."""
    located = subject.once(located_templates)
    pods = [YuniKornPods(*each) for each in located if each[1].spec.scheduler_name == SCHEDULER]
    groups: list[TaskGroup] = []
    for each in pods:
        text = each.template.metadata.annotations.get(_GROUPS, "")
        listed_groups = _task_groups(text, each.annotation(_GROUPS), subject) if text else []
        fault = "is not a list of groups in JSON" if listed_groups is None else _fault_of_groups(listed_groups)
        if fault:
            message = f"{fault}, so YuniKorn ignores all task groups and starts the pods one by one"
            fix = "give each group a name, minMember above 0, and minResource with what one pod requests"
            if listed_groups is None:
                fix = "write a JSON list of groups with name, minMember and minResource"
            yield from without_repeated_problems((GROUPS.problem(each.annotation(_GROUPS), message, fix),), subject)
            return
        groups += listed_groups or []
    for each in pods if groups else ():
        yield from without_repeated_problems(_check_group_of_pods(each, groups, pods, subject.cluster_view()), subject)


def _task_groups(text: str, at: FieldPath, subject: Subject) -> list[TaskGroup] | None:
    """Return the groups of the annotation at a path; None if the text is too long, or is not a list in JSON."""
    subject.deadline.spend_text(text)
    try:
        listed = json.loads(text) if len(text) <= _LONGEST else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(listed, list):
        return None
    return [TaskGroup.of(each, at, ReadingContext(subject.deadline)) for each in listed]


def _fault_of_groups(groups: Sequence[TaskGroup]) -> str:
    for number, group in enumerate(groups):
        shown = f"task group {group.name}" if group.name else f"task group number {number + 1}"
        if not group.name:
            return f"{shown} has no name"
        if not group.min_resource:
            return f"{shown} has no minResource"
        if group.min_member <= 0:
            return f"{shown} has no minMember above 0"
    return ""


def _check_group_of_pods(
    pods: YuniKornPods, groups: Sequence[TaskGroup], everyone: Sequence[YuniKornPods], view: ClusterView
) -> Iterator[Problem]:
    name = pods.template.metadata.annotations.get(_NAME, "")
    if not name:
        return
    group = next((each for each in groups if each.name == name), None)
    if group is None:
        message = f"is not a group of task-groups, which has {either(each.name for each in groups)}"
        fix = f"write `{groups[0].name}`" if len(groups) == 1 else "name a group of task-groups"
        yield GROUP_NAME.problem(pods.annotation(_NAME), message, fix, name)
        return
    spec = pods.template.spec
    requests = quota_requests_of_pod(spec, requests_of_containers(spec, NamespaceLimits()), {})
    reserved = amounts_in_thousandths(group.json.get("minResource") or {})
    smaller = [f"`{resource}`" for resource, amount in requests.items() if amount > reserved.get(resource, 0)]
    if smaller:
        of_pod = " and ".join(smaller)
        less = f"minResource of group {name} has less {of_pod} than a pod requests"
        message = f"{less}, so YuniKorn reserves nothing for the pod"
        yield SMALLER.problem(group.at, message, f"set {of_pod} of one pod in minResource")
    missing = [field for field in _PLACEMENT if spec.json.get(field) and not group.json.get(field)]
    if missing and not _fits_same_nodes_without(missing, spec, view):
        message = f"group {name} has no {either(missing)}, so its placeholders {_PLACEMENT[missing[0]]}"
        yield SELECTOR.problem(group.at, message, f"copy {' and '.join(missing)} of the pod into the group")
    counts = [each.podset.pods for each in everyone if each.template.metadata.annotations.get(_NAME) == name]
    total = sum(each or 0 for each in counts)
    if None not in counts and 0 < total < group.min_member:
        over = counted(group.min_member - total, "placeholder")
        message = f"minMember of group {name} is {group.min_member}, but the group has {counted(total, 'pod')}"
        message = f"{message}, so {over} reserve{'s' if group.min_member - total == 1 else ''} devices in vain"
        yield MORE_MEMBERS.problem(group.at, message, f"set minMember {total}")


def _fits_same_nodes_without(fields: Sequence[str], spec: PodSpec, view: ClusterView) -> bool:
    """Return whether all nodes are known, no nodes may be added, and the pods fit the same nodes without the fields.
    Affinity between pods always counts as a difference.
    """
    nodes = view.list_visible_json(Node.gvk) if view.is_whole(Node.gvk) else ()
    if not nodes or first_node_without_amounts(IdentityKey(nodes)) or source_of_new_nodes(view):
        return False
    if "affinity" in fields and not spec.affinity.json.keys() <= {"nodeAffinity"}:
        return False
    needs = needs_of_pod(spec, view)
    others = {name: value for name, value in spec.json.items() if name not in fields}
    without = replace(needs, spec=PodSpec.of(others, (), ReadingContext(view.deadline)))
    return all(needs.fits(offer) == without.fits(offer) for offer in known_offers(view))


CHECKS: Final = (
    Check(
        group="yunikorn",
        run=check_task_groups,
        kinds=PLACED,
        lookups=(*NODE_LOOKUPS, *CLASS_LOOKUPS, *NODE_POOL_LOOKUPS),
        of_made_objects=False,
        of_pods_with=TASK_GROUPS,
    ),
)
