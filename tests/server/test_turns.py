"""Rounds of the event loop: one tenant's many reviews do not go before another's."""

from __future__ import annotations

import asyncio

from webhook.server.turns import LITTLE_S, MOST_S, SLOW_S, Turns

CROWD, VICTIM = ("a", "crowd"), ("b", "victim")


class Counted(Turns):
    """Counts the rounds that end."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = 0

    def _end_round(self) -> None:
        self.rounds += 1
        super()._end_round()


def order(*arriving: tuple[str, str], seconds: float = 2 * MOST_S) -> list[tuple[str, str]]:
    """The order in which reviews that come at once are worked on, each of which takes so long."""
    done: list[tuple[str, str]] = []

    async def review(turns: Turns, tenant: tuple[str, str]) -> None:
        await turns.wait(tenant)
        turns.took(tenant, seconds)
        done.append(tenant)

    async def run() -> None:
        turns = Turns()
        await asyncio.wait_for(asyncio.gather(*(review(turns, each) for each in arriving)), 5)

    asyncio.run(run())
    return done


def test_who_comes_behind_a_crowd_waits_for_one_of_them():
    assert order(*[CROWD] * 20, VICTIM) == [CROWD, VICTIM, *[CROWD] * 19]


def test_quick_reviews_of_a_tenant_share_a_round():
    assert order(*[CROWD] * 4, VICTIM, seconds=MOST_S / 8) == [*[CROWD] * 4, VICTIM]


def test_a_tenant_keeps_its_order_and_others_take_turns():
    many = order(CROWD, CROWD, CROWD, VICTIM, VICTIM, VICTIM)
    assert many == [CROWD, VICTIM, CROWD, VICTIM, CROWD, VICTIM]


def test_whoever_went_away_does_not_hold_up_the_rest():
    async def run() -> list[str]:
        turns, done = Turns(), []

        async def review(name: str) -> None:
            await turns.wait(CROWD)
            turns.took(CROWD, 2 * MOST_S)
            done.append(name)

        tasks = [asyncio.create_task(review(name)) for name in "abc"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait(tasks, timeout=5)
        return done

    assert asyncio.run(run()) == ["a", "c"]


def test_whoever_waits_has_a_turn_whatever_little_the_others_took():
    async def run() -> None:
        turns = Turns()
        turns.took(CROWD, -2 * MOST_S)  # a review whose copied pages were counted for more than they took
        turns.took(VICTIM, 1.5 * MOST_S)
        await asyncio.wait_for(turns.wait(VICTIM), 5)

    asyncio.run(run())


def test_those_who_wait_fill_their_round():
    turns = Counted()

    async def run() -> None:
        async def review() -> None:
            await turns.wait(CROWD)
            turns.took(CROWD, MOST_S / 4)

        await asyncio.wait_for(asyncio.gather(*(review() for _ in range(40))), 5)

    asyncio.run(run())
    assert turns.rounds <= 20  # one of them in each round would take 36


def test_the_end_of_a_round_is_looked_for_once_more_than_little_was_done_in_it():
    def rounds(seconds: float) -> int:
        turns = Counted()

        async def run() -> None:
            for _ in range(8):
                turns.took(CROWD, seconds)
                await asyncio.sleep(0)

        asyncio.run(run())
        return turns.rounds

    assert rounds(2 * LITTLE_S) == 8
    assert rounds(0.3 * LITTLE_S) == 2


def test_a_user_in_many_namespaces_gets_as_much_as_in_one():
    many = [(f"ns-{i}", "crowd") for i in range(20)]

    async def run() -> list[tuple[str, str]]:
        turns, done = Turns(), []

        async def review(tenant: tuple[str, str], seconds: float) -> None:
            await turns.wait(tenant)
            turns.took(tenant, seconds)
            done.append(tenant)

        await review(("ns", "crowd"), 2 * MOST_S)
        crowd = [asyncio.create_task(review(each, 2 * MOST_S)) for each in many]
        await asyncio.sleep(0)
        await review(VICTIM, MOST_S / 20)
        before = len(done)
        await asyncio.wait_for(asyncio.gather(*crowd), 5)
        assert done[before:] == many[before - 2 :]
        return done[:before]

    assert len(asyncio.run(run())) <= 3


def test_one_slow_review_by_chance_leaves_a_tenant_its_own_turn():
    async def run() -> None:
        turns = Turns()
        for seconds in (SLOW_S / 4, SLOW_S / 4, SLOW_S, SLOW_S / 4):
            turns.took(VICTIM, seconds)
        turns.took(CROWD, 2 * MOST_S)
        assert not turns.is_free(CROWD)
        assert turns.is_free(VICTIM)

    asyncio.run(run())


def test_of_users_whose_reviews_are_quick_again_nothing_is_remembered():
    async def run() -> None:
        turns = Turns()
        turns.took(CROWD, 2 * MOST_S)
        assert len(turns._average_s) == 2
        for _ in range(20):
            turns.took(CROWD, SLOW_S / 20)
        assert len(turns._average_s) == 0
        turns.took(VICTIM, SLOW_S / 20)
        assert len(turns._average_s) == 0
        assert turns.is_free(VICTIM)

    asyncio.run(run())


def test_a_quick_tenant_of_a_user_who_is_slow_elsewhere_keeps_its_own_turn():
    async def run() -> None:
        turns = Turns()
        quick, slow = ("ns", "one"), ("other", "one")
        for _ in range(5):
            turns.took(slow, MOST_S)
            turns.took(quick, SLOW_S / 20)
        turns.took(slow, 2 * MOST_S)
        assert not turns.is_free(slow)
        assert turns.is_free(quick)

    asyncio.run(run())
