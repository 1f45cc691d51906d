"""The references of sandboxes: whether the object exists, and which Pool a template uses."""

from __future__ import annotations

import pytest

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.sandbox.sandbox import (
    check_batch_sandbox,
    check_claim_references,
    check_pool_reference,
    check_warm_pool_reference,
)
from webhook.rules.problem import Problem

WHOLE: JSON = {}
"""A cluster with exactly these objects."""


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


def said(obj: JSON, *known: JSON) -> list[Problem]:
    checks = {
        "BatchSandbox": check_pool_reference,
        "SandboxClaim": check_claim_references,
        "SandboxWarmPool": check_warm_pool_reference,
    }
    return list(
        checks[obj["kind"]](subject(obj, *(each for each in known if each is not WHOLE), is_whole=WHOLE in known))
    )


def codes(obj: JSON, *known: JSON) -> list[tuple[str, str, list[str]]]:
    found = said(obj, *known)
    return [(each.code, each.path, [str(missing) for missing in each.missing]) for each in found]


@pytest.mark.parametrize(
    ("known", "fix", "missing"),
    [
        ([], "", ["Pool python not found"]),
        ([WHOLE], "create the Pool, or correct the name", []),
        ([WHOLE, pool("pyhton")], "did you mean `pyhton`?", []),
        ([pool("python", "other")], "", ["Pool python not found"]),
    ],
    ids=["a few files", "a whole cluster", "a similar Pool", "another namespace"],
)
def test_a_missing_pool_is_reported_as_absent_or_unknown(known: list[JSON], fix: str, missing: list[str]) -> None:
    (found,) = said(batch("python"), *known)
    assert (found.code, found.path, found.fix) == ("sandbox/reference-exists", "spec.poolRef", fix)
    assert [str(each) for each in found.missing] == missing


def test_an_existing_pool_is_not_a_problem() -> None:
    assert said(batch("python"), pool("python")) == []


@pytest.mark.parametrize("reference", ["", None, "$POOL", "{{ .pool }}", 7, ["a"]])
def test_a_sandbox_without_a_pool_gets_no_finding(reference: JSON) -> None:
    assert said(batch(reference), WHOLE) == []


@pytest.mark.parametrize(("most", "expected"), [(3, []), (2, ["spec.replicas"]), (None, []), ("2", [])])
def test_a_pool_limits_the_number_of_pods(most: JSON, expected: list[str]) -> None:
    assert [each.path for each in said(batch("p", replicas=3), pool("p", most=most))] == expected


def lacks(spec: JSON, **offered: JSON) -> str:
    obj = batch("*", template={"spec": spec})
    found = said(obj, WHOLE, pool("p", **offered), pool("other", "elsewhere"))
    return found[0].message.partition("`p` lacks ")[2].rstrip(")") if found else ""


def test_a_pool_has_what_a_template_asks_for() -> None:
    asked = [{"image": "py", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}, {"image": "js"}]
    offered = [{"image": "py", "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}}}] * 2
    selector = {"zone": "a"}
    assert lacks({"containers": asked, "nodeSelector": selector}, containers=offered, nodeSelector=selector) == ""


def test_a_pool_lacks_what_a_template_asks_for() -> None:
    asked = [{"image": "js", "resources": {"requests": {"nvidia.com/gpu": 2, "cpu": "odd"}}}, None]
    selector = {"zone": "a"}
    expected = "image `js` and 2 nvidia.com/gpu and node selector zone=a"
    assert lacks({"containers": asked, "nodeSelector": selector}) == expected


@pytest.mark.parametrize("spec", [None, {"containers": None}, {"containers": [], "nodeSelector": {}}])
def test_a_template_without_requests_fits_any_pool(spec: JSON) -> None:
    assert lacks(spec) == ""


def test_the_pools_are_known_only_for_a_whole_cluster() -> None:
    assert codes(batch("*"), pool("p")) == [("sandbox/pool-choice", "spec.poolRef", ["Pool not listed"])]
    (found,) = said(batch("*"), WHOLE)
    assert found.message == "finds no Pool in the namespace"


def test_a_sandbox_claim_refers_to_a_template_or_a_warm_pool() -> None:
    older = codes(claim("v1alpha1", sandboxTemplateRef={"name": "t"}), WHOLE)
    newer = codes(claim("v1beta1", warmPoolRef={"name": "w"}), WHOLE)
    assert [path for _, path, _ in (*older, *newer)] == ["spec.sandboxTemplateRef.name", "spec.warmPoolRef.name"]


def test_patches_are_ignored_together_with_a_pool() -> None:
    patches = [None, {"spec": "x"}]
    found = check_batch_sandbox(subject(batch("p", shardPatches=patches), pool("p")))
    assert [each.code for each in found] == ["sandbox/ignored-with-pool"]
    template = {"spec": {"containers": [{"name": "a", "image": "x"}]}}
    found = check_batch_sandbox(subject(batch("", replicas=2, template=template, shardPatches=patches)))
    assert [each.path for each in found] == ["spec.shardPatches[1].spec"]
