"""For each row of Kubernetes' table of pod claims and resources, claimgate agrees, on a Pod and in a template."""

from __future__ import annotations

import json
from pathlib import Path

from tests.literals import TABLE, shipped_policies
from tests.rows import all_rows
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces

CASES = json.loads((Path(__file__).parents[1] / "data" / "cases" / "pod_dra_and_resources.json").read_text())["cases"]
POLICIES = shipped_policies()

WORDS = {
    # the message of Kubernetes, and that of claimgate
    "static pods do not support resource claims": "a static pod cannot have claims",
    "lowercase RFC 1123 label": (
        "cannot be the name of a claim because it",
        "cannot be the name of a request because it",
    ),
    "lowercase RFC 1123 subdomain": "cannot be the name of a ResourceClaim",
    "Required value": "is not set",
    "Duplicate value": ("is also the name of the claim", "of this container already lists"),
    "must specify one of": "must set resourceClaimName or resourceClaimTemplateName",
    "at most one of": "must not set both resourceClaimName",
    "must be one of the names in pod.spec.resourceClaims": "is not declared in spec.resourceClaims",
    "cannot be set for an Ephemeral Container": ("an ephemeral container cannot", "because an ephemeral container"),
    "must be a standard resource": "must be a resource of Kubernetes",
    "must be equal to": "must equal the limit",
    "Limit must be set": "has no limit, and Kubernetes requires a limit",
    "must be an integer": "must be a whole number",
    "doesn't follow extended resource name standard": "cannot be the name of a resource because it",
    "qualified name": "cannot be the name of a resource because it",
    "must be greater than or equal to 0": "must not be negative",
}
ONLY_PODS = {"static pods do not support resource claims"}


def answer(obj: dict, phase: str) -> tuple[bool, str]:
    outcome = run_phases(
        fixtures.attributes_of_object(obj, TABLE.row),
        phase,
        LocalAnswerer(policies=POLICIES, cluster=ClusterWithAssumedNamespaces(FilesCluster())),
    )
    status = outcome.verdict.status
    return outcome.verdict.allowed, status.message if status else ""


def expected_words(text: str) -> tuple[str, ...]:
    found = next(words for theirs, words in WORDS.items() if theirs in text)
    return (found,) if isinstance(found, str) else found


@all_rows("case", CASES, ids=lambda case: case["name"])
def test_a_pod_gets_the_verdict_of_kubernetes(case: dict) -> None:
    allowed, message = answer(case["object"], "validate")
    assert allowed is case["valid"], message
    if not allowed:
        assert any(words in message for words in expected_words(case["errorContains"])), message


@all_rows("case", CASES, ids=lambda case: case["name"])
def test_a_template_of_a_custom_kind_gets_the_same_verdict(case: dict) -> None:
    template = {"metadata": case["object"]["metadata"], "spec": case["object"]["spec"]}
    obj = {
        "apiVersion": "sandbox.opensandbox.io/v1alpha1",
        "kind": "BatchSandbox",
        "metadata": {"name": "b"},
        "spec": {"replicas": 1, "template": template},
    }
    allowed, message = answer(obj, "validate")
    if case.get("errorContains") in ONLY_PODS:
        assert allowed
        return
    assert allowed is case["valid"], message
    if not allowed:
        problems = [line.removeprefix("* ") for line in message.splitlines() if not line.endswith(" problems:")]
        assert problems, message
        assert all(problem.startswith("spec.template.spec.") for problem in problems), message


def test_portable_gpu_is_translated_before_validation() -> None:
    """A complete review changes only this row, because the review first replaces `gpu` by the vendor's resource."""
    case = next(each for each in CASES if each["name"] == "derived: gpu key unqualified")
    assert answer(case["object"], "auto") == (True, "")
