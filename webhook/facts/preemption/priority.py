"""PriorityClasses of workloads with devices: whether they are there, and whether Kueue heeds what they say.

Kueue takes the value of a PriorityClass and not its preemptionPolicy: kubernetes-sigs/kueue@ff69552e
pkg/util/priority/priority.go GetPriorityFromPriorityClass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.cluster.interest import reading
from webhook.facts.gpu.device_pods import workload
from webhook.facts.kinds import PRIORITY_CLASS
from webhook.facts.kueue.types import ClusterQueue, LocalQueue
from webhook.facts.preemption.groups import PREEMPTION
from webhook.facts.scheduling.priority_classes import PriorityClass
from webhook.facts.scheduling.priority_classes import named as priority_class_name
from webhook.facts.subject import Subject
from webhook.problem import MissingObject, Problem
from webhook.typed.collections import Items

PREEMPTION_PRIORITY_CLASS: Final = PREEMPTION.rule(
    "preemption/priority-class",
    title="The PriorityClasses of a workload with devices exist.",
    why="The API server refuses every pod of such a workload, long after the workload itself was accepted.",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/priority/admission.go",
    function="admitPod",
    fails="controller",
)
NEVER_PREEMPTS: Final = PREEMPTION.rule(
    "preemption/never-preempts",
    title="A workload that is not to preempt others is in a queue that does not preempt for it.",
    why=(
        "Kueue compares only the values of priority classes, and preempts workloads of lower value also for a class "
        "with preemptionPolicy Never."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/util/priority/priority.go",
    function="GetPriorityFromPriorityClass",
)

LOOKUPS: Final = (
    reading(PRIORITY_CLASS, "preemptionPolicy"),
    reading(LocalQueue.gvk, "spec.clusterQueue"),
    reading(ClusterQueue.gvk, "spec.preemption"),
)
_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_PRIORITY: Final = "kueue.x-k8s.io/priority-class"


def validate_priority_classes(subject: Subject) -> Iterator[Problem]:
    """PriorityClasses that the pods name and that are not there."""
    if not subject.once(workload).device_pods:
        return
    for named in Items(subject.fact("priorities")["classes"], subject.deadline):
        if named["absent"]:
            near = named["nearest"]
            message = f"PriorityClass `{named['name']}` does not exist, so the API server refuses the pods"
            fix = "create the class, or correct the name"
            if near:
                fix = f"write `{near}` if that is meant, or create the class"
            yield PREEMPTION_PRIORITY_CLASS.problem(named["path"], message, fix)
        elif not named["found"]:
            missing = MissingObject(kind=PRIORITY_CLASS.kind, name=named["name"])
            yield PREEMPTION_PRIORITY_CLASS.problem(named["path"], missing=(missing,))


def advise_preemption_policy(subject: Subject) -> Iterator[Problem]:
    """A class that says it never preempts, in a queue whose Kueue does so all the same."""
    labels, pods = subject.metadata.labels, subject.once(workload).device_pods
    queue = labels.get(_QUEUE)
    name = next(filter(None, (priority_class_name(using.template) for using in pods)), "")
    if not queue or labels.get(_PRIORITY) or not name:
        return
    view = subject.view()
    if view.find(PriorityClass, name, namespaced=False).preemption_policy != "Never":
        return
    of = view.find(LocalQueue, queue).spec.cluster_queue
    if of and _preempts(view.find(ClusterQueue, of, namespaced=False)):
        message = (
            f"is a PriorityClass with preemptionPolicy Never, but Kueue ignores this policy, so Kueue "
            f"may preempt other "
            f"jobs of ClusterQueue `{of}` for this job"
        )
        fix = f"set the label {_PRIORITY} to a WorkloadPriorityClass with a low value"
        yield NEVER_PREEMPTS.problem(pods[0].locate(pods[0].spec.path("priorityClassName")), message, fix, name)


def _preempts(queue: ClusterQueue) -> bool:
    preemption = queue.spec.preemption
    return any(
        policy not in ("", "Never") for policy in (preemption.within_cluster_queue, preemption.reclaim_within_cohort)
    )
