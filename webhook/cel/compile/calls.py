"""Compiles calls: a direct call for known types, otherwise a table that chooses by the classes of the values.

If only one signature fits the static types, the cost follows from this signature. Otherwise the cost follows from the
name of the function. Sources: cel-go v0.26.0 interpreter/runtimecost.go costCall; k8s.io/apiserver v0.36.1
pkg/cel/library/cost.go. A call first counts 1, the usual cost of a failed call. The rest is added when the sizes are
known: before the call if generated code can compute the cost, otherwise after the call. operators.py has the frequent
operators.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

from msgspec.structs import replace

from webhook.cel.compile import code
from webhook.cel.compile import optional as optionals
from webhook.cel.compile.code import FailurePlace, ValueCode
from webhook.cel.compile.expression import ExpressionCompiler
from webhook.cel.compile.failure import ERRORS, failed_call_cost
from webhook.cel.library import conversions, costs, runtime
from webhook.cel.library.declaration import Cost, Overload
from webhook.cel.library.dispatch import (
    DispatchTable,
    UnaryDispatchTable,
    depends_on_elements,
    fitting_implementation,
    needs_deadline,
)
from webhook.cel.library.refusal import (
    index_of_tracked_argument,
    panic_for_failed_int,
    panic_for_failed_list,
    require_int,
    require_list,
)
from webhook.cel.syntax.tree import Call, Node
from webhook.cel.types import BOOL, INT, Type
from webhook.errors import EvaluationError

_STOPPING = frozenset(("find", "findAll"))
"""With a constant pattern, these functions are not called if their text argument fails."""
_PURE = frozenset(("quantity", "ip", "cidr", "url", "semver"))
"""Functions that are called at compile time if all arguments are constants. If the call fails, it is repeated at run
time, where `||` may absorb the error."""
_CLASSES: Mapping[str, type] = {"string": str, "int": int, "double": float, "bool": bool, "bytes": bytes}


def call_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of a call."""
    arguments = _arguments_with_target(compiler, node)
    if node.function == "size":
        return _size_call_code(compiler, arguments[0])
    if node.function == "matches" and type(compiler.constants.get(id(arguments[1]))) is str:
        return _matches_call_code(compiler, node, arguments)
    if node.function == "hasValue":
        compiler.unread.add(id(arguments[0]))
        term = compiler.value_code(arguments[0])
        return optionals.code_of_has_value(compiler, term) or overload_call_code(compiler, node, [term])
    return optionals.optional_construction_code(compiler, node, arguments) or _dispatched_or_folded_call_code(
        compiler, node, arguments
    )


def _arguments_with_target(compiler: ExpressionCompiler, node: Call) -> list[Node]:
    if node.target is None or compiler.checked.name_referred_to(node) is not None:
        return list(node.arguments)
    return [node.target, *node.arguments]


def _dispatched_or_folded_call_code(compiler: ExpressionCompiler, node: Call, arguments: Sequence[Node]) -> ValueCode:
    overloads = compiler.overloads_fitting_static_types(node)
    ahead = _result_at_compile_time(compiler, node, overloads, arguments)
    if ahead is not None:
        return ahead
    if overloads[0].implementation is conversions.identity and overloads[0].parameters[0].kind == "param":
        compiler.writer.add_fixed_cost(1)  # dyn(x)
        return ValueCode(compiler.value_code(arguments[0]).code, compiler.checked.type_of(node))
    if index_of_tracked_argument(overloads) is not None:
        return overload_call_code(compiler, node, _type_checked_argument_codes(compiler, overloads, arguments))
    if len(arguments) < 3:
        return overload_call_code(compiler, node, _argument_codes(compiler, overloads, arguments))
    # cel-go always evaluates one or two arguments; with three or more, it stops at the first failure, without a call
    terms: list[ValueCode] = []
    with compiler.writer.subtract_cost_of_unreached_parts() as part:
        for each in arguments:
            part()
            terms.append(compiler.value_code_after(terms, each))
        part()
        compiler.writer.add_fixed_cost(1)
        part()
    compiler.writer.add_fixed_cost(-1)
    return overload_call_code(compiler, node, terms)


