"""The checks of what happens when nodes, devices or containers fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Check
from webhook.facts.device_failures import device_failures, nccl, node_taints_and_tolerations, probes, restarts
from webhook.facts.dra import pod_claims
from webhook.facts.gpu.device_pods import WORKLOADS, check_advice_without_repetitions
from webhook.facts.subject import Subject
from webhook.facts.view import NAMESPACES
from webhook.rules.problem import Problem
from webhook.typed.pod_parts import CLAIMS, DEVICES
from webhook.typed.pods import Pod

_ADVICE: Final = (
    restarts.advise_job_policies,
    restarts.advise_gang_restarts,
    node_taints_and_tolerations.advise_tolerations,
    device_failures.advise_bare_pods,
    device_failures.advise_reused_claims_of_single_pods,
    probes.advise_serving_readiness_and_disruption,
    probes.advise_liveness_probes,
    device_failures.advise_always_pull_of_image_digests,
    nccl.advise_nccl,
)
_OF_SERVERS: Final = (probes.advise_serving_readiness_and_disruption, probes.advise_liveness_probes)
_CLAIMS: Final = frozenset(("resource.k8s.io", kind) for kind in ("ResourceClaim", "ResourceClaimTemplate"))
_LOOKUPS: Final = (*probes.DISRUPTION_BUDGET_LOOKUPS, *pod_claims.LOOKUPS, NAMESPACES)


def advise_device_failures(subject: Subject) -> Iterator[Problem]:
    """Yield the advice about an object, once where several of its templates share it."""
    yield from check_advice_without_repetitions(_ADVICE, node_taints_and_tolerations.TOLERATES_EVERYTHING.id, subject)


def advise_probes(subject: Subject) -> Iterator[Problem]:
    """Yield the advice about servers of an object of a kind without other advice about failures."""
    yield from check_advice_without_repetitions(_OF_SERVERS, probes.LIVENESS_PROBE.id, subject)


def _needs_device_failure_advice(subject: Subject) -> bool:
    """Return whether an object is not a Pod without devices."""
    if subject.group_kind != ("", "Pod"):
        return True
    pod = subject.typed(Pod)
    limits = (container.resources.limits for container in pod.spec.all_containers())
    return bool(pod.spec.resource_claims) or any("/" in name for named in limits for name in named)


CHECKS: Final = (
    Check(
        group="device-failures",
        run=advise_device_failures,
        kinds=WORKLOADS | probes.SERVICES,
        lookups=_LOOKUPS,
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
    Check(group="device-failures", run=node_taints_and_tolerations.advise_device_tolerations, kinds=_CLAIMS),
)
