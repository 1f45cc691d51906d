"""Each policy's failurePolicy decides about a request that was not evaluated in time."""

from dataclasses import replace

from tests.literals import PODS, mutating, namespace, pod, policies, request, validating
from webhook.admission.review import NotEvaluated, answer_unevaluated_request
from webhook.apimachinery.attributes import Attributes, Operation, Phase
from webhook.cluster.files import FilesCluster

LATE = "it took longer than 9 s"
FIX = "make the object smaller, or raise timeoutSeconds of the webhook"
ONLY_GPU = {"namespaceSelector": {"matchLabels": {"gpu": "yes"}}}


def stopped(*lists, phase=Phase.VALIDATE, context=(), **changes):
    """Return the verdict on a request that was not evaluated in time, with an unknown object."""
    asked: Attributes = replace(request(pod()), object=None, **changes)
    return answer_unevaluated_request(
        asked, policies(*lists), FilesCluster(context), phase=phase, why=NotEvaluated(LATE)
    )


def test_fail_denies_and_says_what_to_do():
    verdict = stopped(validating("true", name="a"), validating("true", name="b", failurePolicy="Ignore"))
    assert verdict.allowed is False
    assert (verdict.status.code, verdict.status.reason) == (422, "Invalid")
    message = f"not evaluated: {LATE}, and failurePolicy Fail denies what policy a did not evaluate; {FIX}"
    assert verdict.status.message == message
    assert [(each.policy, each.evaluation, each.action) for each in verdict.decisions] == [
        ("a", "error", "deny"),
        ("b", "error", "admit"),
    ]


def test_many_policies_are_counted():
    verdict = stopped(*(validating("true", name=f"p{number}") for number in range(7)))
    assert "denies what policies p0, p1, p2, p3, p4 and 2 more did not evaluate" in verdict.status.message


def test_ignore_allows_and_warns():
    verdict = stopped(validating("true", failurePolicy="Ignore"))
    assert (verdict.allowed, verdict.warnings) == (True, (f"claimgate did not evaluate this object: {LATE}; {FIX}",))


def test_a_binding_that_only_warns_does_not_deny():
    assert stopped(validating("true", actions=("Warn",))).allowed is True


def test_a_failed_mutation_is_forbidden_and_delete_mutates_nothing():
    changes = mutating("Object{}")
    verdict = stopped(changes, phase=Phase.MUTATE)
    assert (verdict.allowed, verdict.status.code) == (False, 403)
    assert stopped(changes, phase=Phase.MUTATE, operation=Operation.DELETE).decisions == ()


def test_policies_for_other_namespaces_and_kinds_decide_nothing():
    other = validating("true", matchConstraints={"resourceRules": [PODS], **ONLY_GPU})
    bound = validating("true", name="w", binding={"matchResources": ONLY_GPU})
    assert stopped(other, bound, context=[namespace()]).allowed is True
    assert stopped(other, bound, context=[namespace(gpu="yes")]).allowed is False
    assert stopped(other).allowed is False  # the labels of the namespace are not known
    assert stopped(validating("true", rule={**PODS, "resources": ["configmaps"]})).decisions == ()


def test_policies_are_exempt():
    asked = request({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"})
    wild = validating("true", rule={**PODS, "apiGroups": ["*"], "resources": ["*"]})
    assert (
        answer_unevaluated_request(
            asked, policies(wild), FilesCluster(), phase=Phase.VALIDATE, why=NotEvaluated(LATE)
        ).decisions
        == ()
    )
