"""What comes after a pod that failed: another one with other devices, and traffic that waits until it is ready.

https://kubernetes.io/blog/2025/07/03/navigating-failures-in-pods-with-devices/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.cluster.interest import reading
from webhook.facts.check import Group
from webhook.facts.dra.claim_use import OWN_DEVICES
from webhook.facts.dra.pod_claims import pod_claims
from webhook.facts.failures.types import PodDisruptionBudget
from webhook.facts.gpu.device_pods import SERVING, DevicePods, trains, workload
from webhook.facts.subject import Subject
from webhook.paths import render
from webhook.problem import Problem
from webhook.typed.collections import Items
from webhook.typed.pods import Container, LabelSelector

problem: Final = Group("device-failures").problem
LOOKUPS: Final = (reading(PodDisruptionBudget.gvk, "spec.selector"),)
SERVICES: Final = frozenset((("ray.io", "RayService"), ("serving.kserve.io", "InferenceService")))
"""Kinds whose controllers add labels and probes to the pods that answer requests."""
_POD: Final = ("", "Pod")
_SEVERAL: Final = 2
_SSH: Final = 22
_SHARED_ON_PURPOSE: Final = frozenset(("channel", "nic"))


def advise_bare_pods(subject: Subject) -> Iterator[Problem]:
    """A Pod that trains, and that nothing replaces."""
    for pods in subject.once(workload).device_pods if subject.group_kind == _POD else ():
        if any(trains(container, subject) for container in pods.containers):
            message = "the pod trains without a controller, so nothing replaces the pod when its node or device fails"
            yield problem("bare-pod", "spec", message, "create a Job or a training job instead")


def advise_shared_claims(subject: Subject) -> Iterator[Problem]:
    """A claim by name in a template of one pod; that several pods share one is told with the rules of claims."""
    using = [pods for pods in subject.once(workload).device_pods if pods.pods == 1 and _names_claim(pods)]
    if not using or subject.group_kind == _POD:
        return
    names = {pods.podset.name for pods in using}
    for claim in subject.once(pod_claims).claims:
        kinds = {request.device.kind for request in claim.contents.requests}
        if claim.pod_set in names and claim.source == "claim" and claim.users and kinds - _SHARED_ON_PURPOSE:
            message = f"a pod that replaces this one gets the devices of ResourceClaim `{claim.reference}` again"
            yield problem("shared-claim", claim.at, f"{message}, even if the devices have failed", OWN_DEVICES)


def _names_claim(pods: DevicePods) -> bool:
    return any(claim.resource_claim_name for claim in pods.spec.resource_claims)


def advise_serving(subject: Subject) -> Iterator[Problem]:
    """Servers that get requests before they are ready, or are all drained at once."""
    if subject.group_kind in SERVICES:
        for pods in subject.once(workload).device_pods:
            yield from _disruption_budget(pods, subject)
    if subject.group_kind not in SERVING:
        return
    for pods in subject.once(workload).device_pods:
        servers = [container for container in pods.containers if not container.is_init and _answers(container)]
        for container in servers:
            yield from _readiness_probe(container, pods)
        if servers:
            yield from _disruption_budget(pods, subject)


def _readiness_probe(container: Container, pods: DevicePods) -> Iterator[Problem]:
    """A pod is not ready before both probes succeed: k8s.io/kubernetes v1.36 pkg/kubelet/prober UpdatePodStatus."""
    if not container.readiness_probe and not container.startup_probe:
        message = "has a port but no readinessProbe, so requests reach the container while its model loads"
        fix = "add a readinessProbe that succeeds once the model is loaded"
        yield problem("readiness-probe", pods.locate(container.at), message, fix)


def _answers(container: Container) -> bool:
    """Whether a container has a port for requests; people who log in are not sent anywhere by a Service."""
    return any(port.container_port != _SSH for port in container.ports)


def _disruption_budget(pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    if pods.pods < _SEVERAL or not subject.view().is_whole():
        return
    labels, has_more = pods.template.metadata.labels, subject.group_kind in SERVICES
    if not any(_selects(selector, labels, has_more=has_more) for selector in subject.once(_selectors)):
        message = f"no PodDisruptionBudget selects the {pods.pods} pods, so node drains may stop all of them at once"
        at = render(pods.podset.path) if has_more else "spec.replicas"
        yield problem("disruption-budget", at, message, "create a PodDisruptionBudget with maxUnavailable: 1")


def _selectors(subject: Subject) -> Items[LabelSelector]:
    """Those of the PodDisruptionBudgets of the namespace."""
    budgets = subject.view().every(PodDisruptionBudget)
    return budgets.of([budget.spec.selector for budget in budgets if budget.namespace == subject.namespace])


def _selects(selector: LabelSelector, labels: Mapping[str, str], *, has_more: bool) -> bool:
    """Whether a selector certainly or possibly selects pods with labels, or more: expressions are not followed."""
    if selector.match_expressions:
        return True
    wanted = selector.match_labels.items()
    return all(labels.get(key, value if has_more else None) == value for key, value in wanted)


def advise_image_pulls(subject: Subject) -> Iterator[Problem]:
    """Images that cannot have changed and are asked for at every restart."""
    for pods in subject.once(workload).device_pods:
        for container in pods.containers:
            if container.image_pull_policy == "Always" and "@sha256:" in container.image:
                message = "makes every restart depend on the registry, though an image named by digest cannot change"
                at = pods.locate(container.path("imagePullPolicy"))
                yield problem("image-pull", at, message, "set IfNotPresent", "Always")
