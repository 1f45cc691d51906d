"""How long the loop may work on one review: much on a quiet server, little on one that is attacked."""

import time
from collections import deque
from itertools import repeat

import pytest

from webhook.errors import InlineBudgetSpent
from webhook.server.inline_budget import (
    FAIR_S,
    LEAST_S,
    MOST_S,
    ORDINARY_S,
    SHARE,
    TENANT_SHARE,
    WARMING_S,
    WORKER_S,
    InlineBudget,
    InlineDeadline,
    LoopTime,
)

MINE, YOURS = ("team-a", "ann"), ("team-b", "ann")


def test_the_slow_reviews_of_a_tenant_share_a_part_of_the_loops_time():
    budget, now = InlineBudget(), time.monotonic()
    assert budget.allowance(MINE, now) == MOST_S
    for _ in range(5):
        budget.took(MINE, MOST_S, now)
    assert budget.allowance(MINE, now) == LEAST_S
    assert budget.allowance(MINE, now + MOST_S / TENANT_SHARE / 2) == pytest.approx(MOST_S / 2)
    assert budget.allowance(MINE, now + 3600) == MOST_S


def test_nobody_pays_for_another_tenant():
    budget, now = InlineBudget(), time.monotonic()
    for _ in range(100):
        budget.took(MINE, MOST_S, now)
    assert budget.allowance(YOURS, now) == FAIR_S  # the loop itself has no more to give
    assert budget.pause(YOURS, now) == 0
    assert 0 < budget.pause(MINE, now) <= 1


def test_what_slow_reviews_took_together_is_owed_to_everybody():
    budget, now = InlineBudget(), time.monotonic()
    assert budget.owed(now) == 0
    for tenant in (MINE, YOURS):
        budget.took(tenant, MOST_S, now)
    assert 0 < budget.owed(now) <= MOST_S / SHARE
    assert budget.owed(now + MOST_S / SHARE) == pytest.approx(0, abs=1e-9)


def test_a_tenant_that_owes_waits_for_its_next_worker():
    budget, now = InlineBudget(), time.monotonic()
    for _ in range(6):
        budget.took(MINE, MOST_S, now)
    pause = budget.pause(MINE, now)
    assert pause == pytest.approx(MOST_S / TENANT_SHARE)
    assert budget.pause(MINE, now + pause) == pytest.approx(0, abs=1e-9)


def test_ordinary_reviews_cost_nothing():
    budget, now = InlineBudget(), time.monotonic()
    for _ in range(10_000):
        budget.took(MINE, LEAST_S, now)
    assert budget.allowance(MINE, now) == MOST_S


def test_ordinary_reviews_of_a_slow_processor_get_more():
    budget, now = InlineBudget(), time.monotonic()
    for _ in range(6):
        budget.took(MINE, MOST_S, now)
    for _ in range(64):
        budget.answered(3 * ORDINARY_S)
    assert budget.allowance(MINE, now) == pytest.approx(3 * LEAST_S)
    assert budget.allowance(YOURS, now) == MOST_S  # which nobody gets more than
    for _ in range(64):
        budget.answered(ORDINARY_S / 10)
    assert budget.allowance(MINE, now) == LEAST_S


def test_slow_reviews_of_a_tenant_are_not_ordinary():
    """Three of four in a row; the others say what the processor needs."""
    budget = InlineBudget()
    for number in range(256):
        budget.answered(MOST_S if number % 4 else ORDINARY_S)
    assert budget.slowness == 1


def test_a_worker_is_charged_on_a_slow_processor_too():
    budget, now = InlineBudget(), time.monotonic()
    budget.slowness = 5.0
    budget.charge(MINE, WORKER_S, now)
    assert budget.allowance(MINE, now + 0.001) == MOST_S
    for _ in range(30):
        budget.charge(MINE, WORKER_S, now)
    assert budget.pause(MINE, now) > 0


def test_tenants_that_are_many_are_forgotten():
    budget, now = InlineBudget(), time.monotonic()
    for number in range(5000):
        for _ in range(5):
            budget.took((str(number), ""), MOST_S, now)
    assert budget.allowance(("0", ""), now) == FAIR_S
    assert budget.allowance(("4999", ""), now) == LEAST_S


def test_the_time_that_a_thread_waits_is_not_charged():
    now = time.monotonic()
    # five seconds went by, of which it worked for none
    waited = InlineDeadline(now - 5, 5.0, now + 60, time.thread_time() + 5)
    waited.look()
    assert waited.at == pytest.approx(time.monotonic() + 5, abs=1)


def test_work_is():
    deadline = LoopTime(time.monotonic(), copies=False).deadline(0.01, time.monotonic() + 60)
    with pytest.raises(InlineBudgetSpent):
        deque(deadline.paced(repeat(0)), maxlen=0)


def test_nothing_runs_past_the_deadline():
    with pytest.raises(InlineBudgetSpent):
        InlineDeadline(time.monotonic() - 6, 5.0, time.monotonic() - 1, time.thread_time() + 5).look()


def test_what_was_done_before_evaluation_is_not_taken_from_it():
    spent = LoopTime(time.monotonic(), copies=False)
    while spent.seconds() < 0.02:
        pass
    deadline = spent.deadline(0.02, time.monotonic() + 60)
    deadline.look()
    assert deadline.at > time.monotonic()


def test_time_on_the_loop_is_that_of_the_processor():
    spent = LoopTime(time.monotonic(), copies=False)
    time.sleep(0.1)
    assert 0 < spent.seconds() < 0.05


def test_a_review_that_copied_many_pages_took_no_less_than_nothing():
    spent = LoopTime(time.monotonic(), copies=True)
    copied = b"x" * 8_000_000  # two thousand pages, which are counted for more than they take
    assert spent.seconds() >= 0
    assert len(copied) == 8_000_000


def test_a_server_that_has_just_started_takes_its_time():
    budget = InlineBudget()
    budget.is_warming = True
    assert budget.allowance(MINE, time.monotonic()) == WARMING_S
