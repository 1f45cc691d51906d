"""gpu-limits agrees with kube-apiserver 1.36.1 about resources: tests/data/policies/resources.jsonl, from tests/e2e.

A spec is refused if and only if the API server refuses a Pod with it. Differences are listed with their reasons.
Templates are checked like their pods.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.literals import TABLE, shipped_policies
from tests.rows import all_rows
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces

POLICIES = shipped_policies("gpu-limits", "pod-template-shape")
HUGE = (
    "1Ei",
    "7Ei",
    "16Ei",
    "123456789012345678",
    "999999999999999999999",
    "4503599627370497.5",
    "92233720368547758070m",
)
ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "policies" / "resources.jsonl").read_text().splitlines()
]


def difference(row: Any) -> str:
    """Return why claimgate does not refuse a spec that the API server refuses, or ""."""
    spec, text = row["spec"], json.dumps(row["spec"])
    if any(f'"{amount}"' in text for amount in (*HUGE, "9223372036854775.5", "9223372036854775807.5")):
        return "Go's thousandths overflow above 9e15, which no cluster has"
    if "[null]" in text:
        return "null is nothing here, at every level"
    if spec.get("overhead") == {}:
        return "an empty map is left out by most that write objects"
    if "runtimeClassName" in spec:
        return "the overhead of a runtime class is known only in the cluster"
    return ""


def judged(obj: Any) -> tuple[bool, list[str]]:
    attributes = fixtures.attributes_of_object(obj, TABLE.row)
    outcome = run_phases(
        attributes, "validate", LocalAnswerer(policies=POLICIES, cluster=ClusterWithAssumedNamespaces(FilesCluster()))
    )
    denied = [made for _, made in outcome.decisions if made.action == "deny"]
    assert [made.message for made in denied if made.evaluation == "error"] == []
    return outcome.verdict.allowed, [made.message for made in denied]


def pod(spec: Any) -> Any:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "default"}, "spec": spec}


@all_rows("row", ROWS, ids=[json.dumps(row["spec"])[:200] for row in ROWS])
def test_a_pod_is_refused_as_the_api_server_refuses_it(row: Any) -> None:
    allowed, said = judged(pod(row["spec"]))
    is_refused = bool(row["refusal"])
    assert allowed is not is_refused or (is_refused and difference(row)), (row["refusal"], said)


def template(kind: str, spec: Any) -> Any:
    """Return an object of this kind. Its controller creates pods with this spec."""
    version = "apps/v1" if kind == "Deployment" else "sandbox.opensandbox.io/v1alpha1"
    inner = {"metadata": {"labels": {"app": "x"}}, "spec": spec}
    selecting = {"selector": {"matchLabels": {"app": "x"}}} if kind == "Deployment" else {}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {**selecting, "template": inner},
    }


@pytest.mark.parametrize("kind", ["Deployment", "BatchSandbox"])
def test_a_template_gets_the_verdict_of_its_pod(kind: str) -> None:
    for row in ROWS:
        allowed, said = judged(pod(row["spec"]))
        inside, heard = judged(template(kind, row["spec"]))
        assert inside is allowed, row["spec"]
        assert heard == [text.replace("spec.", "spec.template.spec.") for text in said] or not allowed


def test_resources_refused_in_a_deployment_are_refused_in_pods() -> None:
    assert [row["spec"] for row in ROWS if row["refused"] and not row["refusal"]] == []
