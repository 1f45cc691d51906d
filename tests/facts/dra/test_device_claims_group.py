"""Which claims of pods belong to their pod group, and which only look like claims of the group."""

from __future__ import annotations

import pytest

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.dra.device_claims_group import check_claims_match_pod_group

SHARED = {"name": "gpu", "resourceClaimTemplateName": "big"}


def group(*claims: object) -> JSON:
    metadata = {"name": "g", "namespace": "team"}
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": {"resourceClaims": list(claims)}}  # fmt: skip


def problems(*claims: object, name: object = "g", context: tuple[JSON, ...] = (group(SHARED),)) -> list[str]:
    spec = {"schedulingGroup": {"podGroupName": name}, "resourceClaims": list(claims)}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team"}, "spec": spec}
    found = check_claims_match_pod_group(subject(pod, *context))
    return [f"{each.path}: {each.message or ', '.join(map(str, each.missing))}" for each in found]


@pytest.mark.parametrize(
    "claim",
    [
        SHARED,
        {**SHARED, "resourceClaimName": None},
        {"name": "nic", "resourceClaimTemplateName": "port"},
        {"name": "nic", "resourceClaimName": "big"},
        None,
    ],
)
def test_the_claim_of_the_group_and_other_claims_are_allowed(claim: object) -> None:
    assert problems(claim) == []


@pytest.mark.parametrize(
    ("claim", "differs"),
    [
        (
            {"name": "gpu", "resourceClaimName": "big"},
            "claim `gpu` uses ResourceClaim `big`, but claim `gpu` of PodGroup `g` uses ResourceClaimTemplate `big`",
        ),
        (
            {"name": "gpu"},
            "claim `gpu` uses no ResourceClaim, but claim `gpu` of PodGroup `g` uses ResourceClaimTemplate `big`",
        ),
        (
            {"name": "mine", "resourceClaimTemplateName": "big"},
            "claim `mine` uses ResourceClaimTemplate `big`, but in PodGroup `g` that claim is called `gpu`",
        ),
    ],
)
def test_a_claim_with_another_name_or_source_is_a_different_claim(claim: object, differs: str) -> None:
    assert problems(claim) == [
        f"spec.resourceClaims[0]: {differs}, so the pod gets its own devices, not the devices of the group"
    ]


def test_an_unknown_group_is_missing() -> None:
    assert problems(SHARED, context=()) == ["spec.schedulingGroup.podGroupName: PodGroup g not found"]


@pytest.mark.parametrize("name", [None, "", "${GROUP}"])
def test_a_pod_without_a_group_gets_no_finding(name: object) -> None:
    assert problems(SHARED, name=name) == []


def test_a_group_may_have_no_claims_or_others() -> None:
    assert problems(SHARED, context=(group(),)) == []
    assert problems(SHARED, context=(group(None, {"name": "other"}),)) == []
