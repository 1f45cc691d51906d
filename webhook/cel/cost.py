"""The limits of an evaluation: the API server's cost limits and a deadline.

cost    in cel-go's units, along the evaluated path (cel-go v0.26.0 interpreter/runtimecost.go with k8s.io/apiserver
        v0.36.1 pkg/cel/library/cost.go). Each program counts its cost, which is the same on every machine. Limits:
        k8s.io/apiserver pkg/apis/cel/config.go.
work    the number of visited elements of lists and maps. It is charged to the Deadline of the review
        (webhook/deadline.py). Some calls cost nearly nothing, and visit many elements: `indexOf` over short texts,
        `isURL` of a long text, `==` of two objects.

A program compares its cost with a bound, and calls `check` at the bound. Without a deadline, the bound is the cost
limit. With a deadline, `check` reads the clock, and sets the next bound. The next bound is at most one `step` of the
program above the cost. A step is about a hundred iterations of the program's loops, at any depth (compiler.LEAST_STEP).
So a deadline adds no comparison. A loop that alone exceeds the step runs over chunks of a hundred elements
(ClockCheckingIterator). A function that walks a value in one call charges the Deadline itself (`metered` in
library/declaration.py). Between expressions the clock is read after every STEP of cost.

Nothing in an expression absorbs BudgetExceeded or another exception of a Deadline: FailurePlaces.cost_to_refund raises
BudgetExceeded again, and the other exceptions are not in failure.ERRORS. Costs are added to the total, and caches are
filled, only after an evaluation. So an evaluation that the deadline interrupts changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from operator import length_hint
from typing import Any

from webhook.deadline import STEP as ITERATIONS
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded

PER_CALL_LIMIT = 1_000_000
"""The cost limit of one expression: about 0.1 seconds of the API server."""
RUNTIME_BUDGET = 10_000_000
"""The cost limit of all expressions of one binding: about one second."""
MATCH_CONDITIONS_BUDGET = 2_500_000
"""The cost limit of all matchConditions of one policy: a quarter of a second."""

OVER_LIMIT = "operation cancelled: actual cost limit exceeded"
OVER_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"

STEP = 1_000
"""The cost of expressions between two readings of the clock: about a hundred ordinary iterations."""


class LoopExceedsLimit(Exception):
    """A whole loop would exceed the limit. Program.evaluate catches this exception, and counts the iterations one by
    one.
    """


class CostMeter:
    """Counts the cost of evaluations, and stops evaluations above a limit. A meter is for one thread, and for one
    expression at a time.

    Args:
        limit: the most cost of one expression.
        budget: the remaining cost of all expressions; below zero if it was overspent.
        deadline: the deadline of the evaluations, or None.

    Attributes:
        due: the remaining budget at which the clock is read again.
        cost: the cost of the last expression.
        spent: the cost of all expressions.
    """

    __slots__ = ("budget", "cost", "deadline", "due", "limit", "spent")

    def __init__(
        self, limit: int = PER_CALL_LIMIT, budget: int = RUNTIME_BUDGET, deadline: Deadline | None = None
    ) -> None:
        self.limit = limit
        self.budget = budget
        self.deadline = deadline
        self.due = budget
        self.spent = 0
        self.cost = 0

    def start_expression(self, step: int) -> int:
        """Begin an expression. Return the cost at which the expression must call `check`.

        Raises:
            BudgetExceeded: the budget is used up, or the deadline has passed.
        """
        budget = self.budget
        if budget < 0:
            raise BudgetExceeded(OVER_BUDGET)
        limit = budget if budget < self.limit else self.limit  # noqa: FURB136 - `min` would double the time
        if self.deadline is None:
            return limit
        if budget <= self.due:
            self.deadline.check_clock()
            self.due = budget - STEP
        return limit if limit < step else step  # noqa: FURB136

    def check(self, cost: int, step: int) -> int:
        """Stop an expression that exceeds a limit, or return the cost of its next check.

        Raises:
            BudgetExceeded: the limit, the budget or the deadline has been reached.
        """
        limit, budget, deadline = self.limit, self.budget, self.deadline
        if cost > limit:
            self.cost = cost
            raise BudgetExceeded(OVER_LIMIT)
        if cost > budget:
            self.cost = cost
            raise BudgetExceeded(OVER_BUDGET)
        end = min(budget, limit)
        if deadline is None:
            return end
        self.cost = cost
        deadline.check_clock()
        return min(end, cost + step)

    def check_whole_loop_cost(self, cost: int, step: int) -> int:
        """Check the cost of a whole loop before it runs; return the cost of the next check.

        Raises:
            LoopExceedsLimit: the loop's full cost exceeds the limit or the budget.
            BudgetExceeded: the deadline has passed.
        """
        limit, budget, deadline = self.limit, self.budget, self.deadline
        if cost > limit or cost > budget:
            raise LoopExceedsLimit
        end = min(budget, limit)
        if deadline is None:
            return end
        self.cost = cost
        deadline.check_clock()
        return min(end, cost + step)

    def iterate_with_clock_checks(self, elements: Iterable[Any]) -> Iterable[Any]:
        """Return the elements for a loop; for many elements, an iterator that reads the clock before each hundred
        elements.
        """
        if self.deadline is None or length_hint(elements, ITERATIONS + 1) <= ITERATIONS:
            return elements
        return ClockCheckingIterator(elements, self.deadline)

    def add_last_cost_to_total(self) -> None:
        """Add the cost of the expression that has just run.

        Raises:
            BudgetExceeded: the expression exceeded the limit, or the budget is used up.
        """
        cost = self.cost
        self.spent += cost
        self.budget -= cost
        if cost > self.limit:
            raise BudgetExceeded(OVER_LIMIT)
        if self.budget < 0:
            raise BudgetExceeded(OVER_BUDGET)


class ClockCheckingIterator:
    """Iterates over elements, and reads the clock before each hundred elements.

    If a loop ends early, generated code calls `__length_hint__` for the number of remaining elements. The iterator of a
    list has this method too.
    """

    __slots__ = ("_chunk", "_deadline", "_left", "_source")

    def __init__(self, source: Iterable[Any], deadline: Deadline) -> None:
        self._left = length_hint(source)
        self._source = iter(source)
        self._deadline = deadline
        self._chunk: Iterator[Any] = iter(())

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._chunks_after_clock_checks())

    def _chunks_after_clock_checks(self) -> Iterator[Iterator[Any]]:
        while chunk := list(islice(self._source, ITERATIONS)):
            self._deadline.check_clock()
            self._left -= len(chunk)
            self._chunk = iter(chunk)
            yield self._chunk

    def __length_hint__(self) -> int:
        """Return the number of remaining elements. The number is exact for a source of known length."""
        return self._left + length_hint(self._chunk)
