"""The checks of what pods with devices do when a node, a device or a container fails.

- Tolerations keep pods on nodes and devices that have failed. A toleration without a key and with the operator Exists
  matches every taint. Device taints: KEP-5055.
- Another pod should replace a failed pod. The new pod should get other devices, and use an image that is already on the
  node.

restarts.py has the rules about controllers, probes.py the rules about servers, and nccl.py the rules about NCCL.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/;
https://kubernetes.io/blog/2025/07/03/navigating-failures-in-pods-with-devices/
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import path_as_text
from webhook.cluster.interest import Index, interest_in_fields
from webhook.facts.device_failures import nccl, probes, restarts
from webhook.facts.device_failures.types import DEVICE_FAILURES, is_trial
from webhook.facts.dra.device_claims import OWN_DEVICES
from webhook.facts.dra.pod_claims import LOOKUPS as CLAIM_LOOKUPS
from webhook.facts.dra.pod_claims import pod_claims
from webhook.facts.dra.types import DeviceSubRequest, ExactDeviceRequest, ResourceClaim, ResourceClaimTemplate
from webhook.facts.gpu.device_pods import (
    WORKLOADS,
    DevicePods,
    check_advice_without_repetitions,
    is_training_container,
    read_device_workload,
)
from webhook.facts.kinds import POD
from webhook.facts.subject import Check, Subject
from webhook.facts.view import NAMESPACES
from webhook.rules.problem import Problem
from webhook.typed.cluster_objects import Deployment, StatefulSet
from webhook.typed.pod_parts import CLAIMS, DEVICES
from webhook.typed.pods import Pod, Toleration

TOLERATES_EVERYTHING: Final = DEVICE_FAILURES.rule(
    "device-failures/tolerates-everything",
    level="advice",
    title="Pods with devices tolerate every taint",
    why="Kubernetes and device health controllers use taints to move pods away from lost nodes and broken devices.",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
)
LOST_NODE: Final = DEVICE_FAILURES.rule(
    "device-failures/lost-node",
    title="Kubernetes never evicts pods with devices from a lost node",
    why=(
        "A toleration of not-ready or unreachable without tolerationSeconds keeps the pod on the node until the pod or "
        "the node is deleted."
    ),
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-based-evictions",
)
DEVICE_TAINTS: Final = DEVICE_FAILURES.rule(
    "device-failures/device-taints",
    title="The request tolerates every device taint",
    why=(
        "Drivers taint unhealthy devices. A request that tolerates every taint gets these devices, and no pod is "
        "evicted from a device that becomes unhealthy."
    ),
    source="k8s.io/api v0.36.1 resource/v1 types.go DeviceToleration",
)
BARE_POD: Final = DEVICE_FAILURES.rule(
    "device-failures/bare-pod",
    title="A Pod that trains has no controller",
    why=(
        "Nothing replaces a bare Pod when its node is lost. If a device fails, the containers restart on this device. "
        "Tests and benchmarks that a person starts again can do without a controller."
    ),
    level="advice",
)
SHARED_CLAIM: Final = DEVICE_FAILURES.rule(
    "device-failures/shared-claim",
    title="The replacement of a pod gets the failed device again",
    why=(
        "A ResourceClaim keeps its devices while the claim exists. So the new pod gets the same devices on the same "
        "node."
    ),
)
IMAGE_PULL: Final = DEVICE_FAILURES.rule(
    "device-failures/image-pull",
    title="imagePullPolicy is Always for an image that cannot change",
    why=("A restart fails while the registry cannot be reached, although the node has the image."),
    source="https://kubernetes.io/docs/concepts/containers/images/#image-pull-policy",
    level="advice",
    severity="low",
)
NAME_TAINTS: Final = "write one toleration, with a key, for each taint that the pods should tolerate"
_EVICTING: Final = ("", "NoExecute")
_NODE_FAILURES: Final = {
    "node.kubernetes.io/not-ready": "a node that is not ready",
    "node.kubernetes.io/unreachable": "a lost node",
}
"""The taints of nodes that fail, and the nodes in words. These taints have no value."""


def advise_tolerations(subject: Subject) -> Iterator[Problem]:
    """Warn of tolerations that keep pods with devices on a failed node."""
    for pods in subject.once(read_device_workload).device_pods:
        for toleration in pods.spec.tolerations:
            if _tolerates_without_time_limit(toleration):
                yield from _check_lasting_toleration(toleration, pods)


def _check_lasting_toleration(toleration: Toleration, pods: DevicePods) -> Iterator[Problem]:
    at, key = pods.locate(toleration.at), toleration.key
    if not key:
        message = "tolerates every taint, so the pods stay on nodes that are gone or have failed devices"
        yield TOLERATES_EVERYTHING.problem(at, message, NAME_TAINTS)
    elif key in _NODE_FAILURES:
        node = _NODE_FAILURES[key]
        message = f"tolerates `{key}` without tolerationSeconds, so Kubernetes never evicts a pod from {node}"
        effect = "" if toleration.effect else "effect NoExecute and "
        yield LOST_NODE.problem(at, message, f"set {effect}tolerationSeconds, for example to 300")


def _tolerates_without_time_limit(toleration: Toleration) -> bool:
    is_valued = toleration.key in _NODE_FAILURES and toleration.operator != "Exists" and bool(toleration.value)
    matches_all = (toleration.operator == "Exists" or bool(toleration.key)) and not is_valued
    return matches_all and toleration.effect in _EVICTING and toleration.toleration_seconds is None


def advise_device_tolerations(subject: Subject) -> Iterator[Problem]:
    """Warn of device requests that tolerate every taint, also the taints by which drivers mark failed devices."""
    is_claim = subject.group_kind[1] == "ResourceClaim"
    claim = subject.typed(ResourceClaim).spec if is_claim else subject.typed(ResourceClaimTemplate).claim_spec
    for request in claim.devices.requests:
        exact = (request.flat_request, request.exactly)
        for part in chain[ExactDeviceRequest | DeviceSubRequest](exact, request.first_available):
            for toleration in part.tolerations:
                if not toleration.key and _tolerates_without_time_limit(toleration):
                    message = "tolerates every taint of a device, so devices that have failed are allocated again"
                    yield DEVICE_TAINTS.problem(toleration.at, message, NAME_TAINTS)


def advise_bare_pods(subject: Subject) -> Iterator[Problem]:
    """Advise against a Pod that trains and has no controller to replace it."""
    for pods in subject.once(read_device_workload).device_pods if subject.group_kind == POD else ():
        training = [container for container in pods.containers if is_training_container(container, subject)]
        if training and not any(is_trial(container, subject) for container in training):
            message = "the pod trains without a controller, so nothing replaces the pod when its node or device fails"
            yield BARE_POD.problem("spec", message, "create a Job or a training job instead")


def advise_reused_claims_of_single_pods(subject: Subject) -> Iterator[Problem]:
    """Warn of a ResourceClaim in a template of one pod. A pod that replaces a failed pod gets the same devices, even if
    the devices have failed. device_claims.py reports a claim that several pods share.

    If another workload of the files names the claim, its owner shares the devices on purpose.
    """
    names = {
        pods.podset.name
        for pods in (() if subject.group_kind == POD else subject.once(read_device_workload).device_pods)
        if pods.pod_count == 1 and any(claim.resource_claim_name for claim in pods.spec.resource_claims)
    }
    if not names:
        return
    for claim in subject.once(pod_claims).claims:
        is_own = claim.source == "claim" and claim.contents.is_exclusive
        if claim.pod_set in names and is_own and claim.users and not _is_named_by_others(claim.reference, subject):
            message = f"the replacement of a failed pod gets the devices of ResourceClaim `{claim.reference}` again"
            fix = OWN_DEVICES
            yield SHARED_CLAIM.problem(claim.at, f"{message}, even if the devices have failed", fix)


def _claims_of_workload(workload: JSON) -> Sequence[str]:
    """Return the names of the ResourceClaims in the pod template of a Deployment or a StatefulSet."""
    claims = Deployment.of(workload).spec.template.spec.resource_claims
    return [each.resource_claim_name for each in claims if each.resource_claim_name]


def _is_named_by_others(claim: str, subject: Subject) -> bool:
    """Return whether another Deployment or StatefulSet of the namespace names a ResourceClaim."""
    view = subject.cluster_view().copy_without_missing_objects()
    own = subject.attributes.kind.kind, subject.attributes.name
    return any(
        (kind.gvk.kind, workload.name) != own
        for kind in (Deployment, StatefulSet)
        for workload in view.typed_under_key(kind, _BY_CLAIM, claim)
    )


def advise_always_pull_of_image_digests(subject: Subject) -> Iterator[Problem]:
    """Advise against imagePullPolicy Always for images named by digest, once for all containers with devices."""
    places = [
        path_as_text(pods.locate(container.path("imagePullPolicy")))
        for pods in subject.once(read_device_workload).device_pods
        for container in pods.containers
        if container.image_pull_policy == "Always" and "@sha256:" in container.image
    ]
    if places:
        message = "makes every restart ask the registry, although an image with a digest never changes"
        problem = IMAGE_PULL.problem(places[0], message, "set IfNotPresent", "Always")
        yield replace(problem, also=tuple(places[1:]))


_ADVICE: Final = (
    restarts.advise_job_policies,
    restarts.advise_gang_restarts,
    restarts.advise_containers_that_end,
    advise_tolerations,
    advise_bare_pods,
    advise_reused_claims_of_single_pods,
    probes.advise_serving_readiness_and_disruption,
    probes.advise_liveness_probes,
    advise_always_pull_of_image_digests,
    nccl.advise_nccl,
)
_OF_SERVERS: Final = (probes.advise_serving_readiness_and_disruption, probes.advise_liveness_probes)
_CLAIMS: Final = frozenset(("resource.k8s.io", kind) for kind in ("ResourceClaim", "ResourceClaimTemplate"))
_BY_CLAIM: Final = Index("a claim that its pods name", _claims_of_workload)
_SHARING: Final = tuple(
    interest_in_fields(kind.gvk, "spec.template.spec.resourceClaims", indexes=(_BY_CLAIM,))
    for kind in (Deployment, StatefulSet)
)
"""The workloads that may share a claim. Only audits read them."""
_LOOKUPS: Final = (*probes.DISRUPTION_BUDGET_LOOKUPS, *CLAIM_LOOKUPS, NAMESPACES)


def advise_device_failures(subject: Subject) -> Iterator[Problem]:
    """Yield the advice about an object. If several templates get the same advice, report it once."""
    yield from check_advice_without_repetitions(_ADVICE, TOLERATES_EVERYTHING.id, subject)


def advise_probes(subject: Subject) -> Iterator[Problem]:
    """Yield the advice about servers, for kinds that get no other advice about failures."""
    yield from check_advice_without_repetitions(_OF_SERVERS, probes.LIVENESS_PROBE.id, subject)


def _needs_device_failure_advice(subject: Subject) -> bool:
    """Return whether an object is a Pod with devices, or an object of another kind."""
    if subject.group_kind != ("", "Pod"):
        return True
    pod = subject.typed(Pod)
    return bool(pod.parts.extended or pod.spec.resource_claims)


CHECKS: Final = (
    Check(
        group="device-failures",
        run=advise_device_failures,
        kinds=WORKLOADS | probes.SERVICES,
        lookups=_LOOKUPS,
        lookups_of_audits=_SHARING,
        when=_needs_device_failure_advice,
        of_made_objects=False,
        of_pods_with=frozenset((CLAIMS, DEVICES)),
    ),
    Check(
        group="device-failures",
        run=advise_probes,
        kinds=probes.OTHER_SERVERS,
        lookups=_LOOKUPS,
        of_made_objects=False,
    ),
    Check(group="device-failures", run=probes.advise_probes_of_parts, kinds=probes.LLM_SERVICES),
    Check(
        group="device-failures",
        run=probes.advise_probes_of_nim_service,
        kinds=probes.NIM_SERVICES,
        of_made_objects=False,
    ),
    Check(
        group="device-failures",
        run=probes.advise_probes_of_inference_service,
        kinds=probes.INFERENCE_SERVICES,
        lookups=probes.RUNTIME_LOOKUPS,
        of_made_objects=False,
    ),
    Check(group="device-failures", run=advise_device_tolerations, kinds=_CLAIMS),
)
