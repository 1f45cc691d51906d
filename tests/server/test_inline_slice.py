"""How long one review may run on the loop."""

from __future__ import annotations

import time
from collections import deque
from itertools import repeat
from math import inf

import pytest

from webhook.deadline import Deadline
from webhook.errors import InlineBudgetSpent
from webhook.server.scheduler import _REMEMBERED_S, HEAVY_S, SMALL_BYTES, InlineTimeSlice, Overruns
from webhook.server.usage import Tenant

ANN, BOB, SIZE = Tenant("team-a", "ann"), Tenant("team-b", "bob"), 4 * SMALL_BYTES


def test_work_uses_up_a_slice():
    used = InlineTimeSlice()
    used.limit_evaluation(0.01, inf)
    with pytest.raises(InlineBudgetSpent):
        deque(used.items_with_clock_checks(repeat(0)), maxlen=0)
    assert used.spent() >= 0.01


def test_the_time_that_a_thread_waits_is_not_charged():
    used = InlineTimeSlice()
    used.limit_evaluation(0.05, inf)
    time.sleep(0.1)
    used.check_clock()
    assert used.spent() < 0.05


@pytest.mark.parametrize("ask", [InlineTimeSlice.require_time_for_call, InlineTimeSlice.check_clock_before_slow_call])
def test_a_call_that_may_take_too_long_is_not_started(ask):
    used = InlineTimeSlice()
    used.limit_evaluation(0.05, inf)
    time.sleep(0.1)
    ask(used, HEAVY_S)
    with pytest.raises(InlineBudgetSpent):
        ask(used, 0.06)


def test_a_long_call_without_interruption_always_goes_to_a_worker():
    used = InlineTimeSlice()
    used.limit_evaluation(1.0, inf)
    used.check_clock_before_slow_call(1.1 * HEAVY_S)
    with pytest.raises(InlineBudgetSpent):
        used.require_time_for_call(1.1 * HEAVY_S)


def test_a_call_that_would_end_too_late_is_not_started():
    used = InlineTimeSlice()
    used.limit_evaluation(0.05, time.monotonic() + 0.01)
    with pytest.raises(InlineBudgetSpent):
        used.require_time_for_call(0.02)


def test_outside_the_event_loop_a_slow_call_is_not_refused():
    Deadline(time.monotonic() + 1).check_clock_before_slow_call(5)


def test_nothing_runs_past_the_deadline():
    used = InlineTimeSlice()
    used.limit_evaluation(0.01, time.monotonic() + 0.02)
    time.sleep(0.03)
    with pytest.raises(InlineBudgetSpent):
        used.check_clock()


def test_a_slice_that_is_not_used_up_ends_at_the_deadline():
    used = InlineTimeSlice()
    used.limit_evaluation(1.0, time.monotonic() + 0.01)
    time.sleep(0.02)
    with pytest.raises(InlineBudgetSpent):
        used.check_clock()


def test_time_before_a_slice_is_not_charged_to_it():
    used = InlineTimeSlice()
    while used.spent() < 0.02:
        pass
    used.limit_evaluation(0.02, inf)
    used.check_clock()
    assert used.at > time.monotonic()


def overrun(*times: tuple[int, float]) -> Overruns:
    """Return a record of reviews by ann that used up their slice. Each pair has the size in bytes and the time."""
    overruns = Overruns()
    for size, now in times:
        overruns.add(ANN, size, now)
    return overruns


def test_a_review_that_overran_twice_is_expected_to_overrun():
    overruns = overrun((SIZE, 0.0), (SIZE, 0.5))
    assert overruns.expects(ANN, SIZE, 1.0)
    assert not overruns.expects(BOB, SIZE, 1.0)
    overruns.add(ANN, SIZE // 8 * 3, 1.0)
    assert overruns.expects(ANN, SIZE // 8 * 3, 2.0)


def test_a_review_of_half_the_size_is_also_expected_to_overrun():
    overruns = overrun((SIZE, 0.0), (SIZE, 0.5))
    assert overruns.expects(ANN, SIZE // 2, 1.0)
    assert not overruns.expects(ANN, SIZE // 2 - 1, 1.0)


def test_one_overrun_does_not_count():
    assert not overrun((SIZE, 0.0)).expects(ANN, SIZE, 1.0)
    assert not overrun((SIZE, 0.0), (SIZE, _REMEMBERED_S)).expects(ANN, SIZE, _REMEMBERED_S)


def test_an_overrun_does_not_count_if_the_next_review_of_this_size_is_in_time():
    overruns = overrun((SIZE, 0.0))
    overruns.record_review_in_time(ANN, SIZE)
    overruns.add(ANN, SIZE, 1.0)
    assert not overruns.expects(ANN, SIZE, 1.0)


def test_a_smaller_review_in_time_does_not_count_for_larger_reviews():
    overruns = overrun((SIZE, 0.0))
    overruns.record_review_in_time(ANN, SIZE - 1)
    overruns.add(ANN, SIZE, 1.0)
    assert overruns.expects(ANN, SIZE, 1.0)


def test_a_size_that_overran_is_tried_on_the_loop_again_after_a_while():
    overruns = overrun((SIZE, 0.0), (SIZE, 1.0), (SIZE, _REMEMBERED_S / 2))
    assert not overruns.expects(ANN, SIZE, 1.0 + _REMEMBERED_S)


def test_a_review_that_a_worker_finds_quick_is_tried_on_the_loop_again():
    overruns = overrun((SIZE, 0.0), (SIZE, 0.5))
    overruns.record_worker_time(ANN, HEAVY_S)
    assert overruns.expects(ANN, SIZE, 1.0)
    overruns.record_worker_time(ANN, HEAVY_S / 10)
    assert not overruns.expects(ANN, SIZE, 1.0)
