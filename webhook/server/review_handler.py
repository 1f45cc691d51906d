"""Answers reviews: takes the body of a call, returns the body of its answer, writes one log line and counts the call.

An ordinary review is evaluated on the event loop, in less than a millisecond. A review that uses up its slice there
moves to a child process (worker_lane.py). A body that will surely use it up starts there. The child is killed at the
deadline while the loop continues. If no turn or no worker came in time, or the child was killed, the failurePolicy of
the policies decides. scheduler.py decides the order of reviews.
"""

from __future__ import annotations

import asyncio
from time import monotonic, perf_counter, thread_time
from typing import Final, NamedTuple

from webhook.admission.decode import decode_request_without_objects, decode_review_bytes, takes_long_to_decode
from webhook.admission.interrupt import MAKE_SMALLER, REPORT_IT, NotEvaluated
from webhook.apimachinery.attributes import Attributes, Phase, UserInfo
from webhook.cel.library.authorizer import AuthorizationDecision, AuthorizationQuestion, UnansweredQuestion
from webhook.errors import CallError, InlineBudgetSpent, describe_fault
from webhook.logs.structured import Level, LimitedLog
from webhook.rules.decisions import DenialStatus
from webhook.server.namespace_arrivals import WAIT_S, NamespaceArrivals
from webhook.server.request_body import LargeBody
from webhook.server.review_evaluation import (
    FAULTS,
    NOTHING_KNOWN,
    AuthorizationSource,
    Known,
    ReviewEvaluation,
    ReviewObserver,
    instructions_for_worker,
)
from webhook.server.scheduler import SMALL_BYTES, InlineTimeSlice
from webhook.server.server_parts import ServerParts
from webhook.server.usage import Tenant, tenant_of
from webhook.server.warning_events import WARNED, WarningEvents
from webhook.server.worker_lane import Job, OutOfTime, WorkerDied, WorkerLane, WorkerResult, question_from_json, unpack

_ANSWER_SHARE: Final = 0.1
_MOST_ANSWER_S: Final = 0.3
"""The share of a review's time, and the most seconds, that are kept for writing an answer after evaluation timed out.
"""
_ASKING_SHARE: Final = 0.5
"""The share of a review's time that it may wait for answers of the API server."""


class WorkerFault(Exception):
    """An unexpected error inside a worker, with its type and place."""

    def __init__(self, fields: dict[str, object]) -> None:
        super().__init__(fields["error"])
        self.fields = fields


class ReviewCall(NamedTuple):
    """One call.

    Args:
        phase: which of the two it asks for.
        address: the address of the client, "" if it is not known.
        started: when work on it began, on the monotonic clock.
        deadline: when it must be answered.
    """

    phase: Phase
    address: str
    started: float
    deadline: float

    @property
    def evaluation_end(self) -> float:
        """Return when evaluation must end, so that there is time left to write the answer."""
        return self._end_from(self.started)

    @property
    def evaluation_end_from_now(self) -> float:
        """Return the same for an evaluation that begins now."""
        return self._end_from(monotonic())

    @property
    def asking_end(self) -> float:
        """Return until when it may wait for answers of the API server."""
        return self.started + _ASKING_SHARE * (self.deadline - self.started)

    @property
    def timeout_reason(self) -> str:
        """Return why it was not evaluated when its time is over."""
        return f"it took longer than {self.deadline - self.started:.2g} s"

    def tenant_of(self, attributes: Attributes | None) -> Tenant:
        """Return the tenant of its request."""
        return tenant_of(attributes, self.address)

    def _end_from(self, moment: float) -> float:
        return self.deadline - min(_MOST_ANSWER_S, (self.deadline - moment) * _ANSWER_SHARE)


_READ_S_PER_BYTE: Final = 4e-9
"""Seconds of the loop that a byte of a larger body costs before it is decoded: decrypting, copying, parsing HTTP."""


_AWAITS_NAMESPACE: Final = b""
"""In the place of an answer: the namespace of the request is not in the view yet."""


