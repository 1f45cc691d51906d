"""Evaluates one review, on the event loop or in a worker process that reads the review from a socket.

It evaluates, encodes the answer, counts, and returns the fields of the log line. These are never objects, params,
patches or the text of an exception, which may hold a piece of any of them. The message of a denial quotes values of the
object: a line has it only if the operator of the server asked for it.

Its protocols name what it needs from others: the reviewer, the answers to
questions of the authorizer, the receiver of a trace. review_handler.py decides when it runs and what becomes of the
result.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterable
from time import perf_counter
from typing import Final, Protocol, TypeAlias

from msgspec import structs

from webhook.admission.decode import decode_review_bytes
from webhook.admission.enforce import fit_warnings_to_api_server_limits
from webhook.admission.interrupt import NotEvaluated
from webhook.admission.respond import encode_response
from webhook.apimachinery.attributes import Attributes, Phase, UserInfo, controller_name
from webhook.cel.library.authorizer import (
    AuthorizationDecision,
    AuthorizationQuestion,
    Authorizer,
    PausingAuthorizer,
    UnansweredQuestion,
)
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, CallError, describe_fault
from webhook.rules.decisions import Verdict
from webhook.rules.text import shorten_text
from webhook.server.access_reviews import MOST_QUESTIONS
from webhook.server.counters import Counters
from webhook.server.usage import Tenant
from webhook.server.warning_events import WARNED, describe_warned_review
from webhook.server.worker_lane import OUT_OF_MEMORY, WorkerResult, question_as_json, receive


class Reviewer(Protocol):
    """Evaluates a review with its policies and its view of the cluster."""

    def review(
        self, attributes: Attributes, phase: Phase, deadline: Deadline, authorizer: Authorizer | None = None
    ) -> Verdict:
        """Return the verdict on a request. Raises UnansweredQuestion if the authorizer must answer first."""
        ...

    def version(self) -> object | None:
        """Return what says by `==` whether verdicts still depend on the same; None while that changes."""
        ...

    def answer_unevaluated(self, attributes: Attributes, phase: Phase, why: NotEvaluated) -> Verdict:
        """Return the verdict on a request with an interrupted evaluation."""
        ...


class AuthorizationSource(Protocol):
    """Answers the questions that policies ask through the CEL variable `authorizer`."""

    async def ask(
        self, question: AuthorizationQuestion, user: UserInfo, tenant: Tenant, until: float
    ) -> AuthorizationDecision | str:
        """Return the API server's decision, or the reason why it has none by `until`."""
        ...


class ReviewObserver(Protocol):
    """Receives the log fields of each review."""

    def reviewed(self, fields: dict[str, object]) -> None:
        """Receive the log fields of the review that the current task answered."""
        ...


_NO_MEMORY: Final = (MemoryError, SystemError)
"""The errors that C code raises without memory; a constant, because a tuple cannot be created then."""

Known: TypeAlias = dict[AuthorizationQuestion, AuthorizationDecision | str]
"""The answers to the questions of one review: decisions, or the reason why there are none."""
NOTHING_KNOWN: Final[Known] = {}


def instructions_for_worker(phase: Phase, end: float, known: Known) -> bytes:
    """Return how a worker evaluates a body: the phase, the end of the evaluation on the monotonic clock, and the
    answers of the authorizer so far.
    """
    return pickle.dumps((phase, end, known))


class ReviewEvaluation:
    """Evaluates reviews with the policies and the view that a reviewer has at that moment."""

    def __init__(self, reviewer: Reviewer, *, logs_denials: bool = False, notes_warnings: bool = False) -> None:
        """Evaluate with `reviewer`.

        Args:
            reviewer: holds the policies.
            logs_denials: whether the log fields of a refused review have its message.
            notes_warnings: whether the results of a review with warnings include the data for an Event.
        """
        self._reviewer = reviewer
        self._logs_denials = logs_denials
        self._notes_warnings = notes_warnings

    def evaluate_and_encode(
        self, attributes: Attributes, phase: Phase, deadline: Deadline, counters: Counters, known: Known
    ) -> WorkerResult:
        """Evaluate a review, encode its verdict and count it. Raises what the evaluation raises."""
        started = perf_counter()
        answers = PausingAuthorizer(known, MOST_QUESTIONS)
        verdict = self._reviewer.review(attributes, phase, deadline, answers)
        if answers.unanswered and verdict.allowed:
            verdict = structs.replace(
                verdict,
                warnings=fit_warnings_to_api_server_limits(
                    (*verdict.warnings, _warning_of_ignored_failure(answers.unanswered))
                ),
            )
        return self._encode_and_count(attributes, phase, verdict, started, counters)

    def answer_unevaluated(
        self, attributes: Attributes, phase: Phase, why: NotEvaluated, started: float, counters: Counters
    ) -> WorkerResult:
        """Answer by the policies' failurePolicy a review that began at a moment of the performance counter."""
        verdict = self._reviewer.answer_unevaluated(attributes, phase, why)
        return self._encode_and_count(attributes, phase, verdict, started, counters)

    def _encode_and_count(
        self, attributes: Attributes, phase: Phase, verdict: Verdict, started: float, counters: Counters
    ) -> WorkerResult:
        answer = encode_response(attributes.uid, verdict, phase, attributes.operation)
        elapsed_s = perf_counter() - started
        counters.reviewed(attributes, phase, verdict, elapsed_s)
        fields = log_fields_of_review(attributes, phase, verdict, elapsed_s, with_denial=self._logs_denials)
        if self._notes_warnings and verdict.warnings and (warned := describe_warned_review(attributes, verdict)):
            fields[WARNED] = warned
        return WorkerResult(outcome="answered", body=answer, fields=fields, seconds=elapsed_s)

    def evaluate_in_worker(self, channel: socket.socket) -> bytes:
        """Read a job from a socket and evaluate it in a worker process; return the packed result with its counts."""
        counters, deadline, attributes = Counters(), Deadline(), None
        try:
            instructions, body = receive(channel)
            phase, end, known = pickle.loads(instructions)  # noqa: S301 - the server wrote it
            deadline = Deadline(end, BudgetExceeded)
            attributes = decode_review_bytes(body, deadline)
            try:
                return self.evaluate_and_encode(attributes, phase, deadline, counters, known).packed(counters)
            except UnansweredQuestion as open_question:
                result = WorkerResult(
                    outcome="question", fields=question_as_json(open_question.question, attributes.user_info)
                )
        except CallError as error:
            fields: dict[str, object] = {"code": error.code, "reason": error.reason, "message": error.message}
            result = WorkerResult(outcome="refused", fields=fields)
        except _NO_MEMORY:
            return OUT_OF_MEMORY
        except Exception as error:  # noqa: BLE001 - our own bug: the server logs it and answers HTTP 500
            if isinstance(error, BudgetExceeded) and (attributes is None or deadline.is_over):
                result = WorkerResult(outcome="out of time", fields={})  # before a body is read slowly, it ends early
            else:
                result = WorkerResult(outcome="failed", fields=describe_fault(error))
        return result.packed(counters)


