"""What comes after a pod that failed: another one with other devices, and traffic that waits until it is ready.

https://kubernetes.io/blog/2025/07/03/navigating-failures-in-pods-with-devices/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import reading
from webhook.facts.check import Group
from webhook.facts.dra.claim_use import OWN_DEVICES
from webhook.facts.dra.pod_claims import pod_claims
from webhook.facts.gpu.device_pods import SERVING, DevicePods, path_of, trains, workload
from webhook.facts.pods.containers import Container, items, mapping, text
from webhook.facts.subject import Subject
from webhook.paths import get, render
from webhook.problem import Problem

problem: Final = Group("device-failures").problem
PDB: Final = GroupVersionKind("policy", "v1", "PodDisruptionBudget")
LOOKUPS: Final = (reading(PDB, "spec.selector"),)
SERVICES: Final = frozenset((("ray.io", "RayService"), ("serving.kserve.io", "InferenceService")))
"""Kinds whose controllers add labels and probes to the pods that answer requests."""
_POD: Final = ("", "Pod")
_SEVERAL: Final = 2
_SSH: Final = 22
_UNTIL_THEN_NOT_READY: Final = ("readinessProbe", "startupProbe")
"""Probes without whose success a pod is not ready: k8s.io/kubernetes v1.36 pkg/kubelet/prober/prober_manager.go
UpdatePodStatus."""
_SHARED_ON_PURPOSE: Final = frozenset(("channel", "nic"))


def advise_bare_pods(subject: Subject) -> Iterator[Problem]:
    """A Pod that trains, and that nothing replaces."""
    for pods in subject.once(workload).device_pods if subject.group_kind == _POD else ():
        if any(trains(each, subject) for each in pods.containers):
            message = "the pod trains without a controller, so nothing replaces the pod when its node or device fails"
            yield problem("bare-pod", "spec", message, "create a Job or a training job instead")


def advise_shared_claims(subject: Subject) -> Iterator[Problem]:
    """A claim by name in a template of one pod; that several pods share one is told with the rules of claims."""
    using = [each for each in subject.once(workload).device_pods if each.podset.pods == 1 and _names_claim(each)]
    if not using or subject.group_kind == _POD:
        return
    names = {each.podset.name for each in using}
    for claim in subject.once(pod_claims).claims:
        kinds = {request.device.kind for request in claim.contents.requests}
        if claim.pod_set in names and claim.source == "claim" and claim.users and kinds - _SHARED_ON_PURPOSE:
            message = f"a pod that replaces this one gets the devices of ResourceClaim `{claim.reference}` again"
            yield problem("shared-claim", claim.at, f"{message}, even if the devices have failed", OWN_DEVICES)


def _names_claim(pods: DevicePods) -> bool:
    return any(mapping(each).get("resourceClaimName") for each in items(pods.spec.get("resourceClaims")))


def advise_serving(subject: Subject) -> Iterator[Problem]:
    """Servers that get requests before they are ready, or are all drained at once."""
    if subject.group_kind in SERVICES:
        for pods in subject.once(workload).device_pods:
            yield from _disruption_budget(pods, subject)
    if subject.group_kind not in SERVING:
        return
    for pods in subject.once(workload).device_pods:
        servers = [each for each in pods.containers if not each.init and _answers(each)]
        for container in servers:
            if not any(container.value.get(probe) for probe in _UNTIL_THEN_NOT_READY):
                message = "has a port but no readinessProbe, so requests reach the container while its model loads"
                yield problem(
                    "readiness-probe",
                    path_of(pods, container),
                    message,
                    "add a readinessProbe that succeeds once the model is loaded",
                )
        if servers:
            yield from _disruption_budget(pods, subject)


def _answers(container: Container) -> bool:
    """Whether a container has a port for requests; people who log in are not sent anywhere by a Service."""
    return any(mapping(each).get("containerPort") != _SSH for each in items(container.value.get("ports")))


def _disruption_budget(pods: DevicePods, subject: Subject) -> Iterator[Problem]:
    view, count = subject.view(), pods.podset.pods or 0
    if count < _SEVERAL or not view.is_whole():
        return
    labels = mapping(get(pods.podset.template, ("metadata", "labels")))
    more = subject.group_kind in SERVICES
    if not any(_selects(each, labels, has_more=more) for each in subject.deadline.paced(subject.once(_selectors))):
        message = f"no PodDisruptionBudget selects the {count} pods, so node drains may stop all of them at once"
        at = render(pods.podset.path) if more else "spec.replicas"
        yield problem("disruption-budget", at, message, "create a PodDisruptionBudget with maxUnavailable: 1")


def _selectors(subject: Subject) -> list[JSON]:
    """Those of the PodDisruptionBudgets of the namespace."""
    listed, here = subject.deadline.paced(subject.view().objects(PDB)), subject.namespace
    return [get(each, ("spec", "selector")) for each in listed if get(each, ("metadata", "namespace")) == here]


def _selects(selector: JSON, labels: dict[str, JSON], *, has_more: bool) -> bool:
    """Whether a selector certainly or possibly selects pods with labels, or more: expressions are not followed."""
    given = mapping(selector)
    if given.get("matchExpressions"):
        return True
    wanted = mapping(given.get("matchLabels")).items()
    return all(labels.get(key, value if has_more else None) == value for key, value in wanted)


def advise_image_pulls(subject: Subject) -> Iterator[Problem]:
    """Images that cannot have changed and are asked for at every restart."""
    for pods in subject.once(workload).device_pods:
        for container in pods.containers:
            if container.value.get("imagePullPolicy") == "Always" and _is_fixed(container):
                message = "makes every restart depend on the registry, though an image named by digest cannot change"
                at = path_of(pods, container, "imagePullPolicy")
                yield problem("image-pull", at, message, "set IfNotPresent", "Always")


def _is_fixed(container: Container) -> bool:
    return "@sha256:" in text(container.value.get("image"))