def _argument_codes(
    compiler: ExpressionCompiler, overloads: tuple[Overload, ...], arguments: Sequence[Node]
) -> list[ValueCode]:
    # a failed argument costs as much as an argument of size 1
    places = compiler.writer.places
    terms: list[ValueCode] = []
    starts = [len(places)]
    for each in arguments:
        terms.append(compiler.value_code_after(terms, each))
        starts.append(len(places))
    cost = _extra_cost_function(overloads)
    if cost is None:
        return terms
    if overloads[0].name in _STOPPING and _is_string_constant(terms[1].code):
        for place in places[starts[0] : starts[1]]:
            if place.level == compiler.writer.level:
                place.refund += 1
        return terms
    for position, (first, after) in enumerate(pairwise(starts)):
        others = [each for each in arguments if each is not arguments[position]]
        if all(map(compiler.is_constant, others)):
            values = [compiler.constants.get(id(each)) for each in arguments]
            values[position] = None
            for place in places[first:after]:
                if place.level == compiler.writer.level:
                    place.refund -= failed_call_cost(cost, values)
    return terms


def overload_call_code(compiler: ExpressionCompiler, node: Call, terms: list[ValueCode]) -> ValueCode:
    """Return the code that chooses the signature at run time, calls it and adds its cost."""
    candidates = compiler.overloads_chosen_at_run_time(node)
    if node.function in _STOPPING and _is_string_constant(terms[1].code):
        candidates = tuple(replace(each, name="matches") for each in candidates)  # matches() refuses the same values
    signatures = CallSignatures(compiler.overloads_fitting_static_types(node), candidates)
    return signatures_call_code(compiler, signatures, terms, compiler.checked.type_of(node))


def _is_string_constant(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) is str


class CallSignatures(NamedTuple):
    """The signatures of a call: `overloads` fit the static types, and one of `candidates` is chosen at run time."""

    overloads: tuple[Overload, ...]
    candidates: tuple[Overload, ...]


def signatures_call_code(
    compiler: ExpressionCompiler, signatures: CallSignatures, terms: list[ValueCode], static: Type
) -> ValueCode:
    """Return the code that calls one of the signatures and adds its cost."""
    writer = compiler.writer
    overloads, candidates = signatures
    writer.add_fixed_cost(1)
    cost = _extra_cost_function(overloads)
    if cost is not None:
        terms = _count_cost_before_call(compiler, cost, terms)
    direct = (
        len(overloads) == 1
        and not depends_on_elements(overloads[0])
        and all(map(_surely_fits, overloads[0].parameters, terms))
    )
    if direct:
        candidates = overloads
    else:
        terms = [compiler.reusable_code(term) for term in terms]
    values = [term.code for term in terms]
    place = FailurePlace("call")
    if cost is not None and cost not in _COUNTED_BEFORE_CALL:
        place.cost, place.arguments = cost, tuple(values)
    # every implementation returns the type of its signature
    sure = bool(candidates) and all(each.result == static for each in candidates)
    result = ValueCode(_implementation_call(compiler, candidates, values, place, direct=direct), static, sure=sure)
    if cost is not None and cost not in _COUNTED_BEFORE_CALL:
        result = compiler.reusable_code(result)
        if cost is costs.traverse_target_cost:
            extra = compiler.function_call(costs.traversal_cost, values[0], compiler.deadline_code())
        else:
            extra = compiler.function_call(cost, result.code, *values)
        writer.add_runtime_cost(code.binary_operation_node(extra, ast.Sub(), code.constant_node(1)))
    return result


