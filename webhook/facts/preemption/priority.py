"""PriorityClasses of workloads with devices: whether they are there, and whether Kueue heeds what they say.

Kueue takes the value of a PriorityClass and not its preemptionPolicy: kubernetes-sigs/kueue@ff69552e
pkg/util/priority/priority.go GetPriorityFromPriorityClass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.cluster.interest import reading
from webhook.facts.check import Group
from webhook.facts.gpu.device_pods import workload
from webhook.facts.kinds import PRIORITY_CLASS
from webhook.facts.kueue.objects import CLUSTER_QUEUE, LOCAL_QUEUE
from webhook.facts.scheduling.priority_classes import named
from webhook.facts.subject import Subject
from webhook.facts.values import mapping, text
from webhook.paths import get
from webhook.problem import MissingObject, Problem

problem: Final = Group("preemption").problem
LOOKUPS: Final = (
    reading(PRIORITY_CLASS, "preemptionPolicy"),
    reading(LOCAL_QUEUE, "spec.clusterQueue"),
    reading(CLUSTER_QUEUE, "spec.preemption"),
)
_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_PRIORITY: Final = "kueue.x-k8s.io/priority-class"
_PREEMPTS: Final = ("withinClusterQueue", "reclaimWithinCohort")


def validate_priority_classes(subject: Subject) -> Iterator[Problem]:
    """PriorityClasses that the pods name and that are not there."""
    if not subject.once(workload).device_pods:
        return
    for each in subject.deadline.each(subject.fact("priorities")["classes"]):
        if each["absent"]:
            near = each["nearest"]
            message = f"PriorityClass `{each['name']}` does not exist, so the API server refuses the pods"
            fix = (
                f"write `{near}` if that is meant, or create the class"
                if near
                else "create the class, or correct the name"
            )
            yield problem("priority-class", each["path"], message, fix)
        elif not each["found"]:
            missing = MissingObject(kind=PRIORITY_CLASS.kind, name=each["name"])
            yield problem("priority-class", each["path"], missing=(missing,))


def advise_preemption_policy(subject: Subject) -> Iterator[Problem]:
    """A class that says it never preempts, in a queue whose Kueue does so all the same."""
    labels, made = mapping(get(subject.object, ("metadata", "labels"))), subject.once(workload)
    queue = text(labels.get(_QUEUE))
    names = list(filter(None, (named(each.podset.template) for each in made.device_pods)))
    if not queue or labels.get(_PRIORITY) or not names:
        return
    view = subject.view()
    if mapping(view.get(PRIORITY_CLASS, names[0], namespaced=False)).get("preemptionPolicy") != "Never":
        return
    of = text(get(view.get(LOCAL_QUEUE, queue), ("spec", "clusterQueue")))
    preemption = mapping(get(view.get(CLUSTER_QUEUE, of, namespaced=False) if of else None, ("spec", "preemption")))
    if any(preemption.get(each) not in (None, "", "Never") for each in _PREEMPTS):
        at = made.device_pods[0].at("priorityClassName")
        message = (
            f"is a PriorityClass with preemptionPolicy Never, but Kueue ignores this policy, so Kueue "
            f"may preempt other "
            f"jobs of ClusterQueue `{of}` for this job"
        )
        yield problem(
            "never-preempts",
            at,
            message,
            f"set the label {_PRIORITY} to a WorkloadPriorityClass with a low value",
            names[0],
        )
