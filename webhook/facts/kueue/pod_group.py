"""Pods of one group, where files have them: Kueue makes one Workload of all of them, or none.

A live view holds no Pods, and those of a group are sent one after the other: nothing is said there. Source:
kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/pod/pod_controller.go validatePodGroupMetadata, which counts the
pods and compares all with the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from webhook.attributes import JSON, POD
from webhook.facts.kueue.blocked import NEVER, NOT_NOW, Place
from webhook.facts.kueue.managed import Managed, queue_name
from webhook.facts.kueue.objects import POD_GROUP, POD_GROUP_COUNT, POD_GROUP_FAST, QUEUE_NAME
from webhook.facts.kueue.queues import name_of
from webhook.facts.subject import Subject
from webhook.facts.values import text
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.same import Same
from webhook.wording import counted

_QUEUE: Final[FieldPath] = ("metadata", "labels", QUEUE_NAME)
_GROUP: Final[FieldPath] = ("metadata", "labels", POD_GROUP)
_COUNT: Final[FieldPath] = ("metadata", "annotations", POD_GROUP_COUNT)
_FAST: Final[FieldPath] = ("metadata", "annotations", POD_GROUP_FAST)
_KEPT: Final = 16
"""Namespaces whose groups are remembered; an audit asks for those of one after another."""


@dataclass(frozen=True, slots=True)
class _First:
    """The first pod of a group, with its queue and the number of pods that it says the group has."""

    name: str
    queue: str
    count: str


def same_group(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """The pods of a group name one queue and one number of pods."""
    group = _group(subject, how)
    listed = subject.view().all(POD, subject.namespace) if group else ()
    subject.deadline.spend(len(listed))
    first = _firsts(Same(listed)).get(group)
    if first is None or first.name == name_of(subject.object):
        return
    count = text(get(subject.object, _COUNT))
    for path, given, wanted, what in (
        (_QUEUE, how.queue, first.queue or how.queue, "queue"),
        (_COUNT, count, first.count, "number of pods"),
    ):
        if given != wanted and not is_placeholder(given + wanted):
            message = (
                f"must be `{wanted}`, the {what} that pod `{first.name}` of the same group names, because Kueue never "
                "admits a group"
            )
            yield NEVER("pod-group-differs", path, f"{message} whose pods differ in this", f"set {wanted}", given)


def whole_group(subject: Subject, how: Managed, place: Place) -> Iterator[Problem]:  # noqa: ARG001
    """All pods of a group are there, in the files of a whole cluster."""
    group, view = _group(subject, how), subject.view().unnoted()
    count, fast = (
        text(get(subject.object, ("metadata", "annotations", name))) for name in (POD_GROUP_COUNT, POD_GROUP_FAST)
    )
    if not group or not count.isdecimal() or fast == "true" or not view.is_whole():
        return
    listed = view.all(POD, subject.namespace)
    if view.missing():
        return
    paced = subject.deadline.paced(listed)
    names = {name_of(each) for each in paced if text(get(each, _GROUP)) == group and not _is_over(each)}
    there = len(names | {name_of(subject.object)})
    if there < int(count):
        message = f"is more than the {counted(there, 'pod')} of group `{group}` in this namespace"
        message = f"{message}, so Kueue waits for the others"
        yield NOT_NOW("pod-group-incomplete", _COUNT, message, "create the other pods of the group", count)


def _group(subject: Subject, how: Managed) -> str:
    """The name of the group, where the object is a pod that Kueue manages."""
    group = text(get(subject.object, _GROUP)) if how.framework == "pod" else ""
    return "" if is_placeholder(group) else group


@lru_cache(maxsize=_KEPT)
def _firsts(pods: Same) -> Mapping[str, _First]:
    """The first pod of each group that did not fail."""
    made: dict[str, _First] = {}
    for each in pods.held:
        group = text(get(each, _GROUP))
        if group and not _is_over(each):
            made.setdefault(group, _First(name_of(each), queue_name(each), text(get(each, _COUNT))))
    return made


def _is_over(pod: JSON) -> bool:
    return get(pod, ("status", "phase")) == "Failed" or get(pod, ("metadata", "deletionTimestamp")) is not None
