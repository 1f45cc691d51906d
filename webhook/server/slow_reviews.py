"""Reviews that the event loop does not answer at once.

Such a review needs more time than the loop has, or waits for its namespace or for the API server. A worker process
evaluates long reviews (worker_lane.py), and is killed at the deadline. Without an evaluation, the failurePolicy of the
policies decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, perf_counter, thread_time
from typing import Final, NamedTuple

from webhook.admission.decode import decode_request_without_objects
from webhook.admission.review import MAKE_SMALLER, REPORT_IT, NotEvaluated
from webhook.apimachinery.attributes import NAMESPACE, Attributes, Phase, UserInfo
from webhook.cel.library.authorizer import AuthorizationDecision, AuthorizationQuestion
from webhook.cluster import Cluster
from webhook.errors import CallError, LookupFailed
from webhook.server.request_body import LargeBody
from webhook.server.review_log import ReviewLog
from webhook.server.served_state import NOTHING_KNOWN, Known, ReviewEvaluation, instructions_for_worker
from webhook.server.server_parts import ServerParts
from webhook.server.usage import Tenant, tenant_of
from webhook.server.worker_lane import Job, WorkerDied, WorkerFault, WorkerLane, question_from_json, unpack

_ANSWER_SHARE: Final = 0.1
_MOST_ANSWER_S: Final = 0.3
"""The part of a review's time that is kept for writing the answer: a share, and the maximum number of seconds."""
_ASKING_SHARE: Final = 0.5
"""The share of a review's time that it may wait for answers of the API server."""
_READ_S_PER_BYTE: Final = 4e-9
"""Seconds of the event loop for a byte of a larger body before decoding: decrypting, copying, parsing HTTP."""
WAIT_S: Final = 0.2
"""The maximum number of seconds after its arrival for which a review waits for its namespace."""
_LOOK_S: Final = 0.005


class ReviewCall(NamedTuple):
    """One call.

    Args:
        phase: the phase of the review.
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
        """Return when evaluation must end, to leave time for writing the answer."""
        return self._end_from(self.started)

    @property
    def evaluation_end_from_now(self) -> float:
        return self._end_from(monotonic())

    @property
    def asking_end(self) -> float:
        """Return until when the review may wait for answers of the API server."""
        return self.started + _ASKING_SHARE * (self.deadline - self.started)

    @property
    def timeout_reason(self) -> str:
        return f"it took longer than {self.deadline - self.started:.2g} s"

    def tenant_of(self, attributes: Attributes | None) -> Tenant:
        return tenant_of(attributes, self.address)

    def _end_from(self, moment: float) -> float:
        return self.deadline - min(_MOST_ANSWER_S, (self.deadline - moment) * _ANSWER_SHARE)


class SlowReviews:
    """Answers reviews that wait or need a worker.

    A parameter `head` is the request without its objects; None if the body names no request.

    Attributes:
        evaluation: evaluates reviews, on the event loop too.
        log: has a line for each review.
        arrivals: the reviews that wait for their namespace.
    """

    def __init__(self, evaluation: ReviewEvaluation, lane: WorkerLane, parts: ServerParts, log: ReviewLog) -> None:
        self.evaluation = evaluation
        self._lane = lane
        self._scheduler = parts.scheduler
        self._counters = parts.counters
        self.log = log
        self._authority = parts.authority
        self.arrivals = NamespaceArrivals(parts.view)
        self._giving_up = asyncio.Lock()

    def read_head(self, body: bytes | LargeBody, address: str) -> Attributes | None:
        """Return the head of a review from the beginning of its body; None if the beginning names no request. Charge
        the tenant for reading the body.
        """
        started_at = thread_time()
        beginnings = body.beginnings() if isinstance(body, LargeBody) else (body,)
        head = next(filter(None, map(decode_request_without_objects, beginnings)), None)
        seconds = thread_time() - started_at + len(body) * _READ_S_PER_BYTE
        self._scheduler.charge_for_reading(tenant_of(head, address), seconds)
        return head

    # ---- waiting

    async def wait_for_namespace(self, head: Attributes | None, call: ReviewCall) -> None:
        """Wait for the namespace of a request, if reviews wait for this namespace."""
        if head is not None and self.arrivals.is_awaited(head):
            await self.arrivals.wait_for(head.namespace, min(call.started + WAIT_S, call.asking_end))

    async def ask(
        self, question: AuthorizationQuestion, user: UserInfo, tenant: Tenant, until: float
    ) -> AuthorizationDecision | str:
        """Return the API server's decision, or the reason why it has none by `until`."""
        if self._authority is None:
            return "the server was started without --authorizer"
        answer = await self._authority.ask(question, user, tenant, until)
        self._counters.questions["unanswered" if isinstance(answer, str) else "answered",] += 1
        return answer

    # ---- a worker process

    async def answer_by_worker(
        self,
        body_or_memory: bytes | LargeBody,
        head: Attributes | None,
        call: ReviewCall,
        known_answers: Known = NOTHING_KNOWN,
    ) -> bytes:
        """Return the answer of a worker. If no worker answers, return the answer of the policies' failurePolicy.

        Raises:
            CallError: the body cannot be read, not even its head.
            WorkerFault: the worker failed on the review.
        """
        self._counters.lanes["worker",] += 1
        await self.wait_for_namespace(head, call)
        job = Job(instructions_for_worker(call.phase, call.evaluation_end, known_answers), body_or_memory)
        tenant = call.tenant_of(head)
        try:
            async with asyncio.timeout(call.deadline - monotonic()):
                await self._scheduler.is_warm.wait()
            result = unpack(await self._lane.run(job, tenant, call.deadline, call.evaluation_end), self._counters)
        except TimeoutError:
            return await self.answer_unevaluated(head, call, call.timeout_reason)
        except WorkerDied as error:
            return await self.answer_unevaluated(head, call, str(error))
        fields = result.fields
        match result.outcome:
            case "out of memory":
                return await self.answer_unevaluated(head, call, "it needed more memory than one review may take")
            case "out of time":
                return await self.answer_unevaluated(head, call, call.timeout_reason)
            case "question":
                question, user = question_from_json(fields)
                answer = await self.ask(question, user, tenant, call.asking_end)
                return await self.answer_by_worker(body_or_memory, head, call, {**known_answers, question: answer})
            case "refused":
                message = str(fields["message"])
                if (body := await self.answer_unreadable(body_or_memory, head, call, message)) is None:
                    raise CallError(int(str(fields["code"])), str(fields["reason"]), message)
                return body
            case "failed":
                raise WorkerFault(fields)
            case "answered":
                self._scheduler.overruns.record_worker_time(tenant, result.seconds)
                total_ms = round((monotonic() - call.started) * 1000, 3)
                self.log.write_review("info", "review", {**fields, "lane": "worker", "total_ms": total_ms})
                return result.body

    # ---- the failurePolicy of the policies

    async def answer_incomplete_body(
        self, received: LargeBody, phase: Phase, arrived: float, because: str, address: str
    ) -> bytes | None:
        """Answer a review with an incomplete body. Return None if the beginning of the body names no request."""
        head = self.read_head(received, address)
        if head is None:
            return None
        self._counters.lanes["unread",] += 1
        return await self.answer_unevaluated(head, ReviewCall(phase, address, arrived, arrived), because)

    async def answer_unreadable(
        self, received: bytes | LargeBody, head: Attributes | None, call: ReviewCall, message: str
    ) -> bytes | None:
        """Answer a review with only a readable head. Return None if the head cannot be read either.

        An HTTP error would leave the decision to the webhook's own failurePolicy, which may be Ignore.
        """
        readable = head or self.read_head(received, call.address)
        if readable is None:
            return None
        self._counters.lanes["unreadable",] += 1
        return await self.answer_unevaluated(readable, call, f"it cannot be read: {message}", fix=REPORT_IT)

    async def answer_unevaluated(
        self, head: Attributes | None, call: ReviewCall, because: str, *, fix: str = MAKE_SMALLER
    ) -> bytes:
        """Answer a review without an evaluation.

        Reviews that came together time out together. To answer all of them at once would hold the loop for 0.1 s. So
        answers are spread over several polls of the sockets.

        Raises:
            CallError: not even the uid is known.
        """
        async with self._giving_up:
            if not self._scheduler.has_time:
                await asyncio.sleep(0)
            if head is None:
                raise CallError(503, "ServiceUnavailable", f"the review was not read, {because}")
            started_at = thread_time()
            since = perf_counter() - (monotonic() - call.started)
            reason = NotEvaluated(because, fix)
            result = self.evaluation.answer_unevaluated(head, call.phase, reason, since, self._counters)
            fields = {**result.fields, "lane": "worker", "reason": because}
            self.log.write_review("warning", "review not evaluated", fields)
            self._scheduler.worked(call.tenant_of(head), thread_time() - started_at)
            return result.body


