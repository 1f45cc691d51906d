"""Behind the endpoint: the body of a review in, the body of its answer out, one log line and the counts on the way.

Two lanes. A review is evaluated on the event loop: tens of microseconds each, and nothing else costs so little. One
that takes longer than the loop may be held up (inline_budget.py) is evaluated in a child process (worker_lane.py), and
so is from the start every body of which that can be foreseen, by its size or by what its sender sent before
(overruns.py). The child is killed at the deadline while the loop goes on. When it is killed, or no worker was free in
time, the answer is what the policies' failurePolicy says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic, perf_counter
from typing import Final, Protocol, TypeAlias

from webhook.admission.decode import decode, decode_head
from webhook.admission.respond import respond
from webhook.attributes import Attributes, Phase
from webhook.deadline import Deadline
from webhook.decisions import Status, Verdict
from webhook.errors import BudgetExceeded, CallError, InlineBudgetSpent
from webhook.logs import Level, Log
from webhook.server.counters import Counters
from webhook.server.inline_budget import WORKER_S, InlineBudget, LoopTime, Tenant
from webhook.server.large_body import LargeBody, keep_only
from webhook.server.overruns import SMALL_BYTES, Overruns
from webhook.server.review_log import FAULTS, WorkerFault, fault, line
from webhook.server.turns import Turns
from webhook.server.worker_lane import OutOfTime, Size, WorkerDied, WorkerLane
from webhook.server.worker_result import OUT_OF_MEMORY, WorkerResult, unpack

INLINE_BYTES: Final = 128 * 1024
"""Larger bodies go to a worker at once: a TrainJob of 60 KB takes 1 to 2 ms, hostile ones of this size 5 to decode."""
LARGE_BYTES: Final = 4 * 1024 * 1024
"""Larger bodies are evaluated one at a time: each fills a worker. Only an UPDATE of a very large object needs one."""
_TURN_S: Final = 0.25
_WARMING_STEP_S: Final = 0.02
_SLACK: Final = 0.1
_MOST_SLACK_S: Final = 0.3
"""What a worker keeps of its time to write the answer when evaluation has run out of it."""
_LONGEST_USERNAME: Final = 512
"""Characters of a name by which a user is remembered: a service account's with its namespace has 340 at most."""

_NO_MEMORY: Final = (MemoryError, SystemError)
"""What C code raises that is given no more; made beforehand, as there is no memory for a pair of them then."""

_Asked: TypeAlias = bytes | LargeBody | Attributes
"""What a worker is given: a body, or a request that was read already."""


class Reviewer(Protocol):
    """The core with its policies and cluster view already given."""

    def review(self, attributes: Attributes, phase: Phase, deadline: Deadline) -> Verdict:
        """The verdict."""
        ...

    def interrupt(self, attributes: Attributes, phase: Phase, because: str) -> Verdict:
        """The verdict on a request that was not evaluated."""
        ...


