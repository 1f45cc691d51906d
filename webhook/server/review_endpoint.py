"""The ASGI application that answers POST /validate and /mutate; other paths go to FastAPI (pages.py).

The application runs before FastAPI, because a FastAPI route costs three times as much.

An ordinary review is evaluated on the event loop in less than a millisecond. A review that uses up its slice goes to a
worker process (slow_reviews.py). A body that is too large for a slice goes there at once. scheduler.py decides the
order of reviews.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from time import monotonic
from typing import Final
from urllib.parse import parse_qs

from webhook.admission.decode import decode_review_bytes, takes_long_to_decode
from webhook.admission.respond import encode_failure_status
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.cel.library.authorizer import AuthorizationQuestion, UnansweredQuestion
from webhook.cel.library.moments import parse_duration
from webhook.cel.values import NANOSECONDS
from webhook.errors import CallError, EvaluationError, InlineBudgetSpent
from webhook.rules.decisions import DenialStatus
from webhook.rules.text import shorten_text
from webhook.server.http_connection import CLIENT_GONE
from webhook.server.http_exchange import PATHS, AsgiApp, Receive, Scope, Send, client_address
from webhook.server.request_body import BodyBudget, BodyReader, ClientGone, IncompleteBodyError, LargeBody
from webhook.server.scheduler import SMALL_BYTES, InlineTimeSlice
from webhook.server.served_state import Known
from webhook.server.server_parts import ServerParts
from webhook.server.slow_reviews import ReviewCall, SlowReviews

_ANSWER_SHARE: Final = 0.05
"""The share of a call's time that is kept for an error answer if the body does not arrive."""
_MOST_DIGITS: Final = 18
_JSON: Final = "application/json"
_AWAITS_NAMESPACE: Final = b""
"""Returned instead of an answer if the namespace of the request is not in the view yet."""
_SHOWN: Final = 100
"""The maximum number of characters of a header in a message; a header of 60 KB on many connections would stop the loop.
"""


