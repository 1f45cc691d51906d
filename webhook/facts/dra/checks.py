"""The checks of device claims, and of the objects that they refer to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Check
from webhook.facts.dra import claim_references, claim_use
from webhook.facts.dra.claim_objects import (
    validate_device_class,
    validate_device_taint_rule,
    validate_group_claims,
    validate_resource_claim,
)
from webhook.facts.dra.configs import validate_device_configs
from webhook.facts.dra.inventory import LOOKUPS as INVENTORY
from webhook.facts.dra.pod_claim_validation import validate_claim_names, validate_pod_claims
from webhook.facts.dra.pod_claims import GROUP, LOOKUPS
from webhook.facts.dra.pod_group_claims import LOOKUP, validate_pod_group_claims
from webhook.facts.dra.selected_devices import validate_selected_devices
from webhook.facts.kinds import TRAINER
from webhook.facts.pods.containers import amounts_of, containers_of
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.virtual_pods import problems_of_pods
from webhook.facts.view import NAMESPACES
from webhook.paths import get
from webhook.problem import Problem


def device_claims(subject: Subject) -> Iterator[Problem]:
    """What is wrong with the claims of a pod, with what they refer to and with their use."""
    if subject.is_patch:
        yield from validate_claim_names(subject)
        return
    yield from validate_pod_claims(subject)
    yield from claim_references.validate_class_resources(subject)
    if not get(subject.object, ("spec", "resourceClaims")):
        return
    dra, listed = subject.fact("dra"), subject.once(containers_of)
    yield from claim_references.validate_claims(dra["claims"], subject)
    yield from claim_references.validate_requests(dra["references"], dra["claims"], subject)
    yield from claim_references.validate_gpu_is_asked_for_once(listed, dra["claims"], subject)
    yield from claim_use.validate_node_name(subject)
    yield from claim_use.validate_use(dra["claims"], subject)
    yield from validate_pod_group_claims(subject)


def _may_take_claims(subject: Subject) -> bool:
    """Whether anything of a pod may have to do with claims: most pods have none, and are asked no more."""
    spec = subject.object.get("spec") or {}
    if subject.is_patch or spec.get("resourceClaims") or spec.get("ephemeralContainers") or spec.get("resources"):
        return True
    takes = [each for each in subject.once(amounts_of) if each.container.claims()]  # faster than any()
    return bool(takes) or _names_class(subject)


def _names_class(subject: Subject) -> bool:
    """Whether an amount of a pod names a DeviceClass."""
    for each in subject.once(amounts_of):
        if [name for name in subject.deadline.each(each.names) if name.startswith(claim_references.IMPLICIT)]:
            return True
    return False


def generated_device_claims(subject: Subject) -> Iterator[Problem]:
    """What the claims of the pods that Trainer makes refer to; how they are declared and used is train-job's."""
    yield from problems_of_pods(subject, _references, refuses=False)


def _references(subject: Subject) -> Iterator[Problem]:
    yield from claim_references.validate_class_resources(subject)
    if get(subject.object, ("spec", "resourceClaims")):
        dra = subject.fact("dra")
        yield from claim_references.validate_claims(dra["claims"], subject)
        yield from claim_references.validate_requests(dra["references"], dra["claims"], subject)
        listed = subject.once(containers_of)
        yield from claim_references.validate_gpu_is_asked_for_once(listed, dra["claims"], subject)


def _kinds(group: str, *kinds: str) -> frozenset[tuple[str, str]]:
    return frozenset((group, kind) for kind in kinds)


_PODS: Final = _kinds("", "Pod")
_TRAIN_JOBS: Final = _kinds(TRAINER, "TrainJob")
_CLAIMS: Final = _kinds(GROUP, "ResourceClaim", "ResourceClaimTemplate")
_CLASSES: Final = _kinds(GROUP, "DeviceClass")
_TAINTS: Final = _kinds(GROUP, "DeviceTaintRule")
_GROUPS: Final = _kinds("scheduling.k8s.io", "PodGroup", "Workload")

CHECKS: Final = (
    Check(group="device-claims", run=device_claims, kinds=_PODS, lookups=(*LOOKUPS, LOOKUP), when=_may_take_claims),
    Check(group="device-claims", run=generated_device_claims, kinds=_TRAIN_JOBS, lookups=LOOKUPS),
    Check(group="resource-claims", run=validate_resource_claim, kinds=_CLAIMS, lookups=(NAMESPACES,)),
    Check(group="resource-claims", run=validate_group_claims, kinds=_GROUPS),
    Check(group="device-classes", run=validate_device_class, kinds=_CLASSES),
    Check(group="device-classes", run=validate_device_taint_rule, kinds=_TAINTS),
    Check(group="resource-slices", run=validate_selected_devices, kinds=_CLAIMS | _CLASSES, lookups=INVENTORY),
    Check(group="nvidia-device-config", run=validate_device_configs, kinds=_CLAIMS | _CLASSES),
)
