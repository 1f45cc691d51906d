"""The facts `podGroup` and `priorities`: objects of scheduling.k8s.io that pods name."""

from __future__ import annotations

from typing import Final

from webhook.cel.types import BOOL, STRING, list_of
from webhook.facts.fact import Fact, Result, structure
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.scheduling import pod_group, priority_classes
from webhook.facts.subject import Subject
from webhook.facts.trainer.lookups import RUNTIMES

GROUP: Final = structure(
    "PodGroupReference",
    podSet=(STRING, "name of the pod set"),
    path=(STRING, "where the pods name the group"),
    name=(STRING, "name of the group"),
    found=(BOOL, "whether it is there"),
)
CLAIM: Final = structure(
    "PodGroupClaim",
    path=(STRING, "where the claim of the pods stands"),
    group=(STRING, "name of the group"),
    name=(STRING, "name of the claim in the pods"),
    source=(STRING, "source of the claim in the pods, as text: ResourceClaimTemplate `gpu`"),
    groupName=(STRING, "name of the group's claim that it nearly is"),
    groupSource=(STRING, "source of that claim"),
)
POD_GROUP: Final = structure(
    "PodGroup",
    groups=(list_of(GROUP.type), "PodGroups that pods belong to"),
    others=(list_of(CLAIM.type), "claims of pods with the name or the source of one of the group's, and not both"),
)
PRIORITY: Final = structure(
    "PodPriority",
    podSet=(STRING, "name of the pod set"),
    path=(STRING, "where the pods name the class"),
    name=(STRING, "name of the class"),
    found=(BOOL, "whether it is there"),
    absent=(BOOL, "whether it is known not to be there"),
    nearest=(STRING, "the class that was probably meant"),
)
PRIORITIES: Final = structure(
    "Priorities",
    classes=(list_of(PRIORITY.type), "PriorityClasses that pods name; those of the system are always there"),
)


def _pod_group(subject: Subject) -> Result:
    listed, view = subject.once(pod_sets), subject.view()
    value = pod_group.pod_group(listed.all, view.of("groups", "others"))
    return listed.result(value, missing=view.missing())


def _priorities(subject: Subject) -> Result:
    listed, view = subject.once(pod_sets), subject.view()
    return listed.result(priority_classes.priorities(listed.all, view.of("classes")), missing=view.missing())


FACTS: Final = (
    Fact(
        name="podGroup",
        about=(
            "The PodGroups (KEP-5729) that pods belong to, and claims of pods that are nearly, but not quite, the "
            "group's."
        ),
        examples=("podGroup.others.size() == 0",),
        type=POD_GROUP.type,
        structures=(POD_GROUP, GROUP, CLAIM),
        compute=_pod_group,
        lookups=(pod_group.LOOKUP, *RUNTIMES),
    ),
    Fact(
        name="priorities",
        about="The PriorityClasses that the pods of an object name.",
        examples=("priorities.classes.all(c, !c.absent)",),
        type=PRIORITIES.type,
        structures=(PRIORITIES, PRIORITY),
        compute=_priorities,
        lookups=(priority_classes.LOOKUP, *RUNTIMES),
    ),
)
