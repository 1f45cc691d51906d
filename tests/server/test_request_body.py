"""Bodies of requests share a budget of memory: free memory, waiting times, the order of service, and release."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Any

import pytest

from webhook.errors import CallError
from webhook.server.client_clock import CLOCK
from webhook.server.request_body import (
    BEGINNING_BYTES,
    BURST_BYTES,
    BYTES_PER_S,
    FREE_BYTES,
    MAX_WAITING,
    BodyBudget,
    BodyReader,
    ClientGone,
    LargeBody,
)

LIMIT = 1_000_000
LARGE = FREE_BYTES + 1


class Clock:
    def __init__(self) -> None:
        self.said: list[str] = []

    def pause_clock(self) -> None:
        self.said.append("pause")

    def resume_clock(self) -> None:
        self.said.append("resume")

    def require_large_body_pace(self) -> None:
        self.said.append("hold")


class Client:
    def __init__(self, *pieces: int, address: str = "a", gone: bool = False, stalls: bool = False) -> None:
        self.pieces = list(pieces)
        self.asked = 0
        self.gone, self.stalls = gone, stalls
        self.clock = Clock()
        self.scope: dict[str, Any] = {"client": (address, 1), "extensions": {CLOCK: self.clock}}

    async def receive(self) -> dict[str, Any]:
        self.asked += 1
        if not self.pieces:
            if self.gone:
                return {"type": "http.disconnect"}
            await asyncio.Event().wait()  # this call never returns
        size = self.pieces.pop(0)
        return {"type": "http.request", "body": b"x" * size, "more_body": bool(self.pieces) or self.gone or self.stalls}

    def body(
        self, budget: BodyBudget, length: int | None, wait_s: float = 60.0
    ) -> AbstractAsyncContextManager[bytes | LargeBody]:
        return BodyReader(
            budget=budget,
            scope=self.scope,
            receive=self.receive,
            length=length,
            limit=LIMIT,
            deadline=monotonic() + wait_s,
        ).whole_body()


def run(one: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(one())  # type: ignore[arg-type]


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


READ = {
    "a small body": ((100,), 100, 0),
    "a small body in pieces": ((100, 200), 300, 0),
    "the largest body without a reservation, in pieces": ((FREE_BYTES - 1, 1), FREE_BYTES, 0),
    "a large body": ((LARGE,), LARGE, LARGE),
    "a large body in pieces": ((FREE_BYTES, 1), LARGE, LARGE),
    "a small streamed body": ((100, 100), None, 0),
    "a large streamed body": ((LARGE, 100), None, LIMIT),
}


@pytest.mark.parametrize(("pieces", "length", "reserved"), READ.values(), ids=READ.keys())
def test_large_bodies_are_reserved_until_they_are_answered(
    pieces: tuple[int, ...], length: int | None, reserved: int
) -> None:
    async def one() -> None:
        budget = BodyBudget(LIMIT)
        client = Client(*pieces)
        async with client.body(budget, length) as body:
            assert (len(body), budget.reserved) == (sum(pieces), reserved)
        assert budget.reserved == 0
        assert client.clock.said == (["pause", "hold", "resume"] if reserved else [])

    run(one)


def test_without_room_only_one_piece_of_a_body_is_read() -> None:
    async def one() -> None:
        budget = BodyBudget(LIMIT)
        await budget.reserve(LIMIT, "b")
        client = Client(LARGE)

        async def read() -> int:
            async with client.body(budget, LARGE) as body:
                return len(body)

        task = asyncio.create_task(read())
        await settle()
        assert (client.asked, budget.waiting_call_count, client.clock.said) == (1, 1, ["pause"])
        budget.release(LIMIT)
        assert await task == LARGE
        assert (budget.reserved, budget.waiting_call_count) == (0, 0)

    run(one)


def test_a_request_that_waits_until_its_deadline_gets_an_answer_to_retry() -> None:
    async def one() -> None:
        budget = BodyBudget(LIMIT)
        await budget.reserve(LIMIT, "b")
        client = Client(LARGE)
        with pytest.raises(CallError, match="other calls fill the 1000000 bytes") as error:
            await client.body(budget, LARGE, wait_s=0.01).__aenter__()
        assert (error.value.code, error.value.reason, client.asked) == (429, "TooManyRequests", 1)
        assert (budget.reserved, budget.waiting_call_count) == (LIMIT, 0)

    run(one)


def test_a_body_that_stops_gives_its_bytes_back_at_the_deadline() -> None:
    async def one() -> None:
        budget = BodyBudget(LIMIT)
        client = Client(100, stalls=True)
        with pytest.raises(CallError, match="not whole before") as error:
            await client.body(budget, LIMIT, wait_s=0.05).__aenter__()
        assert (error.value.code, client.asked, budget.reserved) == (408, 2, 0)

    run(one)


def test_a_body_that_never_begins_is_late_and_does_not_blame_other_calls() -> None:
    async def one() -> None:
        budget = BodyBudget(LIMIT)
        with pytest.raises(CallError) as error:
            async with Client(stalls=True).body(budget, LARGE, wait_s=0.05):
                pass
        assert (error.value.code, error.value.reason, budget.reserved) == (408, "RequestTimeout", 0)

    run(one)


def test_a_client_that_disconnects_releases_its_bytes() -> None:
    async def one() -> None:
        budget = BodyBudget(LIMIT)
        with pytest.raises(ClientGone):
            await Client(100, gone=True).body(budget, LARGE).__aenter__()
        assert budget.reserved == 0

    run(one)


def test_addresses_take_turns_in_order_of_arrival() -> None:
    async def one() -> None:
        budget = BodyBudget(LIMIT)
        await budget.reserve(LIMIT, "holder")
        served: list[str] = []

        async def wait(name: str, address: str, size: int) -> None:
            await budget.reserve(size, address)
            served.append(name)

        waiting = [("a1", "a", LIMIT), ("a2", "a", LIMIT), ("a3", "a", LIMIT), ("b1", "b", LIMIT), ("c1", "c", 10)]
        tasks = [asyncio.create_task(wait(*each)) for each in waiting]
        await settle()
        for _ in range(4):
            budget.release(budget.reserved)
            await settle()
        budget.release(budget.reserved)
        await asyncio.gather(*tasks)
        assert served == ["a1", "b1", "c1", "a2", "a3"]

    run(one)


def test_a_body_above_the_whole_budget_is_read_alone() -> None:
    async def one() -> None:
        budget = BodyBudget(LARGE - 1)
        async with Client(LARGE).body(budget, LARGE) as body:
            assert len(body) == LARGE

    run(one)


def test_a_request_that_leaves_the_queue_lets_others_pass() -> None:
    async def one() -> None:
        budget = BodyBudget(100)
        await budget.reserve(60, "holder")
        large = asyncio.create_task(budget.reserve(50, "a"))
        await settle()
        small = asyncio.create_task(budget.reserve(40, "b"))
        await settle()
        assert budget.waiting_call_count == 2
        large.cancel()
        await small
        assert (budget.reserved, budget.waiting_call_count) == (100, 0)

    run(one)


def test_a_request_cancelled_at_its_turn_keeps_no_budget() -> None:
    async def one() -> None:
        for is_first in (True, False):
            budget = BodyBudget(100)
            await budget.reserve(100, "holder")
            task = asyncio.create_task(budget.reserve(100, "a"))
            await settle()
            steps = [task.cancel, lambda budget=budget: budget.release(100)]
            for step in steps if is_first else reversed(steps):
                step()
            await asyncio.gather(task, return_exceptions=True)
            assert (budget.reserved, budget.waiting_call_count) == (0, 0)

    run(one)


def test_a_full_queue_refuses_at_once() -> None:
    async def one() -> None:
        budget = BodyBudget(100)
        await budget.reserve(100, "holder")
        tasks = [asyncio.create_task(budget.reserve(1, "a")) for _ in range(MAX_WAITING)]
        await settle()
        with pytest.raises(CallError) as error:
            await budget.reserve(1, "a")
        assert error.value.code == 429
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(one)


def test_a_queue_filled_by_one_address_has_a_place_for_another_address() -> None:
    async def one() -> None:
        budget = BodyBudget(100)
        await budget.reserve(100, "holder")
        tasks = [asyncio.create_task(budget.reserve(1, "a")) for _ in range(MAX_WAITING)]
        await settle()
        others = [asyncio.create_task(budget.reserve(1, "b")) for _ in range(3)]
        await settle()
        assert budget.waiting_call_count == MAX_WAITING
        assert [task.done() for task in tasks] == [False] * (MAX_WAITING - 3) + [True] * 3
        budget.release(100)
        results = await asyncio.gather(*tasks, *others, return_exceptions=True)
        assert [getattr(one, "code", 0) for one in results] == [0] * (MAX_WAITING - 3) + [429] * 3 + [0] * 3

    run(one)


TOO_LONG = {
    "a declared body, of which only the beginning is read": ((BEGINNING_BYTES, 1, LIMIT), LIMIT + 1, 2),
    "a streamed body, up to the limit": ((LIMIT, 10, 10), None, 2),
    "a streamed body in one piece": ((LIMIT + 1,), None, 1),
}


@pytest.mark.parametrize(("pieces", "length", "asked"), TOO_LONG.values(), ids=TOO_LONG.keys())
def test_a_too_long_body_uses_no_budget(pieces: tuple[int, ...], length: int | None, asked: int) -> None:
    async def one() -> None:
        budget = BodyBudget(LIMIT)
        client = Client(*pieces)
        with pytest.raises(CallError, match="larger than 1000000 bytes") as error:
            await client.body(budget, length).__aenter__()
        assert (error.value.code, client.asked, budget.reserved) == (413, asked, 0)

    run(one)


def test_large_bodies_together_are_read_at_a_pace() -> None:
    budget = BodyBudget(LIMIT)
    assert budget.pace.record_read(BURST_BYTES, 100.0) == 0.0
    assert budget.pace.record_read(BYTES_PER_S, 100.0) == pytest.approx(1.0)
    assert budget.pace.record_read(BYTES_PER_S, 101.0) == pytest.approx(1.0)
    assert budget.pace.record_read(BURST_BYTES, 110.0) == 0.0


def test_a_fast_body_yields_to_other_requests_and_is_not_charged_for_waiting() -> None:
    async def read() -> None:
        budget, client = BodyBudget(LIMIT), Client(LARGE, LARGE, 1)
        budget.pace.record_read(BURST_BYTES + BYTES_PER_S // 10, monotonic())
        async with client.body(budget, 2 * LARGE + 1) as body:
            assert len(body) == 2 * LARGE + 1
        assert client.clock.said == ["pause", "hold", "pause", "resume", "resume"]

    run(read)
