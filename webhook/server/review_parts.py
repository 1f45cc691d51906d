"""What the handler of reviews needs of others: who evaluates, who answers questions, who is told.

Protocols alone. The server's state, the API server and the spans of OpenTelemetry stand behind them.
"""

from __future__ import annotations

from typing import Protocol

from webhook.admission.interrupt import NotEvaluated
from webhook.apimachinery.attributes import Attributes, Phase, UserInfo
from webhook.cel.library.authorizer import AuthorizationDecision, AuthorizationQuestion, Authorizer
from webhook.deadline import Deadline
from webhook.rules.decisions import Verdict
from webhook.server.tenants import Tenant


class Reviewer(Protocol):
    """Evaluates a review with policies and a view of the cluster that it holds."""

    def review(
        self, attributes: Attributes, phase: Phase, deadline: Deadline, authorizer: Authorizer | None = None
    ) -> Verdict:
        """Return the verdict on a request. Raises UnansweredQuestion where the authorizer must be asked first."""
        ...

    def version(self) -> object | None:
        """Return what says by `==` whether verdicts still depend on the same; None while that changes."""
        ...

    def answer_unevaluated(self, attributes: Attributes, phase: Phase, why: NotEvaluated) -> Verdict:
        """Return the verdict on a request whose evaluation was given up."""
        ...


class AuthorizationSource(Protocol):
    """Answers the questions that policies ask through the CEL variable `authorizer`."""

    async def ask(
        self, question: AuthorizationQuestion, user: UserInfo, tenant: Tenant, until: float
    ) -> AuthorizationDecision | str:
        """Return the API server's decision, or the reason why there is none by `until`."""
        ...


class ReviewObserver(Protocol):
    """Receives the log fields of each review."""

    def reviewed(self, fields: dict[str, object]) -> None:
        """Receive the log fields of the review that the current task answered."""
        ...