class ReviewHandler:
    """Answers reviews with a reviewer, in one of two lanes, and keeps the counts.

    Attributes:
        budget: what reviews may take of the event loop.
    """

    def __init__(self, reviewer: Reviewer, lane: WorkerLane, counters: Counters, log: Log) -> None:
        self._reviewer = reviewer
        self._lane = lane
        self._counters = counters
        self._log = log
        self.budget = InlineBudget()
        self._overruns = Overruns()
        self._turns = Turns()

    async def answer(self, body: bytes | LargeBody, phase: Phase, deadline: float) -> bytes:
        """The AdmissionReview that answers this one, before a moment of the monotonic clock.

        Raises:
            CallError: it cannot be read.
        """
        started = monotonic()
        if isinstance(body, LargeBody):
            return await self._by_worker(body, _head(body), phase, started, deadline)
        if len(body) > SMALL_BYTES:
            head = decode_head(body)
            if len(body) > INLINE_BYTES or (head and self._overruns.expects(_tenant(head), len(body), started)):
                return await self._by_worker(body, head, phase, started, deadline)
            await self._turn(started, deadline)
            await self._turns.wait(_tenant(head) if head else ("", ""))
        spent = self._begin()
        attributes = decode(body)
        tenant = _tenant(attributes)
        if not self._turns.is_free(tenant):
            await self._turns.wait(tenant)
            spent = self._begin()
        answered = self._inline(attributes, tenant, phase, spent, deadline)
        if answered is not None:
            return answered
        self._overruns.note(tenant, len(body), spent.begun)
        await asyncio.sleep(0)  # whoever came meanwhile is answered before a worker is started
        return await self._by_worker(attributes, attributes, phase, started, deadline)

    def unread(self, came: LargeBody, phase: Phase, arrived: float) -> bytes | None:
        """Answer a review whose body was not whole before its deadline; None when its beginning names no request."""
        attributes = _head(came)
        if attributes is None:
            return None
        self._counters.lanes["unread",] += 1
        because = f"the request was not read whole within {monotonic() - arrived:.2g} s"
        return self._unevaluated(attributes, phase, because, arrived)

    def refused(self, phase: Phase, error: CallError) -> None:
        """Note a call that could not be read."""
        self._counters.refused(phase, error.code)
        self._note("warning", "call refused", {"phase": phase.value, "code": error.code, "reason": error.message})

    def failed(self, phase: Phase, error: Exception) -> Status:
        """Note a fault of our own: where it happened, not what it held."""
        return self._note_fault(phase, fault(error))

    # ---- the event loop

    async def _turn(self, started: float, deadline: float) -> None:
        """Let small reviews go first while slow ones have taken their share of the loop, for a moment at most."""
        await _while(self.budget.owed, min(deadline, started + _TURN_S))

    def _begin(self) -> LoopTime:
        """What the loop takes from now on."""
        begun = monotonic()
        return LoopTime(begun, copies=self._lane.is_recent(begun))

    def _inline(
        self, attributes: Attributes, tenant: Tenant, phase: Phase, spent: LoopTime, deadline: float
    ) -> bytes | None:
        """The answer, or None when it would take too long here."""
        started = spent.begun
        allowance = self.budget.allowance(tenant, started) + spent.grace
        until = spent.deadline(allowance, _soft(started, deadline))
        try:
            reply = self._reply(attributes, phase, until, self._counters)
        except InlineBudgetSpent:
            self._counters.lanes["inline_overrun",] += 1
            return None
        finally:
            seconds = spent.seconds()
            self.budget.took(tenant, seconds, started)
            self._turns.took(tenant, seconds)
        self.budget.answered(seconds)
        self._counters.lanes["inline",] += 1
        self._note_review("info", "review", reply.fields)
        return reply.body

    def _reply(self, attributes: Attributes, phase: Phase, deadline: Deadline, counters: Counters) -> WorkerResult:
        """Evaluate, encode, count; raises what they raise."""
        started = perf_counter()
        return self._written(attributes, phase, self._reviewer.review(attributes, phase, deadline), started, counters)

    def _written(
        self, attributes: Attributes, phase: Phase, verdict: Verdict, started: float, counters: Counters
    ) -> WorkerResult:
        answer = respond(attributes.uid, verdict, phase, attributes.operation)
        elapsed_s = perf_counter() - started
        counters.reviewed(attributes, phase, verdict, elapsed_s)
        return WorkerResult(outcome="answered", body=answer, fields=line(attributes, phase, verdict, elapsed_s))

    # ---- a child process

    async def _by_worker(
        self, asked: _Asked, head: Attributes | None, phase: Phase, started: float, deadline: float
    ) -> bytes:
        """The answer of a worker, or of the policies' failurePolicy when none can give one.

        `asked` is the request, or the body that only a worker has the time to read; `head` what is known of it already.
        """
        self._counters.lanes["worker",] += 1
        tenant = _tenant(head) if head else ("", "")
        work = partial(self._in_child, asked, phase, _soft(started, deadline))
        try:
            await self._may_start(tenant, deadline)
            answer = await self._lane.run(work, tenant, deadline, _size(asked))
            reply = unpack(answer, self._counters)
        except OutOfTime:
            return self._unevaluated(head, phase, f"it took longer than {deadline - started:.2g} s", started)
        except WorkerDied as error:
            return self._unevaluated(head, phase, str(error), started)
        if reply.outcome == "out of memory":
            return self._unevaluated(head, phase, "it needed more memory than one review may take", started)
        return self._relayed(reply, started)

    async def _may_start(self, tenant: Tenant, deadline: float) -> None:
        """Wait until a tenant may have a worker, and charge it for one.

        Not before the functions of all expressions are made, or the worker would make them once more for itself alone;
        and not while the tenant's earlier reviews cost the loop more than its share.
        """
        await _while(lambda _: _WARMING_STEP_S if self.budget.is_warming else 0.0, deadline)
        await _while(partial(self.budget.pause, tenant), deadline)
        self.budget.charge(tenant, WORKER_S, monotonic())

    def _in_child(self, asked: _Asked, phase: Phase, end: float) -> bytes:
        """What a child does; its counts travel with the answer, and it logs nothing."""
        keep_only(asked)
        counters = Counters()
        try:
            body = asked.joined() if isinstance(asked, LargeBody) else asked
            attributes = decode(body) if isinstance(body, bytes) else body
            return self._reply(attributes, phase, Deadline(end, BudgetExceeded), counters).packed(counters)
        except CallError as error:
            fields: dict[str, object] = {"code": error.code, "reason": error.reason, "message": error.message}
            reply = WorkerResult(outcome="refused", fields=fields)
        except _NO_MEMORY:
            return OUT_OF_MEMORY
        except Exception as error:  # noqa: BLE001 - whatever it is, it is ours: the parent logs it and answers HTTP 500
            reply = WorkerResult(outcome="failed", fields=fault(error))
        return reply.packed(counters)

    def _relayed(self, reply: WorkerResult, started: float) -> bytes:
        """A child's reply as this process's own.

        Raises:
            CallError: the child could not read the review, or failed on it.
        """
        fields = reply.fields
        if reply.outcome == "refused":
            raise CallError(int(str(fields["code"])), str(fields["reason"]), str(fields["message"]))
        if reply.outcome == "failed":
            raise WorkerFault(fields)
        took_ms = round((monotonic() - started) * 1000, 3)
        self._note_review("info", "review", {**fields, "lane": "worker", "total_ms": took_ms})
        return reply.body

    def _unevaluated(self, head: Attributes | None, phase: Phase, because: str, started: float) -> bytes:
        """The answer of the policies' failurePolicy.

        Raises:
            CallError: not even the uid is known.
        """
        if head is None:
            raise CallError(503, "ServiceUnavailable", f"the review was not read, {because}")
        verdict = self._reviewer.interrupt(head, phase, because)
        reply = self._written(head, phase, verdict, perf_counter() - (monotonic() - started), self._counters)
        self._note("warning", "review not evaluated", {**reply.fields, "lane": "worker", "reason": because})
        return reply.body

    def _note_fault(self, phase: Phase, fields: dict[str, object]) -> Status:
        name = str(fields["error"])
        self._counters.refused(phase, 500)
        self._counters.uncaught[name,] += 1
        self._note("error", "internal fault", {"phase": phase.value, "code": 500, **fields})
        message = f"claimgate failed on this review ({name}); its log has an `internal fault` line with the place"
        return Status(code=500, reason="InternalError", message=message)

    def _note_review(self, level: Level, message: str, fields: dict[str, object]) -> None:
        """One line for a review, and one for each fault of our own in a policy that it was reviewed without."""
        faults = fields.pop(FAULTS, ())
        for each in faults if isinstance(faults, list | tuple) else ():
            self._counters.policy_faults[each["policy"], each["checks"], each["error"]] += 1
            self._note("error", "internal fault", {"uid": fields["uid"], "phase": fields["phase"], **each})
        self._note(level, message, fields)

    def _note(self, level: Level, message: str, fields: dict[str, object]) -> None:
        """Write a log line; one that cannot be written (nobody reads stderr any more) is counted, the answer stands."""
        try:
            self._log.write(level, message, fields)
        except OSError as error:
            self._counters.uncaught[f"log: {type(error).__name__}",] += 1


async def _while(wait_s: Callable[[float], float], until: float) -> None:
    """Sleep as long as there are seconds to wait at a moment of the monotonic clock, but never past `until`."""
    while (now := monotonic()) < until and (seconds := wait_s(now)) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(seconds, until - now))


def _head(body: LargeBody) -> Attributes | None:
    """What its beginning says of a request; a longer beginning is read only where the first one does not say it."""
    return next(filter(None, map(decode_head, body.beginnings())), None)


def _size(asked: _Asked) -> Size:
    """Of a body of up to INLINE_BYTES that was begun on the loop, only what it asks is left."""
    if isinstance(asked, Attributes) or len(asked) <= INLINE_BYTES:
        return Size.SMALL
    return Size.LARGE if len(asked) > LARGE_BYTES else Size.MEDIUM


def _tenant(attributes: Attributes) -> Tenant:
    return attributes.namespace, attributes.user_info.username[:_LONGEST_USERNAME]


def _soft(now: float, deadline: float) -> float:
    """When evaluation ends, so that there is time left to write the answer."""
    return deadline - min(_MOST_SLACK_S, (deadline - now) * _SLACK)
