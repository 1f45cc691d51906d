"""An engine that evaluates with cel-python, behind the same interface as the compiled engine.

Tests and `--cel-engine celpy` compare the two engines. This engine is two thousand times slower. No other file imports
celpy. This module adds what cel-python 0.5 lacks: static types (so that both engines refuse the same policies) and the
API server's costs.

- Refused when an expression is compiled: optionals, two-variable macros, map with a filter, Object{…}, and all
  Kubernetes and extension libraries.
- Wrong answers: true counts as 1, list[-1] is the last element, has() hides errors, and numbers of two types cannot be
  compared.

cel-python's transpiling runner stores variables in module globals, so only the interpreting runner is used.
Environments of cel-python are not thread-safe, so each thread has an environment. cel-python's `duration` needs
exponential time for hostile texts, so _parse_duration replaces it. cel-python cannot check the deadline. So the
deadline is checked before an evaluation, and a server kills a stuck worker.
"""

from __future__ import annotations

import datetime as dt
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from webhook.cel.check.checked import CheckedTree, parse_and_check
from webhook.cel.check.reads import ReadPaths
from webhook.cel.cost import CostMeter
from webhook.cel.environment import Environment
from webhook.cel.estimate.sizes import Sizes
from webhook.cel.library import standard
from webhook.cel.library.moments import parse_duration
from webhook.cel.program import compiled_engine, require_time_to_compile
from webhook.cel.syntax.tree import Call, ListNode, Macro, MapNode, Node, Select, StructNode, children
from webhook.cel.types import Type
from webhook.cel.values import MAPS, NANOSECONDS, Duration, Timestamp, TypeValue, UInt, make_map, map_items, type_name
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, CompileError, CompileIssue, EvaluationError, ReviewPaused

MACROS = frozenset(("all", "exists", "exists_one", "map", "filter"))
"""cel-python's macros, with one variable and one expression."""

_STANDARD = frozenset(overload.name for overload in standard.FUNCTIONS)

_TYPES = {
    "BoolType": "bool",
    "IntType": "int",
    "UintType": "uint",
    "DoubleType": "double",
    "StringType": "string",
    "BytesType": "bytes",
    "ListType": "list",
    "MapType": "map",
    "NoneType": "null_type",
    "TimestampType": "google.protobuf.Timestamp",
    "DurationType": "google.protobuf.Duration",
    "TypeType": "type",
}

_MESSAGES = (
    ("no such member in mapping: ", "no such key: "),
    ("found no matching overload", "no such overload"),
    ("divide by zero", "division by zero"),
    ("modulus or divide by zero", "division by zero"),
    ("return error for overflow", "integer overflow"),
    ("invalid_argument", "index out of bounds"),
)


# ---- what cel-python cannot do


def unsupported_parts(checked: CheckedTree) -> list[tuple[int, str]]:
    """Return the offset and the name of each part that cel-python cannot evaluate, in order."""
    names = []
    waiting = [checked.node]
    while waiting:
        node = waiting.pop()
        if feature := _unsupported_feature(node, checked):
            names.append((node.offset, feature))
        waiting += children(node)
    return sorted(names)


def _unsupported_feature(node: Node, checked: CheckedTree) -> str:
    match node:
        case StructNode():
            return f"the structure `{node.name}`"
        case Macro():
            plain = node.name in MACROS and len(node.variables) == 1 and len(node.arguments) == 1
            return "" if plain else f"the macro `{node.name}` in this form"
        case Call():
            name = checked.name_referred_to(node) or node.function
            return "" if name in _STANDARD else f"the function `{name}`"
        case Select() | ListNode():
            return "optional syntax" if node.optional else ""
        case MapNode():
            return "optional syntax" if any(entry.optional for entry in node.entries) else ""
    return ""


