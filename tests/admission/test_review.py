"""A request with an object that no API server would send still gets an answer."""

from __future__ import annotations

import json

import pytest

from tests.literals import shipped_policies
from webhook.admission.decode import decode_review_bytes
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import JSON, Attributes, Phase
from webhook.cluster.files import FilesCluster
from webhook.evaluation import validating
from webhook.policy.policy_set import PolicySet

NO_DOUBLE = "a number that no double can hold"


@pytest.fixture(scope="module")
def policies() -> PolicySet:
    return shipped_policies()


def sent(spec: JSON, *, group: str = "", version: str = "v1", kind: str = "Pod", resource: str = "pods") -> Attributes:
    metadata, api_version = {"name": "a", "namespace": "default"}, f"{group}/{version}".lstrip("/")
    request = {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": resource},
        "operation": "CREATE",
        "name": "a",
        "namespace": "default",
        "object": {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec},
    }
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return decode_review_bytes(json.dumps(whole).replace(json.dumps(NO_DOUBLE), "1e999").encode())


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "a", "resources": 1.5}]},
        {"containers": [None, 4]},
        {"containers": {"name": "a"}},
        {"containers": [{"name": "a", "resources": {"limits": [1]}}], "resourceClaims": "gpu"},
        NO_DOUBLE,
        {"containers": [NO_DOUBLE]},
        {"containers": [{"name": "a", "resources": NO_DOUBLE}]},
    ],
)
def test_a_pod_that_was_not_decoded_by_an_api_server_is_answered(spec: JSON, phase: Phase, policies: PolicySet) -> None:
    verdict = answer_request(sent(spec), policies, FilesCluster(), phase=phase)
    if phase is Phase.VALIDATE:
        assert verdict.status is not None
        assert "pod-template-shape/wrong-type" in verdict.status.message
        assert "report this as a bug" not in verdict.status.message


def test_a_claim_with_fields_of_another_version_is_answered(policies: PolicySet) -> None:
    """An API server drops `exactly` from a claim of v1beta1."""
    kind = {"group": "resource.k8s.io", "version": "v1beta1"}
    spec = {"devices": {"requests": [{"name": "r", "exactly": "x"}]}}
    verdict = answer_request(
        sent(spec, **kind, kind="ResourceClaim", resource="resourceclaims"),
        policies,
        FilesCluster(),
        phase=Phase.VALIDATE,
    )
    assert verdict.faults == ()
    assert verdict.status is not None
    assert "spec.devices.requests[0]" in verdict.status.message


def test_an_internal_error_stays_an_internal_error(policies: PolicySet, monkeypatch: pytest.MonkeyPatch) -> None:
    """No policy causes this error, so no failurePolicy decides about the request."""

    def broken(*_: object) -> None:
        raise KeyError("spec")

    monkeypatch.setattr(validating, "without_repeats", broken)
    with pytest.raises(KeyError):
        answer_request(sent({"containers": [{"name": "a"}]}), policies, FilesCluster(), phase=Phase.VALIDATE)
