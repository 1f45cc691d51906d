"""PriorityClasses of workloads with devices: whether they are there, and whether Kueue heeds what they say.

Kueue takes the value of a PriorityClass and not its preemptionPolicy: kubernetes-sigs/kueue@ff69552e
pkg/util/priority/priority.go GetPriorityFromPriorityClass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.gpu.device_pods import read_device_workload
from webhook.facts.kinds import PRIORITY_CLASS
from webhook.facts.preemption.groups import PREEMPTION
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


def check_priority_classes_exist(subject: Subject) -> Iterator[Problem]:
    """Report PriorityClasses that the pods name and that do not exist."""
    if not subject.once(read_device_workload).device_pods:
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