def _implementation_call(
    compiler: ExpressionCompiler,
    overloads: tuple[Overload, ...],
    values: list[ast.expr],
    place: FailurePlace,
    *,
    direct: bool,
) -> ast.expr:
    metered = [compiler.deadline_code()] if needs_deadline(overloads) else []
    if direct:
        return compiler.function_call(overloads[0].implementation, *metered, *values, place=place)
    classes: list[ast.expr] = [code.call_node(compiler.reference_to_object(type), value) for value in values]
    if len(values) == 1:
        table = compiler.dispatch_table(overloads, UnaryDispatchTable)
        chosen = code.subscript_node(compiler.reference_to_object(table), classes[0])
        called = code.call_node(chosen, *metered, values[0], line=compiler.writer.new_line_number(place))
        same = [each.parameters[0].name for each in overloads if each.implementation is conversions.identity]
        if len(same) == 1 and same[0] in _CLASSES:  # such as string(text)
            return code.if_else_node(
                code.is_comparison_node(classes[0], compiler.reference_to_object(_CLASSES[same[0]])), values[0], called
            )
        return called
    table = compiler.dispatch_table(overloads, DispatchTable)
    chosen = code.subscript_node(
        compiler.reference_to_object(table), ast.Tuple(classes, ast.Load(), lineno=1, col_offset=0)
    )
    return code.call_node(chosen, *metered, *values, line=compiler.writer.new_line_number(place))


def _surely_fits(parameter: Type, term: ValueCode) -> bool:
    if parameter.kind == "param" or parameter.name == "dyn":
        return True
    return term.sure and parameter.name == term.type.name


def _result_at_compile_time(
    compiler: ExpressionCompiler, node: Call, overloads: tuple[Overload, ...], arguments: Sequence[Node]
) -> ValueCode | None:
    # None if the call must run later
    if node.function not in _PURE or not all(map(compiler.is_constant, arguments)) or len(overloads) != 1:
        return None
    values = [compiler.constants[id(each)] for each in arguments]
    try:
        result = fitting_implementation(overloads, tuple(values))(*values)
    except EvaluationError:
        return None
    cost = _extra_cost_function(overloads)
    compiler.writer.add_fixed_cost(1 if cost is None else cost(result, *values))
    return compiler.constant_code(result, compiler.checked.type_of(node))


# ---- size() and matches()


def _size_call_code(compiler: ExpressionCompiler, argument: Node) -> ValueCode:
    compiler.writer.add_fixed_cost(1)
    term = compiler.value_code(argument)
    if term.type.name in ("list", "string", "bytes", "map"):
        term = term if term.sure else compiler.reusable_code(term)
        line = compiler.writer.new_line_number(FailurePlace("operand", "size", arguments=(term.code,)))
        return ValueCode(
            code.call_node(compiler.reference_to_object(len), term.code, line=line), INT, raises=term.raises, sure=True
        )
    term = compiler.reusable_code(term)
    kind = code.call_node(compiler.reference_to_object(type), term.code)
    is_sized = code.or_node(
        code.is_comparison_node(kind, compiler.reference_to_object(list)),
        code.is_comparison_node(kind, compiler.reference_to_object(str)),
    )
    quick = code.call_node(compiler.reference_to_object(len), term.code)
    slow = compiler.function_call(runtime.size_of, term.code, place=FailurePlace("call", "size"))
    return ValueCode(code.if_else_node(is_sized, quick, slow), INT, sure=True)


def _matches_call_code(compiler: ExpressionCompiler, node: Call, arguments: list[Node]) -> ValueCode:
    # the pattern is compiled once; the cost is the cost of the pattern times the cost of the text
    pattern = compiler.constants[id(arguments[1])]
    measured = compiler.overloads_fitting_static_types(node)[0].resolved_cost is not None
    each = (len(pattern) + 3) // 4 if measured else 1

    def failure_place(term: ValueCode) -> FailurePlace:
        return FailurePlace("operand", "matches", arguments=(term.code,))

    with compiler.writer.subtract_cost_of_unreached_parts() as part:
        part()
        term = compiler.value_code(arguments[0])
        part()
        compiler.writer.add_fixed_cost(each)
        part()
    if measured:
        term = compiler.reusable_code(term)
        length = code.call_node(
            compiler.reference_to_object(len), term.code, line=compiler.writer.new_line_number(failure_place(term))
        )
        tenth_of_length = code.binary_operation_node(length, ast.FloorDiv(), code.constant_node(10))
        if each:
            compiler.writer.add_runtime_cost(
                code.binary_operation_node(tenth_of_length, ast.Mult(), code.constant_node(each))
            )
    else:
        term = compiler.reusable_code(term)
    is_found_in = compiler.checked.patterns.compiled_pattern(pattern).is_found_in
    return ValueCode(compiler.function_call(is_found_in, term.code, place=failure_place(term)), BOOL, sure=True)


