"""The checks of device claims, and of the objects that claims refer to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.dra.device_claims import (
    advise_gpu_requested_twice,
    check_unused_and_shared_claims,
    validate_claims,
    validate_no_node_name,
    validate_pod_claims,
    validate_requests,
    validate_unique_claim_names,
)
from webhook.facts.dra.device_claims_classes import validate_class_resources
from webhook.facts.dra.device_claims_group import LOOKUP, check_claims_match_pod_group
from webhook.facts.dra.device_classes import validate_device_class, validate_device_taint_rule
from webhook.facts.dra.nvidia_device_config import CHART_LOOKUPS, validate_device_configs
from webhook.facts.dra.pod_claims import LOOKUPS
from webhook.facts.dra.resource_claims import validate_pod_group, validate_resource_claim, validate_workload
from webhook.facts.dra.resource_slices import DEVICE_LOOKUPS, validate_selected_devices
from webhook.facts.dra.types import (
    DeviceClass,
    DeviceTaintRule,
    PodGroup,
    ResourceClaim,
    ResourceClaimTemplate,
    Workload,
)
from webhook.facts.kinds import TRAINER
from webhook.facts.removed_versions import LOOKUPS_OF_RELEASE
from webhook.facts.subject import Check, Subject, group_kinds_of_types
from webhook.facts.view import NAMESPACES
from webhook.rules.problem import Problem
from webhook.typed.pod_parts import CLAIMS, DEVICE_CLASSES, EPHEMERAL_CONTAINERS, PATCH, POD_RESOURCES
from webhook.typed.pods import Pod


def check_device_claims(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of a pod's claims, of the objects that the claims refer to, and of the containers that use the
    claims.
    """
    pod = subject.typed(Pod).spec
    if subject.is_patch:
        yield from validate_unique_claim_names(pod)
        return
    yield from validate_pod_claims(subject)
    yield from _check_claims_and_class_resources(subject)
    if pod.resource_claims:
        yield from validate_no_node_name(subject)
        yield from check_unused_and_shared_claims(subject)
        if pod.has("schedulingGroup"):
            yield from check_claims_match_pod_group(subject)


def check_generated_device_claims(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the objects that the claims of a TrainJob's pods refer to. The group train-job checks the
    declarations of claims in these pods.
    """
    from webhook.facts.train_job_pods.virtual_pods import run_check_on_virtual_pods

    yield from run_check_on_virtual_pods(subject, _check_claims_and_class_resources, refuses=False)


def _check_claims_and_class_resources(subject: Subject) -> Iterator[Problem]:
    pod = subject.typed(Pod)
    if DEVICE_CLASSES in pod.parts.present:
        yield from validate_class_resources(subject)
    if pod.spec.resource_claims:
        yield from validate_claims(subject)
        yield from validate_requests(subject)
        yield from advise_gpu_requested_twice(subject)


_PODS: Final = group_kinds_of_types(Pod)
_TRAIN_JOBS: Final = frozenset(((TRAINER, "TrainJob"),))
_CLAIMS: Final = group_kinds_of_types(ResourceClaim, ResourceClaimTemplate)
_CLASSES: Final = group_kinds_of_types(DeviceClass)
_TAINTS: Final = group_kinds_of_types(DeviceTaintRule)

CHECKS: Final = (
    Check(
        group="device-claims",
        run=check_device_claims,
        kinds=_PODS,
        lookups=(*LOOKUPS, LOOKUP),
        of_pods_with=frozenset((CLAIMS, DEVICE_CLASSES, EPHEMERAL_CONTAINERS, POD_RESOURCES, PATCH)),
    ),
    Check(group="device-claims", run=check_generated_device_claims, kinds=_TRAIN_JOBS, lookups=LOOKUPS),
    Check(
        group="resource-claims",
        run=validate_resource_claim,
        kinds=_CLAIMS,
        lookups=(NAMESPACES,),
        lookups_of_audits=LOOKUPS_OF_RELEASE,
    ),
    Check(group="resource-claims", run=validate_pod_group, kinds=group_kinds_of_types(PodGroup)),
    Check(group="resource-claims", run=validate_workload, kinds=group_kinds_of_types(Workload)),
    Check(group="device-classes", run=validate_device_class, kinds=_CLASSES, lookups_of_audits=LOOKUPS_OF_RELEASE),
    Check(group="device-classes", run=validate_device_taint_rule, kinds=_TAINTS),
    Check(group="resource-slices", run=validate_selected_devices, kinds=_CLAIMS | _CLASSES, lookups=DEVICE_LOOKUPS),
    Check(
        group="nvidia-device-config",
        run=validate_device_configs,
        kinds=_CLAIMS | _CLASSES,
        lookups_of_audits=CHART_LOOKUPS,
    ),
)
