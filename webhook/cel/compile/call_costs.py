"""Counts what calls cost beyond 1: as far as the sizes of their arguments tell it, before they are made.

Source: cel-go v0.26.0 interpreter/runtimecost.go costCall; k8s.io/apiserver v0.36.1 pkg/cel/library/cost.go.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from webhook.cel.compile import code
from webhook.cel.compile.code import FailurePlace, ValueCode
from webhook.cel.compile.expression import ExpressionCompiler
from webhook.cel.library import costs
from webhook.cel.library.declaration import Cost, Overload


def extra_cost_function(overloads: tuple[Overload, ...]) -> Cost | None:
    """Return the function that computes a call's cost beyond 1; None when there is no such cost."""
    if not overloads:
        return None
    if len(overloads) == 1:
        return overloads[0].resolved_cost or overloads[0].cost
    return overloads[0].cost


def count_cost_before_call(compiler: ExpressionCompiler, cost: Cost, terms: list[ValueCode]) -> list[ValueCode]:
    """Count the cost of a call before it is made, by the sizes of its arguments; return code that may be used again."""
    count = COUNTED_BEFORE_CALL.get(cost)
    if count is None:
        return [compiler.reusable_code(term) for term in terms]
    return count(compiler, terms)


def _count_no_cost(_: ExpressionCompiler, terms: list[ValueCode]) -> list[ValueCode]:
    return terms


def _count_walk_cost_of_first_argument(compiler: ExpressionCompiler, terms: list[ValueCode]) -> list[ValueCode]:
    """Add the cost of walking over the first argument, beyond 1, before the call."""
    target = compiler.reusable_code(terms[0])
    if not (target.sure and target.type.name == "string"):
        is_text = code.is_comparison_node(
            code.call_node(compiler.reference_to_object(type), target.code), compiler.reference_to_object(str)
        )
        slow = compiler.function_call(_walk_cost_less_one, target.code)
        compiler.writer.add_runtime_cost(code.if_else_node(is_text, tenth_of_length_code(compiler, target.code), slow))
    else:
        compiler.writer.add_runtime_cost(tenth_of_length_code(compiler, target.code))
    return [target, *terms[1:]]


def tenth_of_length_code(compiler: ExpressionCompiler, value: ast.expr) -> ast.expr:
    """Return the code of (len(value) - 1) // 10: a tenth of the length, rounded up, less 1."""
    length = code.call_node(
        compiler.reference_to_object(len), value, line=compiler.writer.new_line_number(FailurePlace("call"))
    )
    return code.binary_operation_node(
        code.binary_operation_node(length, ast.Sub(), code.constant_node(1)), ast.FloorDiv(), code.constant_node(10)
    )


def _walk_cost_less_one(value: Any) -> int:
    return costs.walk_cost(value) - 1


COUNTED_BEFORE_CALL: dict[Cost, Callable[[ExpressionCompiler, list[ValueCode]], list[ValueCode]]] = {
    costs.cost_one: _count_no_cost,
    costs.walk_target_cost: _count_walk_cost_of_first_argument,
}
"""Cost functions whose value is computed by generated code before the call."""
