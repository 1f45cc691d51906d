"""Questions of policies as SubjectAccessReviews, and what the API server answers to them."""

from __future__ import annotations

from typing import Any

from tests.rows import all_rows
from webhook.attributes import UserInfo
from webhook.cel.library.authorizer import Decision, Question
from webhook.server.access_reviews import decision, review

ALICE = UserInfo("alice", "7", ("dev", "system:authenticated"), {"scopes": ("a", "b")})
WHO = {"user": "alice", "uid": "7", "groups": ["dev", "system:authenticated"], "extra": {"scopes": ["a", "b"]}}
ROBOT = {
    "user": "system:serviceaccount:team:robot",
    "groups": ["system:serviceaccounts", "system:serviceaccounts:team"],
}
QUESTIONS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "a resource": (
        {"user": "alice", "verb": "get", "resource": "pods", "namespace": "n"},
        {**WHO, "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "n"}},
    ),
    "a part of a named object": (
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
    "in the name of a service account": (
        {"user": "system:serviceaccount:team:robot", "verb": "get", "resource": "pods"},
        {**ROBOT, "resourceAttributes": {"verb": "get", "resource": "pods"}},
    ),
}


@all_rows("question, spec", QUESTIONS.values(), ids=QUESTIONS)
def test_what_is_asked(question: dict[str, str], spec: dict[str, Any]) -> None:
    asked: Any = review(Question(**question), ALICE)
    assert (asked["kind"], asked["spec"]) == ("SubjectAccessReview", spec)


ANSWERS: dict[str, tuple[Any, Decision | str]] = {
    "allowed": ({"status": {"allowed": True, "reason": "RBAC"}}, Decision(allowed=True, reason="RBAC")),
    "not allowed": ({"status": {"allowed": False}}, Decision(allowed=False)),
    "nobody could decide": (
        {"status": {"allowed": False, "evaluationError": "no role"}},
        Decision(allowed=False, error="no role"),
    ),
    "allowed although one authorizer failed": (
        {"status": {"allowed": True, "evaluationError": "no role"}},
        Decision(allowed=True),
    ),
    "denied for certain": (
        {"status": {"allowed": False, "denied": True, "evaluationError": "x"}},
        Decision(allowed=False),
    ),
    "no review": ({"kind": "Status"}, "the API server answered something else than a SubjectAccessReview"),
    "no object": ([], "the API server answered something else than a SubjectAccessReview"),
}


@all_rows("answered, expected", ANSWERS.values(), ids=ANSWERS)
def test_what_is_answered(answered: Any, expected: Decision | str) -> None:
    assert decision(answered) == expected
