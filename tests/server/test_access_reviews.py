"""Questions of policies become SubjectAccessReviews. The API server answers or returns an error."""

from __future__ import annotations

import asyncio
import threading
from time import monotonic
from typing import Any, cast

import pytest

from tests.rows import all_rows
from webhook.apimachinery.attributes import UserInfo
from webhook.cel.library.authorizer import AuthorizationDecision, AuthorizationQuestion
from webhook.cluster.connection import Connection, ServerRefused
from webhook.errors import LookupFailed
from webhook.server.access_reviews import AccessReviews, decision, subject_access_review
from webhook.server.usage import Tenant

ALICE = UserInfo("alice", "7", ("dev", "system:authenticated"), {"scopes": ("a", "b")})
WHO = {"user": "alice", "uid": "7", "groups": ["dev", "system:authenticated"], "extra": {"scopes": ["a", "b"]}}
ROBOT = {
    "user": "system:serviceaccount:team:robot",
    "groups": ["system:serviceaccounts", "system:serviceaccounts:team"],
}
QUESTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a resource": (
        {"user": "alice", "verb": "get", "resource": "pods", "namespace": "n"},
        {**WHO, "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "n"}},
    ),
    "a subresource of a named object": (
        {
            "user": "alice",
            "verb": "update",
            "group": "apps",
            "resource": "deployments",
            "subresource": "scale",
            "name": "d",
        },
        {
            **WHO,
            "resourceAttributes": {
                "verb": "update",
                "group": "apps",
                "resource": "deployments",
                "subresource": "scale",
                "name": "d",
            },
        },
    ),
    "a path": (
        {"user": "alice", "verb": "get", "path": "/metrics"},
        {**WHO, "nonResourceAttributes": {"path": "/metrics", "verb": "get"}},
    ),
    "selected objects": (
        {
            "user": "alice",
            "verb": "list",
            "resource": "pods",
            "field_selector": "spec.nodeName=n",
            "label_selector": "a",
        },
        {
            **WHO,
            "resourceAttributes": {
                "verb": "list",
                "resource": "pods",
                "fieldSelector": {"rawSelector": "spec.nodeName=n"},
                "labelSelector": {"rawSelector": "a"},
            },
        },
    ),
    "an authorizer for a service account": (
        {"user": ROBOT["user"], "is_service_account": True, "verb": "get", "resource": "pods"},
        {**ROBOT, "resourceAttributes": {"verb": "get", "resource": "pods"}},
    ),
}


@all_rows("question, spec", QUESTIONS.values(), ids=QUESTIONS)
def test_an_authorizer_question_becomes_this_access_review(question: dict[str, Any], spec: dict[str, Any]) -> None:
    asked: Any = subject_access_review(AuthorizationQuestion(**question), ALICE)
    assert (asked["kind"], asked["spec"]) == ("SubjectAccessReview", spec)


ANSWERS: dict[str, tuple[Any, AuthorizationDecision | str]] = {
    "allowed": ({"status": {"allowed": True, "reason": "RBAC"}}, AuthorizationDecision(allowed=True, reason="RBAC")),
    "not allowed": ({"status": {"allowed": False}}, AuthorizationDecision(allowed=False)),
    "no authorizer could decide": (
        {"status": {"allowed": False, "evaluationError": "no role"}},
        AuthorizationDecision(allowed=False, error="no role"),
    ),
    "allowed although one authorizer failed": (
        {"status": {"allowed": True, "evaluationError": "no role"}},
        AuthorizationDecision(allowed=True),
    ),
    "denied for certain": (
        {"status": {"allowed": False, "denied": True, "evaluationError": "x"}},
        AuthorizationDecision(allowed=False),
    ),
    "an answer that is not a review": (
        {"kind": "Status"},
        "the API server answered something else than a SubjectAccessReview",
    ),
    "an answer that is not an object": ([], "the API server answered something else than a SubjectAccessReview"),
}


@all_rows("answered, expected", ANSWERS.values(), ids=ANSWERS)
def test_an_access_review_answer_becomes_this_decision(answered: Any, expected: AuthorizationDecision | str) -> None:
    assert decision(answered) == expected


class Cluster:
    def __init__(self, error: Exception | None = None) -> None:
        self.may_answer = threading.Event()
        self.error = error
        self.asked: list[str] = []
        self.is_full = threading.Event()
        self.lock = threading.Lock()

    def post(self, path: str, body: Any, read_s: float) -> Any:
        with self.lock:
            self.asked.append(body["spec"]["user"])
            if len(self.asked) == 8:
                self.is_full.set()
        assert read_s > 0
        self.may_answer.wait(30)
        if self.error:
            raise self.error
        return {"status": {"allowed": True}}


