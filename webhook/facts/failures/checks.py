"""The checks of what happens when nodes, devices or containers fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Check
from webhook.facts.dra import pod_claims
from webhook.facts.failures import gang_restarts, job_policies, liveness, nccl, pod_replacement, serving, tolerations
from webhook.facts.gpu.device_pods import WORKLOADS, advised
from webhook.facts.subject import Subject
from webhook.facts.view import NAMESPACES
from webhook.problem import Problem
from webhook.typed.pod_parts import CLAIMS, DEVICES, NO_CONTROLLER
from webhook.typed.pods import Pod

_ADVICE: Final = (
    job_policies.advise_job_policies,
    gang_restarts.advise_gang_restarts,
    tolerations.advise_tolerations,
    pod_replacement.advise_bare_pods,
    pod_replacement.advise_shared_claims,
    serving.advise_serving,
    liveness.advise_liveness,
    pod_replacement.advise_image_pulls,
    nccl.advise_nccl,
)
_CLAIMS: Final = frozenset(("resource.k8s.io", kind) for kind in ("ResourceClaim", "ResourceClaimTemplate"))
_LOOKUPS: Final = (*serving.LOOKUPS, *pod_claims.LOOKUPS, NAMESPACES)


def device_failures(subject: Subject) -> Iterator[Problem]:
    """What is to be said of an object, once where several of its templates share it."""
    yield from advised(_ADVICE, tolerations.TOLERATES_EVERYTHING.id, subject)


def _is_judged(subject: Subject) -> bool:
    """Whether it is neither made from another object, which was looked at, nor a Pod without devices."""
    if subject.group_kind != ("", "Pod"):
        return not subject.metadata.is_controlled
    pod = subject.typed(Pod)
    if NO_CONTROLLER not in pod.parts.present:
        return False
    limits = (container.resources.limits for container in pod.spec.all_containers())
    return bool(pod.spec.resource_claims) or any("/" in name for named in limits for name in named)


CHECKS: Final = (
    Check(
        group="device-failures",
        run=device_failures,
        kinds=WORKLOADS | serving.SERVICES,
        lookups=_LOOKUPS,
        when=_is_judged,
        of_pods_with=frozenset((CLAIMS, DEVICES)),
    ),
    Check(group="device-failures", run=tolerations.advise_device_tolerations, kinds=_CLAIMS),
)
