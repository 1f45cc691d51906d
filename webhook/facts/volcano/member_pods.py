"""Counts the pods that name a PodGroup in the known objects: Pods, and the workloads that create them.

Only files hold them all. A live view has no pods, and a new PodGroup has none yet, so nothing is known then.
Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/api/job_info.go getJobID, which reads only one annotation, and
pkg/scheduler/plugins/gang/gang.go, which counts the pods that exist and have not failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from webhook.apimachinery.attributes import POD
from webhook.facts.command_lines.command import launch_of_json, node_count_range_of_launch
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects import types
from webhook.rules.problem import MissingObject
from webhook.text.caches import IdentityKey
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.workloads.podsets import PodSet, pod_templates

_KEPT: Final = 128
"""How many kinds and namespaces are cached; an audit asks for one namespace after another."""


@dataclass(frozen=True, slots=True)
class PodGroupMember:
    """The pods of one template that name a PodGroup.

    Args:
        maker: kind and name of the object that makes them.
        pods: the number, None if it is not known.
        scheduler: the scheduler of the pods.
        nodes: how many nodes the launcher in them waits for, 0 if it does not say.
        task: the task that they say they are of, by an annotation or a label, as getTaskRole reads it.
    """

    maker: str
    pods: int | None
    scheduler: str
    nodes: int
    task: str


def pods_of_group(subject: Subject, name: str) -> tuple[Sequence[PodGroupMember], tuple[MissingObject, ...]]:
    """Return the pods that name a PodGroup of the request's namespace, and the objects missing to know them."""
    view = subject.cluster_view()
    view.list_json(POD, subject.namespace)
    if unknown := view.missing_objects_by_field():
        return (), unknown[""]
    naming: list[PodGroupMember] = []
    for row in subject.deadline.charge_for_items(subject.table.rows):
        if row.podSets and row.group not in (
            types.BATCH,
            types.FLOW,
        ):  # Volcano itself names the groups of these owners
            listed = view.list_json(row.gvk, subject.namespace)
            subject.deadline.spend(len(listed))
            naming += _members_by_pod_group(IdentityKey(listed), IdentityKey(subject.table)).get(name, ())
    absent = MissingObject(kind="Pod", name=f"that names PodGroup {name}", namespace=subject.namespace)
    return naming, () if naming else (absent,)


@lru_cache(maxsize=_KEPT)
def _members_by_pod_group(objects: IdentityKey, table: IdentityKey) -> Mapping[str, Sequence[PodGroupMember]]:
    """Return the members of each PodGroup among objects of one kind; cached for the list."""
    groups: dict[str, list[PodGroupMember]] = {}
    for obj in objects.held:
        for podset in pod_templates(obj, table.held):
            template = PodTemplate.of(podset.template)
            if name := template.metadata.annotations.get(types.GROUP_NAME):
                groups.setdefault(name, []).append(_pod_group_member(podset, template, Object.of(obj)))
    return groups


def _pod_group_member(podset: PodSet, template: PodTemplate, maker: Object) -> PodGroupMember:
    launches = (launch_of_json(container.json) for container in template.spec.containers)
    nodes = [limits[0] for started in launches if (limits := node_count_range_of_launch(started)) is not None]
    annotations, labels = template.metadata.annotations, template.metadata.labels
    return PodGroupMember(
        maker=f"{maker.json['kind']} `{maker.name}`",
        pods=podset.pods,
        scheduler=template.spec.scheduler_name or types.DEFAULT_SCHEDULER,
        nodes=max(nodes, default=0),
        task=annotations.get(types.TASK, "") or labels.get(types.TASK, ""),
    )
