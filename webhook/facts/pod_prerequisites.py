"""Pods that are never created: a RuntimeClass or ServiceAccount does not exist, or Pod Security forbids a field.

Admission plugins refuse each pod, but accept the object that creates the pods.

Source: k8s.io/kubernetes v1.36 plugin/pkg/admission/priority, runtimeclass and serviceaccount;
k8s.io/pod-security-admission v0.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.interest import interest_in_fields
from webhook.facts.gpu.device_pods import PLACED, located_templates, without_repeated_problems
from webhook.facts.kinds import RUNTIME_CLASS
from webhook.facts.pod_security import Breach, Enforced, breaches_of_pods, enforced_level
from webhook.facts.subject import Check, Subject
from webhook.facts.view import NAMESPACES, ClusterView
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.text.wording import counted
from webhook.typed.pods import PodSpec, PodTemplate
from webhook.workloads.podsets import PodSet
from webhook.yamltext.placeholders import is_placeholder

POD_PREREQUISITES: Final = RuleGroup(
    "pod-prerequisites",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission",
    level="warn",
    fails="controller",
)
"""Reasons why admission plugins refuse the pods of an object."""
RUNTIME_CLASS_MISSING: Final = POD_PREREQUISITES.rule(
    "pod-prerequisites/runtime-class",
    title="The RuntimeClass of the pods does not exist",
    why="Admission refuses each pod, so no pod is created.",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/runtimeclass/admission.go",
)
SERVICE_ACCOUNT_MISSING: Final = POD_PREREQUISITES.rule(
    "pod-prerequisites/service-account",
    title="The ServiceAccount of the pods does not exist",
    why="Admission refuses each pod, so no pod is created.",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/serviceaccount/admission.go",
)
POD_SECURITY: Final = POD_PREREQUISITES.rule(
    "pod-prerequisites/pod-security",
    title="Pod Security of the namespace forbids the pods",
    why="Pod Security refuses each pod. The object that creates the pods is accepted with a warning.",
    source="k8s.io/pod-security-admission v0.36 policy/check_*.go",
)
_MOST_PLACES: Final = 4
"""The most containers and volumes that a message names."""
_SERVICE_ACCOUNT: Final = GroupVersionKind("", "v1", "ServiceAccount")
_CLUSTER_POLICY: Final = GroupVersionKind("nvidia.com", "v1", "ClusterPolicy")
_OF_OPERATORS: Final = frozenset(("nvidia", "nvidia-cdi", "nvidia-legacy"))
"""RuntimeClasses that the GPU operator creates."""
_WITH_OWN_ACCOUNTS: Final = frozenset(
    (
        *(("kubeflow.org", kind) for kind in ("MPIJob", "Notebook")),
        *(("ray.io", kind) for kind in ("RayCluster", "RayJob", "RayService", "RayCronJob")),
        ("orchestration.aibrix.ai", "RayClusterFleet"),
    )
)
"""Kinds with controllers that create ServiceAccounts, or use the ServiceAccount that Kubeflow creates."""
_LOOKUPS: Final = (interest_in_fields(RUNTIME_CLASS), interest_in_fields(_SERVICE_ACCOUNT), NAMESPACES)


def check_prerequisites(subject: Subject) -> Iterator[Problem]:
    """Report why admission plugins refuse the pods of an object."""
    view = subject.cluster_view()
    enforced = enforced_level(subject)
    for podset, template in subject.once(located_templates):
        spec = template.spec
        yield from without_repeated_problems(_check_runtime_class(spec, podset, view), subject)
        if subject.group_kind not in _WITH_OWN_ACCOUNTS:
            yield from without_repeated_problems(_check_service_account(spec, podset, view), subject)
        if enforced is not None:
            yield from without_repeated_problems(_check_pod_security(template, podset, enforced, subject), subject)


def _check_runtime_class(spec: PodSpec, podset: PodSet, view: ClusterView) -> Iterator[Problem]:
    name = spec.runtime_class_name
    if not name or is_placeholder(name) or (name in _OF_OPERATORS and view.list_visible_json(_CLUSTER_POLICY)):
        return
    if view.get_without_noting(RUNTIME_CLASS, "", name) is None and view.is_whole(RUNTIME_CLASS):
        message = "is a RuntimeClass that does not exist, so no pod is created"
        fix = "create the RuntimeClass, or remove runtimeClassName"
        yield RUNTIME_CLASS_MISSING.problem(podset.locate(spec.path("runtimeClassName")), message, fix, name)


def _check_service_account(spec: PodSpec, podset: PodSet, view: ClusterView) -> Iterator[Problem]:
    name = spec.service_account_name
    if name in ("", "default") or is_placeholder(name) or not view.namespace:
        return
    known = view.get_without_noting(_SERVICE_ACCOUNT, view.namespace, name)
    if known is None and view.is_whole(_SERVICE_ACCOUNT):
        message = "is a ServiceAccount that does not exist in the namespace, so no pod is created"
        fix = "create the ServiceAccount, or remove serviceAccountName"
        yield SERVICE_ACCOUNT_MISSING.problem(podset.locate(spec.path("serviceAccountName")), message, fix, name)


def _check_pod_security(
    template: PodTemplate, podset: PodSet, enforced: Enforced, subject: Subject
) -> Iterator[Problem]:
    breaches = breaches_of_pods(template, enforced)
    if breaches:
        which = f"Pod Security `{enforced.level}` of namespace {subject.namespace}"
        message = f"{which} refuses the pods, because {_demands_as_text(breaches)}"
        fix = "change these fields, or use a namespace that allows the values"
        yield POD_SECURITY.problem(podset.locate(template.spec.at), message, fix)


def _demands_as_text(breaches: Iterable[Breach]) -> str:
    """Return the demands as a text, by container and volume: `in container a x must be y, z must not be true; in …`."""
    demands: dict[str, list[str]] = {}
    for each in breaches:
        demands.setdefault(each.of, []).append(each.demand)
    places = [f"in {of} {', '.join(told)}" for of, told in demands.items()]
    more = f"; and {counted(len(places) - _MOST_PLACES, 'other')}" if len(places) > _MOST_PLACES else ""
    return f"{'; '.join(places[:_MOST_PLACES])}{more}"


CHECKS: Final = (
    Check(group="pod-prerequisites", run=check_prerequisites, kinds=PLACED, lookups=_LOOKUPS, of_made_objects=False),
)
