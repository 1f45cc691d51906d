"""The fact `priorities`: the PriorityClasses that an object's pods name, looked up in the cluster.

The API server's plugin Priority refuses a pod with an absent class. By then, the API server has long accepted the
object that creates the pod. The two classes system-cluster-critical and system-node-critical always exist.

Source: k8s.io/kubernetes v1.36 plugin/pkg/admission/priority.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import path_as_text
from webhook.cel.types import BOOL, STRING, list_of
from webhook.cluster.interest import interest_in_fields
from webhook.facts.fact import FactResult, declare_structure
from webhook.facts.kinds import PRIORITY_CLASS
from webhook.facts.pods.pod_sets import pod_sets, template_of
from webhook.facts.subject import Fact, Subject
from webhook.facts.train_job_pods.types import RUNTIMES
from webhook.facts.view import ClusterView
from webhook.typed.fields import Number, Text
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.workloads.podsets import PodSet
from webhook.yamltext.placeholders import is_placeholder

PRIORITY_CLASS_LOOKUP: Final = interest_in_fields(PRIORITY_CLASS)
BUILT_IN_PRIORITY_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
PRIORITY: Final = declare_structure(
    "PodPriority",
    podSet=(STRING, "name of the pod set"),
    path=(STRING, "path of the field that names the class"),
    name=(STRING, "name of the class"),
    found=(BOOL, "whether the class exists"),
    absent=(BOOL, "whether the class is known not to exist"),
    nearest=(STRING, "the existing class that the user probably meant"),
)
PRIORITIES: Final = declare_structure(
    "Priorities",
    classes=(list_of(PRIORITY.type), "PriorityClasses that pods name; the two classes of the system always exist"),
)


class PriorityClass(Object):
    """scheduling.k8s.io PriorityClass."""

    gvk = PRIORITY_CLASS
    preemption_policy = Text()
    value = Number()


def compute_priorities_fact(podsets: Iterable[PodSet], subject: Subject, view: ClusterView) -> JSON:
    """Return the fact `priorities` of an object with these pod sets."""
    return {"classes": list(_priority_classes_as_json(podsets, subject, view))}


def priority_class_name(template: PodTemplate) -> str:
    """Return the class that a pod template names; "" if it names no class, or for a placeholder."""
    name = template.spec.priority_class_name
    return "" if is_placeholder(name) else name


def _priority_classes_as_json(podsets: Iterable[PodSet], subject: Subject, view: ClusterView) -> Iterator[JSON]:
    for podset in podsets:
        name = priority_class_name(template_of(podset, subject))
        if not name:
            continue
        is_there = name in BUILT_IN_PRIORITY_CLASSES or bool(view.find(PriorityClass, name, namespaced=False))
        near = "" if is_there else view.nearest(name, (known.name for known in view.list_visible(PriorityClass)))
        yield {
            "podSet": podset.name,
            "path": path_as_text(podset.locate(("spec", "priorityClassName"))),
            "name": name,
            "found": is_there,
            "absent": not is_there and view.is_whole(PriorityClass.gvk),
            "nearest": near,
        }


def _compute_priorities_fact(subject: Subject) -> FactResult:
    listed, view = subject.once(pod_sets), subject.cluster_view()
    return listed.build_fact_result(
        compute_priorities_fact(listed.all, subject, view.for_fields("classes")),
        missing=view.missing_objects_by_field(),
    )


FACTS: Final = (
    Fact(
        name="priorities",
        about="The PriorityClasses that the pods of an object name.",
        examples=("priorities.classes.all(c, !c.absent)",),
        type=PRIORITIES.type,
        structures=(PRIORITIES, PRIORITY),
        compute=_compute_priorities_fact,
        lookups=(PRIORITY_CLASS_LOOKUP, *RUNTIMES),
    ),
)
