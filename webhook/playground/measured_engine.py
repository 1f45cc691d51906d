"""A CEL engine that records the cost and value of each evaluation of an expression.

Another engine compiles the expressions, so their meaning is the same. Recording costs time and memory, so only the
playground uses this engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from webhook.cel import CostMeter, Engine, Program
from webhook.cel.check.reads import ReadPaths
from webhook.cel.environment import Environment
from webhook.cel.types import Type
from webhook.deadline import Deadline
from webhook.errors import EvaluationError

if TYPE_CHECKING:
    from webhook.cel.estimate.sizes import Sizes

_MOST: Final = 500
"""The maximum number of recorded evaluations. Users do not read all evaluations of an object with many templates."""
_LONGEST: Final = 200
"""The maximum length of a shown value, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEvaluation:
    """One evaluation: the expression, its cost in units of API servers, its value or error, and the paths it reads."""

    source: str
    cost: int
    value: str
    is_error: bool
    reads: tuple[str, ...]


@dataclass(slots=True, eq=False)
class MeasuredEngine:
    """The engine. `evaluations` are the first evaluations since the caller cleared the list, in order."""

    engine: Engine
    evaluations: list[MeasuredEvaluation] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the name of the engine that compiles the expressions."""
        return self.engine.name

    def compile(
        self,
        expression: str,
        environment: Environment,
        *,
        expects: tuple[Type, ...] = (),
        deadline: Deadline | None = None,
    ) -> Program:
        """Compile an expression with recorded evaluations."""
        program = self.engine.compile(expression, environment, expects=expects, deadline=deadline)
        return _MeasuredProgram(program, self)

    def record_evaluation(self, program: Program, cost: int, value: str, *, is_error: bool) -> None:
        """Record one evaluation, unless there are too many."""
        if len(self.evaluations) < _MOST:
            evaluation = MeasuredEvaluation(
                source=program.source,
                cost=cost,
                value=value,
                is_error=is_error,
                reads=tuple(_paths_as_expressions(program)),
            )
            self.evaluations.append(evaluation)


@dataclass(frozen=True, slots=True, eq=False)
class _MeasuredProgram:
    """A program that reports each evaluation to its engine."""

    program: Program
    told: MeasuredEngine

    @property
    def source(self) -> str:
        return self.program.source

    @property
    def result(self) -> Type:
        return self.program.result

    @property
    def variable_names(self) -> frozenset[str]:
        return self.program.variable_names

    @property
    def largest_size_bytes(self) -> int:
        return self.program.largest_size_bytes

    def paths_read(self) -> ReadPaths:
        return self.program.paths_read()

    def compile_now(self) -> None:
        self.program.compile_now()

    def estimated_cost(self, sizes: Sizes | None = None, *, worst: bool = False) -> tuple[int, int]:
        return self.program.estimated_cost(sizes, worst=worst)

    def api_server_panics(self) -> tuple[str, ...]:
        return self.program.api_server_panics()

    def evaluate(self, activation: Mapping[str, Any], meter: CostMeter) -> Any:
        before = meter.budget
        try:
            value = self.program.evaluate(activation, meter)
        except EvaluationError as error:
            self.told.record_evaluation(self.program, before - meter.budget, _shortened_text(str(error)), is_error=True)
            raise
        self.told.record_evaluation(self.program, before - meter.budget, _short_value(value), is_error=False)
        return value


def _paths_as_expressions(program: Program) -> Iterator[str]:
    yield from sorted(".".join(path) for path in program.paths_read().paths)


def _short_value(value: Any) -> str:
    """Return scalars as in CEL, other values as type and size."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _shortened_text(f'"{value}"')
    if isinstance(value, int | float) or value is None:
        return "null" if value is None else str(value)
    try:
        return f"{'a map' if hasattr(value, 'items') else 'a list'} of {len(value)}"
    except TypeError:
        return "an object"


def _shortened_text(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
