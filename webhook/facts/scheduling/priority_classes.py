"""The PriorityClasses that an object's pods name, looked up.

The plugin Priority of the API server refuses a pod whose class is not there (k8s.io/kubernetes v1.36
plugin/pkg/admission/priority), long after the object that makes the pod was accepted. Two classes are always there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.cluster.interest import reading
from webhook.facts.kinds import PRIORITY_CLASS
from webhook.facts.values import mapping, text
from webhook.facts.view import View
from webhook.paths import get, render
from webhook.placeholders import is_placeholder
from webhook.workloads.podsets import PodSet

LOOKUP: Final = reading(PRIORITY_CLASS)
ALWAYS_THERE: Final = ("system-cluster-critical", "system-node-critical")


def priorities(podsets: Iterable[PodSet], view: View) -> JSON:
    """The fact `priorities` of an object with these pod sets."""
    return {"classes": list(_classes(podsets, view))}


def named(template: JSON) -> str:
    """The class that a pod template names, "" without one or where it is still to be filled in."""
    name = text(get(template, ("spec", "priorityClassName")))
    return "" if is_placeholder(name) else name


def _classes(podsets: Iterable[PodSet], view: View) -> Iterator[JSON]:
    for podset in view.deadline.paced(podsets):
        if not (name := named(podset.template)):
            continue
        is_there = name in ALWAYS_THERE or view.get(PRIORITY_CLASS, name, namespaced=False) is not None
        near = "" if is_there else view.nearest(name, (_name(each) for each in view.objects(PRIORITY_CLASS)))
        yield {
            "podSet": podset.name,
            "path": render(podset.locate(("spec", "priorityClassName"))),
            "name": name,
            "found": is_there,
            "absent": not is_there and (near != "" or view.is_whole()),
            "nearest": near,
        }


def _name(obj: JSON) -> str:
    return text(mapping(mapping(obj).get("metadata")).get("name"))