class ReviewHandler:
    """Answers reviews on the loop or in a worker, and keeps the counters."""

    def __init__(
        self,
        evaluation: ReviewEvaluation,
        lane: WorkerLane,
        parts: ServerParts,
        *,
        authority: AuthorizationSource | None = None,
        observer: ReviewObserver | None = None,
        arrivals: NamespaceArrivals | None = None,
        events: WarningEvents | None = None,
    ) -> None:
        self._evaluation = evaluation
        self._scheduler = parts.scheduler
        self._lane = lane
        self._counters = parts.counters
        self._log = parts.log
        self._authority = authority
        self._observer = observer
        self._arrivals = arrivals
        self._events = events
        self._giving_up = asyncio.Lock()
        self._refusals = LimitedLog(self._note, "call refused")

    async def answer(self, body: bytes | LargeBody, phase: Phase, deadline: float, address: str = "") -> bytes:
        """Return the AdmissionReview with the answer, before `deadline` on the monotonic clock.

        Raises:
            CallError: it cannot be read.
        """
        call = ReviewCall(phase, address, monotonic(), deadline)
        if isinstance(body, LargeBody):
            return await self._by_worker(body, self._read_head(body, address), call)
        scheduler, size = self._scheduler, len(body)
        needs_worker = takes_long_to_decode(body)
        if needs_worker or size > SMALL_BYTES or not scheduler.is_free:
            head = self._read_head(body, address)
            tenant = call.tenant_of(head)
            if needs_worker or scheduler.overruns.expects(tenant, size, call.started):
                return await self._by_worker(body, head, call)
            try:
                await scheduler.wait_for_turn(tenant, call.evaluation_end)
            except TimeoutError:
                return await self._answer_unevaluated_in_turn(head, call, call.timeout_reason)
        try:
            head, answer = self._inline(body, call, {}, is_first=True)
            if answer == _AWAITS_NAMESPACE:
                await self._wait_for_namespace(head, call)
                await scheduler.wait_for_turn(call.tenant_of(head), call.evaluation_end)
                head, answer = self._inline(body, call, {})
        except TimeoutError:
            return await self._answer_unevaluated_in_turn(self._read_head(body, address), call, call.timeout_reason)
        except CallError as error:
            if (readable := self._read_head(body, address)) is None:
                raise
            return await self._answer_unreadable(readable, call, error.message)
        except InlineBudgetSpent:
            return await self._by_worker(body, self._read_head(body, address), call)
        if isinstance(answer, AuthorizationQuestion):
            return await self._answer_with_authorizer(body, call, head=head, asks=answer)
        if answer is not None:
            scheduler.overruns.record_review_in_time(call.tenant_of(head), size)
            return answer
        scheduler.overruns.add(call.tenant_of(head), size, call.started)
        return await self._by_worker(body, head, call)

    async def answer_incomplete_body(
        self, came: LargeBody, phase: Phase, arrived: float, because: str, address: str = ""
    ) -> bytes | None:
        """Answer a review with an incomplete body, because of its deadline or its size; None if its beginning names no
        request.
        """
        attributes = self._read_head(came, address)
        if attributes is None:
            return None
        self._counters.lanes["unread",] += 1
        call = ReviewCall(phase, address, arrived, arrived)
        return await self._answer_unevaluated_in_turn(attributes, call, because)

    def _read_head(self, body: bytes | LargeBody, address: str) -> Attributes | None:
        """Return the request that the beginning of a body names, without its objects, and charge its tenant for reading
        the body; None if it names none. For a large body, a longer beginning is tried if the first is not enough.
        """
        begun = thread_time()
        beginnings = body.beginnings() if isinstance(body, LargeBody) else (body,)
        head = next(filter(None, map(decode_request_without_objects, beginnings)), None)
        seconds = thread_time() - begun + len(body) * _READ_S_PER_BYTE
        self._scheduler.charge_for_reading(tenant_of(head, address), seconds)
        return head

    def record_refused_call(self, phase: Phase, error: CallError) -> None:
        """Log and count a call that could not be read."""
        self._counters.refused(phase, error.code)
        self._refusals.write("warning", {"phase": phase.value, "code": error.code, "reason": error.message})

    def record_abandoned_review(self) -> None:
        """Count a review with a client that closed the connection before the answer."""
        self._counters.lanes["abandoned",] += 1

    def record_unexpected_error(self, phase: Phase, error: Exception) -> DenialStatus:
        """Log and count an unexpected error by its type and place, without its text."""
        return self._note_fault(phase, error.fields if isinstance(error, WorkerFault) else describe_fault(error))

    # ---- the event loop

    async def _answer_with_authorizer(
        self, body: bytes, call: ReviewCall, *, head: Attributes, asks: AuthorizationQuestion
    ) -> bytes:
        """Answer a review with policies that ask the authorizer; after each answer the evaluation starts again."""
        known: Known = {}
        tenant = call.tenant_of(head)
        answer: bytes | AuthorizationQuestion | None = asks
        while isinstance(answer, AuthorizationQuestion):
            known[answer] = await self._ask(answer, head.user_info, tenant, call.asking_end)
            try:
                await self._scheduler.wait_for_turn(tenant, call.evaluation_end)
            except TimeoutError:
                return await self._answer_unevaluated_in_turn(head, call, call.timeout_reason)
            _, answer = self._inline(body, call, known)
        return answer or await self._by_worker(body, head, call, known=known)

    async def _wait_for_namespace(self, head: Attributes | None, call: ReviewCall) -> None:
        """Wait for the namespace of a request if the view does not have it yet (namespace_arrivals.py)."""
        if self._arrivals is not None and head is not None and self._arrivals.is_awaited(head):
            await self._arrivals.wait_for(head.namespace, min(call.started + WAIT_S, call.asking_end))

    async def _ask(
        self, question: AuthorizationQuestion, user: UserInfo, tenant: Tenant, until: float
    ) -> AuthorizationDecision | str:
        if self._authority is None:
            return "the server was started without --authorizer"
        answer = await self._authority.ask(question, user, tenant, until)
        self._counters.questions["unanswered" if isinstance(answer, str) else "answered",] += 1
        return answer

    def _inline(
        self, body: bytes, call: ReviewCall, known: Known, *, is_first: bool = False
    ) -> tuple[Attributes, bytes | AuthorizationQuestion | None]:
        """Evaluate on the loop; return the request without its objects, which need up to 44 times the memory of their
        bytes. Also return the answer, an open question, or None if the evaluation takes too long. The first result may
        also be _AWAITS_NAMESPACE.

        Raises:
            CallError: it cannot be read.
            InlineBudgetSpent: reading it takes too long.
        """
        used = InlineTimeSlice()
        tenant = call.tenant_of(None)
        try:
            attributes = decode_review_bytes(body, used)
            tenant = call.tenant_of(attributes)
            if is_first and self._arrivals is not None and self._arrivals.is_awaited(attributes):
                return attributes.without_objects(), _AWAITS_NAMESPACE
            used.limit_evaluation(self._scheduler.slice_s(tenant), call.evaluation_end_from_now)
            try:
                result = self._evaluation.evaluate_and_encode(attributes, call.phase, used, self._counters, known)
            except InlineBudgetSpent:
                self._counters.lanes["inline_overrun",] += 1
                return attributes.without_objects(), None
            except UnansweredQuestion as open_question:
                return attributes.without_objects(), open_question.question
        finally:
            self._scheduler.worked(tenant, used.spent())
        self._counters.lanes["inline",] += 1
        self._note_review("info", "review", result.fields)
        return attributes, result.body

    # ---- a child process

    async def _by_worker(
        self,
        given: bytes | LargeBody,
        head: Attributes | None,
        call: ReviewCall,
        *,
        known: Known = NOTHING_KNOWN,
    ) -> bytes:
        """Return the answer of a worker, or of the policies' failurePolicy when no worker can give one.

        `given` is the body, which a worker decodes; `head` what is known of the request.
        """
        self._counters.lanes["worker",] += 1
        await self._wait_for_namespace(head, call)
        job = Job(instructions_for_worker(call.phase, call.evaluation_end, known), given)
        tenant = call.tenant_of(head)
        try:
            async with asyncio.timeout(call.deadline - monotonic()):
                await self._scheduler.is_warm.wait()
            result = unpack(await self._lane.run(job, tenant, call.deadline, call.evaluation_end), self._counters)
        except (OutOfTime, TimeoutError):
            return await self._answer_unevaluated_in_turn(head, call, call.timeout_reason)
        except WorkerDied as error:
            return await self._answer_unevaluated_in_turn(head, call, str(error))
        if result.outcome == "out of memory":
            return await self._answer_unevaluated_in_turn(head, call, "it needed more memory than one review may take")
        if result.outcome == "out of time":
            return await self._answer_unevaluated_in_turn(head, call, call.timeout_reason)
        if result.outcome == "question":
            question, user = question_from_json(result.fields)
            answer = await self._ask(question, user, tenant, call.asking_end)
            return await self._by_worker(given, head, call, known={**known, question: answer})
        if result.outcome == "refused":
            told = result.fields
            if (readable := head or self._read_head(given, call.address)) is None:
                raise CallError(int(str(told["code"])), str(told["reason"]), str(told["message"]))
            return await self._answer_unreadable(readable, call, str(told["message"]))
        self._scheduler.overruns.record_worker_time(tenant, result.seconds)
        return self._log_and_return_answer(result, call.started)

    def _log_and_return_answer(self, result: WorkerResult, started: float) -> bytes:
        """Log a child's result, and return its answer.

        Raises:
            WorkerFault: the child failed on the review.
        """
        fields = result.fields
        if result.outcome == "failed":
            raise WorkerFault(fields)
        took_ms = round((monotonic() - started) * 1000, 3)
        self._note_review("info", "review", {**fields, "lane": "worker", "total_ms": took_ms})
        return result.body

    async def _answer_unreadable(self, head: Attributes, call: ReviewCall, message: str) -> bytes:
        """Answer a review by the policies' failurePolicy if only its head can be read.

        An HTTP error would leave it to the failurePolicy of the webhook, which an installation may have on Ignore.
        """
        self._counters.lanes["unreadable",] += 1
        because = f"it cannot be read: {message}"
        return await self._answer_unevaluated_in_turn(head, call, because, fix=REPORT_IT)

    async def _answer_unevaluated_in_turn(
        self, head: Attributes | None, call: ReviewCall, because: str, *, fix: str = MAKE_SMALLER
    ) -> bytes:
        """Answer by the policies' failurePolicy, only a few times between two looks at the sockets.

        Reviews that came together run out of time together, and all their answers at once, with the ends of as many
        connections, would hold the loop for a tenth of a second.

        Raises:
            CallError: not even the uid is known.
        """
        async with self._giving_up:
            if not self._scheduler.has_time:
                await asyncio.sleep(0)
            return self._answer_unevaluated(head, call, because, fix)

    def _answer_unevaluated(self, head: Attributes | None, call: ReviewCall, because: str, fix: str) -> bytes:
        """Answer by the policies' failurePolicy and log why the review was not evaluated.

        Raises:
            CallError: not even the uid is known.
        """
        if head is None:
            raise CallError(503, "ServiceUnavailable", f"the review was not read, {because}")
        begun = thread_time()
        since = perf_counter() - (monotonic() - call.started)
        result = self._evaluation.answer_unevaluated(
            head, call.phase, NotEvaluated(because, fix), since, self._counters
        )
        self._note_review("warning", "review not evaluated", {**result.fields, "lane": "worker", "reason": because})
        self._scheduler.worked(call.tenant_of(head), thread_time() - begun)
        return result.body

    def _note_fault(self, phase: Phase, fields: dict[str, object]) -> DenialStatus:
        name = str(fields["error"])
        self._counters.refused(phase, 500)
        self._counters.uncaught[name,] += 1
        self._note("error", "internal fault", {"phase": phase.value, "code": 500, **fields})
        message = f"claimgate failed on this review ({name}); its log has an `internal fault` line with the place"
        return DenialStatus(code=500, reason="InternalError", message=message)

    def _note_review(self, level: Level, message: str, fields: dict[str, object]) -> None:
        """Write the log line of a review, and one line for each policy that failed by a fault of our own."""
        faults = fields.pop(FAULTS, ())
        for policy_fault in faults if isinstance(faults, list | tuple) else ():
            self._counters.policy_faults[policy_fault["policy"], policy_fault["checks"], policy_fault["error"]] += 1
            self._note("error", "internal fault", {"uid": fields["uid"], "phase": fields["phase"], **policy_fault})
        warned = fields.pop(WARNED, None)
        if self._events is not None and warned is not None:
            self._events.offer(warned)
        if self._observer is not None:
            self._observer.reviewed(fields)
        self._note(level, message, fields)

    def _note(self, level: Level, message: str, fields: dict[str, object]) -> None:
        """Write a log line; a line that cannot be written is counted and does not stop the answer."""
        try:
            self._log.write(level, message, fields)
        except OSError as error:
            self._counters.uncaught[f"log: {type(error).__name__}",] += 1
