"""If claimgate has a bug in the evaluation of a policy, this policy has an evaluation error. Its place is logged, and
other policies are evaluated.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.literals import job, mutating, namespace, pod, policies, request, shipped_policies, validating
from tests.server.asgi import Running, review_of
from tests.server.test_pages import samples
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.facts.packages import FactPackage
from webhook.facts.subject import SHIPPED, FactRegistry
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import ValidationAction, Verdict
from webhook.server.request_body import FREE_BYTES

REGISTRY = FactRegistry(
    (
        *SHIPPED.packages,
        FactPackage(module="tests.admission.broken", facts=("broken",), groups=("broken",), rules=("checks",)),
    )
)
CLUSTER = FilesCluster([namespace()])
SECRET = "hunter2"
FAILS = {"expression": "problems.size() == 0", "messageExpression": "problems"}
SOUND = {"expression": "false", "message": "no such thing"}
LABELS = {"labels": {"secret": SECRET}}
TEXT = (
    "the policy cannot be evaluated because its checks `broken` failed (KeyError in checks.py:9): "
    "report this as a bug of claimgate (policy broken)"
)


def loaded(*lists: Any) -> PolicySet:
    found: PolicySet = policies(*lists, registry=REGISTRY)
    return found


def broken(name: str = "broken", **spec: Any) -> Any:
    return validating(FAILS, name=name, annotations={"checks": "broken", "expand": "pods"}, **spec)


def reviewed(found: PolicySet, obj: Any, phase: Phase = Phase.VALIDATE) -> Verdict:
    return answer_request(request(obj), found, CLUSTER, phase=phase)


def labelled(obj: dict[str, Any]) -> dict[str, Any]:
    template = obj.get("spec", {}).get("template")
    obj["metadata"]["labels"] = LABELS["labels"]
    if template is not None:
        template["metadata"] = LABELS
    return obj


@pytest.mark.parametrize("obj", [pod(), job()], ids=["a Pod", "a template"])
def test_other_policies_decide_after_a_faulty_one(obj: dict[str, Any]) -> None:
    found = loaded(broken(), validating(SOUND, name="sound", annotations={"expand": "pods"}))
    verdict = reviewed(found, labelled(obj))
    assert verdict.status is not None
    assert verdict.status.message.startswith(f"2 problems:\n* {TEXT}")
    assert "no such thing (policy sound)" in verdict.status.message
    assert SECRET not in f"{verdict.status} {verdict.faults}"
    (fault,) = verdict.faults
    assert (fault.policy, fault.checks, fault.error) == ("broken", "broken", "KeyError")
    assert "fail" in fault.traceback[-1]


@pytest.mark.parametrize(
    ("spec", "allowed", "warned"),
    [
        ({}, False, False),
        ({"failurePolicy": "Ignore"}, True, False),
        ({"actions": ("Warn",)}, True, True),
    ],
    ids=["Fail denies", "Ignore admits", "a binding that warns only warns"],
)
def test_the_failure_policy_of_the_faulty_policy_decides(spec: dict[str, Any], allowed: bool, warned: bool) -> None:
    verdict = reviewed(loaded(broken(**spec)), labelled(pod()))
    assert verdict.allowed is allowed
    assert bool(verdict.warnings) is warned
    assert len(verdict.faults) == 1


def test_other_mutations_are_applied_after_a_faulty_one() -> None:
    change = '[JSONPatch{op: "add", path: "/metadata/labels/a", value: "b"}]'
    bad = mutating(change, name="bad", annotations={"facts": "broken"}, failurePolicy="Ignore", matchConditions=ASKS)
    verdict = reviewed(loaded(bad, mutating(change, name="good")), labelled(pod()), Phase.MUTATE)
    assert verdict.allowed
    assert [each["path"] for each in verdict.patch] == ["/metadata/labels/a"]
    assert [each.policy for each in verdict.faults] == ["bad"]


ASKS = [{"name": "asks", "expression": "broken.whole"}]


def test_a_shipped_policy_that_only_warns_never_denies_when_it_fails() -> None:
    for policy in shipped_policies().policies:
        denies = policy.kind == "mutating" or any(ValidationAction.DENY in each.actions for each in policy.bindings)
        assert denies or not policy.is_fail, policy.name


@pytest.mark.parametrize("size", [0, FREE_BYTES], ids=["on the loop", "in a worker"])
def test_a_fault_is_logged_and_counted_without_contents(size: int) -> None:
    found = loaded(broken())

    def core(attributes: Attributes, phase: Phase, deadline: Deadline) -> Verdict:
        return answer_request(attributes, found, CLUSTER, phase=phase, deadline=deadline)

    running = Running(core)
    obj = {**labelled(pod()), "x": "y" * size}
    answer = running.post("/validate", review_of(namespace="team", object=obj, userInfo={"username": "u"}))
    assert answer.status_code == 200
    assert answer.json()["response"]["allowed"] is False
    fault, line = running.lines()
    assert (fault["message"], fault["policy"], fault["checks"], fault["error"]) == (
        "internal fault",
        "broken",
        "broken",
        "KeyError",
    )
    assert (fault["uid"], line["message"], "faults" in line) == ("U", "review", False)
    assert SECRET not in answer.text + running.stream.getvalue()
    labels = frozenset({"policy": "broken", "checks": "broken", "type": "KeyError"}.items())
    assert samples(running.call("GET", "/metrics").text)["claimgate_policy_faults_total", labels] == 1