class NamespaceArrivals:
    """The reviews that wait for their namespace, on one event loop.

    A namespace and its first Pod may be created together, and the view of the cluster may not have the namespace yet.
    No namespaceSelector can be decided without the labels of the namespace. All waiting reviews share one poll of the
    view. After WAIT_S the policies' failurePolicy decides.
    """

    def __init__(self, view: Callable[[], Cluster] | None) -> None:
        """`view` returns the view of the cluster. If `view` is None, no review waits."""
        self._view = view
        self._waiting: dict[asyncio.Future[None], str] = {}
        self._looking: asyncio.Task[None] | None = None

    def is_awaited(self, attributes: Attributes) -> bool:
        """Return whether to wait for the namespace of a request: the view can be read, and does not have the namespace
        yet.
        """
        if self._view is None or not attributes.namespace or attributes.resource.resource == "namespaces":
            return False
        return not self._is_wait_over(self._view(), attributes.namespace)

    async def wait_for(self, namespace: str, until: float) -> None:
        """Wait until the view has a namespace, at most until `until` (monotonic clock)."""
        arrival = asyncio.get_running_loop().create_future()
        self._waiting[arrival] = namespace
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_until_no_review_waits())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(until - monotonic()):
                    await arrival
        finally:
            del self._waiting[arrival]

    async def _look_until_no_review_waits(self) -> None:
        assert self._view is not None
        seen: object = None
        while self._waiting:
            view = self._view()
            revision = view.revision(NAMESPACE)
            if revision != seen:
                seen = revision
                for arrival, namespace in self._waiting.items():
                    if not arrival.done() and self._is_wait_over(view, namespace):
                        arrival.set_result(None)
            await asyncio.sleep(_LOOK_S)

    @staticmethod
    def _is_wait_over(view: Cluster, namespace: str) -> bool:
        """Return whether no review needs to wait: the namespace is in the view, or the view cannot be read."""
        try:
            return view.get(NAMESPACE, "", namespace) is not None
        except LookupFailed:
            return True
