"""Checks that the claims of a pod match the claims that its PodGroup shares (KEP-5729).

A pod joins a PodGroup by `spec.schedulingGroup.podGroupName`. The pod shares a claim of the group only if its own
claim has the same name and the same source. Otherwise Kubernetes creates a claim for each pod, without a warning
(k8s.io/api v0.36.1 scheduling/v1alpha2 types.go PodGroupSpec.resourceClaims).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.cluster.interest import interest_in_fields
from webhook.facts.dra.types import DEVICE_CLAIMS_ADVICE, PodGroup
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.pods import Pod, PodClaim
from webhook.yamltext.placeholders import is_placeholder

POD_GROUP: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/pod-group",
    title="The claim is created for each pod and not for the PodGroup",
    why=(
        "Kubernetes uses the claim of the group only if name and source are the same in the pod and the group. "
        "Otherwise each pod gets its own claim, without a warning."
    ),
    source="k8s.io/api v0.36.1 scheduling/v1alpha2 types.go PodGroupSpec.resourceClaims",
)

LOOKUP: Final = interest_in_fields(PodGroup.gvk, "spec.resourceClaims")


def check_claims_match_pod_group(subject: Subject) -> Iterator[Problem]:
    """Report a claim of a pod that has the name or the source of a claim of its PodGroup, but not both."""
    pod, view = subject.typed(Pod).spec, subject.cluster_view()
    name = pod.scheduling_group.pod_group_name
    if not name or is_placeholder(name):
        return
    group = view.find(PodGroup, name)
    if not group:
        yield POD_GROUP.problem(pod.scheduling_group.path("podGroupName"), missing=view.missing_objects_by_field()[""])
        return
    shared = [claim for claim in group.spec.resource_claims if claim]
    same = {(claim.name, *_source_names(claim)) for claim in shared}
    named = {claim.name: claim for claim in reversed(shared)}
    sourced = {_source_names(claim): claim for claim in reversed(shared)}
    for claim in pod.resource_claims:
        nearly = named.get(claim.name) or sourced.get(_source_names(claim))
        if claim and nearly and (claim.name, *_source_names(claim)) not in same:
            difference = _describe_difference(claim, nearly, group)
            message = f"{difference}, so the pod gets its own devices, not the devices of the group"
            fix = _fix_for_separate_claim(claim, nearly, _source_names(claim) in sourced)
            yield POD_GROUP.problem(claim.at, message, fix)


def _describe_difference(claim: PodClaim, nearly: PodClaim, group: PodGroup) -> str:
    if claim.name == nearly.name:
        other = f"claim `{claim.name}` of PodGroup `{group.name}` uses {_describe_source(nearly)}"
    else:
        other = f"in PodGroup `{group.name}` that claim is called `{nearly.name}`"
    return f"claim `{claim.name}` uses {_describe_source(claim)}, but {other}"


def _fix_for_separate_claim(claim: PodClaim, nearly: PodClaim, is_source_of_group: bool) -> str:
    """Return how the pod shares the claim of its group, or how the claim becomes clearly separate.

    `is_source_of_group`: a claim of the group has the source of the pod's claim.
    """
    if claim.name != nearly.name:
        return f"call the claim `{nearly.name}` in the pod too, or use another source"
    separate = "another name and another source" if is_source_of_group else "give the claim another name"
    return f"use {_describe_source(nearly)} in the pod too, or {separate}"


def _source_names(claim: PodClaim) -> tuple[str, str]:
    return claim.resource_claim_name, claim.resource_claim_template_name


def _describe_source(claim: PodClaim) -> str:
    if claim.resource_claim_name:
        return f"ResourceClaim `{claim.resource_claim_name}`"
    if claim.resource_claim_template_name:
        return f"ResourceClaimTemplate `{claim.resource_claim_template_name}`"
    return "no ResourceClaim"
