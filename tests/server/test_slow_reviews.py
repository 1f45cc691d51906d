"""Long reviews move from the event loop to a worker. A review is answered even if its worker dies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Callable
from functools import partial

import pytest

from tests.server.asgi import Running, review_of
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.rules.decisions import Decision, Verdict
from webhook.server import slow_reviews
from webhook.server.request_body import FREE_BYTES, LargeBody
from webhook.server.usage import Tenant
from webhook.settings.serving import ServerSettings

LARGE = review_of(object={"metadata": {"name": "p"}, "x": "y" * FREE_BYTES}, userInfo={"username": "u"})
PARENT = os.getpid()
SEEN = (Decision(policy="p", binding="b", evaluation="admit"),)


def in_worker(act: Callable[[Deadline], object]) -> Callable[[Attributes, Phase, Deadline], Verdict]:
    """Return a reviewer that calls `act` in a child process, and fails in the server's own process."""

    def review(_attributes: Attributes, _phase: Phase, deadline: Deadline) -> Verdict:
        assert os.getpid() != PARENT
        act(deadline)
        return Verdict(allowed=True, decisions=SEEN)

    return review


def slowly(_attributes: Attributes, _phase: Phase, deadline: Deadline) -> Verdict:
    """On the event loop, use the slice until an exception ends the review. In a child process, allow at once."""
    while os.getpid() == PARENT:
        deadline.spend(1)
    return Verdict(allowed=True)


def test_large_bodies_are_evaluated_by_a_worker():
    running = Running(in_worker(lambda _: None))
    answer = running.post("/validate", LARGE)
    assert answer.json()["response"] == {"uid": "U", "allowed": True}
    assert running.counters.lanes == {("worker",): 1}
    assert running.counters.workers == {("answered",): 1}
    assert running.counters.requests == {("validating", "CREATE", "200", "false"): 1}
    assert running.counters.validating["p", "b", "no_error", "allow"].counts[0] == 1
    (line,) = running.lines()
    assert (line["message"], line["lane"], line["user"]) == ("review", "worker", "u")


@pytest.mark.parametrize("size", [20_000, 200_000, 2_000_000])
def test_the_time_of_reading_a_large_body_is_charged_to_its_tenant(size: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slow_reviews, "_READ_S_PER_BYTE", 1.0)
    running = Running()
    spec = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {"a": "x" * size}}}
    request = {
        "namespace": "large",
        **review_of(object=spec)["request"],
    }  # an API server writes the namespace before the object
    assert running.post("/validate", {**review_of(), "request": request}).json()["response"]["allowed"]
    usage = running.scheduler.usage
    assert not usage.is_light(Tenant("large", ""), time.monotonic())
    assert usage.is_light(Tenant("other", ""), time.monotonic())


def test_a_body_of_numbers_that_take_long_to_decode_goes_to_a_worker():
    running = Running(in_worker(lambda _: None))
    body = json.dumps(review_of(object={"x": "HERE"})).replace('"HERE"', f"[{'1e308,' * 2000}0]")
    assert running.post("/validate", body.encode()).json()["response"] == {"uid": "U", "allowed": True}
    assert running.counters.lanes == {("worker",): 1}


def test_a_long_review_starts_again_in_a_worker():
    running = Running(slowly)
    assert running.post("/mutate", review_of()).json()["response"] == {"uid": "U", "allowed": True}
    assert running.counters.lanes == {("inline_overrun",): 1, ("worker",): 1}


def test_a_stuck_worker_is_killed_at_the_deadline():
    running = Running(in_worker(lambda _: time.sleep(60)))
    answer = running.post("/validate?timeout=300ms", LARGE)
    status = answer.json()["response"]["status"]
    assert (answer.status_code, answer.json()["response"]["uid"], status["code"]) == (200, "U", 422)
    assert (took := re.fullmatch(r"not evaluated: it took longer than (0\.\d+) s", status["message"]))
    assert 0 < float(took[1]) <= 0.3  # the rest of the timeout after the body arrived
    assert running.counters.workers == {("killed",): 1}
    assert running.lines()[-1]["message"] == "review not evaluated"


def test_evaluation_ends_before_the_worker_is_killed():
    def end(_attributes: Attributes, _phase: Phase, deadline: Deadline) -> Verdict:
        return Verdict(allowed=True, warnings=(str(deadline.at),))

    killed_at, sent = time.monotonic() + 20, json.dumps(LARGE).encode()
    body = LargeBody(len(sent), [sent])
    answer = json.loads(asyncio.run(Running(end).app._answer(body, Phase.VALIDATE, killed_at, "")))
    assert killed_at - 0.31 < float(answer["response"]["warnings"][0]) < killed_at - 0.29


def test_a_deadline_outside_every_policy_is_not_an_internal_error():
    def late(deadline: Deadline) -> None:
        deadline.at = 0.0
        deadline.check_clock()

    running = Running(in_worker(late))
    answer = running.post("/validate?timeout=20s", LARGE)
    assert answer.status_code == 200
    assert answer.json()["response"]["status"]["message"].startswith("not evaluated: it took longer than 10 s")
    assert running.lines()[-1]["message"] == "review not evaluated"


