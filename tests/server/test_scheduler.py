"""Turns on the event loop: many reviews of one tenant do not delay a review of another tenant."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import TypeVar

import pytest

from webhook.server.scheduler import HEAVY_S, LIGHT_S, ROUND_S, WARMING_S, Scheduler
from webhook.server.usage import LIGHT_SHARE, Tenant, page_tenant

CROWD, VICTIM = Tenant("a", "crowd"), Tenant("b", "victim")
Result = TypeVar("Result")


def run(scenario: Coroutine[None, None, Result]) -> Result:
    return asyncio.run(asyncio.wait_for(scenario, 10))


async def review(scheduler: Scheduler, tenant: Tenant, seconds: float, done: list[Tenant]) -> None:
    await scheduler.wait_for_turn(tenant)
    scheduler.worked(tenant, seconds)
    done.append(tenant)


async def order(*arriving: Tenant, heavy: tuple[Tenant, ...] = (), seconds: float = 2 * ROUND_S) -> list[Tenant]:
    scheduler, done = Scheduler(), []
    for tenant in heavy:
        scheduler.usage.add(tenant, 5.0, time.monotonic())
    await asyncio.gather(*(review(scheduler, tenant, seconds, done) for tenant in arriving))
    return done


def test_work_runs_at_once_until_a_round_is_full():
    async def scenario() -> None:
        scheduler = Scheduler()
        for _ in range(4):
            assert scheduler.is_free
            scheduler.worked(CROWD, ROUND_S / 4)
        assert not scheduler.is_free
        for _ in range(4):
            await asyncio.sleep(0)
        assert scheduler.is_free

    run(scenario())


def test_a_request_after_many_of_another_tenant_waits_for_one():
    assert run(order(*[CROWD] * 20, VICTIM, heavy=(CROWD,))) == [CROWD, VICTIM, *[CROWD] * 19]


def test_new_busy_tenants_take_turns_with_others():
    done = run(order(*[CROWD] * 20, *[VICTIM] * 3))
    # the first long reviews of a tenant count less than later ones
    assert [at for at, tenant in enumerate(done) if tenant == VICTIM] == [2, 3, 5]


def test_short_reviews_go_before_long_ones_of_an_equal_tenant():
    async def scenario() -> list[Tenant]:
        scheduler, done = Scheduler(), []
        scheduler.worked(CROWD, LIGHT_S)
        crowd = [asyncio.create_task(review(scheduler, CROWD, LIGHT_S, done)) for _ in range(9)]
        victims = [asyncio.create_task(review(scheduler, VICTIM, 0.001, done)) for _ in range(40)]
        await asyncio.gather(*crowd, *victims)
        return done

    assert run(scenario())[:40].count(CROWD) <= 4


def test_a_single_long_review_is_charged_its_time():
    async def scenario() -> list[Tenant]:
        scheduler, done = Scheduler(), []
        for tenant in (CROWD, VICTIM):
            scheduler.worked(tenant, 0.001)
        scheduler.worked(CROWD, ROUND_S)
        victims = [asyncio.create_task(review(scheduler, VICTIM, 0.005, done))]
        crowd = [asyncio.create_task(review(scheduler, CROWD, 0.001, done)) for _ in range(40)]
        victims += [asyncio.create_task(review(scheduler, VICTIM, 0.001, done)) for _ in range(3)]
        await asyncio.gather(*crowd, *victims)
        return done

    assert run(scenario())[:16].count(VICTIM) >= 3


def test_a_kubelet_does_not_wait_for_the_probes_of_others():
    flood, kubelet = page_tenant("/healthz", "192.0.2.1"), page_tenant("/healthz", "192.0.2.2")
    assert flood != kubelet
    assert run(order(*[flood] * 50, kubelet)).index(kubelet) <= 2


def test_reading_is_charged_and_does_not_use_the_round():
    scheduler = Scheduler()
    scheduler.charge_for_reading(CROWD, 5.0)
    assert scheduler.is_free
    assert not scheduler.usage.is_light(CROWD, time.monotonic())


def test_a_tenant_slightly_above_its_share_soon_becomes_light():
    scheduler, now = Scheduler(), 1000.0
    for _ in range(500):
        now += 0.01
        scheduler.usage.add(CROWD, 0.01 * LIGHT_SHARE * 4 / 3, now)
    assert not scheduler.usage.is_light(CROWD, now)
    assert scheduler.usage.is_light(CROWD, now + 0.15)


def test_new_service_accounts_and_namespaces_of_one_user_count_as_one_user():
    crowd = [Tenant(f"ns-{number}", "crowd") for number in range(20)]
    assert run(order(*crowd, VICTIM, heavy=(CROWD,)))[1] == VICTIM


def test_a_new_request_waits_for_one_round():
    async def scenario() -> int:
        scheduler, done = Scheduler(), []
        scheduler.usage.add(CROWD, 5.0, time.monotonic())
        crowd = [asyncio.create_task(review(scheduler, CROWD, HEAVY_S, done)) for _ in range(30)]
        for _ in range(40):
            await asyncio.sleep(0)
        before = len(done)
        await review(scheduler, VICTIM, 0.001, done)
        position = done.index(VICTIM)
        await asyncio.gather(*crowd)
        return position - before

    assert run(scenario()) <= 1


def test_a_light_tenant_does_not_wait_behind_others_in_a_round_that_is_not_full():
    async def scenario() -> list[Tenant]:
        scheduler, done = Scheduler(), []
        scheduler.usage.add(CROWD, 5.0, time.monotonic())
        crowd = [asyncio.create_task(review(scheduler, CROWD, HEAVY_S, done)) for _ in range(3)]
        scheduler.worked(CROWD, 2 * ROUND_S)
        await asyncio.sleep(0)
        assert scheduler.waiting_count == 2  # one of the three has a turn, and runs in the next step of the loop
        await review(scheduler, VICTIM, 0.001, done)
        assert done == [VICTIM]
        await asyncio.gather(*crowd)
        return done

    assert run(scenario()) == [VICTIM, CROWD, CROWD, CROWD]


def test_short_turns_follow_one_another_while_the_round_has_time():
    async def steps(seconds: float) -> int:
        scheduler, done, count = Scheduler(), [], 0
        scheduler.usage.add(CROWD, 5.0, time.monotonic())
        scheduler.worked(VICTIM, 2 * ROUND_S)
        crowd = [asyncio.create_task(review(scheduler, CROWD, seconds, done)) for _ in range(20)]
        while len(done) < 20:
            await asyncio.sleep(0)
            count += 1
        await asyncio.gather(*crowd)
        return count

    assert run(steps(ROUND_S / 100)) < run(steps(2 * ROUND_S))


def test_a_cancelled_request_does_not_delay_others():
    async def scenario() -> list[Tenant]:
        scheduler, done = Scheduler(), []
        tenants = [Tenant(name, "") for name in "abcd"]
        tasks = [asyncio.create_task(review(scheduler, tenant, 2 * ROUND_S, done)) for tenant in tenants]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)  # in this step the third request gets a turn, which the end of the request frees again
        tasks[2].cancel()
        await asyncio.wait(tasks, timeout=5)
        assert scheduler.waiting_count == 0
        return done

    assert run(scenario()) == [Tenant("a", ""), Tenant("d", "")]


def test_a_wait_ends_in_time():
    async def scenario() -> None:
        scheduler = Scheduler()
        scheduler.worked(CROWD, 2 * ROUND_S)
        with pytest.raises(TimeoutError):
            await scheduler.wait_for_turn(CROWD, time.monotonic() - 1)
        await scheduler.wait_for_turn(VICTIM)

    run(scenario())


def test_light_tenants_get_a_longer_slice_and_all_tenants_do_during_compilation():
    scheduler = Scheduler()
    scheduler.usage.add(CROWD, 5.0, time.monotonic())
    assert (scheduler.slice_s(VICTIM), scheduler.slice_s(CROWD)) == (LIGHT_S, HEAVY_S)
    scheduler.is_warm.clear()
    assert scheduler.slice_s(CROWD) == WARMING_S


def test_a_long_turn_ends_a_round_of_several_light_tenants():
    async def scenario() -> list[list[Tenant]]:
        """Return the tenants that were served in each step of the loop."""
        scheduler, done = Scheduler(), []
        tenants = [Tenant(name, f"user-{name}") for name in "abcdef"]
        tasks = [asyncio.create_task(review(scheduler, tenant, LIGHT_S, done)) for tenant in tenants]
        scheduler.worked(CROWD, 2 * ROUND_S)
        looks: list[list[Tenant]] = []
        while not all(task.done() for task in tasks):
            before = len(done)
            await asyncio.sleep(0)
            looks.append(done[before:])
        return looks

    looks = run(scenario())
    assert [len(worked) for worked in looks if worked] == [1] * 6
