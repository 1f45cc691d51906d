"""The fact `priorities`: the priority classes that pods name."""

from __future__ import annotations

from typing import Final

from webhook.cel.types import BOOL, STRING, list_of
from webhook.facts.fact import Fact, FactResult, declare_structure
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.scheduling import priority_classes
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.lookups import RUNTIMES

PRIORITY: Final = declare_structure(
    "PodPriority",
    podSet=(STRING, "name of the pod set"),
    path=(STRING, "where the pods name the class"),
    name=(STRING, "name of the class"),
    found=(BOOL, "whether it is there"),
    absent=(BOOL, "whether it is known not to be there"),
    nearest=(STRING, "the class that was probably meant"),
)
PRIORITIES: Final = declare_structure(
    "Priorities",
    classes=(list_of(PRIORITY.type), "PriorityClasses that pods name; those of the system are always there"),
)


def _compute_priorities_fact(subject: Subject) -> FactResult:
    listed, view = subject.once(pod_sets), subject.cluster_view()
    return listed.build_fact_result(
        priority_classes.compute_priorities_fact(listed.all, subject, view.for_fields("classes")),
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
        lookups=(priority_classes.LOOKUP, *RUNTIMES),
    ),
)