def test_another_limit_outside_every_policy_is_an_internal_error():
    def costly(_deadline: Deadline) -> None:
        raise BudgetExceeded

    running = Running(in_worker(costly))
    assert running.post("/validate", LARGE).status_code == 500
    assert running.lines()[-1]["error"] == "BudgetExceeded"


def test_a_worker_that_dies_is_replaced_once():
    running = Running(in_worker(lambda _: os.kill(os.getpid(), signal.SIGKILL)))
    answer = running.post("/validate", LARGE)
    assert answer.json()["response"]["status"]["message"] == "not evaluated: its worker process ended early"
    assert running.counters.workers == {("died",): 2}


def overfill(_: Deadline) -> None:
    bytearray(200_000_000)


def overfill_in_c(_: Deadline) -> None:
    """Raise the exception of CPython if there is no memory even for a MemoryError."""
    raise SystemError("error return without exception set")


def overfill_bit_by_bit(_: Deadline) -> None:
    """Use all memory, with blocks of any size and objects that Python reuses. Then even a MemoryError needs memory."""
    held: object = None
    makers = [partial(bytes, size) for size in (1 << 20, 1 << 12, *range(512, 0, -16))]
    for make in (*makers, dict):
        with contextlib.suppress(MemoryError):
            while True:
                held = held, make()  # a list would need one large block
    raise MemoryError


@pytest.mark.parametrize("fill", [overfill, overfill_in_c, overfill_bit_by_bit])
def test_memory_of_a_worker_is_bounded(fill: Callable[[Deadline], None]):
    running = Running(in_worker(fill), settings=ServerSettings(worker_memory=50_000_000))
    answer = running.post("/validate", LARGE)
    message = answer.json()["response"]["status"]["message"]
    assert message == "not evaluated: it needed more memory than one review may take"
    assert running.counters.workers == {("answered",): 1}


def test_a_fault_inside_a_worker_says_where():
    def fail(_: Deadline) -> None:
        raise KeyError("hunter2")

    running = Running(in_worker(fail))
    answer = running.post("/validate", LARGE)
    assert (answer.status_code, answer.json()["reason"]) == (500, "InternalError")
    (line,) = running.lines()
    assert (line["message"], line["error"]) == ("internal fault", "KeyError")
    assert "fail" in "".join(line["traceback"])
    assert "hunter2" not in answer.text + running.stream.getvalue()


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"[" * (FREE_BYTES + 1), 400), (b'{"kind":"Pod","x":"' + b"y" * FREE_BYTES + b'"}', 400)],
    ids=["not JSON", "not a review"],
)
def test_a_large_body_that_cannot_be_read_is_refused(body: bytes, code: int):
    running = Running(in_worker(lambda _: None))
    assert running.post("/validate", body).status_code == code
    assert running.lines()[-1]["message"] == "call refused"


@pytest.mark.parametrize("size", [1, FREE_BYTES], ids=["on the loop", "in a worker"])
@pytest.mark.parametrize(
    ("field", "held", "told"),
    [
        ("object", b'"pod"', "request.object: expected an object, found a string"),
        ("object", b'{"metadata":{"name":', "the body is not JSON"),
        ("oldObject", b"[]", "request.oldObject: expected an object, found a list"),
        ("userInfo", b'{"extra":{"k":"v"}}', "request.userInfo.extra"),
        ("options", b"5", "request.options: expected an object, found an integer"),
    ],
    ids=["another type", "cut off", "old object", "user", "options"],
)
def test_a_review_with_only_a_readable_head_is_decided_by_failure_policies(
    field: str, held: bytes, told: str, size: int
):
    request = {**review_of()["request"], "object": {"x": "y" * size}}
    head = {key: value for key, value in request.items() if key != "object"}
    body = json.dumps({**review_of(), "request": {**head, "object": request["object"], field: "here"}}).encode()
    if field == "object":
        held = held if size == 1 else held[:-1] + b" " * size + held[-1:]
    running = Running()
    answer = running.post("/validate", body.replace(b'"here"', held))
    assert answer.status_code == 200
    response = answer.json()["response"]
    assert (response["uid"], response["allowed"]) == ("U", False)
    assert told in response["status"]["message"]
    assert running.counters.lanes["unreadable",] == 1
    line = running.lines()[-1]
    assert (line["message"], line["allowed"]) == ("review not evaluated", False)
    assert told in line["reason"]


def test_without_a_uid_a_late_answer_is_an_http_error():
    body = b'{"request":{"x":"' + b"y" * (2 << 20)  # the uid is after the long text, so only a worker can find it
    running = Running(in_worker(lambda _: None), settings=ServerSettings(timeout=0.0))
    answer = running.post("/validate", body)
    assert (answer.status_code, answer.json()["reason"]) == (503, "ServiceUnavailable")


@pytest.mark.parametrize("has_head", [True, False])
def test_a_body_that_arrives_too_slowly_is_not_an_internal_error(has_head: bool):
    """msgspec refuses the body. Another decoder would need more than the second that is left."""
    review = json.dumps(review_of(object="here")) if has_head else '{"kind": "here"}'
    answer = Running().post("/validate?timeout=1s", review.encode().replace(b"here", b"\xff" * (3 << 20)))
    assert answer.status_code == (200 if has_head else 503), answer.text
    assert "it took longer than" in answer.text
