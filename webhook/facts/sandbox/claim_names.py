"""Claims of the containers of a Sandbox or SandboxTemplate: their CRDs key them by name.

Kubernetes itself goes by name and request (k8s.io/kubernetes v1.36 validateResourceClaimNames), so a container of a Pod
may name a claim twice, and one of a Sandbox may not. Source: kubernetes-sigs/agent-sandbox@2fd412d5 k8s/crds,
x-kubernetes-list-map-keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.sandbox.groups import SANDBOX
from webhook.facts.sandbox.types import Sandbox
from webhook.problem import Problem
from webhook.typed.pods import Container

CLAIM_NAMED_ONCE: Final = SANDBOX.rule(
    "sandbox/claim-named-once",
    title="A container of a Sandbox names each claim once.",
    why="The CRD identifies the claims of a container by name, so the API server refuses the same claim twice.",
    refused_by="the API server",
    source="kubernetes-sigs/agent-sandbox 2fd412d5 k8s/crds",
    fails="create",
)


def validate_claim_names(sandbox: Sandbox) -> Iterator[Problem]:
    """Refuse a container that names one of its claims twice."""
    for container in sandbox.spec.pod_template.spec.all_containers():
        yield from _check_claims_with_repeated_names(container)


def _check_claims_with_repeated_names(container: Container) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, claim in enumerate(container.resources.claims):
        if claim.name and first.setdefault(claim.name, index) != index:
            message = (
                f"is already listed at index {first[claim.name]}, but a container of a Sandbox can list a claim only "
                "once"
            )
            fix = "remove one of the two, or declare the claim under two names in the resourceClaims of the pod"
            yield CLAIM_NAMED_ONCE.problem(claim.path("name"), message, fix, claim.name)
