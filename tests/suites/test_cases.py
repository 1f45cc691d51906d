"""Cases with their own policies, and what counts as a mismatch."""

from tests.literals import CONFIG_MAPS, OPTIONS, validating
from webhook.suites.recorded import RecordedCase, mismatches


def case(**changes):
    policy, binding = validating("true", rule=CONFIG_MAPS)
    return RecordedCase(
        {"id": "c", "policies": [policy], "bindings": [binding], "review": None, "expect": {"allowed": True}, **changes}
    )


def test_a_case_with_refused_policies_is_a_mismatch():
    policy, binding = validating("1")
    assert "must evaluate to bool" in mismatches(case(policies=[policy], bindings=[binding]), OPTIONS)[0]
    assert mismatches(case(), OPTIONS) == ()
    assert mismatches(case(expect={"policyRefused": "x"}), OPTIONS)[0].startswith("policyRefused")


def test_a_case_may_expect_only_a_warning():
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "operation": "CREATE",
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "object": {},
        },
    }
    expect = {"allowed": True, "warn": True}
    assert mismatches(case(review=review, expect=expect), OPTIONS) == ("warnings: expected one, found none",)
    assert mismatches(case(review=review, orderDependent=True), OPTIONS) == ()
    assert mismatches(case(review=review, orderDependent=True, expect={"allowed": False}), OPTIONS) != ()
