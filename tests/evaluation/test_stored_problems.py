"""Which problems of an update the stored object has as well, and what is said of them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.literals import TABLE, namespace, pod, policies, request, shipped_policies, validating
from webhook.admission import fixtures
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import JSON, Operation, Phase
from webhook.cluster.files import FilesCluster
from webhook.evaluation.validating import validating_decisions
from webhook.rules.decisions import Verdict

POLICIES = shipped_policies("gpu-limits")
HALF = {"limits": {"nvidia.com/gpu": "500m"}}
SAID = "the stored object has this problem already, so it does not stop the update"


def deployment(*containers: JSON, replicas: int = 1) -> JSON:
    pod = {"containers": [{"image": "x", **each} for each in containers]}
    labels = {"app": "x"}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {**spec, "template": template},
    }


def update(old: JSON, new: JSON) -> Verdict:
    created = fixtures.attributes_of_object(deepcopy(new), TABLE.row)
    created.operation, created.old_object = Operation.UPDATE, deepcopy(old)
    return answer_request(created, POLICIES, FilesCluster(), phase=Phase.VALIDATE)


BAD: Any = {"name": "a", "resources": HALF}
GOOD: Any = {"name": "b"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([BAD], [{**BAD, "image": "y"}], id="another image"),
        pytest.param([BAD], [GOOD, BAD], id="a container before it"),
        pytest.param([BAD, GOOD], [GOOD, BAD], id="another order"),
    ],
)
def test_what_was_stored_warns(old: list[JSON], new: list[JSON]) -> None:
    verdict = update(deployment(*old), deployment(*new))
    assert verdict.allowed
    (warning,) = verdict.warnings
    assert "`500m` must be a whole number" in warning
    assert SAID in warning


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([GOOD], [BAD], id="it was right"),
        pytest.param([BAD], [{**BAD, "resources": {"limits": {"nvidia.com/gpu": "700m"}}}], id="another wrong value"),
        pytest.param([BAD], [BAD, {**BAD, "name": "c"}], id="the same mistake once more"),
    ],
)
def test_what_is_new_is_denied(old: list[JSON], new: list[JSON]) -> None:
    verdict = update(deployment(*old), deployment(*new))
    assert not verdict.allowed
    assert verdict.status is not None
    assert SAID not in verdict.status.message


def test_a_new_problem_denies_and_the_old_one_warns_beside_it() -> None:
    verdict = update(deployment(BAD, GOOD), deployment(BAD, {**GOOD, "resources": HALF}))
    assert verdict.status is not None
    assert "containers[1]" in verdict.status.message
    assert "containers[0]" not in verdict.status.message
    assert [SAID in each and "containers[0]" in each for each in verdict.warnings] == [True]


def test_nobody_is_asked_twice_about_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the old object was reviewed")

    monkeypatch.setattr("webhook.evaluation.stored_problems._context_of_old_object", never)
    assert update(deployment(GOOD), deployment({**GOOD, "image": "y"})).allowed


NO_HOST: Any = {"expression": "!has(object.spec.hostPID)", "message": "no hostPID"}
ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}
UPDATES: dict[str, tuple[JSON, JSON, list[str]]] = {
    # metadata and status of the old Pod and of the new one, of which both break the rule; what is said
    "a finalizer that goes": ({"finalizers": ["a/b"]}, {}, []),
    "a status": ({}, {"status": {"phase": "Failed"}}, []),
    "an object that is being deleted": (ENDING, {**ENDING, "labels": {"a": "b"}}, []),
    "a label": ({}, {"labels": {"a": "b"}}, ["Warn"]),
}


def of_pod(metadata: JSON, **spec: JSON) -> JSON:
    given = dict(metadata)
    status = {"status": given.pop("status")} if "status" in given else {}
    made = pod(**spec)
    return {**made, **status, "metadata": {**made["metadata"], **given}}


def actions(old: JSON, new: JSON, expression: JSON = NO_HOST, **annotations: str) -> list[str]:
    found = policies(validating(expression, annotations=annotations))
    asked = request(new, "UPDATE", old)
    said = validating_decisions(asked, found, FilesCluster([namespace()]), Phase.VALIDATE)
    return [str(action) for each in said if each.action == "deny" for action in each.actions]


@pytest.mark.parametrize(("old", "new", "said"), UPDATES.values(), ids=UPDATES)
def test_a_policy_that_says_so_lets_be_what_was_stored(old: JSON, new: JSON, said: list[str]) -> None:
    pods = of_pod(old, hostPID=True), of_pod(new, hostPID=True)
    assert actions(*pods, stored="warn") == said
    assert actions(*pods) == actions(*pods, stored="deny") == ["Deny"]  # as in the API server


def test_a_policy_that_says_so_refuses_new_problems_and_what_it_names() -> None:
    assert actions(pod(), pod(hostPID=True), stored="warn") == ["Deny"]
    named = {"expression": "object.metadata.?finalizers.orValue([]).size() > 0"}
    assert actions(of_pod({"finalizers": ["a/b"]}), pod(), named, stored="warn") == ["Deny"]
