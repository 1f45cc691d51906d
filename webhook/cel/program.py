"""Compiled expressions and the engines that compile them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from webhook.cel.check.checked import CheckedTree, parse_and_check
from webhook.cel.check.folding import fold_constants
from webhook.cel.check.reads import ReadPaths, paths_read_by
from webhook.cel.compile.compiler import CompiledFunction, compile_tree
from webhook.cel.cost import CostMeter, LoopExceedsLimit
from webhook.cel.environment import Environment
from webhook.cel.library.patterns import PatternTable
from webhook.cel.syntax.lexer import tokenize
from webhook.cel.types import Type
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, CompileError, EvaluationError, EvaluationPanic

if TYPE_CHECKING:
    from webhook.cel.estimate.sizes import Sizes


_CHARACTER_S = 5e-6
"""Seconds to tokenize one character, including characters outside tokens."""
_TOKEN_S = 4e-5
"""Seconds to parse and check a token of the slowest expressions, repeated `1<2&&` and `'a'+`. Generating the code of
such a token takes as long again."""
_CHARACTER_BYTES = 250


def require_time_to_compile(expression: str, deadline: Deadline) -> None:
    """Check that the deadline leaves time to compile a user's expression. The compilation cannot be interrupted.

    Raises:
        Exception: the deadline leaves no time.
    """
    deadline.require_time_for_call(len(expression) * _CHARACTER_S)
    deadline.require_time_for_call(seconds_to_check(expression))


def seconds_to_check(expression: str) -> float:
    """Return the seconds that parsing and checking an expression may take. Generating the code takes as long again."""
    return len(tokenize(expression).kinds) * _TOKEN_S


class Program(Protocol):
    """A compiled expression. It is immutable, so any number of threads may evaluate it."""

    @property
    def source(self) -> str: ...

    @property
    def result(self) -> Type:
        """Return the static type of the value."""
        ...

    @property
    def variable_names(self) -> frozenset[str]:
        """Return the names of the variables that the expression reads."""
        ...

    def paths_read(self) -> ReadPaths:
        """Return the variables and paths that the expression reads (reads.py)."""
        ...

    @property
    def largest_size_bytes(self) -> int:
        """Return an upper bound of the memory of the program with its constant patterns."""
        ...

    def compile_now(self) -> None:
        """Generate the code now, not at the first evaluation."""
        ...

    def estimated_cost(self, sizes: Sizes | None = None, *, worst: bool = False) -> tuple[int, int]:
        """Return the least and the most cost of an evaluation, given known sizes of inputs (estimate.py)."""
        ...

    def api_server_panics(self) -> tuple[str, ...]:
        """Return the parts with which kube-apiserver panics when the expression is stored (check/crashes.py)."""
        ...

    def evaluate(self, activation: Mapping[str, Any], meter: CostMeter) -> Any:
        """Return the value for these variables.

        Raises:
            EvaluationError: the expression failed.
            BudgetExceeded: the meter stopped the evaluation.
        """
        ...


class Engine(Protocol):
    """Compiles expressions, and may cache them. `name` is the value of `--cel-engine` for this engine."""

    def __hash__(self) -> int: ...

    @property
    def name(self) -> str: ...

    def compile(
        self,
        expression: str,
        environment: Environment,
        *,
        expects: tuple[Type, ...] = (),
        deadline: Deadline | None = None,
    ) -> Program:
        """Compile an expression.

        Args:
            expression: the text of the expression.
            environment: the variables, functions and types that the expression may use.
            expects: the allowed types of the result; empty allows all.
            deadline: the deadline of the review, for an expression of a user; None for an expression of a policy.

        Raises:
            CompileError: the expression has issues, all of which the error lists.
            TooLargeToCompile: compiling needs too much time or memory.
            Exception: the deadline leaves no time.
        """
        ...


class CompiledProgram:
    """An expression as one Python function (compiler.py), generated before the first evaluation.

    Parsing and checking an expression finds all its mistakes. The function is generated later: this takes about five
    times as long, and a replay of one review evaluates few policies.
    """

    __slots__ = (
        "_checked",
        "_environment",
        "_exact",
        "_patterns",
        "_reads",
        "_run",
        "result",
        "source",
        "variable_names",
    )

    def __init__(
        self, source: str, environment: Environment, expects: tuple[Type, ...], deadline: Deadline | None = None
    ) -> None:
        self._patterns = PatternTable(deadline)
        checked = parse_and_check(source, environment, expects, self._patterns)
        self.source = source
        self.result = checked.result
        self.variable_names = checked.names
        self._environment = environment
        fold_constants(checked, source)  # finds mistakes in constants
        self._checked: CheckedTree | None = checked
        self._run: CompiledFunction | None = None
        self._exact: CompiledFunction | None = None
        self._reads: ReadPaths | None = None

    @property
    def largest_size_bytes(self) -> int:
        return len(self.source) * _CHARACTER_BYTES + self._patterns.largest_size_bytes

    def _parse_and_check(self) -> CheckedTree:
        return parse_and_check(self.source, self._environment, patterns=self._patterns)

    def compile_now(self) -> None:
        with suppress(EvaluationError):  # every evaluation reports this error
            self._generate_function()

    def _generate_function(self) -> CompiledFunction:
        # two threads may both generate the function
        checked = self._checked
        if self._run is None:
            assert checked is not None
            try:
                self._run = compile_tree(checked, self.source)
            except CompileError as error:
                raise EvaluationError(str(error)) from None
        self._checked = None
        return self._run

    def paths_read(self) -> ReadPaths:
        if self._reads is None:
            self._reads = paths_read_by(self._checked or self._parse_and_check())
        return self._reads

    def estimated_cost(self, sizes: Sizes | None = None, *, worst: bool = False) -> tuple[int, int]:
        """Return the least and the most cost of an evaluation, given known sizes of inputs (estimate.py)."""
        from webhook.cel.estimate.estimate import (
            estimate_cost,  # imported here because only `policies check` needs it
        )

        cost = estimate_cost(self._checked or self._parse_and_check(), sizes, worst=worst)
        return cost.least, cost.most

    def api_server_panics(self) -> tuple[str, ...]:
        """Return the parts with which kube-apiserver panics when the expression is stored (check/crashes.py)."""
        from webhook.cel.check.crashes import find_api_server_panics  # only `policies check` needs this import

        return tuple(find_api_server_panics(self._checked or self._parse_and_check(), self.source))

    def evaluate(self, activation: Mapping[str, Any], meter: CostMeter) -> Any:
        """Return the value; the activation maps each variable to plain JSON or a CEL value.

        Raises:
            EvaluationError: the expression failed.
            BudgetExceeded: the meter stopped the evaluation, or the memory is used up.
        """
        run = self._run or self._generate_function()
        limit = meter.limit
        if meter.deadline is not None or meter.budget < limit:
            limit = meter.start_expression(run.step)
        try:
            try:
                value = run(activation, limit, meter)
            except LoopExceedsLimit:
                value = self._evaluate_with_exact_cost(activation, limit, meter)
        except EvaluationError:
            meter.add_last_cost_to_total()
            raise
        except RecursionError:
            raise EvaluationError("the object is nested too deeply") from None
        except MemoryError:
            raise BudgetExceeded("out of memory") from None
        except (ArithmeticError, ValueError, LookupError, TypeError, AttributeError) as error:
            # a bug in a function; cel-go also turns a panic into an error of this expression
            raise EvaluationPanic(str(error)) from error
        cost = meter.cost
        if cost > limit:
            meter.add_last_cost_to_total()
        else:
            meter.spent += cost
            meter.budget -= cost
        return value

    def _evaluate_with_exact_cost(self, activation: Mapping[str, Any], limit: int, meter: CostMeter) -> Any:
        # this function counts each iteration, for costs near the limit; two threads may both generate it
        if self._exact is None:
            if meter.deadline is not None:
                require_time_to_compile(self.source, meter.deadline)
            self._exact = compile_tree(self._parse_and_check(), self.source, exact=True)
        return self._exact(activation, limit, meter)


class CompiledEngine:
    """The default engine: compiles expressions to Python functions."""

    name = "compiled"

    def compile(
        self,
        expression: str,
        environment: Environment,
        *,
        expects: tuple[Type, ...] = (),
        deadline: Deadline | None = None,
    ) -> CompiledProgram:
        if deadline is not None:
            require_time_to_compile(expression, deadline)
        return CompiledProgram(expression, environment, expects, deadline)


@lru_cache(maxsize=1)
def compiled_engine() -> CompiledEngine:
    """Return the default engine."""
    return CompiledEngine()