# ---- costs


def _extra_cost_function(overloads: tuple[Overload, ...]) -> Cost | None:
    # the function for the cost beyond 1; None if a call always costs 1
    if not overloads:
        return None
    if len(overloads) == 1:
        return overloads[0].resolved_cost or overloads[0].cost
    return overloads[0].cost


def _count_cost_before_call(compiler: ExpressionCompiler, cost: Cost, terms: list[ValueCode]) -> list[ValueCode]:
    # adds a cost that follows from the sizes of the arguments; the returned code may be used several times
    count = _COUNTED_BEFORE_CALL.get(cost)
    if count is None:
        return [compiler.reusable_code(term) for term in terms]
    return count(compiler, terms)


def _count_no_cost(_: ExpressionCompiler, terms: list[ValueCode]) -> list[ValueCode]:
    return terms


def _count_walk_cost_of_first_argument(compiler: ExpressionCompiler, terms: list[ValueCode]) -> list[ValueCode]:
    # the first 1 is already counted
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
    """Return the code of (len(value) - 1) // 10, which is a tenth of the length, rounded up, minus 1."""
    length = code.call_node(
        compiler.reference_to_object(len), value, line=compiler.writer.new_line_number(FailurePlace("call"))
    )
    return code.binary_operation_node(
        code.binary_operation_node(length, ast.Sub(), code.constant_node(1)), ast.FloorDiv(), code.constant_node(10)
    )


def _walk_cost_less_one(value: Any) -> int:
    return costs.walk_cost(value) - 1


_COUNTED_BEFORE_CALL: dict[Cost, Callable[[ExpressionCompiler, list[ValueCode]], list[ValueCode]]] = {
    costs.cost_one: _count_no_cost,
    costs.walk_target_cost: _count_walk_cost_of_first_argument,
}
"""For each cost that generated code computes before the call, the function that writes this code."""


# ---- calls that end the whole evaluation if an operand failed (library/refusal.py)


def _type_checked_argument_codes(
    compiler: ExpressionCompiler, overloads: Sequence[Overload], arguments: Sequence[Node]
) -> list[ValueCode]:
    # the evaluation ends if the cost function cannot measure an argument of this class
    writer = compiler.writer
    terms: list[ValueCode] = []
    for place, argument in enumerate(arguments):
        if place != index_of_tracked_argument(overloads):
            terms.append(compiler.reusable_code(compiler.value_code(argument)))
            continue
        is_int = overloads[0].name == "flatten"
        with collect_fatal_statements(compiler, panic_for_failed_int if is_int else panic_for_failed_list):
            term = compiler.reusable_code(compiler.value_code(argument))
        require = require_int if is_int else require_list
        writer.append_statement(
            code.expression_statement_node(compiler.function_call(require, term.code, place=FailurePlace("call")))
        )
        terms.append(replace(term, sure=True))
    return terms


@contextmanager
def collect_fatal_statements(compiler: ExpressionCompiler, failed: Callable[[Exception], NoReturn]) -> Iterator[None]:
    """Collect statements that end the whole evaluation if they fail, because cel-go's cost functions then panic."""
    writer = compiler.writer
    writer.depth += 1
    writer.level += 1
    with writer.collect_nested_statements() as body:
        yield
    writer.level -= 1
    writer.depth -= 1
    if body:
        raised = code.expression_statement_node(
            code.call_node(compiler.reference_to_object(failed), code.name_node("x"))
        )
        writer.append_statement(code.try_node(body, compiler.reference_to_object(ERRORS), [raised]))
