"""Reviews that ask what a user may do: on the event loop, in a worker, with few questions, and without an answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import pytest

from tests.server.asgi import Running, review_of
from webhook.apimachinery.attributes import UserInfo
from webhook.cel.library.authorizer import AuthorizationDecision, AuthorizationQuestion, Authorizer
from webhook.errors import EvaluationError
from webhook.rules.decisions import DenialStatus, Verdict
from webhook.server.request_body import FREE_BYTES
from webhook.server.usage import Tenant

USER = {"username": "alice", "groups": ["dev"]}
SMALL = review_of(userInfo=USER)
LARGE = review_of(object={"metadata": {"name": "p"}, "x": "y" * FREE_BYTES}, userInfo=USER)
BOTH = pytest.mark.parametrize("body", [SMALL, LARGE], ids=["on the loop", "in a worker"])


@dataclass
class Book:
    allowed: set[str]
    asked: list[tuple[str, UserInfo]] = field(default_factory=list)
    until: list[float] = field(default_factory=list)

    async def ask(
        self, question: AuthorizationQuestion, user: UserInfo, tenant: Tenant, until: float
    ) -> AuthorizationDecision | str:
        await asyncio.sleep(0)
        assert tenant.user in ("alice", "")  # a long body may be cut before the name of the user
        self.until.append(until)
        self.asked.append((question.path, user))
        return (
            "nobody knows"
            if question.path == "/unknown"
            else AuthorizationDecision(allowed=question.path in self.allowed)
        )


def asks(*paths: str) -> Any:
    """Return a reviewer that asks whether the user may get each path. The reviewer allows if all answers allow."""

    def review(authorizer: Authorizer) -> Verdict:
        try:
            answers = [authorizer.decide(AuthorizationQuestion(user="alice", verb="get", path=path)) for path in paths]
        except EvaluationError as error:
            return Verdict(allowed=False, status=DenialStatus(code=422, reason="Invalid", message=str(error)))
        return Verdict(allowed=all(answer.allowed for answer in answers))

    return review


@BOTH
@pytest.mark.parametrize("allowed", [True, False])
def test_a_review_restarts_after_each_authorizer_answer(body: dict[str, Any], allowed: bool) -> None:
    book = Book({"/a", "/b"} if allowed else {"/a"})
    running = Running(asks=asks("/a", "/b", "/a"), authority=book)
    assert running.post("/validate", body).json()["response"]["allowed"] is allowed
    assert book.asked == [(path, UserInfo("alice", "", ("dev",))) for path in ("/a", "/b")]
    assert running.counters.questions == {("answered",): 2}
    assert len(running.lines()) == 1


@BOTH
def test_a_review_may_not_ask_for_an_unlimited_timeout(body: dict[str, Any]) -> None:
    book = Book({f"/{number}" for number in range(20)})
    running = Running(asks=asks(*sorted(book.allowed)), authority=book)
    status = running.post("/validate", body).json()["response"]["status"]
    assert status["message"] == "authorizer: a review may ask 8 questions, and this review asks more"
    assert len(book.asked) == 8


@BOTH
def test_an_unanswered_authorizer_question_is_an_error_of_the_policy(body: dict[str, Any]) -> None:
    running = Running(asks=asks("/unknown"), authority=Book(set()))
    assert running.post("/validate", body).json()["response"]["status"]["message"] == "authorizer: nobody knows"
    assert running.counters.questions == {("unanswered",): 1}
    assert not running.post("/validate", body).json()["response"].get("warnings")


def lets_pass(path: str) -> Any:

    def review(authorizer: Authorizer) -> Verdict:
        with suppress(EvaluationError):
            authorizer.decide(AuthorizationQuestion(user="alice", verb="get", path=path))
        return Verdict(allowed=True, warnings=("other",))

    return review


@BOTH
def test_users_see_errors_that_the_failure_policy_ignores(body: dict[str, Any]) -> None:
    told = "a policy that asks what users may do was not evaluated and let the request pass: nobody knows"
    response = Running(asks=lets_pass("/unknown"), authority=Book(set())).post("/validate", body).json()["response"]
    assert (response["allowed"], response["warnings"]) == (True, ["other", told])
    response = Running(asks=lets_pass("/a"), authority=Book(set())).post("/validate", body).json()["response"]
    assert response["warnings"] == ["other"]


@BOTH
def test_half_of_the_time_is_left_for_policies_without_authorizer(body: dict[str, Any]) -> None:
    book, before = Book({"/a"}), monotonic()
    Running(asks=asks("/a"), authority=book).post("/validate?timeout=4s", body)
    assert before < book.until[0] <= before + 4


@BOTH
def test_without_authorizer_no_access_review_is_sent(body: dict[str, Any]) -> None:
    status = Running(asks=asks("/a")).post("/validate", body).json()["response"]["status"]
    assert status["message"] == "authorizer: the server was started without --authorizer"