class CelpyProgram:
    """An expression that cel-python evaluates."""

    __slots__ = ("_costs", "_runners", "result", "source", "variable_names")

    def __init__(self, source: str, environment: Environment, expects: tuple[Type, ...]) -> None:
        checked = parse_and_check(source, environment, expects)
        issues = [_unsupported_issue(source, offset, feature) for offset, feature in unsupported_parts(checked)]
        issues += [
            _unsupported_issue(source, 0, f"the variable `{name}`") for name in sorted(checked.names) if "." in name
        ]
        if issues:
            raise CompileError(source, tuple(issues))
        self.source = source
        self.result = checked.result
        self.variable_names = checked.names
        self._costs = compiled_engine().compile(source, environment, expects=expects)
        self._runners = threading.local()
        self._runner_of_thread()

    @property
    def largest_size_bytes(self) -> int:
        return 2 * self._costs.largest_size_bytes

    def compile_now(self) -> None:
        """Do nothing: the expression is already compiled."""

    def paths_read(self) -> ReadPaths:
        return self._costs.paths_read()

    def api_server_panics(self) -> tuple[str, ...]:
        """Return the parts that make kube-apiserver panic when the expression is stored there."""
        return self._costs.api_server_panics()

    def estimated_cost(self, sizes: Sizes | None = None, *, worst: bool = False) -> tuple[int, int]:
        return self._costs.estimated_cost(sizes, worst=worst)

    def evaluate(self, activation: Mapping[str, Any], meter: CostMeter) -> Any:
        """Return the value for these variables.

        Raises:
            EvaluationError: the expression failed.
            BudgetExceeded: the cost that the compiled engine counts is too high, or the deadline has passed.
        """
        self._count_api_server_cost(activation, meter)
        variables = {name: to_celpy(activation[name]) for name in self.variable_names if name in activation}
        try:
            return from_celpy(self._runner_of_thread().evaluate(variables))
        except (EvaluationError, ReviewPaused):
            raise
        except RecursionError:
            raise EvaluationError("the object is nested too deeply") from None
        except Exception as error:  # noqa: BLE001 - cel-python raises many classes
            raise EvaluationError(_translate_celpy_error(error)) from None

    def _count_api_server_cost(self, activation: Mapping[str, Any], meter: CostMeter) -> None:
        # evaluates the expression with the compiled engine too
        try:
            self._costs.evaluate(activation, meter)
        except BudgetExceeded:
            raise
        except EvaluationError:
            return

    def _runner_of_thread(self) -> Any:
        runner = getattr(self._runners, "runner", None)
        if runner is None:
            runner = self._runners.runner = _create_celpy_runner(self.source)
        return runner


def _unsupported_issue(source: str, offset: int, feature: str) -> CompileIssue:
    line_start = source.rfind("\n", 0, offset) + 1
    message = f"cel-python lacks {feature}: use the compiled engine for this policy"
    return CompileIssue(message, source.count("\n", 0, offset) + 1, offset - line_start)


def _create_celpy_runner(source: str) -> Any:
    import celpy
    from celpy.celparser import CELParseError

    limit = sys.getrecursionlimit()
    logging.getLogger("celpy").setLevel(logging.CRITICAL)
    environment = celpy.Environment(runner_class=celpy.InterpretedRunner)
    sys.setrecursionlimit(max(limit, sys.getrecursionlimit()))
    try:
        tree = environment.compile(source)
    except CELParseError as error:
        issue = CompileIssue("cel-python cannot read this expression", error.line or 0, (error.column or 1) - 1)
        raise CompileError(source, (issue,)) from None
    return environment.program(tree, functions={"duration": _parse_duration})


def _parse_duration(value: Any) -> Any:
    # linear in the length of the text
    from celpy.evaluation import CELEvalError

    if isinstance(value, dt.timedelta):
        return value
    try:
        return to_celpy(parse_duration(str(value)))
    except EvaluationError as error:
        return CELEvalError(str(error))


def _translate_celpy_error(error: Exception) -> str:
    text = str(error.args[0]) if error.args else type(error).__name__
    for celpy_text, cel_go_text in _MESSAGES:
        if text.startswith(celpy_text):
            rest = text.removeprefix(celpy_text).strip("'") if cel_go_text.endswith(": ") else ""
            return cel_go_text + rest
    return text


