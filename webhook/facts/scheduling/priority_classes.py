"""The PriorityClasses that an object's pods name, looked up.

The plugin Priority of the API server refuses a pod whose class is not there (k8s.io/kubernetes v1.36
plugin/pkg/admission/priority), long after the object that makes the pod was accepted. Two classes are always there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.cluster.interest import interest_in_fields
from webhook.facts.kinds import PRIORITY_CLASS
from webhook.facts.pods.pod_sets import template_of
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.paths import path_as_text
from webhook.placeholders import is_placeholder
from webhook.typed.fields import Text
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.workloads.podsets import PodSet

LOOKUP: Final = interest_in_fields(PRIORITY_CLASS)
ALWAYS_THERE: Final = ("system-cluster-critical", "system-node-critical")


class PriorityClass(Object):
    """scheduling.k8s.io PriorityClass."""

    gvk = PRIORITY_CLASS
    preemption_policy = Text()


def compute_priorities_fact(podsets: Iterable[PodSet], subject: Subject, view: ClusterView) -> JSON:
    """Return the fact `priorities` of an object with these pod sets."""
    return {"classes": list(_priority_classes_as_json(podsets, subject, view))}


def priority_class_name(template: PodTemplate) -> str:
    """Return the class that a pod template names, "" without one or where it is still to be filled in."""
    name = template.spec.priority_class_name
    return "" if is_placeholder(name) else name


def _priority_classes_as_json(podsets: Iterable[PodSet], subject: Subject, view: ClusterView) -> Iterator[JSON]:
    for podset in podsets:
        name = priority_class_name(template_of(podset, subject))
        if not name:
            continue
        is_there = name in ALWAYS_THERE or bool(view.find(PriorityClass, name, namespaced=False))
        near = "" if is_there else view.nearest(name, (known.name for known in view.list_visible(PriorityClass)))
        yield {
            "podSet": podset.name,
            "path": path_as_text(podset.locate(("spec", "priorityClassName"))),
            "name": name,
            "found": is_there,
            "absent": not is_there and view.is_whole(PriorityClass.gvk),
            "nearest": near,
        }
