"""Turns Python's exceptions in generated code into CEL errors, and computes the cost to subtract for them.

Every operation of generated code that can fail has a line number of its own; the table of places says what is tried
there. Texts are cel-go v0.26.0's (interpreter/attributes.go resolutionError, common/types/err.go).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from webhook.cel.library import costs
from webhook.cel.library.conversions import show
from webhook.cel.library.refusal import refusal
from webhook.cel.values import Key
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, EvaluationError, EvaluationPanic, NoSuchOverload

if TYPE_CHECKING:
    from webhook.cel.compile.code import Place

CODE_NAME = "<cel>"
ERRORS = (EvaluationError, KeyError, TypeError, AttributeError, IndexError)
"""The exceptions that an operation of generated code can raise."""


class Failures:
    """The positions of one program that can fail, and the errors for them."""

    __slots__ = ("_places",)

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places

    def refund_for(self, error: Exception) -> int:
        """Return the cost to subtract for a failed operation; note where it failed, and release its frames.

        Raises:
            BudgetExceeded: which nothing absorbs.
            EvaluationPanic: which nothing absorbs either.
        """
        if isinstance(error, BudgetExceeded | EvaluationPanic):
            try:
                raise error
            finally:
                del error  # its traceback holds this frame: a circle would keep the whole review in memory for a while
        if "place" in error.__dict__:
            return 0
        trace = _innermost(error.__traceback__)
        place = self._places[trace.tb_lineno if trace else 0]
        error.__dict__["place"] = place
        error.__traceback__ = None
        if trace is None:
            return place.refund
        if place.kind in ("operand", "key"):
            error.__dict__["operand"] = _values(place, trace.tb_frame.f_locals)[0]
        return place.refund - (0 if place.cost is None else _failed_call(place, trace.tb_frame.f_locals))

    def failure(self, error: Exception) -> EvaluationError:
        """Return the CEL error of a failed operation."""
        place: Place = error.__dict__.pop("place")
        operand = error.__dict__.pop("operand", None)
        error.__traceback__ = None
        if isinstance(error, EvaluationError):
            return error
        if place.kind == "operand":
            return refusal(place.subject, type(operand))
        if place.kind == "key":
            return _no_key(error, operand)
        return _ERRORS_BY_KIND.get(place.kind, _no_overload)(error, place.subject)


def _innermost(trace: TracebackType | None) -> TracebackType | None:
    """Return the innermost traceback entry of generated code, which is the failed operation."""
    innermost = None
    while trace is not None and trace.tb_frame.f_code.co_filename == CODE_NAME:
        innermost, trace = trace, trace.tb_next
    return innermost


def failed_cost(cost: Callable[..., int], values: Sequence[Any]) -> int:
    """Return what a failed call costs beyond 1; None stands for an argument that failed, and counts as size 1.

    Values that it cannot measure cost nothing more: cel-go itself breaks off there.
    """
    try:
        return cost(None, *values) - 1
    except (TypeError, AttributeError, ValueError, LookupError):
        return 0


def _values(place: Place, variables: Mapping[str, Any]) -> list[Any]:
    """Return the values of the arguments of a failed call."""
    return [
        argument.value if isinstance(argument, ast.Constant) else variables.get(getattr(argument, "id", ""))
        for argument in place.arguments
    ]


def _failed_call(place: Place, variables: Mapping[str, Any]) -> int:
    """Return the cost of a failed call beyond the 1 that was counted."""
    assert place.cost is not None
    values = _values(place, variables)
    if place.cost is costs.traverse_target:
        return costs.traversal(values[0], variables["M"].deadline or Deadline()) - 1
    return failed_cost(place.cost, values)


def _no_overload(error: Exception, subject: Any) -> EvaluationError:
    if isinstance(error, KeyError) and error.args:
        return _no_key(error, error.args[0])
    return NoSuchOverload(f"no such overload: {subject}" if subject else "no such overload")


def _no_key(error: Exception, key: Any) -> EvaluationError:
    if isinstance(error, TypeError) and str(error).startswith("list indices"):
        return EvaluationError("unsupported index type 'string' in list")
    return EvaluationError(f"no such key: {show(key.value if type(key) is Key else key)}")


def _no_element(_: Exception, position: Any) -> EvaluationError:
    return EvaluationError(f"index out of bounds: {position}")


def _no_variable(_: Exception, name: Any) -> EvaluationError:
    return EvaluationError(f"no such attribute(s): {name}")


_ERRORS_BY_KIND = {"field": _no_key, "element": _no_element, "variable": _no_variable}
