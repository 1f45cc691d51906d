"""The limits of an evaluation: the API server's cost limits and a deadline.

Two things are counted, and neither replaces the other:

cost    in cel-go's units, exactly along the path that was evaluated (cel-go v0.26.0 interpreter/runtimecost.go with
        k8s.io/apiserver v0.36.1 pkg/cel/library/cost.go); the compiler writes the counting into each program. The
        cost is the same on every machine. Sizes of limits: k8s.io/apiserver pkg/apis/cel/config.go.
work    the parts of values that are walked, charged to the Deadline of the review (webhook/deadline.py). The Deadline
        reads the clock. Some calls cost next to nothing and walk far: `indexOf` over short texts, `isURL` of a long
        text, `==` of two objects.

Programs check the clock when their cost reaches a bound. They compare their cost with this bound in any case, so the
check costs ordinary evaluations nothing. With a deadline, that bound is never further away than a program's `step`:
about a hundred iterations of its loops, at any depth of nesting (compiler.LEAST_STEP). A loop that alone exceeds this
step runs over chunks of a hundred elements (ClockCheckingIterator). A function that walks a value in one call charges
the walk itself, and gets the Deadline for this (library/declaration.py, `metered`). Between expressions the clock is
read after every STEP of cost.

Nothing in an expression can absorb BudgetExceeded, or another exception of a Deadline: generated code handles only
failure.ERRORS. An interrupted evaluation leaves nothing behind: costs are booked and caches are filled only after an
evaluation.
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
"""The clock is read after this cost of one or several expressions: about a hundred ordinary iterations of a loop."""


class LoopExceedsLimit(Exception):
    """Raised when a whole loop would exceed the limit: its iterations are then counted one by one.

    Never leaves Program.evaluate.
    """


class CostMeter:
    """Counts the cost of evaluations and stops them. One meter serves one thread, one expression after the other.

    Args:
        limit: the most that one expression may cost.
        budget: the remaining cost for all expressions together; below zero if it was overspent.
        deadline: the deadline of the evaluations, or None.

    `due` is the remaining budget at which the clock is read again.
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

    @property
    def is_exhausted(self) -> bool:
        """Return whether the expressions together have exceeded the budget."""
        return self.budget < 0

    def start_expression(self, step: int) -> int:
        """Begin an expression, and return the cost at which it must first call check(), and then again after every
        `step`.

        Raises:
            BudgetExceeded: the budget is used up, or the deadline has passed.
        """
        budget = self.budget
        if budget < 0:
            raise BudgetExceeded(OVER_BUDGET)
        most = budget if budget < self.limit else self.limit  # noqa: FURB136 - `min` takes as long as all the rest
        if self.deadline is None:
            return most
        if budget <= self.due:
            self.deadline.check_clock()
            self.due = budget - STEP
        return most if most < step else step  # noqa: FURB136

    def check(self, cost: int, step: int) -> int:
        """Stop an expression that exceeds a limit, or return the cost at which the expression must check again.

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
        most = min(budget, limit)
        if deadline is None:
            return most
        self.cost = cost
        deadline.check_clock()
        return min(most, cost + step)

    def check_whole_loop_cost(self, cost: int, step: int) -> int:
        """Check the cost of a whole loop before it runs; return the cost at which to check again, as `check` does.

        Raises:
            LoopExceedsLimit: the loop's full cost is over the limit or the budget.
            BudgetExceeded: the deadline has passed.
        """
        limit, budget, deadline = self.limit, self.budget, self.deadline
        if cost > limit or cost > budget:
            raise LoopExceedsLimit
        most = min(budget, limit)
        if deadline is None:
            return most
        self.cost = cost
        deadline.check_clock()
        return min(most, cost + step)

    def iterate_with_clock_checks(self, elements: Iterable[Any]) -> Iterable[Any]:
        """Return the elements for a loop; for many elements, an iterator that reads the clock after every hundred."""
        if self.deadline is None or length_hint(elements, ITERATIONS + 1) <= ITERATIONS:
            return elements
        return ClockCheckingIterator(elements, self.deadline)

    def add_last_cost_to_total(self) -> None:
        """Add the cost of the expression that has just run to the total.

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
    """Iterates over elements and reads the clock before each hundred of them.

    Between two reads of the clock, a loop runs over the iterator of a list as usual. A loop that ends early asks for
    the number of remaining elements, as with the iterator of a list.
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
        """Return how many elements are left; exact if the length of the source is known."""
        return self._left + length_hint(self._chunk)