# ---- values


def to_celpy(value: Any) -> Any:
    """Convert a value to cel-python's classes.

    Raises:
        EvaluationError: cel-python has no class for the value.
    """
    from celpy import celtypes

    kind = type(value)
    if value is None:
        return None
    if kind is list:
        return celtypes.ListType([to_celpy(item) for item in value])
    if kind in MAPS:
        return celtypes.MapType([(to_celpy(key), to_celpy(item)) for key, item in map_items(value)])
    if hasattr(kind, "__missing__") and isinstance(value, dict):
        return _create_lazy_map_class()(value)
    convert = _converters_to_celpy().get(kind)
    if convert is None:
        raise EvaluationError(f"cel-python has no values of type {type_name(value)}")
    return convert(value)


@lru_cache(maxsize=1)
def _converters_to_celpy() -> dict[type, Callable[[Any], Any]]:
    from celpy import celtypes

    return {
        bool: celtypes.BoolType,
        int: celtypes.IntType,
        UInt: celtypes.UintType,
        float: celtypes.DoubleType,
        str: celtypes.StringType,
        bytes: celtypes.BytesType,
        Duration: lambda value: celtypes.DurationType(dt.timedelta(microseconds=value.nanoseconds // 1000)),
        Timestamp: lambda value: celtypes.TimestampType(str(value)),
    }


@lru_cache(maxsize=1)
def _create_lazy_map_class() -> Any:
    # computes an entry when an expression reads it
    from celpy import celtypes
    from celpy.evaluation import CELEvalError

    class LazyMap(celtypes.MapType):
        def __init__(self, source: Mapping[str, Any]) -> None:
            super().__init__()
            self.source = source

        def __getitem__(self, key: Any) -> Any:
            try:
                return to_celpy(self.source[str(key)])
            except BudgetExceeded:
                raise
            except EvaluationError as error:
                return CELEvalError(str(error))  # || and && may absorb an error that is a value

        def __contains__(self, key: object) -> bool:
            return str(key) in self.source

    return LazyMap


def from_celpy(value: Any) -> Any:
    """Convert a value of cel-python's classes to the classes of values.py.

    Raises:
        EvaluationError: the value is an error, or its class has no CEL type.
    """
    if isinstance(value, Exception):
        raise EvaluationError(_translate_celpy_error(value))
    if isinstance(value, list):
        return [from_celpy(item) for item in value]
    if isinstance(value, dict):
        return make_map((from_celpy(key), from_celpy(item)) for key, item in value.items())
    if isinstance(value, type):
        return TypeValue(_TYPES.get(value.__name__, value.__name__))
    if isinstance(value, dt.timedelta):
        return Duration((value.days * 86_400 + value.seconds) * NANOSECONDS + value.microseconds * 1000)
    if isinstance(value, dt.datetime):
        span = value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        return Timestamp((span.days * 86_400 + span.seconds) * NANOSECONDS + span.microseconds * 1000)
    name = _TYPES.get(type(value).__name__, "")
    if name not in _PLAIN:
        raise EvaluationError(f"cel-python gave a value that is not a CEL value: {value}")
    return _PLAIN[name](value)


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "uint": UInt,
    "double": float,
    "string": str,
    "bytes": bytes,
    "null_type": lambda _: None,
}


class CelpyEngine:
    """Evaluates expressions with cel-python's interpreter."""

    name = "celpy"

    def compile(
        self,
        expression: str,
        environment: Environment,
        *,
        expects: tuple[Type, ...] = (),
        deadline: Deadline | None = None,
    ) -> CelpyProgram:
        """Compile an expression. The deadline is checked only before the compilation.

        Raises:
            CompileError: the expression has issues, or needs a feature that cel-python lacks.
        """
        if deadline is not None:
            require_time_to_compile(expression, deadline)
        return CelpyProgram(expression, environment, expects)


@lru_cache(maxsize=1)
def celpy_engine() -> CelpyEngine:
    """Return the engine of cel-python."""
    return CelpyEngine()
