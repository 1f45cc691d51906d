"""PodGroups of KAI that its webhook or the API server refuses.

KAI makes PodGroups itself. A PodGroup that a user writes names subgroups, which may be inside each other.

Source: NVIDIA/KAI-Scheduler@72de64fc pkg/apis/scheduling/v2alpha2/podgroup_webhook.go;
deployments/kai-scheduler/crds/scheduling.run.ai_podgroups.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.facts.other_schedulers.kai_gangs import KAI
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.fields import OptionalNumber, Part, Parts, Text
from webhook.typed.objects import Object
from webhook.typed.view import Typed
from webhook.yamltext.placeholders import is_placeholder

POD_GROUP: Final = KAI.rule(
    "kai/pod-group",
    title="A PodGroup of KAI has subgroups or a number of members that are refused",
    why="The webhook of KAI refuses subgroups without an order, and the API server refuses a group without members.",
    source="NVIDIA/KAI-Scheduler@72de64fc pkg/apis/scheduling/v2alpha2/podgroup_webhook.go",
    function="validateSubGroups",
    refused_by="the webhook of KAI, when the group is created or changed",
    fails="create",
)
_PREEMPTIBILITY: Final = ("preemptible", "non-preemptible")


class KaiSubGroup(Typed):
    """scheduling.run.ai/v2alpha2 SubGroup: pods of a group that start together; `parent` is another subgroup."""

    min_member = OptionalNumber()
    name = Text()
    parent = Text()


class KaiPodGroupSpec(Typed):
    """scheduling.run.ai/v2alpha2 PodGroupSpec."""

    min_member = OptionalNumber()
    preemptibility = Text()
    sub_groups = Parts(KaiSubGroup)


class KaiPodGroup(Object):
    """scheduling.run.ai/v2alpha2 PodGroup."""

    gvk = GroupVersionKind("scheduling.run.ai", "v2alpha2", "PodGroup")
    spec = Part(KaiPodGroupSpec)


def check_kai_pod_group(subject: Subject) -> Iterator[Problem]:
    """Report what is refused of a PodGroup."""
    spec = subject.typed(KaiPodGroup).spec
    parts: tuple[KaiPodGroupSpec | KaiSubGroup, ...] = (spec, *spec.sub_groups)
    for part in parts:
        if part.min_member is not None and part.min_member < 1:
            yield POD_GROUP.problem(part.path("minMember"), "must be 1 or more", "set 1 or more", part.min_member)
    written = spec.preemptibility
    if written and written not in _PREEMPTIBILITY and not is_placeholder(written):
        message = f"must be one of {', '.join(_PREEMPTIBILITY)}"
        yield POD_GROUP.problem(spec.path("preemptibility"), message, "use one of them", written[:80])
    groups = dict[str, KaiSubGroup]()
    for each in spec.sub_groups:
        if not each.has("name"):
            yield POD_GROUP.problem(each.path("name"), "is required", "set a name")
        elif each.name in groups:
            yield POD_GROUP.problem(each.path("name"), "is also the name of another subgroup", "set another name")
        groups.setdefault(each.name, each)
    for each in groups.values():
        if each.parent and each.parent not in groups and not is_placeholder(each.parent):
            message = f"names subgroup {each.parent[:80]}, which does not exist"
            yield POD_GROUP.problem(each.path("parent"), message, "name another subgroup, or none")
    first = _first_in_circle(groups)
    if first is not None:
        yield POD_GROUP.problem(first.path("parent"), "is inside this subgroup itself", "remove one parent")


def _first_in_circle(groups: Mapping[str, KaiSubGroup]) -> KaiSubGroup | None:
    """Return the first subgroup that is inside itself, None if there is none. Each subgroup is walked once."""
    walked = set[str]()
    for first in groups:
        chain, name = dict[str, None](), first
        while name in groups and name not in walked and name not in chain:
            chain[name] = None
            name = groups[name].parent
        if name in chain:
            return groups[name]
        walked |= chain.keys()
    return None
