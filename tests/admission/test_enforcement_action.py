"""An installation that only warns or only audits denies nothing, and it still reports the findings of its policies."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from tests.admission.test_enforce import ADMITTED, AUDIT, DENY, WARN, attributes, denial
from webhook import assembly
from webhook.admission.enforce import FAILURE_KEY, limit_actions, verdict_of_decisions
from webhook.admission.review import NotEvaluated, answer_request, answer_unevaluated_request
from webhook.apimachinery.attributes import POD, GroupVersionResource, Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.evaluation.review_options import ReviewOptions
from webhook.rules.decisions import ValidationAction
from webhook.settings.shared import Settings

POLICIES = assembly.assemble_policies_and_context(Settings()).policies
CLUSTER = ClusterWithAssumedNamespaces(FilesCluster(()))
PODS = GroupVersionResource("", "v1", "pods")
ADVICE = ValidationAction.ADVICE
RELAXED = {
    "a denial becomes a warning": (denial(), "warn", (WARN,), "deny"),
    "a denial becomes an annotation": (denial(), "audit", (AUDIT,), "deny"),
    "a denial and an annotation become an annotation": (denial(actions=(DENY, AUDIT)), "warn", (WARN, AUDIT), "deny"),
    "a warning stays a warning": (denial(actions=(WARN,)), "warn", (WARN,), ""),
    "a warning becomes an annotation": (denial(actions=(WARN,)), "audit", (AUDIT,), "warn"),
    "a warning of what is denied": (denial(actions=(WARN, DENY)), "audit", (AUDIT,), "deny"),
    "advice stays advice": (denial(actions=(ADVICE,)), "audit", (ADVICE,), ""),
    "a denial stays a denial": (denial(), "deny", (DENY,), ""),
}


def asked(limits, **changes):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}]},
    }
    kinds = {"kind": POD, "resource": PODS, "request_kind": POD, "request_resource": PODS}
    return attributes(**kinds, name="p", namespace="default", object=pod, **changes)


@pytest.mark.parametrize(("decision", "most", "actions", "withheld"), RELAXED.values(), ids=RELAXED.keys())
def test_no_action_is_stricter_than_the_allowed_action(decision, most, actions, withheld):
    (relaxed,) = limit_actions([decision], most)
    assert relaxed == replace(decision, actions=actions, withheld=withheld)


def test_the_annotation_has_every_policy_that_denies():
    decisions = [denial(policy=name, actions=(DENY, AUDIT)) for name in ("a", "b")]
    annotations = verdict_of_decisions(decisions, attributes()).audit_annotations
    assert [each["policy"] for each in json.loads(annotations[FAILURE_KEY])] == ["a", "b"]


def test_a_failed_mutation_denies_no_request():
    failed = denial(kind="mutating", evaluation="error")
    assert not verdict_of_decisions(limit_actions([failed], "deny"), attributes()).allowed
    warned, audited = (verdict_of_decisions(limit_actions([failed], most), attributes()) for most in ("warn", "audit"))
    assert (warned.allowed, warned.warnings) == (True, ("no (policy p)",))
    assert (audited.allowed, audited.warnings) == (True, ())


def test_action_audit_writes_only_annotations():
    verdict = verdict_of_decisions(limit_actions([ADMITTED, denial()], "audit"), attributes())
    assert (verdict.allowed, verdict.warnings, verdict.audit_annotations.keys()) == (
        True,
        (),
        {"would-deny", FAILURE_KEY},
    )


@pytest.mark.parametrize("most", ["deny", "warn", "audit"])
def test_an_object_is_denied_warned_or_allowed(most):
    options = ReviewOptions(enforcement_action=most)
    verdict = answer_request(asked({"gpu": "all"}), POLICIES, CLUSTER, phase=Phase.VALIDATE, options=options)
    assert verdict.allowed is (most != "deny")
    assert bool(verdict.warnings) is (most == "warn")
    assert (FAILURE_KEY in verdict.audit_annotations) is (most == "audit")


@pytest.mark.parametrize("most", ["deny", "warn", "audit"])
def test_policies_that_only_audit_change_nothing(most):
    options = ReviewOptions(enforcement_action=most)
    verdict = answer_request(asked({"gpu": "2"}), POLICIES, CLUSTER, phase=Phase.MUTATE, options=options)
    assert bool(verdict.patch) is (most != "audit")
    assert ("gpu-portable/not-applied" in verdict.audit_annotations) is (most == "audit")


def test_users_see_what_a_bundled_policy_changed_and_why():
    options = ReviewOptions(warn_of_mutations=True)
    verdict = answer_request(asked({"gpu": "2"}), POLICIES, CLUSTER, phase=Phase.MUTATE, options=options)
    (warning,) = verdict.warnings
    changed, why = warning.split(": ", 1)
    limits = "spec.containers[0].resources.limits"
    assert changed == f'changed {limits}["nvidia.com/gpu"], {limits}.gpu'
    assert why.startswith("Replaces the resource name `gpu` with nvidia.com/gpu")
    assert why.endswith("(policy gpu-portable)")
    assert verdict.audit_annotations["gpu-portable/applied"] == changed


@pytest.mark.parametrize("most", ["deny", "warn", "audit"])
def test_an_unevaluated_review_is_reported_within_the_allowed_action(most):
    verdict = answer_unevaluated_request(
        asked({}), POLICIES, CLUSTER, phase=Phase.VALIDATE, why=NotEvaluated("it took too long"), most=most
    )
    assert verdict.allowed is (most != "deny")
    assert bool(verdict.warnings) is (most == "warn")
