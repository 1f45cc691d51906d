"""How long the loop may work on one review: much on a quiet server, little on one that is attacked."""

import time
from collections import deque
from itertools import repeat

import pytest

from webhook.errors import InlineBudgetSpent
from webhook.server.inline_budget import LEAST_S, MOST_S, SHARE, WARMING_S, InlineBudget, InlineDeadline


def test_slow_reviews_share_a_part_of_the_loops_time():
    budget, now = InlineBudget(), time.monotonic()
    assert budget.allowance(now) == MOST_S
    for _ in range(10):
        budget.took(MOST_S)
    assert budget.allowance(now) == LEAST_S
    assert budget.allowance(now + MOST_S / SHARE / 2) == pytest.approx(MOST_S / 2)
    assert budget.allowance(now + 3600) == MOST_S


def test_ordinary_reviews_cost_nothing():
    budget, now = InlineBudget(), time.monotonic()
    for _ in range(10_000):
        budget.took(LEAST_S)
    assert budget.allowance(now) == MOST_S


def test_the_time_that_a_thread_waits_is_not_charged():
    now = time.monotonic()
    waited = InlineDeadline(now - 5, 5.0, now + 60)  # five seconds went by, of which it worked for none
    waited.look()
    assert waited.at == pytest.approx(time.monotonic() + 5, abs=1)
    assert waited.used(5.0) < 1


def test_work_is():
    deadline = InlineDeadline(time.monotonic(), 0.01, time.monotonic() + 60)
    with pytest.raises(InlineBudgetSpent):
        deque(deadline.paced(repeat(0)), maxlen=0)
    assert deadline.used(0.01) >= 0.01


def test_nothing_runs_past_the_deadline():
    with pytest.raises(InlineBudgetSpent):
        InlineDeadline(time.monotonic() - 6, 5.0, time.monotonic() - 1).look()


def test_a_server_that_has_just_started_takes_its_time():
    budget = InlineBudget()
    budget.is_warming = True
    assert budget.allowance(time.monotonic()) == WARMING_S
