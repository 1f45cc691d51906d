"""How long a review may run: work is charged, and the clock is read after some work."""

import math
import time

import pytest

from webhook.deadline import CHARACTERS, STEP, Deadline
from webhook.errors import BudgetExceeded, InlineBudgetSpent


def test_the_clock_is_read_after_each_step_of_work():
    late = Deadline(time.monotonic() - 1)
    late.spend(STEP)
    with pytest.raises(BudgetExceeded, match="operation interrupted"):
        late.spend(1)
    assert late.left == STEP


def test_too_much_work_is_refused_before_it_starts():
    with pytest.raises(BudgetExceeded):
        Deadline(time.monotonic() - 1).spend(10 * STEP)


def test_texts_are_charged_by_their_length():
    deadline = Deadline()
    deadline.spend_text("x" * (3 * CHARACTERS))
    assert deadline.left == STEP - 3
    deadline.spend_text(b"short")
    assert deadline.left == STEP - 3


def test_paced_items_end_with_the_time():
    late = Deadline(time.monotonic() - 1)
    seen = []
    with pytest.raises(BudgetExceeded):
        seen.extend(late.items_with_clock_checks(range(10 * STEP)))
    assert seen == list(range(STEP))
    assert list(Deadline().items_with_clock_checks(iter("abc"))) == ["a", "b", "c"]


def test_a_deadline_can_raise_another_exception():
    with pytest.raises(InlineBudgetSpent):
        Deadline(0.0, InlineBudgetSpent).check_clock()


def test_a_deadline_without_a_time_never_passes():
    assert Deadline().at == math.inf
    Deadline().spend(10**9)


def test_a_deadline_of_processor_time_does_not_count_waiting():
    on_a_busy_machine = Deadline(time.process_time() + 0.2, clock=time.process_time)
    time.sleep(0.3)
    on_a_busy_machine.check_clock()
    on_a_busy_machine.at -= 1
    with pytest.raises(BudgetExceeded, match="operation interrupted"):
        on_a_busy_machine.check_clock()
