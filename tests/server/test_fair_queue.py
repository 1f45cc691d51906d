"""The order of waiting requests."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine
from math import inf

import pytest

from webhook.server.fair_queue import FairQueue
from webhook.server.usage import HALF_LIFE_S, Tenant, Usage

HEAVY, HEAVIER = Tenant("heavy", "hal"), Tenant("heavier", "hank")
LIGHT, OTHER = Tenant("light", "lea"), Tenant("other", "ole")


class Waiting:
    def __init__(self) -> None:
        self.usage = Usage()
        self.lost: list[Tenant] = []
        self.queue = FairQueue(self.usage, self.lost.append, 0.001, inf)
        self.order: list[Tenant] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.usage.add(HEAVY, 4.0, time.monotonic())
        self.usage.add(HEAVIER, 8.0, time.monotonic())

    async def enter(self, *tenants: Tenant, until: float = inf) -> None:
        self.tasks += [asyncio.create_task(self._wait(tenant, until)) for tenant in tenants]
        await asyncio.sleep(0)

    async def _wait(self, tenant: Tenant, until: float) -> None:
        await self.queue.wait(tenant, until)
        self.order.append(tenant)

    async def serve(self, may: Callable[[Tenant], bool] = lambda _: True) -> list[Tenant]:
        while following := self.queue.pop(may):
            following[1].set_result(None)
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        return self.order


def run(scenario: Callable[[Waiting], Coroutine[None, None, None]]) -> None:
    asyncio.run(asyncio.wait_for(_scenario(scenario), 10))


async def _scenario(scenario: Callable[[Waiting], Coroutine[None, None, None]]) -> None:
    await scenario(Waiting())


def test_light_tenants_go_first_and_take_turns():
    async def scenario(waiting: Waiting) -> None:
        await waiting.enter(HEAVIER, HEAVY, LIGHT, LIGHT, OTHER)
        assert await waiting.serve() == [LIGHT, OTHER, LIGHT, HEAVY, HEAVIER]
        assert len(waiting.queue) == 0

    run(scenario)


def test_namespaces_take_turns_regardless_of_their_number_of_users():
    async def scenario(waiting: Waiting) -> None:
        crowd = [Tenant("crowd", f"user-{number}") for number in range(20)]
        await waiting.enter(*crowd, LIGHT, OTHER, LIGHT)
        assert {LIGHT, OTHER} < set((await waiting.serve())[:3])
        assert waiting.order[3:5].count(LIGHT) == 1
        assert len(waiting.order) == 23

    run(scenario)


def test_usage_while_a_tenant_waits_counts():
    async def scenario(waiting: Waiting) -> None:
        await waiting.enter(LIGHT, HEAVY, HEAVIER)
        waiting.usage.add(LIGHT, 6.0, time.monotonic())
        waiting.usage.add(HEAVY, 99.0, time.monotonic())
        assert await waiting.serve() == [LIGHT, HEAVIER, HEAVY]

    run(scenario)


def test_a_light_tenant_that_may_not_run_is_skipped():
    async def scenario(waiting: Waiting) -> None:
        await waiting.enter(LIGHT, OTHER, HEAVY, HEAVIER)
        assert await waiting.serve(lambda tenant: tenant == OTHER) == [OTHER]
        assert await waiting.serve(lambda tenant: tenant == HEAVIER) == [OTHER]
        assert await waiting.serve() == [OTHER, LIGHT, HEAVY, HEAVIER]

    run(scenario)


def test_a_wait_ends_in_time():
    async def scenario(waiting: Waiting) -> None:
        await waiting.enter(LIGHT, until=time.monotonic() + 0.05)
        await waiting.enter(LIGHT)
        with pytest.raises(TimeoutError):
            await waiting.tasks[0]
        assert len(waiting.queue) == 1
        assert await waiting.serve() == [LIGHT]
        assert waiting.queue._turns == {} or waiting.queue.pop() is None

    run(scenario)


def test_a_cancelled_request_gets_no_turn():
    async def scenario(waiting: Waiting) -> None:
        await waiting.enter(LIGHT, OTHER)
        waiting.tasks[0].cancel()
        assert await waiting.serve() == [OTHER]
        assert (len(waiting.queue), waiting.lost) == (0, [])

    run(scenario)


def test_the_turn_of_a_cancelled_request_is_reported():
    async def scenario(waiting: Waiting) -> None:
        await waiting.enter(LIGHT)
        following = waiting.queue.pop()
        assert following is not None
        following[1].set_result(None)
        waiting.tasks[0].cancel()
        await asyncio.wait(waiting.tasks)
        assert (waiting.order, waiting.lost) == ([], [LIGHT])

    run(scenario)


def test_a_turn_does_not_visit_a_thousand_waiting_tenants():
    async def scenario(waiting: Waiting) -> None:
        await waiting.enter(*(Tenant("heavy", f"user-{number}") for number in range(1000)))
        compared = 0
        rank = waiting.usage.rank

        class Counting(Usage):
            def rank(self, tenant: Tenant, now: float) -> tuple[float, float]:
                nonlocal compared
                compared += 1
                return rank(tenant, now)

        waiting.queue._usage = Counting()
        while following := waiting.queue.pop():
            waiting.usage.add(following[0], 0.01, time.monotonic())
            following[1].set_result(None)
        assert compared < 20_000

    run(scenario)


def test_long_work_of_one_namespace_waits_for_equal_work_of_others():
    async def scenario(waiting: Waiting) -> None:
        await waiting.enter(*[LIGHT] * 3, *[OTHER] * 40)
        for _ in range(20):
            following = waiting.queue.pop()
            assert following is not None
            following[1].set_result(None)
            waiting.queue.charge(following[0].namespace, 0.015 if following[0] == LIGHT else 0.001)
            await asyncio.sleep(0)
        assert [at for at, tenant in enumerate(waiting.order) if tenant == LIGHT] == [0, 9, 18]

    run(scenario)


def test_usage_while_no_tenant_waited_does_not_count_later():
    async def scenario(waiting: Waiting) -> None:
        waiting.queue.charge(LIGHT.namespace, 0.5)
        await waiting.enter(LIGHT, OTHER)
        assert await waiting.serve() == [LIGHT, OTHER]

    run(scenario)


def test_new_namespaces_do_not_always_go_first():
    async def scenario(waiting: Waiting) -> None:
        waiting.queue.charge(OTHER.namespace, 0.0)
        await waiting.enter(OTHER, OTHER)
        for number in range(20):
            await waiting.enter(Tenant(f"new-{number}", "nora"))
            following = waiting.queue.pop()
            assert following is not None
            following[1].set_result(None)
            waiting.queue.charge(following[0].namespace, 0.01)
            await asyncio.sleep(0)
        assert waiting.order.count(OTHER) == 2
        assert waiting.order.index(OTHER) < 2

    run(scenario)


def test_a_light_user_goes_first_in_a_namespace_with_waiting_users():
    async def scenario(waiting: Waiting) -> None:
        neighbour = Tenant(LIGHT.namespace, "hal")
        await waiting.enter(neighbour, OTHER)
        await waiting.enter(LIGHT)
        assert await waiting.serve() == [OTHER, LIGHT, neighbour]

    run(scenario)


def test_outdated_entries_go_when_all_places_are_made_anew(monkeypatch: pytest.MonkeyPatch):
    async def scenario(waiting: Waiting) -> None:
        await waiting.enter(Tenant(LIGHT.namespace, "hal"), HEAVY)
        for _ in range(1000):
            await waiting.enter(LIGHT)
            following = waiting.queue.pop()
            assert following is not None
            assert following[0] == LIGHT
            following[1].set_result(None)
        await waiting.enter(*[Tenant(HEAVY.namespace, f"hal-{number}") for number in range(1000)])
        for task in waiting.tasks[-1000:]:
            task.cancel()
        await asyncio.sleep(0)
        now = time.monotonic()
        monkeypatch.setattr("webhook.server.fair_queue.monotonic", lambda: now + 1.0)
        assert waiting.queue.would_be_next(OTHER)
        assert len(waiting.queue._heap) == len(waiting.queue._turns) == 2
        assert {len(heap) for heap in waiting.queue._namespaces.values()} == {1}

    run(scenario)


def test_tenants_that_may_not_run_keep_their_places_while_time_passes(monkeypatch: pytest.MonkeyPatch):
    async def scenario(waiting: Waiting) -> None:
        tenants = [Tenant(f"light-{number}", "lea") for number in range(5)]
        await waiting.enter(*tenants)
        moments = itertools.count(time.monotonic(), 0.04)
        monkeypatch.setattr("webhook.server.fair_queue.monotonic", lambda: next(moments))
        for _ in range(20):
            assert waiting.queue.pop(lambda _: False) is None
        assert await waiting.serve() == tenants

    run(scenario)


def test_a_long_review_does_not_delay_others_for_its_whole_length():
    async def scenario(waiting: Waiting) -> None:
        waiting.queue = FairQueue(waiting.usage, waiting.lost.append, 0.001, most_debt_s=0.003)
        await waiting.enter(*[OTHER] * 20)
        waiting.queue.charge(LIGHT.namespace, 0.02)
        await waiting.enter(LIGHT)
        assert (await waiting.serve()).index(LIGHT) < 10

    run(scenario)


def test_usage_of_an_earlier_busy_period_does_not_count_in_the_next():
    async def scenario(waiting: Waiting) -> None:
        waiting.queue = FairQueue(waiting.usage, waiting.lost.append, 0.001, most_debt_s=0.003)
        await waiting.enter(OTHER, LIGHT)
        waiting.queue.charge(LIGHT.namespace, 60.0)
        await waiting.serve()
        waiting.order.clear()
        await waiting.enter(*[Tenant("new", "nora")] * 6, LIGHT)
        assert (await waiting.serve()).index(LIGHT) <= 4

    run(scenario)


def test_a_heavy_tenant_that_becomes_light_is_not_compensated():
    async def scenario(waiting: Waiting) -> None:
        await waiting.enter(*[HEAVY] * 8, *[LIGHT] * 8)
        for _ in range(6):
            following = waiting.queue.pop()
            assert following is not None
            assert following[0] == LIGHT
            following[1].set_result(None)
            waiting.queue.charge(LIGHT.namespace, 1.0)
        waiting.usage._namespaces.discard(HEAVY.namespace)  # as if the tenant had used no processor time for long
        waiting.usage._users.discard(HEAVY.user)
        await waiting.enter(Tenant(HEAVY.namespace, "hera"))
        assert LIGHT in (await waiting.serve())[:3]

    run(scenario)


@pytest.mark.parametrize("is_first_gone", [False, True])
def test_a_tenant_with_fading_use_is_not_starved_by_new_light_tenants(
    monkeypatch: pytest.MonkeyPatch, is_first_gone: bool
):
    async def scenario(waiting: Waiting) -> None:
        await waiting.enter(HEAVY, *[Tenant(HEAVY.namespace, "hera")] * 2, *[LIGHT] * 20, *[OTHER] * 20)
        if is_first_gone:
            waiting.tasks[0].cancel()
            await asyncio.sleep(0)
        now = time.monotonic()
        monkeypatch.setattr("webhook.server.fair_queue.monotonic", lambda: now + 4 * HALF_LIFE_S)
        order = await waiting.serve()
        assert min(order.index(tenant) for tenant in order if tenant.namespace == HEAVY.namespace) < 4
        assert (len(order), len(waiting.queue)) == (42 if is_first_gone else 43, 0)
        assert waiting.queue._entries == waiting.queue._turns == {}

    run(scenario)


def test_entries_of_light_users_do_not_accumulate(monkeypatch: pytest.MonkeyPatch):
    async def scenario(waiting: Waiting) -> None:
        await waiting.enter(*[Tenant("shared", "stays")] * 2000)
        now = time.monotonic()
        for number in range(500):
            user = Tenant("shared", f"user-{number}")
            waiting.usage.add(Tenant("elsewhere", user.user), 4.0, now)
            await waiting.enter(user)
            now += 8 * HALF_LIFE_S
            monkeypatch.setattr("webhook.server.fair_queue.monotonic", lambda now=now: now)
            for _ in range(3):
                following = waiting.queue.pop()
                assert following is not None
                following[1].set_result(None)
            assert user not in waiting.queue
        assert len(waiting.queue._namespaces["shared"]) < 200

    run(scenario)


def test_the_next_tenant_is_known_before_waiting():
    async def scenario(waiting: Waiting) -> None:
        assert waiting.queue.would_be_next(LIGHT)
        await waiting.enter(OTHER)
        assert waiting.queue.would_be_next(LIGHT)
        assert not waiting.queue.would_be_next(HEAVY)
        assert not waiting.queue.would_be_next(OTHER)
        waiting.queue.charge(LIGHT.namespace, 1.0)
        assert not waiting.queue.would_be_next(LIGHT)
        await waiting.serve()

    run(scenario)
