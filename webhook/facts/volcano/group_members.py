"""The pods that name a PodGroup, counted in the objects at hand: its pods, and what makes them.

Only files hold them all. A live view has no pods, and a new PodGroup has none yet, so nothing is known then.
Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/api/job_info.go getJobID, which reads one annotation alone, and
pkg/scheduler/plugins/gang/gang.go, which counts the pods that exist and have not failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from webhook.attributes import JSON, POD
from webhook.facts.command_lines.command import launch
from webhook.facts.command_lines.node_limits import limits_of
from webhook.facts.pods.containers import containers
from webhook.facts.subject import Subject
from webhook.facts.values import mapping, text
from webhook.facts.volcano_objects import kinds
from webhook.paths import get
from webhook.problem import MissingObject
from webhook.same import Same
from webhook.workloads.podsets import PodSet, podsets
from webhook.workloads.table import Table

_KEPT: Final = 128
"""Kinds times namespaces that are remembered; an audit asks for those of one namespace after another."""
_OF_TASK: Final = ("annotations", "labels")
"""Where pods say which task they are of; as getTaskRole."""


@dataclass(frozen=True, slots=True)
class Member:
    """The pods of one template that name a PodGroup.

    Args:
        maker: kind and name of the object that makes them.
        pods: how many, None where nobody knows.
        scheduler: who places them.
        nodes: how many nodes the launcher in them waits for, 0 where it does not say.
        task: the task that they say they are of.
    """

    maker: str
    pods: int | None
    scheduler: str
    nodes: int
    task: str


def members(subject: Subject, name: str) -> tuple[Sequence[Member], tuple[MissingObject, ...]]:
    """The pods that name a PodGroup of the request's namespace, or why nobody can tell which they are."""
    view = subject.view()
    view.all(POD, subject.namespace)
    if unknown := view.missing():
        return (), unknown[""]
    made: list[Member] = []
    for row in subject.deadline.each(subject.table.rows):
        if row.podSets and row.group not in (kinds.BATCH, kinds.FLOW):  # Volcano names the groups of its own
            listed = view.all(row.gvk, subject.namespace)
            subject.deadline.spend(len(listed))
            made += _named(Same(listed), Same(subject.table)).get(name, ())
    absent = MissingObject(kind="Pod", name=f"that names PodGroup {name}", namespace=subject.namespace)
    return made, () if made else (absent,)


@lru_cache(maxsize=_KEPT)
def _named(objects: Same, table: Same) -> Mapping[str, Sequence[Member]]:
    """The members of each PodGroup among objects of one kind; the same list has the same ones."""
    made: dict[str, list[Member]] = {}
    for obj in objects.held:
        for name, member in _members(obj, table.held):
            made.setdefault(name, []).append(member)
    return made


def _members(obj: JSON, table: Table) -> Iterator[tuple[str, Member]]:
    for podset in podsets(obj, table):
        name = text(get(podset.template, ("metadata", "annotations", kinds.GROUP_NAME)))
        if name:
            yield name, _member(podset, f"{obj['kind']} `{text(get(obj, ('metadata', 'name')))}`")


def _member(podset: PodSet, maker: str) -> Member:
    spec = mapping(get(podset.template, ("spec",)))
    running = (each for each in containers(podset.template) if not each.init)
    nodes = [limits[0] for each in running if (limits := limits_of(launch(each.value))) is not None]
    return Member(
        maker=maker,
        pods=podset.pods,
        scheduler=text(spec.get("schedulerName")) or kinds.DEFAULT_SCHEDULER,
        nodes=max(nodes, default=0),
        task=next(filter(None, (text(get(podset.template, ("metadata", at, kinds.TASK))) for at in _OF_TASK)), ""),
    )
