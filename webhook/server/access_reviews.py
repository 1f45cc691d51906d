"""May somebody do something? Asked of the API server, as policies ask `authorizer`; nothing of it is kept.

Knows SubjectAccessReviews (authorization.k8s.io/v1) and who asks in whose name. What cannot be decided in time is said,
and is then an evaluation error of the policy that asks. Source of the names: k8s.io/apiserver v0.36
pkg/cel/library/authz.go, pkg/authentication/serviceaccount/util.go.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any, Final

from webhook.attributes import JSON, UserInfo
from webhook.cel.library.authorizer import Decision, Question
from webhook.cluster.connection import Connection
from webhook.errors import LookupFailed

MOST_QUESTIONS: Final = 8
"""Of one review: each is a call, after which the review is evaluated anew."""
_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_AT_A_TIME: Final = 8
"""Calls to the API server; further ones wait."""
_MOST_S: Final = 5.0
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


class AccessReviews:
    """Asks one API server. One event loop's."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._free = asyncio.Semaphore(_AT_A_TIME)

    async def ask(self, question: Question, user: UserInfo, deadline: float) -> Decision | str:
        """The decision, or why there is none.

        Args:
            question: what a policy asks.
            user: who sent the request that is reviewed.
            deadline: of the review, on the monotonic clock.
        """
        try:
            async with asyncio.timeout(deadline - monotonic()), self._free:
                left = min(deadline - monotonic(), _MOST_S)
                return decision(await asyncio.to_thread(self._connection.post, _PATH, review(question, user), left))
        except TimeoutError:
            return "the API server did not answer in time"
        except LookupFailed as error:
            return f"the API server cannot be asked: {error}"


def review(question: Question, user: UserInfo) -> JSON:
    """The SubjectAccessReview of a question, in the name of the user or of the service account that it names."""
    spec: dict[str, Any] = _whose(question, user)
    if question.path:
        spec["nonResourceAttributes"] = {"path": question.path, "verb": question.verb}
    else:
        asked = {name: getattr(question, name) for name in ("group", "resource", "subresource", "namespace", "name")}
        selectors = {"fieldSelector": question.field_selector, "labelSelector": question.label_selector}
        raw = {name: {"rawSelector": text} for name, text in selectors.items() if text}
        given = {name: value for name, value in asked.items() if value}
        spec["resourceAttributes"] = {"verb": question.verb, **given, **raw}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def _whose(question: Question, user: UserInfo) -> dict[str, Any]:
    if question.user == user.username:
        extra = {name: list(values) for name, values in user.extra.items()}
        return {"user": user.username, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    namespace = question.user.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    return {"user": question.user, "groups": groups}


def decision(answered: JSON) -> Decision | str:
    """What an API server answered to a SubjectAccessReview."""
    status = answered.get("status") if isinstance(answered, dict) else None
    if not isinstance(status, dict) or not isinstance(status.get("allowed"), bool):
        return "the API server answered something else than a SubjectAccessReview"
    failed = status.get("evaluationError") or None
    # an authorizer that denies for certain is believed although another one failed
    is_error = failed is not None and not status["allowed"] and not status.get("denied")
    return Decision(allowed=status["allowed"], reason=status.get("reason") or "", error=failed if is_error else None)
