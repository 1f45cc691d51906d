"""Asks the API server what a user may do, for policies that use `authorizer`; no answer is cached.

A question (SubjectAccessReview, authorization.k8s.io/v1) without an answer in time is an evaluation error of the policy
that asks. Source of the names: k8s.io/apiserver v0.36 pkg/cel/library/authz.go,
pkg/authentication/serviceaccount/util.go.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic
from typing import Any, Final

from webhook.apimachinery.attributes import JSON, UserInfo
from webhook.cel.library.authorizer import AuthorizationDecision, AuthorizationQuestion
from webhook.cluster.connection import Connection, ServerRefused
from webhook.errors import ConfigurationError, LookupFailed
from webhook.policy.policy_set import PolicySet
from webhook.server.fair_queue import FairSlots
from webhook.server.usage import Tenant
from webhook.text.wording import named

MOST_QUESTIONS: Final = 8
"""The maximum number of questions of a review. After each answer, the review is evaluated again from the start."""
_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_MOST_CALLS: Final = 8
"""The maximum number of calls to the API server at a time. Further calls wait in a fair queue."""
_TURN_S: Final = 0.001
"""Seconds that a call is charged at its start."""
_MOST_DEBT_S: Final = 0.03
"""The maximum number of seconds of earlier calls that count against a namespace when it begins to wait: three ordinary
calls. A namespace is not to blame for a slow API server.
"""
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_TOO_LATE: Final = "the API server did not answer in time"
_FORBIDDEN: Final = 403
_FIX_OF_RIGHTS: Final = "apply what `claimgate webhook-config --rbac --authorizer` prints"


class AccessReviews:
    """Sends SubjectAccessReviews to one API server. Use an instance on one event loop only."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._threads = ThreadPoolExecutor(_MOST_CALLS, "access-review")
        self._slots = FairSlots(_MOST_CALLS, _TURN_S, _MOST_DEBT_S, keeps_one_for_others=False)

    async def ask(
        self, question: AuthorizationQuestion, user: UserInfo, tenant: Tenant, until: float
    ) -> AuthorizationDecision | str:
        """Return the API server's decision, or the reason why there is none by `until` (monotonic clock)."""
        if monotonic() >= until:
            return _TOO_LATE
        try:
            await self._slots.reserve(tenant, until)
        except TimeoutError:
            return _TOO_LATE
        call = self._start_call(subject_access_review(question, user), tenant, until)
        done, _ = await asyncio.wait({call}, timeout=max(0.0, until - monotonic()))
        if not done:  # the call keeps its slot until the connection times out, which is about now
            return _TOO_LATE
        try:
            return decision(call.result())
        except LookupFailed as error:
            fix = f"; {_FIX_OF_RIGHTS}" if isinstance(error, ServerRefused) and error.code == _FORBIDDEN else ""
            return f"cannot ask the API server: {error}{fix}"

    def _start_call(self, review: JSON, tenant: Tenant, until: float) -> asyncio.Future[JSON]:
        # the end of a call starts the next call, even if no review waits for the answer any more
        started_at = monotonic()
        post = partial(self._connection.post, _PATH, review, max(0.001, until - started_at))
        call: asyncio.Future[JSON] = asyncio.get_running_loop().run_in_executor(self._threads, post)

        def ended(call: asyncio.Future[JSON]) -> None:
            if not call.cancelled():
                call.exception()  # otherwise asyncio would log a late exception
            self._slots.charge(tenant, monotonic() - started_at)
            self._slots.release(tenant)

        call.add_done_callback(ended)
        return call


def subject_access_review(question: AuthorizationQuestion, user: UserInfo) -> JSON:
    """Return the SubjectAccessReview about the user, or about the service account that the question names."""
    spec: dict[str, Any] = _user_of_question(question, user)
    if question.path:
        spec["nonResourceAttributes"] = {"path": question.path, "verb": question.verb}
    else:
        all_fields = {
            name: getattr(question, name) for name in ("group", "resource", "subresource", "namespace", "name")
        }
        selectors = {"fieldSelector": question.field_selector, "labelSelector": question.label_selector}
        raw = {name: {"rawSelector": text} for name, text in selectors.items() if text}
        attributes = {name: value for name, value in all_fields.items() if value}
        spec["resourceAttributes"] = {"verb": question.verb, **attributes, **raw}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def _user_of_question(question: AuthorizationQuestion, user: UserInfo) -> dict[str, Any]:
    if not question.is_service_account:
        extra = {name: list(values) for name, values in user.extra.items()}
        return {"user": user.username, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    namespace = question.user.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    return {"user": question.user, "groups": groups}  # serviceaccount.UserInfo: neither uid nor system:authenticated


def decision(answered: JSON) -> AuthorizationDecision | str:
    """Return the decision in the API server's answer."""
    status = answered.get("status") if isinstance(answered, dict) else None
    if not isinstance(status, dict) or not isinstance(status.get("allowed"), bool):
        return "the API server answered something else than a SubjectAccessReview"
    failed = status.get("evaluationError") or None
    # a definite denial of one authorizer counts even if another authorizer failed
    is_error = failed is not None and not status["allowed"] and not status.get("denied")
    return AuthorizationDecision(
        allowed=status["allowed"], reason=status.get("reason") or "", error=failed if is_error else None
    )


def check_authorizer_enabled(policies: PolicySet, *, may_ask: bool) -> PolicySet:
    """Return the policies unchanged, and refuse a policy that uses `authorizer` without --authorizer.

    Raises:
        ConfigurationError: a policy uses `authorizer`, and the server has none.
    """
    asking = [policy.name for policy in policies.policies if policy.uses_authorizer]
    if asking and not may_ask:
        names = named(asking, "policy", "policies")
        asks, these = ("asks", "this policy") if len(asking) == 1 else ("ask", "these policies")
        problem = f"{names} {asks} `authorizer`, and without --authorizer every such question would fail"
        raise ConfigurationError(f"{problem}; start the server with --authorizer, or remove {these}")
    return policies
