"""The cost meter: its limit, its budget and its deadline."""

import time

import pytest

from webhook.cel.cost import OVER_BUDGET, OVER_LIMIT, STEP, CostMeter, LoopExceedsLimit
from webhook.deadline import OVER_TIME, Deadline
from webhook.errors import BudgetExceeded


def test_a_meter_starts_with_the_api_servers_limits():
    meter = CostMeter()
    assert (meter.limit, meter.budget, meter.deadline, meter.spent) == (1_000_000, 10_000_000, None, 0)
    assert meter.start_expression(STEP) == 1_000_000


def test_the_smaller_of_limit_and_budget_bounds_a_run():
    assert CostMeter(limit=5, budget=100).start_expression(STEP) == 5
    assert CostMeter(limit=100, budget=5).start_expression(STEP) == 5


def test_a_cost_above_the_limit_is_charged_and_refused():
    meter = CostMeter(limit=10)
    meter.cost = 11
    with pytest.raises(BudgetExceeded, match=OVER_LIMIT):
        meter.add_last_cost_to_total()
    assert meter.spent == 11


def test_an_overspent_budget_refuses_everything_after():
    meter = CostMeter(budget=10)
    meter.cost = 11
    with pytest.raises(BudgetExceeded, match=OVER_BUDGET):
        meter.add_last_cost_to_total()
    assert meter.budget < 0
    with pytest.raises(BudgetExceeded, match=OVER_BUDGET):
        meter.start_expression(STEP)


@pytest.mark.parametrize(("limit", "budget", "text"), [(5, 100, OVER_LIMIT), (100, 5, OVER_BUDGET)])
def test_a_check_reports_which_bound_was_reached(limit, budget, text):
    meter = CostMeter(limit=limit, budget=budget)
    assert meter.check(5, STEP) == 5
    with pytest.raises(BudgetExceeded, match=text):
        meter.check(6, STEP)
    assert meter.cost == 6


def test_a_cost_counted_in_advance_needs_exact_counting():
    with pytest.raises(LoopExceedsLimit):
        CostMeter(limit=5).check_whole_loop_cost(6, STEP)
    assert CostMeter(limit=5).check_whole_loop_cost(5, STEP) == 5


def test_a_deadline_is_checked_in_steps():
    meter = CostMeter(deadline=Deadline(time.monotonic() + 60))
    assert meter.start_expression(STEP) == 1_000
    assert meter.check(1_001, STEP) == 2_001
    assert CostMeter(limit=7, deadline=Deadline(time.monotonic() + 60)).start_expression(STEP) == 7
    meter.deadline = Deadline(time.monotonic() - 1)
    assert meter.start_expression(STEP) == 1_000  # the clock was read when the first expression began
    meter.cost = 1_000
    meter.add_last_cost_to_total()
    with pytest.raises(BudgetExceeded, match=OVER_TIME):
        meter.start_expression(STEP)
    with pytest.raises(BudgetExceeded, match=OVER_TIME):
        meter.check(1, STEP)