def question_of(user: str) -> tuple[AuthorizationQuestion, UserInfo, Tenant]:
    return AuthorizationQuestion(user=user, verb="get", path="/x"), UserInfo(user), Tenant("team", user)


def reviews(cluster: Cluster) -> AccessReviews:
    return AccessReviews(cast("Connection", cluster))


def test_a_user_with_few_questions_does_not_wait_for_a_busy_user() -> None:
    """The questions of `greedy` fill all threads and the queue. The question of `modest` is among the next eight.

    All threads become free together, and record their questions in no defined order.
    """

    async def run() -> None:
        cluster = Cluster()
        asking = reviews(cluster)
        asking._slots.usage.add(Tenant("team", "greedy"), 60.0, monotonic())
        until = monotonic() + 60
        many = [asyncio.create_task(asking.ask(*question_of("greedy"), until)) for _ in range(20)]
        await asyncio.to_thread(cluster.is_full.wait, 30)
        question, user, _ = question_of("modest")
        modest = asyncio.create_task(asking.ask(question, user, Tenant("other", "modest"), until))
        await asyncio.sleep(0)
        cluster.may_answer.set()
        assert await asyncio.gather(modest, *many) == [AuthorizationDecision(allowed=True)] * 21
        assert cluster.asked[:8] == ["greedy"] * 8
        assert "modest" in cluster.asked[8:16]

    asyncio.run(run())


def test_one_slow_answer_does_not_delay_a_tenant_for_seconds() -> None:
    """The API server took ten seconds for a question of `slow`. This is not the fault of `slow`, so other tenants go
    first for only 30 ms.

    Both namespaces are light. Each call of `other` counts 10 ms, so `slow` is the fourth or fifth of six.
    """

    async def run() -> None:
        cluster = Cluster()
        asking = reviews(cluster)
        until = monotonic() + 60
        filling = [asyncio.create_task(asking.ask(*question_of("filling"), until)) for _ in range(8)]
        await asyncio.to_thread(cluster.is_full.wait, 30)
        queue = asking._slots._queue
        # charges are remembered only while a tenant waits
        kept = asyncio.create_task(queue.wait(Tenant("kept", "kept"), until))
        await asyncio.sleep(0)
        queue.charge("slow", 10.0)
        order: list[str] = []

        async def one(namespace: str) -> None:
            await queue.wait(Tenant(namespace, namespace), until)
            order.append(namespace)

        waiting = [asyncio.create_task(one(name)) for name in ("slow", *["other"] * 6)]
        await asyncio.sleep(0)
        for _ in range(8):
            turn = queue.pop()
            assert turn is not None
            turn[1].set_result(None)
            queue.charge(turn[0].namespace, 0.01)
            await asyncio.sleep(0)
        await asyncio.gather(kept, *waiting)
        assert order.index("slow") in {3, 4}
        cluster.may_answer.set()
        await asyncio.gather(*filling)

    asyncio.run(run())


def test_a_wait_ends_at_its_deadline() -> None:
    async def run() -> None:
        cluster = Cluster()
        asking = reviews(cluster)
        soon = monotonic() + 0.05
        late = await asyncio.gather(*(asking.ask(*question_of("alice"), soon) for _ in range(10)))
        assert late == ["the API server did not answer in time"] * 10
        assert await asking.ask(*question_of("alice"), monotonic() - 1) == late[0]
        cluster.may_answer.set()
        assert await asking.ask(*question_of("alice"), monotonic() + 60) == AuthorizationDecision(allowed=True)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ServerRefused(403, "no"), "no; apply what `claimgate webhook-config --rbac --authorizer` prints"),
        (LookupFailed("nobody there"), "nobody there"),
    ],
    ids=["forbidden", "gone"],
)
def test_failed_access_reviews_are_explained(error: Exception, told: str) -> None:
    cluster = Cluster(error)
    cluster.may_answer.set()
    found = asyncio.run(reviews_ask(cluster))
    assert found == f"cannot ask the API server: {told}"


async def reviews_ask(cluster: Cluster) -> AuthorizationDecision | str:
    return await reviews(cluster).ask(*question_of("alice"), monotonic() + 60)
