"""Pods that are never made: their PriorityClass, RuntimeClass or ServiceAccount does not exist.

Admission plugins refuse each pod, while the object that makes the pods is accepted.

Source: k8s.io/kubernetes v1.36 plugin/pkg/admission/priority, runtimeclass and serviceaccount.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.interest import interest_in_fields
from webhook.facts.check import Check
from webhook.facts.gpu.device_pods import WORKLOADS, without_repeated_problems
from webhook.facts.kinds import RUNTIME_CLASS
from webhook.facts.pods.pod_sets import pod_sets, template_of
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.virtual_pods import pod_set_located_in_runtime
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.typed.pods import PodSpec
from webhook.workloads.podsets import PodSet
from webhook.yamltext.placeholders import is_placeholder

POD_PREREQUISITES: Final = RuleGroup(
    "pod-prerequisites",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission",
    level="warn",
    fails="controller",
)
"""Objects that a pod names and that admission looks up."""
RUNTIME_CLASS_MISSING: Final = POD_PREREQUISITES.rule(
    "pod-prerequisites/runtime-class",
    title="The RuntimeClass of the pods does not exist",
    why="Admission refuses each pod, so none is made.",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/runtimeclass/admission.go",
)
SERVICE_ACCOUNT_MISSING: Final = POD_PREREQUISITES.rule(
    "pod-prerequisites/service-account",
    title="The ServiceAccount of the pods does not exist",
    why="Admission refuses each pod, so none is made.",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/serviceaccount/admission.go",
)
_SERVICE_ACCOUNT: Final = GroupVersionKind("", "v1", "ServiceAccount")
_CLUSTER_POLICY: Final = GroupVersionKind("nvidia.com", "v1", "ClusterPolicy")
_OF_OPERATORS: Final = frozenset(("nvidia", "nvidia-cdi", "nvidia-legacy"))
"""RuntimeClasses that the GPU operator makes."""
_WITH_OWN_ACCOUNTS: Final = frozenset((("kubeflow.org", "MPIJob"), ("ray.io", "RayJob")))
"""Kinds whose controllers make ServiceAccounts."""
_LOOKUPS: Final = (interest_in_fields(RUNTIME_CLASS), interest_in_fields(_SERVICE_ACCOUNT))


def check_prerequisites(subject: Subject) -> Iterator[Problem]:
    """Yield what the pods of an object name and that does not exist."""
    view = subject.cluster_view()
    for podset in (pod_set_located_in_runtime(each) for each in subject.once(pod_sets).all):
        spec = template_of(podset, subject).spec
        yield from without_repeated_problems(_check_runtime_class(spec, podset, view), subject)
        if subject.group_kind not in _WITH_OWN_ACCOUNTS:
            yield from without_repeated_problems(_check_service_account(spec, podset, view), subject)


def _check_runtime_class(spec: PodSpec, podset: PodSet, view: ClusterView) -> Iterator[Problem]:
    name = spec.runtime_class_name
    if not name or is_placeholder(name) or (name in _OF_OPERATORS and view.list_visible_json(_CLUSTER_POLICY)):
        return
    if view.get_without_noting(RUNTIME_CLASS, "", name) is None and view.is_whole(RUNTIME_CLASS):
        message = "is a RuntimeClass that does not exist, so no pod is made"
        fix = "create the RuntimeClass, or remove runtimeClassName"
        yield RUNTIME_CLASS_MISSING.problem(podset.locate(spec.path("runtimeClassName")), message, fix, name)


def _check_service_account(spec: PodSpec, podset: PodSet, view: ClusterView) -> Iterator[Problem]:
    name = spec.service_account_name
    if name in ("", "default") or is_placeholder(name) or not view.namespace:
        return
    known = view.get_without_noting(_SERVICE_ACCOUNT, view.namespace, name)
    if known is None and view.is_whole(_SERVICE_ACCOUNT):
        message = "is a ServiceAccount that the namespace does not have, so no pod is made"
        fix = "create the ServiceAccount, or remove serviceAccountName"
        yield SERVICE_ACCOUNT_MISSING.problem(podset.locate(spec.path("serviceAccountName")), message, fix, name)


CHECKS: Final = (
    Check(group="pod-prerequisites", run=check_prerequisites, kinds=WORKLOADS, lookups=_LOOKUPS, of_made_objects=False),
)
