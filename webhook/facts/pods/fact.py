"""The fact `podSets`: every pod template of an object, how many pods it makes, and what an update does to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from webhook import paths
from webhook.attributes import JSON
from webhook.cel.types import BOOL, DYN, INT, STRING, list_of
from webhook.facts.fact import Fact, FactResult, declare_structure
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.lookups import RUNTIMES
from webhook.typed.collections import Items
from webhook.workloads import changes
from webhook.workloads.podsets import PodSet, pod_templates

POD_SET: Final = declare_structure(
    "PodSet",
    name=(STRING, "name of the pod set, as the workload table has it"),
    path=(STRING, "where the template stands; of a TrainJob `spec.runtimeRef`, where it names the runtime"),
    template=(DYN, "`{metadata, spec}` as it stands there"),
    count=(DYN, "pods of one group; null where nobody can know"),
    groups=(INT, "such groups that the object makes"),
    pods=(DYN, "count times groups; null where nobody can know"),
    change=(
        STRING,
        (
            "what becomes of a changed PodSpec: `mutable` (the controller takes it up), `later` (pods that run keep "
            "theirs) or `immutable` (refused); what is suspended, and may be changed, is mutable"
        ),
    ),
    changed=(BOOL, "whether the update changes the PodSpec"),
)


def _compute_pods_fact(subject: Subject) -> FactResult:
    listed = subject.once(pod_sets)
    counted = listed.all
    if subject.pods != 1:
        counted = counted.of([replace(podset, count=subject.pods) for podset in listed.all])
    return FactResult(_pod_sets_as_json(subject, counted), {"": listed.missing} if listed.missing else {})


def _pod_sets_as_json(subject: Subject, listed: Items[PodSet]) -> list[JSON]:
    obj, old = subject.object, subject.attributes.old_object
    becomes = changes.change_of_template(obj, old, subject.table)
    before = {podset.name: podset for podset in pod_templates(old, subject.table, subject.deadline)}
    return [
        {
            "name": podset.name,
            "path": paths.path_as_text(podset.path),
            "template": podset.template,
            "count": podset.count,
            "groups": podset.groups,
            "pods": podset.pods,
            "change": becomes,
            "changed": changes.is_template_changed(podset, before.get(podset.name)),
        }
        for podset in listed
    ]


FACTS: Final = (
    Fact(
        name="podSets",
        about=(
            "Every pod template of the object by the workload table; those of a TrainJob come from its runtime, merged."
        ),
        examples=(
            "podSets.all(p, p.pods == null || p.pods <= 64)",
            'podSets.all(p, !p.changed || p.change != "later")',
        ),
        type=list_of(POD_SET.type),
        structures=(POD_SET,),
        compute=_compute_pods_fact,
        lookups=RUNTIMES,
        expanded={"": "a list of one template, that of the virtual Pod"},
    ),
)