class ReviewEndpoint:
    """Answers reviews; all other requests go to `application`."""

    def __init__(self, application: AsgiApp, slow: SlowReviews, parts: ServerParts) -> None:
        self._application = application
        self._slow = slow
        self._evaluation = slow.evaluation
        self._log = slow.log
        self._scheduler = parts.scheduler
        self._counters = parts.counters
        self._settings = parts.settings
        self._why_not_started = parts.why_not_started
        self.bodies = BodyBudget(parts.settings.max_inflight_body_bytes)
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request as an ASGI application."""
        phase = PATHS.get(scope["path"])
        if phase is None:
            await self._application(scope, receive, send)
            return
        arrived = monotonic()
        self.in_flight += 1
        try:
            code, body = await self._review(scope, receive, phase, arrived)
        except ClientGone:
            return
        except asyncio.CancelledError as error:
            if error.args != (CLIENT_GONE,):
                raise
            self._counters.lanes["abandoned",] += 1
            return
        finally:
            self.in_flight -= 1
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        if code == 405:
            headers.append((b"allow", b"POST"))
        if code == 429:
            headers.append((b"retry-after", b"1"))
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _review(self, scope: Scope, receive: Receive, phase: Phase, arrived: float) -> tuple[int, bytes]:
        # 200 for every verdict, a metav1.Status for every error
        try:
            length = _check_headers(scope)
            self._require_started()
            deadline = arrived + timeout_of_call(scope["query_string"], self._settings.timeout)
            reader = BodyReader(
                budget=self.bodies,
                scope=scope,
                receive=receive,
                length=length,
                limit=self._settings.max_body_bytes,
                deadline=deadline - _ANSWER_SHARE * (deadline - arrived),
            )
            async with reader.whole_body() as body:
                return 200, await self._answer(body, phase, deadline, client_address(scope))
        except IncompleteBodyError as incomplete:
            return await self._answer_incomplete_body(incomplete, phase, arrived, client_address(scope))
        except CallError as error:
            return self._refuse(phase, error)
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001 - our own bug: after HTTP 500 the failurePolicy decides
            status = self._log.record_unexpected_error(phase, error)
            return status.code, encode_failure_status(status)

    async def _answer(self, body: bytes | LargeBody, phase: Phase, deadline: float, address: str) -> bytes:
        # deadline is on the monotonic clock; raises CallError if the body cannot be read
        call = ReviewCall(phase, address, monotonic(), deadline)
        slow, scheduler, size = self._slow, self._scheduler, len(body)
        if isinstance(body, LargeBody):
            return await slow.answer_by_worker(body, slow.read_head(body, address), call)
        head: Attributes | None = None
        known_answers: Known = {}
        needs_worker = takes_long_to_decode(body)
        must_wait = size > SMALL_BYTES or not scheduler.is_free
        if needs_worker or must_wait:
            head = slow.read_head(body, address)
            if needs_worker or scheduler.overruns.expects(call.tenant_of(head), size, call.started):
                return await slow.answer_by_worker(body, head, call)
        try:
            if must_wait:
                await scheduler.wait_for_turn(call.tenant_of(head), call.evaluation_end)
            head, answer = await self._evaluate_until_answered(body, call, known_answers)
        except TimeoutError:
            return await slow.answer_unevaluated(head or slow.read_head(body, address), call, call.timeout_reason)
        except CallError as error:
            if (answer := await slow.answer_unreadable(body, head, call, error.message)) is None:
                raise
            return answer
        except InlineBudgetSpent:
            return await slow.answer_by_worker(body, head or slow.read_head(body, address), call, known_answers)
        if answer is not None:
            scheduler.overruns.record_review_in_time(call.tenant_of(head), size)
            return answer
        scheduler.overruns.add(call.tenant_of(head), size, call.started)
        return await slow.answer_by_worker(body, head, call, known_answers)

    async def _evaluate_until_answered(
        self, body: bytes, call: ReviewCall, known_answers: Known
    ) -> tuple[Attributes, bytes | None]:
        # evaluates again from the start after waiting for the namespace or the authorizer
        head, answer = self._evaluate(body, call, known_answers, can_wait_for_namespace=True)
        while answer == _AWAITS_NAMESPACE or isinstance(answer, AuthorizationQuestion):
            tenant = call.tenant_of(head)
            if isinstance(answer, AuthorizationQuestion):
                known_answers[answer] = await self._slow.ask(answer, head.user_info, tenant, call.asking_end)
            else:
                await self._slow.wait_for_namespace(head, call)
            await self._scheduler.wait_for_turn(tenant, call.evaluation_end)
            head, answer = self._evaluate(body, call, known_answers)
        return head, answer

    def _evaluate(
        self, body: bytes, call: ReviewCall, known_answers: Known, *, can_wait_for_namespace: bool = False
    ) -> tuple[Attributes, bytes | AuthorizationQuestion | None]:
        """Evaluate on the loop.

        Returns:
            The request, and the answer; instead of an answer, an open question, _AWAITS_NAMESPACE (only with
            `can_wait_for_namespace`), or None if the evaluation takes too long. A request without an answer has no
            objects, because they need up to 44 times the memory of their bytes.

        Raises:
            CallError: the body cannot be read.
            InlineBudgetSpent: reading the body takes too long.
        """
        used = InlineTimeSlice()
        tenant = call.tenant_of(None)
        try:
            attributes = decode_review_bytes(body, used)
            tenant = call.tenant_of(attributes)
            if can_wait_for_namespace and self._slow.arrivals.is_awaited(attributes):
                return attributes.without_objects(), _AWAITS_NAMESPACE
            used.limit_evaluation(self._scheduler.slice_s(tenant), call.evaluation_end_from_now)
            try:
                result = self._evaluation.evaluate_and_encode(
                    attributes, call.phase, used, self._counters, known_answers
                )
            except InlineBudgetSpent:
                self._counters.lanes["inline_overrun",] += 1
                return attributes.without_objects(), None
            except UnansweredQuestion as open_question:
                return attributes.without_objects(), open_question.question
        finally:
            self._scheduler.worked(tenant, used.spent())
        self._counters.lanes["inline",] += 1
        self._log.write_review("info", "review", result.fields)
        return attributes, result.body

    def _require_started(self) -> None:
        # before the cluster was read: an HTTP error, so the webhook's failurePolicy decides
        if reason := self._why_not_started():
            raise CallError(503, "ServiceUnavailable", f"claimgate cannot judge requests yet: {reason}")

    async def _answer_incomplete_body(
        self, error: IncompleteBodyError, phase: Phase, arrived: float, address: str
    ) -> tuple[int, bytes]:
        # if the beginning of the body names the request, the policies' failurePolicy decides
        late = f"the request was not read whole within {monotonic() - arrived:.2g} s"
        because = error.message.partition(";")[0] if error.code == 413 else late
        answer = await self._slow.answer_incomplete_body(error.beginning, phase, arrived, because, address)
        if answer is None:
            return self._refuse(phase, error)
        return 200, answer

    def _refuse(self, phase: Phase, error: CallError) -> tuple[int, bytes]:
        self._log.record_refused_call(phase, error)
        status = DenialStatus(code=error.code, reason=error.reason, message=error.message)
        return error.code, encode_failure_status(status)


def _check_headers(scope: Scope) -> int | None:
    """Return the declared length of a JSON POST; None for a streamed body.

    Raises:
        CallError: 405 or 415.
    """
    if scope["method"] != "POST":
        raise CallError(405, "MethodNotAllowed", f"{scope['path']} answers POST only, found {scope['method']}")
    media_type, length = "", None
    for name, value in scope["headers"]:
        if name == b"content-type":
            media_type = value.decode("latin-1")
        elif name == b"content-length":
            length = _parse_content_length(value)
    if media_type != _JSON and media_type.partition(";")[0].strip().lower() != _JSON:
        shown_type = f"`{shorten_text(media_type, _SHOWN)}`" if media_type else "none"
        raise CallError(415, "UnsupportedMediaType", f"content-type: expected `{_JSON}`, found {shown_type}")
    return length


def _parse_content_length(value: bytes) -> int:
    if not value.isdigit():
        shown = shorten_text(value.decode("latin-1"), _SHOWN)
        raise CallError(400, "BadRequest", f"content-length: expected a number, found `{shown}`")
    digits = value.lstrip(b"0")  # Python refuses numbers of thousands of digits, also zeros
    if len(digits) > _MOST_DIGITS:
        raise CallError(400, "BadRequest", "content-length: the number is too large")
    return int(digits or b"0")


_WAY_S: Final = 0.2


@lru_cache(maxsize=64)
def timeout_of_call(query: bytes, most_s: float) -> float:
    """Return the seconds for a call by its `?timeout=`, less a part for the way of the answer; at most `most_s`.

    A tenth is kept back to write and send the answer from a busy node. Of a short timeout, up to a fifth is kept back.

    Raises:
        CallError: 400 if the timeout is not a Go duration.
    """
    if not query:
        return most_s
    text = parse_qs(query.decode("latin-1")).get("timeout", [""])[0]
    if not text:
        return most_s
    try:
        seconds = parse_duration(text).nanoseconds / NANOSECONDS
    except EvaluationError:
        seconds = -1.0
    if seconds < 0:
        raise CallError(400, "BadRequest", f"timeout: expected a duration such as `10s`, found `{text}`")
    return min(seconds - max(0.1 * seconds, min(_WAY_S, 0.2 * seconds)), most_s)
