"""The tenant with the least usage gets a worker. The last worker is for light tenants."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

import pytest

from webhook.server.counters import Counters
from webhook.server.fair_queue import FairSlots
from webhook.server.server_parts import ServerParts
from webhook.server.usage import Tenant
from webhook.server.worker_lane import Job, WorkerDied, WorkerLane, receive
from webhook.settings.serving import ServerSettings

WORKS: list[Callable[[], bytes]] = []


def job(work: Callable[[], bytes]) -> Job:
    """Return a job with the number of the function, because a worker finds the function in WORKS."""
    WORKS.append(work)
    return Job(b"%d" % (len(WORKS) - 1), b"")


def lane_of(workers: int, counters: Counters | None = None) -> WorkerLane:
    return WorkerLane(
        ServerParts(settings=ServerSettings(workers=workers), counters=counters or Counters()),
        lambda channel: WORKS[int(receive(channel)[0])](),
        lambda: len(WORKS),
    )


def in_namespace(name: str) -> Tenant:
    return Tenant(name, f"user-of-{name}")


def work(seconds: float) -> bytes:
    while time.process_time() < seconds:
        pass
    return b"done"


def used_much(lane: WorkerLane, tenant: Tenant) -> None:
    """Add so much usage that the tenant counts as heavy until the test ends."""
    lane._slots.usage.add(tenant, 1e6, time.monotonic())


async def gather(lane: WorkerLane, *calls: tuple[str, float, float]) -> list[object]:
    """Run a job for each call: a namespace, the seconds that its job sleeps, and the seconds until its deadline."""
    begun = time.monotonic()
    running = [
        lane.run(job(lambda s=sleep: (time.sleep(s), b"done")[1]), in_namespace(name), begun + until)
        for name, sleep, until in calls
    ]
    return await asyncio.gather(*running, return_exceptions=True)


def test_a_tenant_does_not_take_the_last_worker():
    counters = Counters()
    lane = lane_of(2, counters)
    answers = asyncio.run(gather(lane, ("greedy", 60, 1.0), ("greedy", 60, 1.0), ("other", 0, 30.0)))
    assert [type(answer) for answer in answers] == [TimeoutError, TimeoutError, bytes]
    assert counters.workers == {("answered",): 1, ("not_started",): 1, ("killed",): 1}
    assert (lane.busy_worker_count, lane.waiting_review_count) == (0, 0)


def test_a_user_in_several_namespaces_leaves_the_last_worker_to_others():
    lane = lane_of(2)

    async def run() -> list[object]:
        until = time.monotonic() + 1
        greedy = [lane.run(job(lambda: work(60)), Tenant(f"ns-{i}", "greedy"), until) for i in range(2)]
        other = lane.run(job(lambda: b"done"), in_namespace("other"), until + 30)
        return await asyncio.gather(*greedy, other, return_exceptions=True)

    assert [type(answer) for answer in asyncio.run(run())] == [TimeoutError, TimeoutError, bytes]


def test_an_arrival_is_not_compared_with_every_waiting_request(monkeypatch: pytest.MonkeyPatch):
    asked, lane, may_start = [], lane_of(2), FairSlots._may_start

    def noted(of: FairSlots, tenant: Tenant) -> bool:
        asked.append(tenant)
        return may_start(of, tenant)

    async def run() -> list[object]:
        until = time.monotonic() + 1
        greedy = [lane.run(job(lambda: work(60)), Tenant(f"ns-{i}", "greedy"), until) for i in range(50)]
        waiting = asyncio.gather(*greedy, return_exceptions=True)
        while lane.waiting_review_count < 49:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)
        assert len(asked) == 50
        return await waiting

    monkeypatch.setattr(FairSlots, "_may_start", noted)
    assert {type(answer) for answer in asyncio.run(run())} == {TimeoutError}


def test_a_heavy_tenant_leaves_the_last_worker_to_others():
    lane = lane_of(2)

    async def run() -> list[object]:
        for name in "ab":
            used_much(lane, in_namespace(name))
        return await gather(lane, ("a", 60, 1.0), ("b", 60, 1.0), ("light", 0, 30.0))

    assert [type(answer) for answer in asyncio.run(run())] == [TimeoutError, TimeoutError, bytes]


def test_the_time_of_a_worker_counts_as_usage():
    lane = lane_of(1)
    asyncio.run(lane.run(job(lambda: work(0.1)), in_namespace("a"), time.monotonic() + 30))
    assert lane._slots.usage._namespaces.get("a") is not None


def test_the_time_for_which_a_worker_waits_for_a_processor_does_not_count():
    lane = lane_of(2)

    async def run() -> list[object]:
        await gather(lane, ("victim", 1.0, 30.0))
        return await gather(lane, ("other", 60, 1.0), ("victim", 0, 30.0))

    assert [type(answer) for answer in asyncio.run(run())] == [TimeoutError, bytes]


def test_the_waiting_tenant_with_the_least_use_is_next():
    lane = lane_of(1)
    order: list[str] = []

    async def ask(name: str) -> None:
        await lane.run(job(lambda: b""), in_namespace(name), time.monotonic() + 30)
        order.append(name)

    async def run() -> None:
        used_much(lane, in_namespace("a"))
        await asyncio.gather(*(ask(name) for name in "aaabc"))

    asyncio.run(run())
    assert order == ["a", "b", "c", "a", "a"]


def test_a_cancelled_request_frees_its_worker():
    lane = lane_of(1)

    async def run() -> bytes:
        begun = time.monotonic()
        first = asyncio.create_task(lane.run(job(lambda: work(60)), in_namespace("a"), begun + 30))
        second = asyncio.create_task(lane.run(job(lambda: b""), in_namespace("b"), begun + 30))
        await asyncio.sleep(0.1)
        second.cancel()
        first.cancel()
        return await lane.run(job(lambda: b"done"), in_namespace("c"), begun + 30)

    assert asyncio.run(run()) == b"done"
    assert (lane.busy_worker_count, lane.waiting_review_count) == (0, 0)


def test_without_a_worker_the_deadline_ends_the_wait():
    def run(workers: int, seconds: float) -> bytes:
        died = job(lambda: os._exit(3))
        return asyncio.run(lane_of(workers).run(died, in_namespace("a"), time.monotonic() + seconds))

    with pytest.raises(TimeoutError):
        run(0, 0.05)
    with pytest.raises(TimeoutError):
        run(1, 0.0)
    with pytest.raises(WorkerDied):
        run(1, 30)


def test_a_long_review_of_an_earlier_busy_period_delays_its_namespace_little():
    lane = lane_of(1)
    order: list[str] = []

    async def ask(name: str, used_s: float = 0.0) -> None:
        await lane.run(job(lambda: work(used_s)), in_namespace(name), time.monotonic() + 30)
        order.append(name)

    async def run() -> None:
        first = [asyncio.create_task(ask(name)) for name in "cbb"]
        await asyncio.sleep(0)
        lane._slots._queue.charge("a", 60.0)
        await asyncio.gather(*first)
        await asyncio.gather(ask("c"), *(ask("b", 0.1) for _ in range(6)), ask("a"))

    asyncio.run(run())
    assert order[-1] == "b"
