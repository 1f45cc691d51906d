"""The fact `sandbox`: references of sandboxes, and which Pool a template finds."""

from __future__ import annotations

import pytest

from tests.facts.subjects import with_missing
from webhook.attributes import JSON
from webhook.cluster.files import FilesCluster
from webhook.facts.opensandbox.references import sandbox
from webhook.facts.view import View

WHOLE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}


def pool(name: str, namespace: str = "team", most: JSON = 3, **spec: JSON) -> JSON:
    template = {"spec": {"containers": [{"name": "c", "image": "py"}], **spec}}
    return {
        "apiVersion": "sandbox.opensandbox.io/v1alpha1",
        "kind": "Pool",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"capacitySpec": {"poolMax": most}, "template": template},
    }


def batch(reference: JSON, **spec: JSON) -> JSON:
    return {
        "apiVersion": "sandbox.opensandbox.io/v1alpha1",
        "kind": "BatchSandbox",
        "metadata": {"name": "b", "namespace": "team"},
        "spec": {"replicas": 1, "poolRef": reference, **spec},
    }


def claim(version: str, **spec: JSON) -> JSON:
    version = f"extensions.agents.x-k8s.io/{version}"
    return {"apiVersion": version, "kind": "SandboxClaim", "metadata": {"name": "c", "namespace": "team"}, "spec": spec}


def fact(obj: JSON, *known: JSON) -> JSON:
    view = View(FilesCluster(known), "team")
    return with_missing(sandbox(obj, view), view)


@pytest.mark.parametrize(
    ("known", "found", "absent", "nearest", "missing"),
    [
        ([], False, False, "", ["Pool python not found"]),
        ([WHOLE], False, True, "", ["Pool python not found"]),
        ([pool("pyhton")], False, True, "pyhton", ["Pool python not found"]),
        ([pool("python", "other")], False, False, "", ["Pool python not found"]),
        ([pool("python")], True, False, "", []),
    ],
    ids=["a few files", "a whole cluster", "a near one", "another namespace", "there"],
)
def test_a_pool_is_there_or_not_or_nobody_can_say(
    known: list[JSON], found: bool, absent: bool, nearest: str, missing: list[str]
) -> None:
    value = fact(batch("python"), *known)
    (reference,) = value["references"]
    assert (reference["found"], reference["absent"], reference["nearest"]) == (found, absent, nearest)
    assert value["missing"] == missing


@pytest.mark.parametrize("reference", ["", None, "*", "$POOL", "{{ .pool }}", 7, ["a"]])
def test_no_pool_is_named(reference: JSON) -> None:
    assert fact(batch(reference), WHOLE)["references"] == []


@pytest.mark.parametrize(("most", "expected"), [(3, 3), (None, None), ("3", None), (True, None)])
def test_how_many_pods_a_pool_may_have(most: JSON, expected: JSON) -> None:
    assert fact(batch("p"), pool("p", most=most))["references"][0]["most"] == expected


def lacks(spec: JSON, **offered: JSON) -> list[str]:
    found = fact(batch("*", template={"spec": spec}), WHOLE, pool("p", **offered), pool("other", "elsewhere"))["pools"]
    assert [each["name"] for each in found] == ["p"]
    lacking: list[str] = found[0]["lacks"]
    return lacking


def test_a_pool_has_what_a_template_asks_for() -> None:
    asked = [{"image": "py", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}, {"image": "js"}]
    offered = [{"image": "py", "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}}}] * 2
    assert (
        lacks({"containers": asked, "nodeSelector": {"zone": "a"}}, containers=offered, nodeSelector={"zone": "a"})
        == []
    )


def test_a_pool_lacks_what_a_template_asks_for() -> None:
    asked = [{"image": "js", "resources": {"requests": {"nvidia.com/gpu": 2, "cpu": "odd"}}}, None]
    selector = {"zone": "a"}
    assert lacks({"containers": asked, "nodeSelector": selector}) == [
        "image js",
        "2 of nvidia.com/gpu",
        "node selector zone=a",
    ]


@pytest.mark.parametrize("spec", [None, "x", [], {"containers": None}, {"containers": "x", "nodeSelector": []}])
def test_a_template_that_asks_for_nothing_finds_any(spec: JSON) -> None:
    assert lacks(spec) == []


def test_which_pools_there_are_is_known_of_a_whole_cluster_only() -> None:
    value = fact(batch("*"), pool("p"))
    assert (value["pools"], value["poolsKnown"], value["missing"]) == ([], False, ["Pool not listed"])


def test_claims_name_a_template_or_a_warm_pool() -> None:
    older = fact(claim("v1alpha1", sandboxTemplateRef={"name": "t"}), WHOLE)["references"]
    newer = fact(claim("v1beta1", warmPoolRef={"name": "w"}), WHOLE)["references"]
    assert [(each["kind"], each["name"], each["absent"]) for each in (*older, *newer)] == [
        ("SandboxTemplate", "t", True),
        ("SandboxWarmPool", "w", True),
    ]


def test_patches_are_not_read_beside_a_pool() -> None:
    patches = [None, {"spec": "x"}]
    assert fact(batch("p", shardPatches=patches), pool("p"))["notes"] == []
    assert [each["path"] for each in fact(batch("", shardPatches=patches))["notes"]] == ["spec.shardPatches[1].spec"]
