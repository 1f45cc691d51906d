"""The fact `podGroup`: which claims of pods are the group's, and which only look like it."""

from __future__ import annotations

import pytest

from tests.facts.subjects import with_missing
from webhook.cluster.files import FilesCluster
from webhook.facts.scheduling.pod_group import pod_group
from webhook.facts.view import View
from webhook.workloads.podsets import podsets
from webhook.workloads.table import load

TABLE = load()
SHARED = {"name": "gpu", "resourceClaimTemplateName": "big"}


def group(*claims: object) -> dict:
    metadata = {"name": "g", "namespace": "team"}
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": {"resourceClaims": list(claims)}}  # fmt: skip


def fact(*claims: object, name: object = "g", context: tuple[dict, ...] = (group(SHARED),)) -> dict:
    spec = {"schedulingGroup": {"podGroupName": name}, "resourceClaims": list(claims)}
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": spec}}}
    view = View(FilesCluster(context), "team")
    return with_missing(pod_group(podsets(job, TABLE), view), view)


@pytest.mark.parametrize(
    "claim",
    [
        SHARED,
        {**SHARED, "resourceClaimName": None},
        {"name": "nic", "resourceClaimTemplateName": "port"},
        {"name": "nic", "resourceClaimName": "big"},
        None,
        "gpu",
    ],
)
def test_the_groups_claim_and_others_are_no_finding(claim: object) -> None:
    assert fact(claim)["others"] == []


def test_another_source_is_another_claim() -> None:
    (found,) = fact({"name": "gpu", "resourceClaimName": "big"})["others"]
    assert found == {
        "path": "spec.template.spec.resourceClaims[0]",
        "group": "g",
        "name": "gpu",
        "source": "ResourceClaim `big`",
        "groupName": "gpu",
        "groupSource": "ResourceClaimTemplate `big`",
    }


def test_another_name_is_another_claim() -> None:
    (found,) = fact({"name": "mine", "resourceClaimTemplateName": "big"})["others"]
    assert (found["name"], found["groupName"]) == ("mine", "gpu")


def test_a_group_that_is_not_there_is_missing() -> None:
    found = fact(SHARED, context=())
    assert found["missing"] == ["PodGroup g not found"]
    assert found["groups"] == [
        {"podSet": "main", "path": "spec.template.spec.schedulingGroup.podGroupName", "name": "g", "found": False}
    ]
    assert found["others"] == []


@pytest.mark.parametrize("name", [None, "", 1, "${GROUP}", {"a": 1}])
def test_without_a_group_there_is_nothing_to_say(name: object) -> None:
    assert fact(SHARED, name=name) == {"groups": [], "others": [], "missing": []}


def test_a_group_may_have_no_claims_or_odd_ones() -> None:
    assert fact(SHARED, context=(group(),))["others"] == []
    assert fact(SHARED, context=(group(None, "gpu", {"name": "other"}),))["others"] == []
    (found,) = fact({"name": "gpu"}, context=(group(SHARED),))["others"]
    assert found["source"] == "no source"
