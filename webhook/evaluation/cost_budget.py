"""Evaluates the expressions of one policy on one request within their cost budget, with the API server's error texts.

Limits: k8s.io/apiserver v0.36 pkg/apis/cel/config.go; accounting: pkg/admission/plugin/cel/activation.go (Evaluate)
and composition.go. Variables have a separate limit. The expression that first uses a variable pays for it. Variables
are evaluated again for messages, for audit annotations and for every mutation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from weakref import ref

from webhook.cel import CostMeter
from webhook.cel.cost import PER_CALL_LIMIT, STEP
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, EvaluationError, NoDecision
from webhook.policy.compiled import Expression


class OutOfBudget(EvaluationError):
    """The error when the whole budget is spent; no further expression is evaluated."""

    def __init__(self) -> None:
        super().__init__("validation failed due to running out of cost budget, no further validation rules will be run")


class CostBudget(CostMeter):
    """The remaining cost for several expressions together, and their deadline.

    `owed` is the cost of variables that no expression has paid yet.
    """

    __slots__ = ("owed",)

    def __init__(self, budget: int, deadline: Deadline | None) -> None:  # without a call of CostMeter.__init__
        self.limit = PER_CALL_LIMIT
        self.budget = budget
        self.deadline = deadline
        self.due = budget
        self.spent = 0
        self.cost = 0
        self.owed = 0

    def covers(self, expressions: int, besides: int = 0) -> bool:
        """Return whether the budget covers this number of expressions with the greatest cost, and an additional
        cost.
        """
        return expressions * PER_CALL_LIMIT + besides <= self.budget

    def evaluate(self, expression: Expression, activation: Mapping[str, Any]) -> Any:
        """Evaluate an expression. Pay for the expression and for the variables that it is the first to use.

        Raises:
            OutOfBudget: the budget does not cover the cost.
            EvaluationError: the expression failed. The message is that of API servers and quotes the expression.
        """
        program = expression.program
        if program is None:
            raise EvaluationError(f"compilation error: {expression.error}")
        try:
            value = program.evaluate(activation, self)
        except EvaluationError as error:
            self._pay_for_variables()
            raise _same_kind(error, f"expression '{expression.source}' resulted in error: {error}") from error
        if self.owed:
            self._pay_for_variables()
        return value

    def _pay_for_variables(self) -> None:
        """Pay for the variables that the last expression was the first to use."""
        self.budget -= self.owed
        self.owed = 0
        if self.budget < 0:
            raise OutOfBudget


class LazyVariables(dict[str, Any]):
    """The variables of a policy. A variable is evaluated when first used, and its value or error is stored.

    The reference to the activation that contains the variables is weak. With a cycle of strong references, only a
    garbage collection would free the request's objects. A garbage collection stops the server for tens of milliseconds.
    """

    __slots__ = ("_activation", "_budget", "_computed", "_declared", "_errors", "_idle", "_spent")

    def __init__(self, declared: Mapping[str, Expression], activation: Mapping[str, Any], budget: CostBudget) -> None:
        super().__init__()
        self._declared = declared
        self._activation = ref(activation)
        self._budget = budget
        self._errors: dict[str, EvaluationError] = {}
        self._computed = 0
        self._spent = 0
        self._idle: list[CostMeter] = []  # meters that the next variables use again

    def max_cost_of_reevaluation(self) -> int:
        """Return the greatest cost of evaluating all variables again. A variable without an earlier cost counts with
        its limit.
        """
        return self._spent + (len(self._declared) - self._computed) * PER_CALL_LIMIT

    def __contains__(self, name: object) -> bool:
        """Return whether a variable exists. has() also evaluates the variable, so an error of the variable is an error
        of has().
        """
        if name not in self._declared:
            return False
        self[str(name)]
        return True

    def __missing__(self, name: str) -> Any:
        if name in self._errors:
            raise _same_kind(self._errors[name], str(self._errors[name]))
        program, budget = self._declared[name].program, self._budget
        if program is None:
            raise self._store_error(
                name, f'composited variable "{name}" fails to compile: {self._declared[name].error}'
            )
        meter = self._idle.pop() if self._idle else self._meter_of_variable()
        try:
            value = self[name] = program.evaluate(cast("Mapping[str, Any]", self._activation()), meter)
        except EvaluationError as error:
            if isinstance(error, BudgetExceeded) and meter.spent <= PER_CALL_LIMIT:
                raise  # no operator may absorb this error
            raise self._store_error(name, f'composited variable "{name}" fails to evaluate: {error}', error) from error
        finally:
            spent = meter.spent
            if budget.deadline is not None and spent > STEP:
                budget.due += spent  # then the clock is read before the next expression
            budget.owed += spent
            self._spent += spent
            self._computed += 1
            meter.spent = 0
            meter.budget += spent
            self._idle.append(meter)
        return value

    def _meter_of_variable(self) -> CostMeter:
        """Return a meter with the limit of one variable. The meter does not read the clock, because the budget has
        just read it.
        """
        meter = CostMeter(limit=PER_CALL_LIMIT, deadline=self._budget.deadline)
        meter.due -= STEP
        return meter

    def _store_error(self, name: str, text: str, cause: EvaluationError | None = None) -> EvaluationError:
        """Every later use of the variable raises the error."""
        stored = self._errors[name] = _same_kind(cause, text)
        return stored


def _same_kind(error: EvaluationError | None, text: str) -> EvaluationError:
    """Return an error of the same class with another text. The class shows whether an answer of the authorizer was
    unknown.
    """
    return NoDecision(text) if isinstance(error, NoDecision) else EvaluationError(text)
