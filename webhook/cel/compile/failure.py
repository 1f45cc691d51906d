"""Turns Python's exceptions in generated code into CEL errors, and computes the cost to subtract for each error.

Every operation that can fail has a line number of its own. The messages are those of cel-go v0.26.0
(interpreter/attributes.go resolutionError, common/types/err.go).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from webhook.cel.compile.code import FailurePlace
from webhook.cel.library import costs
from webhook.cel.library.conversions import format_key_for_message
from webhook.cel.library.refusal import no_such_overload_error
from webhook.cel.values import WrappedMapKey
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, EvaluationError, EvaluationPanic, NoDecision, NoSuchOverload

CODE_NAME = "<cel>"
ERRORS = (EvaluationError, KeyError, TypeError, AttributeError, IndexError)
"""What an operation of generated code can raise."""


def error_that_counts(first: Exception | None, new: Exception) -> Exception:
    """Return the first of two errors of operands; the second error if only the second is a NoDecision.

    A NoDecision comes from an unknown value. If the value were known, the second operand might determine the result,
    and the first error would not matter.
    """
    if first is None or (isinstance(new, NoDecision) and not isinstance(first, NoDecision)):
        return new
    return first


class FailurePlaces:
    """The operations of one program that can fail, by line number."""

    __slots__ = ("_places",)

    def __init__(self, places: Sequence[FailurePlace]) -> None:
        self._places = places

    def cost_to_refund(self, error: Exception) -> int:
        """Return the cost to subtract for a failed operation. Store the place in the error, and release the frames.

        Raises:
            BudgetExceeded, EvaluationPanic: `error` itself, because no operator absorbs these errors.
        """
        if isinstance(error, BudgetExceeded | EvaluationPanic):
            try:
                raise error
            finally:
                del error  # otherwise the error's traceback and this frame would keep the whole review in memory
        if "place" in error.__dict__:
            return 0
        trace = _innermost_generated_entry(error.__traceback__)
        place = self._places[trace.tb_lineno if trace else 0]
        error.__dict__["place"] = place
        error.__traceback__ = None
        if trace is None:
            return place.refund
        if place.kind in ("operand", "key"):
            error.__dict__["operand"] = _argument_values(place, trace.tb_frame.f_locals)[0]
        return place.refund - (0 if place.cost is None else _failed_call_cost_at_place(place, trace.tb_frame.f_locals))

    def cel_error(self, error: Exception) -> EvaluationError:
        """Return the CEL error of a failed operation."""
        place: FailurePlace = error.__dict__.pop("place")
        operand = error.__dict__.pop("operand", None)
        error.__traceback__ = None
        if isinstance(error, EvaluationError):
            return error
        if place.kind == "operand":
            return no_such_overload_error(place.subject, type(operand))
        if place.kind == "key":
            return _no_such_key_error(error, operand)
        return _ERRORS_BY_KIND.get(place.kind, _no_such_overload_error)(error, place.subject)


def _innermost_generated_entry(trace: TracebackType | None) -> TracebackType | None:
    # the entry of the failed operation
    innermost = None
    while trace is not None and trace.tb_frame.f_code.co_filename == CODE_NAME:
        innermost, trace = trace, trace.tb_next
    return innermost


def failed_call_cost(cost: Callable[..., int], values: Sequence[Any]) -> int:
    """Return the cost of a failed call in addition to 1, which every call costs.

    The value None means a failed argument, which has the size 1. Values that cannot be measured add no cost, because
    cel-go itself stops there.
    """
    try:
        return cost(None, *values) - 1
    except (TypeError, AttributeError, ValueError, LookupError):
        return 0


def _argument_values(place: FailurePlace, variables: Mapping[str, Any]) -> list[Any]:
    return [
        argument.value if isinstance(argument, ast.Constant) else variables.get(getattr(argument, "id", ""))
        for argument in place.arguments
    ]


def _failed_call_cost_at_place(place: FailurePlace, variables: Mapping[str, Any]) -> int:
    assert place.cost is not None
    values = _argument_values(place, variables)
    if place.cost is costs.traverse_target_cost:
        return costs.traversal_cost(values[0], variables["M"].deadline or Deadline()) - 1
    return failed_call_cost(place.cost, values)


def _no_such_overload_error(error: Exception, subject: Any) -> EvaluationError:
    if isinstance(error, KeyError) and error.args:
        return _no_such_key_error(error, error.args[0])
    return NoSuchOverload(f"no such overload: {subject}" if subject else "no such overload")


def _no_such_key_error(error: Exception, key: Any) -> EvaluationError:
    if isinstance(error, TypeError) and str(error).startswith("list indices"):
        return EvaluationError("unsupported index type 'string' in list")
    return EvaluationError(f"no such key: {format_key_for_message(key.value if type(key) is WrappedMapKey else key)}")


def _out_of_bounds_error(_: Exception, position: Any) -> EvaluationError:
    return EvaluationError(f"index out of bounds: {position}")


def _no_such_variable_error(_: Exception, name: Any) -> EvaluationError:
    return EvaluationError(f"no such attribute(s): {name}")


_ERRORS_BY_KIND = {"field": _no_such_key_error, "element": _out_of_bounds_error, "variable": _no_such_variable_error}
