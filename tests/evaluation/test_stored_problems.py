"""What happens to an update of an object that already had a problem when it was stored."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.literals import TABLE, namespace, pod, policies, request, shipped_policies, validating
from webhook.admission import fixtures
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import JSON, Operation, Phase
from webhook.cluster.files import FilesCluster
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions
from webhook.policy.policy_set import PolicySet
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


def update(old: JSON, new: JSON, checked_by: PolicySet = POLICIES) -> Verdict:
    created = fixtures.attributes_of_object(deepcopy(new), TABLE.row)
    created.operation, created.old_object = Operation.UPDATE, deepcopy(old)
    return answer_request(created, checked_by, FilesCluster(), phase=Phase.VALIDATE)


BAD: Any = {"name": "a", "resources": HALF}
GOOD: Any = {"name": "b"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([BAD], [{**BAD, "image": "y"}], id="another container image"),
        pytest.param([BAD], [GOOD, BAD], id="a new container before the container"),
        pytest.param([BAD, GOOD], [GOOD, BAD], id="another order of the containers"),
        pytest.param([{**BAD, "name": "c"}, BAD], [BAD], id="one of two mistakes removed"),
        pytest.param([BAD, {**BAD, "name": "c"}], [BAD, {"name": "c"}], id="one of two mistakes corrected"),
    ],
)
def test_a_stored_problem_only_warns(old: list[JSON], new: list[JSON]) -> None:
    verdict = update(deployment(*old), deployment(*new))
    assert verdict.allowed
    (warning,) = verdict.warnings
    assert "`500m` must be a whole number" in warning
    assert SAID in warning


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([GOOD], [BAD], id="the stored value was right"),
        pytest.param(
            [BAD],
            [{**BAD, "resources": {"limits": {"nvidia.com/gpu": "700m"}}}],
            id="the stored value was wrong in another way",
        ),
        pytest.param([BAD], [BAD, {**BAD, "name": "c"}], id="the same mistake in another container"),
    ],
)
def test_a_new_problem_is_denied(old: list[JSON], new: list[JSON]) -> None:
    verdict = update(deployment(*old), deployment(*new))
    assert not verdict.allowed
    assert verdict.status is not None
    assert SAID not in verdict.status.message


def mpi_job(slots: int, ranks: int = 16) -> JSON:
    launcher = {"name": "a", "image": "x", "command": ["mpirun", "-np", str(ranks), "./train"]}
    roles = {
        "Launcher": {"template": {"spec": {"containers": [launcher]}}},
        "Worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "a", "image": "x"}]}}},
    }
    spec = {"slotsPerWorker": slots, "mpiReplicaSpecs": roles}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "j"}, "spec": spec}


@pytest.mark.parametrize(
    ("new", "is_allowed"),
    [
        pytest.param(mpi_job(7), True, id="7 of 8 slots"),
        pytest.param(mpi_job(8), True, id="enough slots"),
        pytest.param(mpi_job(3), False, id="fewer slots"),
        pytest.param(mpi_job(3, ranks=8), True, id="fewer slots and fewer ranks"),
        pytest.param(mpi_job(5, ranks=24), False, id="more slots and still more ranks"),
    ],
)
def test_an_update_that_makes_a_number_better_is_not_new(new: JSON, is_allowed: bool) -> None:
    verdict = update(mpi_job(4), new, shipped_policies("training-jobs"))
    assert verdict.allowed is is_allowed
    assert any(SAID in each for each in verdict.warnings) is (is_allowed and new != mpi_job(8))


def test_a_new_problem_denies_and_a_stored_problem_warns() -> None:
    verdict = update(deployment(BAD, GOOD), deployment(BAD, {**GOOD, "resources": HALF}))
    assert verdict.status is not None
    assert "containers[1]" in verdict.status.message
    assert "containers[0]" not in verdict.status.message
    assert [SAID in each and "containers[0]" in each for each in verdict.warnings] == [True]


def test_an_allowed_authorizer_check_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the old object was reviewed")

    monkeypatch.setattr("webhook.evaluation.stored_problems._context_of_old_object", never)
    assert update(deployment(GOOD), deployment({**GOOD, "image": "y"})).allowed


NO_HOST: Any = {"expression": "!has(object.spec.hostPID)", "message": "no hostPID"}
ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}
UPDATES: dict[str, tuple[JSON, JSON, list[str]]] = {
    # metadata and status of the old and the new Pod, and the result; both Pods break the rule
    "a removed finalizer": ({"finalizers": ["a/b"]}, {}, []),
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
    said = validating_decisions(request_context(found, asked, FilesCluster([namespace()])), Phase.VALIDATE)
    return [str(action) for each in said if each.action == "deny" for action in each.actions]


@pytest.mark.parametrize(("old", "new", "said"), UPDATES.values(), ids=UPDATES)
def test_a_policy_with_stored_allows_bookkeeping_and_warns_or_denies(old: JSON, new: JSON, said: list[str]) -> None:
    pods = of_pod(old, hostPID=True), of_pod(new, hostPID=True)
    assert actions(*pods, stored="warn") == said
    assert actions(*pods, stored="deny") == ["Deny" for _ in said]
    assert actions(*pods) == ["Deny"]  # the result in an API server


ROOT: Any = {
    "expression": "object.spec.containers.all(c, c.image != 'x')",
    "messageExpression": "object.spec.containers.filter(c, c.image == 'x').map(c, c.name + ': no x').join('; ')",
}


def test_a_policy_with_a_list_of_mistakes_warns_about_the_remaining_mistakes() -> None:
    one, two, other = ({"name": name, "image": "x"} for name in ("a", "b", "c"))
    both = pod(containers=[one, two])
    assert actions(both, pod(containers=[{**one, "image": "y"}, two]), ROOT, stored="warn") == ["Warn"]
    assert actions(both, pod(containers=[one, other]), ROOT, stored="warn") == ["Deny"]
    assert actions(both, pod(containers=[one, two, two]), ROOT, stored="warn") == ["Deny"]


def test_a_policy_with_stored_warn_denies_new_problems_and_named_conditions() -> None:
    assert actions(pod(), pod(hostPID=True), stored="warn") == ["Deny"]
    named = {"expression": "object.metadata.?finalizers.orValue([]).size() > 0"}
    assert actions(of_pod({"finalizers": ["a/b"]}), pod(), named, stored="warn") == ["Deny"]


@pytest.mark.parametrize("field", ["status", "finalizers", "managedFields"])
def test_a_message_with_the_name_of_a_field_does_not_make_a_policy_read_the_field(field: str) -> None:
    told = {**NO_HOST, "message": f"no hostPID; see the {field} page"}
    new: JSON = {field: {}} if field == "status" else {}
    old: JSON = {} if field == "status" else {field: ["a/b"]}
    assert actions(of_pod(old, hostPID=True), of_pod(new, hostPID=True), told, stored="deny") == []
