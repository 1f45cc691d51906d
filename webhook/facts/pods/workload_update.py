"""Finds updates of pod templates that have no effect, because controllers leave running pods unchanged.

The update is stored and `kubectl apply` says configured, but only pods that are created later use the new template.
Kinds with these controllers have `templates: later` in webhook/workloads/kinds.yaml. KubeRay reports the update only in
its log, and creates new pods only if upgradeStrategy is Recreate (ray-project/kuberay@feeaf72f rayjob_controller.go,
raycluster_controller.go). The launcher of an MPIJob is a Job, and the template of a Job never changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.typed.collections import Items
from webhook.typed.ray import RayCluster

WORKLOAD_UPDATE: Final = RuleGroup(
    "workload-update",
    refused_by="nothing; the controller ignores the change",
    source="rows of webhook/workloads/kinds.yaml with `templates: later`",
    level="warn",
    fails="silent",
)
TEMPLATE_KEPT: Final = WORKLOAD_UPDATE.rule(
    "workload-update/template-kept",
    title="The changed pod template does not reach running pods",
    why="The controller uses the new template only for new pods and leaves running pods unchanged.",
    source="https://github.com/ray-project/kuberay/issues/289",
)
_ANEW: Final = ("MPIJob", "SparkConnect", "ElasticJob", "BroadcastJob")
"""Kinds of jobs that cannot be suspended, or that still have the old template when they are resumed. A new object is
the only fix.
"""


def validate_template_update(subject: Subject) -> Iterator[Problem]:
    """Report templates that change while pods of the old template may run."""
    if subject.metadata.deletion_timestamp or _are_pods_recreated(subject):
        return
    for podset in Items(subject.fact("podSets"), subject.deadline):
        if podset["changed"] and podset["change"] == "later":
            message = "is changed, but running pods keep the old template"
            yield TEMPLATE_KEPT.problem(podset["path"], message, _fix_for_new_template(*subject.group_kind))


def _are_pods_recreated(subject: Subject) -> bool:
    is_cluster = subject.group_kind == ("ray.io", "RayCluster")
    return is_cluster and subject.typed(RayCluster).spec.upgrade_strategy.type == "Recreate"


def _fix_for_new_template(group: str, kind: str) -> str:
    """Return the fix that creates pods with the new template."""
    if kind == "RayCluster":
        return "set spec.upgradeStrategy.type to Recreate, or suspend the cluster (spec.suspend) and resume the cluster"
    if kind == "RayJob":
        return "suspend the job (spec.suspend) and then resume the job, or create a new job"
    if kind in _ANEW:
        return "create a new object"
    if group == "kubeflow.org":
        return "suspend the job (spec.runPolicy.suspend) and then resume the job, or create a new job"
    return "delete the pods that should have the new template"
