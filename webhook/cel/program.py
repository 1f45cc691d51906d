"""Compiled expressions and the engines that make them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

from webhook.cel.checker import read
from webhook.cel.compiler import compile_tree
from webhook.cel.cost import Meter, Overrun
from webhook.cel.environment import Environment
from webhook.cel.types import Type
from webhook.errors import BudgetExceeded, EvaluationError


class Program(Protocol):
    """A compiled expression: immutable, and evaluated by any number of threads at once."""

    @property
    def source(self) -> str:
        """The text."""
        ...

    @property
    def result(self) -> Type:
        """The static type of the value."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """The variables it reads."""
        ...

    def evaluate(self, activation: Mapping[str, Any], meter: Meter) -> Any:
        """The value for these variables.

        Raises:
            EvaluationError: the expression failed; BudgetExceeded when the meter stopped it.
        """
        ...


class Engine(Protocol):
    """Something that compiles expressions. `name` is what `--cel-engine` calls it."""

    @property
    def name(self) -> str:
        """The name."""
        ...

    def compile(self, expression: str, environment: Environment, *, expects: tuple[Type, ...] = ()) -> Program:
        """Compile an expression whose result must be of one of the expected types, if any are given.

        Raises:
            CompileError: with all issues.
        """
        ...


class CompiledProgram:
    """An expression as one Python function (compiler.py)."""

    __slots__ = ("_environment", "_exact", "_run", "names", "result", "source")

    def __init__(self, source: str, environment: Environment, expects: tuple[Type, ...]) -> None:
        checked = read(source, environment, expects)
        self.source = source
        self.result = checked.result
        self.names = checked.names
        self._environment = environment
        self._run = compile_tree(checked, source)
        self._exact: Any = None

    def evaluate(self, activation: Mapping[str, Any], meter: Meter) -> Any:
        """The value for these variables. The activation maps each variable to plain JSON or a CEL value.

        Raises:
            EvaluationError: the expression failed; BudgetExceeded when the meter stopped it.
        """
        limit = meter.limit
        if meter.deadline is not None or meter.budget < limit:
            limit = meter.start()
        try:
            try:
                value = self._run(activation, limit, meter)
            except Overrun:
                value = self._evaluate_exactly(activation, limit, meter)
        except EvaluationError:
            meter.settle()
            raise
        except RecursionError:
            raise EvaluationError("the object is nested too deeply") from None
        except MemoryError:
            raise BudgetExceeded("out of memory") from None
        cost = meter.cost
        if cost > limit:
            meter.settle()
        else:
            meter.spent += cost
            meter.budget -= cost
        return value

    def _evaluate_exactly(self, activation: Mapping[str, Any], limit: int, meter: Meter) -> Any:
        """Near the limit, loops count each iteration. Threads that meet here compile twice; either result serves."""
        if self._exact is None:
            self._exact = compile_tree(read(self.source, self._environment), self.source, exact=True)
        return self._exact(activation, limit, meter)


class CompiledEngine:
    """The default engine: expressions become Python functions."""

    name = "compiled"

    def compile(self, expression: str, environment: Environment, *, expects: tuple[Type, ...] = ()) -> CompiledProgram:
        """Compile an expression.

        Raises:
            CompileError: with all issues.
        """
        return CompiledProgram(expression, environment, expects)


@lru_cache(maxsize=1)
def compiled_engine() -> CompiledEngine:
    """The default engine."""
    return CompiledEngine()