def _warning_of_ignored_failure(reasons: Iterable[str]) -> str:
    """Return the warning for a user with a request that passes because a policy that asked has failurePolicy Ignore."""
    return f"a policy that asks what users may do was not evaluated and let the request pass: {'; '.join(reasons)}"


_MOST_RULES: Final = 20
"""How many ids of rules a line has; an object that breaks more of them breaks the first."""
_LONGEST: Final = 512
"""How many characters of a name that a user chose are logged. A name here may have 3 MB, which takes 300 ms to escape.
"""
_LONGEST_DENIAL: Final = 4096
"""How many characters of a denial are logged: more than its first eight problems take."""
FAULTS: Final = "faults"
"""The log field with policies that failed by a fault of our own; each becomes a separate line."""


def log_fields_of_review(
    attributes: Attributes, phase: Phase, verdict: Verdict, elapsed_s: float, *, with_denial: bool = False
) -> dict[str, object]:
    """Return the log fields of a review: its user and operation, the verdict, the policies with a decision, the
    duration.

    Args:
        attributes: the request.
        phase: in which it was reviewed.
        verdict: the answer.
        elapsed_s: seconds of the evaluation.
        with_denial: whether to add the message of a denial, as `denial`.
    """
    spoke = dict.fromkeys(
        [
            decision.policy
            for decision in verdict.decisions
            if decision.evaluation != "admit" or decision.action == "deny" or decision.kind == "mutating"
        ]
    )
    fields: dict[str, object] = {
        "uid": attributes.uid,
        "phase": phase,
        "operation": attributes.operation,
        "kind": attributes.kind.kind,
        "group": attributes.kind.group,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "user": attributes.user_info.username,
        "allowed": verdict.allowed,
        "policies": list(spoke),
        "elapsed_ms": round(elapsed_s * 1000, 3),
    }
    if len(attributes.uid) + len(attributes.name) + len(attributes.user_info.username) > _LONGEST:
        fields |= {key: shorten_text(str(fields[key]), _LONGEST) for key in ("uid", "name", "user")}
    if rules := _broken_rule_ids(verdict):
        fields["rules"] = rules
    if excepted := _excepted_rule_ids(verdict):
        fields["excepted"] = excepted
    withheld = {key: _withheld_rule_ids(verdict, key) for key in ("deny", "warn")}
    if withheld["deny"] or withheld["warn"]:
        fields |= {f"would_{key}": listed for key, listed in withheld.items() if listed}
        fields["owner"] = _name_of_owner(attributes)
    if attributes.dry_run:
        fields["dry_run"] = True
    if attributes.sub_resource:
        fields["subresource"] = attributes.sub_resource
    if verdict.status is not None:
        fields["code"] = verdict.status.code
        if with_denial:
            fields["denial"] = shorten_text(verdict.status.message, _LONGEST_DENIAL)
    if verdict.patch:
        fields["patched"] = len(verdict.patch)
    if verdict.faults:
        fields[FAULTS] = [structs.asdict(each) for each in verdict.faults]
    return fields


def _broken_rule_ids(verdict: Verdict) -> list[str]:
    """Return the ids of the rules that were broken, in the order of the messages and without advice."""
    broken: dict[str, None] = {}
    for decision in verdict.decisions:
        if decision.action == "deny" and not decision.is_advice:
            broken.update(dict.fromkeys(decision.broken_rules))
    return list(broken)[:_MOST_RULES]


def _excepted_rule_ids(verdict: Verdict) -> list[str]:
    """Return the ids of the rules that an exception let the object break."""
    ids = (rule for each in verdict.decisions if each.is_excepted and not each.is_advice for rule in each.broken_rules)
    return list(dict.fromkeys(ids))[:_MOST_RULES]


def _withheld_rule_ids(verdict: Verdict, withheld: str) -> list[str]:
    """Return the ids of the rules that would deny or warn if the installation did not limit actions."""
    ids = (rule for each in verdict.decisions if each.withheld == withheld for rule in each.broken_rules)
    return list(dict.fromkeys(ids))[:_MOST_RULES]


def _name_of_owner(attributes: Attributes) -> str | None:
    """Return kind and name of the controller that owns the object; None if it has none."""
    owner = controller_name(attributes.object)
    return shorten_text(owner, _LONGEST) if owner else None
