"""Finds containers that ask for the same vendor's GPUs twice: by a claim and as an extended resource.

NICs and ComputeDomain channels with a GPU are how multi-node jobs are meant to be written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from webhook.facts.dra.groups import DEVICE_CLAIMS_ADVICE
from webhook.facts.dra.pod_claims import PodClaim, pod_claims
from webhook.facts.gpu import devices
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.typed.collections import Items
from webhook.typed.pods import Container, Pod

GPU_ASKED_TWICE: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/gpu-asked-twice",
    title="A container asks for a GPU by a claim or as a resource, not both.",
    why="It is given two GPUs of the same kind, of which one probably stays idle.",
    issues=("https://github.com/kubeflow/trainer/pull/3540",),
)


class _GpuResources(NamedTuple):
    """The extended resources that stand for the GPUs of a claim, and the vendors of these."""

    resources: frozenset[str]
    vendors: frozenset[str]

    def has_resource(self, resource: str) -> bool:
        """Return whether an extended resource stands for such GPUs."""
        return resource in self.resources or _vendor_of_resource(resource) in self.vendors


def advise_gpu_requested_twice(subject: Subject) -> Iterator[Problem]:
    """Yield containers that ask for a GPU both ways."""
    by_name = {
        claim.name: _gpu_resources_of_claim(claim) for claim in subject.once(pod_claims).claims if claim.contents.is_gpu
    }
    for container in subject.typed(Pod).spec.all_containers() if by_name else ():
        asked: dict[_GpuResources, Items[str]] = {}
        for claim in container.resources.claims:
            if (gpus := by_name.get(claim.name)) is None:
                continue
            if gpus not in asked:
                asked[gpus] = _gpu_resources_of_container(container, gpus)
            for resource in asked[gpus]:
                message = (
                    f"uses claim `{claim.name}` and requests `{resource}`, which are the same kind of GPU, so the "
                    "container gets both"
                )
                yield GPU_ASKED_TWICE.problem(container.at, message, "keep either the claim or the request")


def _gpu_resources_of_container(container: Container, gpus: _GpuResources) -> Items[str]:
    """Return the extended resources of a container that stand for such GPUs."""
    names = dict.fromkeys((*container.resources.requests, *container.resources.limits))
    return Items([name for name in names if gpus.has_resource(name)], container.reading.deadline)


def _gpu_resources_of_claim(claim: PodClaim) -> _GpuResources:
    asked = [request for request in claim.requests if request.is_gpu]
    states = claim.contents.classes
    return _GpuResources(
        frozenset(states[request.device_class].extended_resource for request in asked),
        frozenset(request.device.vendor for request in asked) - {""},
    )


def _vendor_of_resource(name: str) -> str:
    """Return the vendor whose devices a resource counts, "" if it counts none."""
    known = devices.device_of_resource_name(name)
    return known.vendor if known.kind in devices.COUNTED else ""
