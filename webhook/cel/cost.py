"""What an evaluation may cost: the API server's limits and a deadline. Knows no expressions.

Cost is counted in cel-go's units, exactly along the path that was evaluated (cel-go v0.26.0 interpreter/runtimecost.go
with k8s.io/apiserver v0.36.1 pkg/cel/library/cost.go); the compiler writes the counting into each program. Sizes of
limits: k8s.io/apiserver pkg/apis/cel/config.go. Nothing in an expression can absorb BudgetExceeded.
"""

from __future__ import annotations

from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded

PER_CALL_LIMIT = 1_000_000
"""Of one expression: about 0.1 seconds of the API server."""
RUNTIME_BUDGET = 10_000_000
"""Of all expressions of one binding: about one second."""
MATCH_CONDITIONS_BUDGET = 2_500_000
"""Of all matchConditions of one policy: a quarter of a second."""

OVER_LIMIT = "operation cancelled: actual cost limit exceeded"
OVER_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"

STEP = 25_000
"""With a deadline, the clock is read after this much cost, of one expression or of many: some milliseconds of work."""


class Overrun(Exception):
    """A loop would, taken whole, go over the limit: count its iterations one by one. Never leaves Program.evaluate."""


class Meter:
    """Counts what evaluations cost and stops them. One meter serves one thread, one expression after the other.

    Args:
        limit: the most one expression may cost.
        budget: what is left for all expressions together; below zero once it was overspent.
        deadline: until when evaluation may run, or None.

    `due` is the budget at which the clock is to be read again.
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
    def exhausted(self) -> bool:
        """Whether the budget of all expressions together was overspent."""
        return self.budget < 0

    def start(self) -> int:
        """The cost up to which an expression may run before it asks again.

        Raises:
            BudgetExceeded: nothing is left, or it is too late.
        """
        budget = self.budget
        if budget < 0:
            raise BudgetExceeded(OVER_BUDGET)
        most = min(self.limit, budget)
        if self.deadline is None:
            return most
        if budget <= self.due:
            self.deadline.look()
            self.due = budget - STEP
        return min(STEP, most)

    def check(self, cost: int) -> int:
        """Ask to go on beyond the last bound; gives the next one.

        Raises:
            BudgetExceeded: the limit, the budget or the deadline has been reached.
        """
        if cost > self.limit:
            self.cost = cost
            raise BudgetExceeded(OVER_LIMIT)
        if cost > self.budget:
            self.cost = cost
            raise BudgetExceeded(OVER_BUDGET)
        if self.deadline is not None:
            self.cost = cost
            self.deadline.look()
        most = min(self.limit, self.budget)
        return most if self.deadline is None else min(most, cost + STEP)

    def probe(self, cost: int) -> int:
        """As check, for a cost that counts a loop's iterations before they ran, which may end early.

        Raises:
            Overrun: the loop's full cost is over the limit or the budget.
            BudgetExceeded: the deadline has passed.
        """
        if cost > self.limit or cost > self.budget:
            raise Overrun
        return self.check(cost)

    def settle(self) -> None:
        """Book the cost of the expression that has just run.

        Raises:
            BudgetExceeded: it went over the limit, or the budget ran out.
        """
        cost = self.cost
        self.spent += cost
        self.budget -= cost
        if cost > self.limit:
            raise BudgetExceeded(OVER_LIMIT)
        if self.budget < 0:
            raise BudgetExceeded(OVER_BUDGET)
