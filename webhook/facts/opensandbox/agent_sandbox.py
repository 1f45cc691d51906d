"""Claims of the containers of a Sandbox or SandboxTemplate: their CRDs key them by name.

Kubernetes itself goes by name and request (k8s.io/kubernetes v1.36 validateResourceClaimNames), so a container of a Pod
may name a claim twice, and one of a Sandbox may not. Source: kubernetes-sigs/agent-sandbox@2fd412d5 k8s/crds,
x-kubernetes-list-map-keys.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.facts.opensandbox.sandbox import Sandbox, problem
from webhook.paths import FieldPath, get
from webhook.problem import Problem


def validate_claim_names(sandbox: Sandbox) -> Iterator[Problem]:
    """Each claim once in each container."""
    for part in ("containers", "initContainers"):
        at: FieldPath = ("podTemplate", "spec", part)
        for index, container in enumerate(sandbox.deadline.each(get(sandbox.spec, at, []))):
            first: dict[str, int] = {}
            claims = get(container, ("resources", "claims"), [])
            for place, claim in enumerate(sandbox.deadline.each(claims)):
                name = claim.get("name", "")
                if name and first.setdefault(name, place) != place:
                    path = ("spec", *at, index, "resources", "claims", place, "name")
                    message = (
                        f"is already listed at index {first[name]}, but a container of a Sandbox can list a claim only "
                        "once"
                    )
                    fix = "remove one of the two, or declare the claim under two names in the resourceClaims of the pod"
                    yield problem("claim-named-once", path, message, fix, name)
