"""Answers follow the rules of the API server, in every form that the webhook sends."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.rows import all_rows
from webhook.admission.respond import (
    MAX_KEY,
    encode_failure_status,
    encode_response,
    next_free_name,
    sanitize_audit_annotations,
)
from webhook.apimachinery.attributes import Operation, Phase
from webhook.rules.decisions import DenialStatus, Verdict

TABLE = json.loads((Path(__file__).parents[1] / "data" / "cases" / "webhook_response_verification.json").read_text())
ALLOWED = Verdict(allowed=True)
DENIED = Verdict(allowed=False, status=DenialStatus(code=422, reason="Invalid", message="spec.x: no"))
OPERATIONS = ({"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}, {"op": "remove", "path": "/spec/x"})
PATCHED = Verdict(allowed=True, patch=OPERATIONS)


def answer(verdict: Verdict, phase: Phase = Phase.MUTATE, operation: Operation = Operation.CREATE) -> dict[str, Any]:
    review = json.loads(encode_response("U", verdict, phase, operation))
    assert (review.pop("apiVersion"), review.pop("kind")) == ("admission.k8s.io/v1", "AdmissionReview")
    (response,) = review.values()
    assert isinstance(response, dict)
    return response


def verify(uid: str, *, mutating: bool, version: str, review: dict[str, Any]) -> tuple[str, Any]:
    """Check an answer as kube-apiserver does: k8s.io/apiserver pkg/admission/plugin/webhook, v0.36.

    request/admissionreview.go VerifyAdmissionResponse, errors/statuserror.go ToStatusErr.
    """
    response = review.get("response")
    if response is None:
        return "callFailure", "webhook response was absent"
    if version == "v1":
        if response.get("uid") != uid:
            return "callFailure", f'expected response.uid="{uid}", got "{response.get("uid")}"'
        found = review.get("apiVersion", "admission.k8s.io/v1"), review.get("kind", "AdmissionReview")
        if found != ("admission.k8s.io/v1", "AdmissionReview"):
            return "callFailure", f"expected webhook response of admission.k8s.io/v1, got {found}"
        patch, patch_type = response.get("patch"), response.get("patchType")
        if not mutating and patch:
            return "callFailure", "validating webhook may not return response.patch"
        if not mutating and patch_type:
            return "callFailure", "validating webhook may not return response.patchType"
        if patch and not patch_type:
            return "callFailure", "webhook returned response.patch but not response.patchType"
        if patch_type and not patch:
            return "callFailure", "webhook returned response.patchType but not response.patch"
    if response.get("allowed"):
        return "allowed", None
    status = response.get("status") or {}
    why = status.get("message") or status.get("reason")
    text = f": {why}" if why else " without explanation"
    message = f'admission webhook "W" denied the request{text}'
    return "denied", {"code": max(status.get("code", 0), 400), "message": message}


@all_rows("case", TABLE["cases"], ids=lambda case: case["name"])
def test_the_rules_for_answers_are_those_of_the_api_server(case: dict[str, Any]) -> None:
    given = case["in"]
    outcome, detail = verify("U", mutating=given.get("mutating", False), version=given["v"], review=given)
    assert outcome == case["outcome"]
    if isinstance(case["expect"], str):
        assert case["expect"] in detail
    elif case["expect"]:
        assert detail.items() >= case["expect"].items()


@all_rows("phase", list(Phase))
@all_rows("operation", list(Operation))
@all_rows("verdict", [ALLOWED, DENIED, PATCHED, Verdict(allowed=False, patch=OPERATIONS)])
def test_every_answer_passes_the_api_servers_rules(verdict: Verdict, phase: Phase, operation: Operation) -> None:
    review = json.loads(encode_response("U", verdict, phase, operation))
    outcome, _ = verify("U", mutating=phase is Phase.MUTATE, version="v1", review=review)
    assert outcome == ("allowed" if verdict.allowed else "denied")


def test_an_allowed_review_has_only_allowed_and_uid() -> None:
    assert answer(ALLOWED) == {"uid": "U", "allowed": True}


def test_a_denial_names_code_and_reason() -> None:
    status = {"metadata": {}, "status": "Failure", "code": 422, "reason": "Invalid", "message": "spec.x: no"}
    assert answer(DENIED) == {"uid": "U", "allowed": False, "status": status}


def test_a_denial_without_status_still_names_code_and_reason() -> None:
    status = answer(Verdict(allowed=False))["status"]
    assert (status["code"], status["reason"]) == (400, "BadRequest")


def test_a_patch_has_a_patch_type() -> None:
    response = answer(PATCHED)
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == list(OPERATIONS)


NO_PATCH = {
    "validating phase": (PATCHED, Phase.VALIDATE, Operation.CREATE),
    "delete": (PATCHED, Phase.MUTATE, Operation.DELETE),
    "denied": (Verdict(allowed=False, status=DENIED.status, patch=OPERATIONS), Phase.MUTATE, Operation.CREATE),
    "no operations": (ALLOWED, Phase.MUTATE, Operation.CREATE),
}


@pytest.mark.parametrize(("verdict", "phase", "operation"), NO_PATCH.values(), ids=NO_PATCH.keys())
def test_an_answer_without_a_patch_has_no_patch_type(verdict: Verdict, phase: Phase, operation: Operation) -> None:
    assert not answer(verdict, phase, operation).keys() & {"patch", "patchType"}


def test_warnings_are_sent_as_given() -> None:
    assert answer(Verdict(allowed=True, warnings=("a", "b")))["warnings"] == ["a", "b"]


def test_the_uid_is_returned_unchanged() -> None:
    assert json.loads(encode_response('a"\\\né', ALLOWED, Phase.VALIDATE))["response"]["uid"] == 'a"\\\né'


KEYS = {
    "a qualified name stays": ("policy.x-1", "policy.x-1"),
    "a slash": ("claims/one", "claims_one"),
    "spaces and signs": ("why not!", "why_not"),
    "non-ASCII": ("grüße", "gr_e"),
    "ends that are not letters": ("-._a_.-", "a"),
    "too long": ("k" * 80, "k" * MAX_KEY),
    "cut before a dot": ("k" * 62 + ".k", "k" * 62),
}


@pytest.mark.parametrize(("key", "kept"), KEYS.values(), ids=KEYS.keys())
def test_audit_annotation_keys_are_valid_in_the_audit_log(key: str, kept: str) -> None:
    assert sanitize_audit_annotations({key: "v"}) == {kept: "v"}


def test_equal_audit_annotation_keys_get_different_names_and_empty_keys_are_dropped() -> None:
    long = "k" * MAX_KEY
    given = {"a/b": "1", "a b": "2", "a_b": "3", "///": "4", long: "5", long + "!": "6"}
    kept = {"a_b": "1", "a_b-2": "2", "a_b-3": "3", long: "5", "k" * 61 + "-2": "6"}
    assert answer(Verdict(allowed=True, audit_annotations=given))["auditAnnotations"] == kept


class _Watched(dict[str, str]):
    asked = 0

    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return super().__contains__(key)


def test_many_colliding_audit_annotation_keys_take_linear_time() -> None:
    taken, last = _Watched(), dict[str, int]()
    for number in range(1000):
        for name in ("short", f"{'k' * 60}{number % 10}ab"):
            taken[next_free_name(name, taken, last)] = ""
    assert len(taken) == 2000
    assert taken.asked < 3 * 2000
    assert all(len(name) <= MAX_KEY for name in taken)


def test_a_status_can_be_a_whole_body() -> None:
    body = json.loads(encode_failure_status(DenialStatus(code=413, reason="RequestEntityTooLarge", message="too much")))
    assert body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": 413,
        "reason": "RequestEntityTooLarge",
        "message": "too much",
    }
