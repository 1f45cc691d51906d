"""Device claims of TrainJobs: resourceClaimsPerNode, and claims in runtimePatches.

Source: KEP-2782@3c8b998afa6b, kubeflow/trainer#3540. Trainer takes them only with its feature gate on, which the param
`dynamicResourceAllocation` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.train_job_pods.nodes import name_of
from webhook.facts.train_job_pods.overlays import Overlay, layers
from webhook.facts.train_job_pods.releases import CLAIMS
from webhook.facts.train_job_pods.train_job import TrainJob
from webhook.name_faults import label_fault
from webhook.names import dns1123_label
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.releases import shown

problem: Final = Group("train-job").problem
_PER_NODE: Final = "spec.trainer.resourceClaimsPerNode"
_MOST: Final = 32


def validate_resource_claims_per_node(job: TrainJob) -> Iterator[Problem]:
    """Everything about claims of 2.4; earlier releases do not have the fields."""
    if job.release < CLAIMS:
        return
    claims = job.trainer.get("resourceClaimsPerNode", [])
    called = Counter(name_of(claim) for claim in job.deadline.paced(claims))
    for index, claim in enumerate(job.deadline.paced(claims)):
        yield from _validate_claim(claim, called, f"{_PER_NODE}[{index}]")
    if len(claims) > _MOST:
        message = f"are more than the {_MOST} that are allowed"
        yield problem(
            "claim-count", _PER_NODE, message, "ask for several devices in one claim", shown=f"{len(claims)} claims"
        )
    if not job.takes_claims:
        yield from _validate_gate(job, claims)


def _validate_claim(claim: JSON, called: Counter[str], at: str) -> Iterator[Problem]:
    name = name_of(claim)
    if not claim.get("resourceClaimTemplateName", ""):
        message = f"must name a ResourceClaimTemplate for claim `{name}` because Trainer accepts no other source here"
        yield problem("claim-template", at, message, "set resourceClaimTemplateName")
    if dns1123_label(name) and not is_placeholder(name):
        fix = "use at most 63 lower-case letters, digits and dashes"
        yield problem(
            "claim-name", f"{at}.name", f"cannot be the name of a claim because {label_fault(name)}", fix, name
        )
    if called[name] > 1:
        message = "is the name of several claims"
        yield problem("claim-twice", f"{at}.name", message, "give each claim its own name", name)


def _validate_gate(job: TrainJob, claims: list[JSON]) -> Iterator[Problem]:
    """The fields that the feature gate guards."""
    places = [_PER_NODE] if claims else []
    for layer in job.deadline.paced(layers(job.object, job.release)):
        for overlay in job.deadline.paced(layer.overlays):
            places.extend(_guarded(overlay))
    for place in places:
        message = (
            f"must not be set because Trainer {shown(job.release)} takes claims only with its feature gate for dynamic "
            "resource allocation, which is off"
        )
        fix = (
            "declare claims in the pod template of the runtime, or ask the administrator to turn the gate on and set "
            "dynamicResourceAllocation to true in ConfigMap `trainer`"
        )
        yield problem("claim-feature-gate", place, message, fix)


def _guarded(overlay: Overlay) -> Iterator[str]:
    for index in range(len(overlay.pod.get("resourceClaims", []))):
        yield f"{overlay.spec_at}.resourceClaims[{index}]"
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(overlay.pod.get(kind, [])):
            if get(container, ("resources", "claims"), []):
                yield f"{overlay.spec_at}.{kind}[{index}].resources.claims"
