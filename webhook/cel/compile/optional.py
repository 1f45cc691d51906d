"""Compiles optionals: selections `a.?b[?c]`, optMap, optFlatMap, or, orValue, hasValue, optional.of and ofNonZeroValue.

Most expressions only test whether an optional has a value. So a variable has the value of the optional, or ABSENT
(`ValueCode.raw`), and the Optional object is built only if it is needed. A selection costs 1 for every step with a
value (cel-go v0.26.0 interpreter/attributes.go, runtimecost.go).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from msgspec import Struct

from webhook.cel.compile import code
from webhook.cel.compile.code import FailurePlace, ValueCode
from webhook.cel.compile.expression import ExpressionCompiler
from webhook.cel.library import optional as library
from webhook.cel.library import optional_value, runtime
from webhook.cel.library.optional_value import NONE, Optional
from webhook.cel.library.refusal import raise_no_such_overload
from webhook.cel.syntax.tree import Call, Ident, Macro, Node, Select, children
from webhook.cel.types import BOOL, DYN, STRING, Type
from webhook.cel.values import ABSENT

_PLAIN = frozenset(
    (
        *("string", "int", "uint", "double", "bool", "bytes", "list", "map", "null_type"),
        *("google.protobuf.Timestamp", "google.protobuf.Duration"),
    )
)
"""Types with the same values in Go and CEL."""


def optional_code_of_variable(compiler: ExpressionCompiler, raw: ast.Name, static: Type, steps: int = 0) -> ValueCode:
    """Return the code of an optional. The variable `raw` has the value of the optional, or ABSENT."""
    construction = code.if_else_node(
        presence_test(compiler, raw),
        code.call_node(compiler.reference_to_object(Optional), raw),
        compiler.reference_to_object(NONE),
    )
    return ValueCode(construction, static, raises=False, sure=True, raw=raw, steps=steps)


def presence_test(compiler: ExpressionCompiler, raw: ast.Name) -> ast.expr:
    """Return the code that tests whether a variable has a value other than ABSENT."""
    return code.is_not_comparison_node(raw, compiler.reference_to_object(ABSENT))


def variable_of_value_or_absent(compiler: ExpressionCompiler, term: ValueCode) -> ast.Name:
    """Return a variable with the value of an optional, or ABSENT. A value that is not an optional is used unchanged."""
    return term.raw or compiler.writer.stored_in_variable(
        compiler.function_call(optional_value.value_or_absent, term.code)
    )


# ---- selections


def optional_path_steps_code(
    compiler: ExpressionCompiler, term: ValueCode, path: Sequence[Select | Call], part: Callable[[], None]
) -> ValueCode:
    """Return the code of a path from its first optional step. After a step without a value, no key is computed."""
    writer = compiler.writer
    static = term.type
    at: ast.expr = (
        variable_of_value_or_absent(compiler, term)
        if static.name == "optional_type"
        else compiler.reusable_code(term).code
    )
    names: list[ast.Name] = []
    for step in path:
        part()
        with writer.collect_block() as body:
            key = _step_key_code(compiler, step)
        is_first = step is path[0] and static.name != "optional_type"
        if body:
            _write_step_costs(compiler, names)
            names = []
        names.append(
            _variable_of_found_value(compiler, at, key, body, _OptionalStep(is_first=is_first, before=len(names)))
        )
        at = names[-1]
    _write_step_costs(compiler, names)
    counted = len(names) if len(names) == len(path) else 0
    return optional_code_of_variable(compiler, names[-1], compiler.checked.type_of(path[-1]), counted)


def _step_key_code(compiler: ExpressionCompiler, step: Select | Call) -> ValueCode:
    if isinstance(step, Select):
        return compiler.constant_code(step.field, STRING)
    return compiler.reusable_code(compiler.value_code_without_attribute_cost(step.arguments[1]))


class _OptionalStep(Struct, frozen=True):
    """A step of a path. `is_first`: the value before the step is not an optional. `before`: the number of earlier steps
    that are not counted yet.
    """

    is_first: bool
    before: int


def _variable_of_found_value(
    compiler: ExpressionCompiler, at: ast.expr, key: ValueCode, body: list[ast.stmt], step: _OptionalStep
) -> ast.Name:
    # `body` computes the key
    writer = compiler.writer
    if not body or step.is_first:
        writer.body.extend(body)
        return writer.assign_to_new_variable(_look_up_code(compiler, at, key, step))
    result = writer.new_variable_name()
    body.append(code.assignment_node(result, _look_up_code(compiler, at, key, step)))
    absent: list[ast.stmt] = [code.assignment_node(result, compiler.reference_to_object(ABSENT))]
    writer.append_statement(
        code.if_node(code.is_not_comparison_node(at, compiler.reference_to_object(ABSENT)), body, absent)
    )
    return code.name_node(result)


def _look_up_code(compiler: ExpressionCompiler, at: ast.expr, key: ValueCode, step: _OptionalStep) -> ast.expr:
    # the result for ABSENT is ABSENT
    missing = compiler.reference_to_object(ABSENT)
    value = compiler.function_call(
        optional_value.value_or_absent_at, at, key.code, place=FailurePlace("call", refund=-step.before)
    )
    if not step.is_first:
        value = code.if_else_node(code.is_comparison_node(at, missing), missing, value)
    if not (key.sure and key.type.name == "string"):
        return value
    is_map = code.is_comparison_node(
        code.call_node(compiler.reference_to_object(type), at), compiler.reference_to_object(dict)
    )
    return code.if_else_node(is_map, code.call_node(code.attribute_node(at, "get"), key.code, missing), value)


def _write_step_costs(compiler: ExpressionCompiler, names: Sequence[ast.Name]) -> None:
    # 1 for every step up to the last step with a value
    statement: list[ast.stmt] = []
    for number, raw in enumerate(names, start=1):
        statement = [
            code.if_node(presence_test(compiler, raw), [code.add_cost_node(code.constant_node(number))], statement)
        ]
    for each in statement:
        compiler.writer.moves += 1
        compiler.writer.append_statement(each)


# ---- functions


def code_of_has_value(compiler: ExpressionCompiler, term: ValueCode) -> ValueCode | None:
    """Return the code of optional.hasValue(); None if the optional has no variable with its value or ABSENT."""
    if term.raw is None:
        return None
    compiler.writer.add_fixed_cost(1)
    return ValueCode(presence_test(compiler, term.raw), BOOL, raises=False, sure=True)


def optional_construction_code(compiler: ExpressionCompiler, node: Call, arguments: Sequence[Node]) -> ValueCode | None:
    """Return the code of optional.of(x), optional.ofNonZeroValue(x) or optional.none(); None for other functions."""
    overloads = compiler.overloads_fitting_static_types(node)
    implementation = overloads[0].implementation if overloads else None
    if implementation not in (Optional, library.of_non_zero_value, library.empty_optional):
        return None
    value = compiler.reference_to_object(ABSENT)
    if arguments:
        value = compiler.reusable_code(compiler.value_code(arguments[0])).code
    compiler.writer.add_fixed_cost(1)
    if implementation is library.of_non_zero_value:
        value = code.if_else_node(
            value, value, compiler.function_call(runtime.non_zero_or_absent, value)
        )  # a value that is true in Python is not a zero value of CEL
    return optional_code_of_variable(
        compiler, compiler.writer.assign_to_new_variable(value), compiler.checked.type_of(node)
    )


def optional_or_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of a.or(b) or a.orValue(b), which evaluates b only if a has no value."""
    assert node.target is not None
    first = compiler.value_code(node.target)
    if first.raw is None:
        return _or_code_of_any_value(compiler, node, compiler.reusable_code(first))
    writer = compiler.writer
    if_present, absent = _remove_step_costs(compiler, first)
    with writer.collect_block() as other:
        term = compiler.value_code(node.arguments[0])
        is_raw = node.function == "or" and _is_surely_optional(term)
        value = variable_of_value_or_absent(compiler, term) if is_raw else term.code
    result = code.name_node(writer.new_variable_name())
    preferred = first.raw if is_raw or node.function == "orValue" else first.code
    if if_present or absent or other:
        if_present.append(code.assignment_node(result.id, preferred))
        other = [*absent, *other, code.assignment_node(result.id, value)]
        writer.append_statement(code.if_node(presence_test(compiler, first.raw), if_present, other))
    else:
        writer.append_statement(
            code.assignment_node(result.id, code.if_else_node(presence_test(compiler, first.raw), preferred, value))
        )
    writer.moves += 1
    static = compiler.checked.type_of(node)
    return (
        optional_code_of_variable(compiler, result, static)
        if is_raw
        else ValueCode(result, static, raises=False, atom=True)
    )


def _remove_step_costs(compiler: ExpressionCompiler, term: ValueCode) -> tuple[list[ast.stmt], list[ast.stmt]]:
    # the last statement counts the steps, and branches on the presence of the value
    # returns both branches, because the caller branches on the same test
    if not term.steps:
        return [], []
    count = compiler.writer.body.pop()
    assert isinstance(count, ast.If)
    return count.body, count.orelse


def _or_code_of_any_value(compiler: ExpressionCompiler, node: Call, first: ValueCode) -> ValueCode:
    # up to 1.36, a value that is not an optional is the result
    writer = compiler.writer
    result = writer.new_variable_name()
    overload = compiler.overloads_fitting_static_types(node)[0]
    is_optional = code.is_comparison_node(
        code.call_node(compiler.reference_to_object(type), first.code), compiler.reference_to_object(Optional)
    )
    present_value = code.attribute_node(first.code, "value") if node.function == "orValue" else first.code
    with writer.collect_block() as other:
        term = compiler.value_code(node.arguments[0])
        writer.append_statement(code.assignment_node(result, term.code))
    chosen = code.if_node(
        code.attribute_node(first.code, "present"), [code.assignment_node(result, present_value)], other
    )
    plain: ast.expr = first.code
    if overload.since >= (1, 37):
        plain = compiler.function_call(overload.implementation, first.code, first.code, place=FailurePlace("call"))
    writer.append_statement(code.if_node(is_optional, [chosen], [code.assignment_node(result, plain)]))
    writer.moves += 1
    return ValueCode(code.name_node(result), compiler.checked.type_of(node), raises=False, atom=True)


# ---- macros


def opt_map_code(compiler: ExpressionCompiler, node: Macro) -> ValueCode:
    """Return the code of optMap or optFlatMap. Each use of the variable costs as much as the target."""
    writer = compiler.writer
    uses = _uses_variable(node.arguments[0], node.variables[0])
    before, moves, marker = writer.total, writer.moves, len(writer.body)
    writer.add_fixed_cost(1)
    operand = compiler.value_code(node.operand)
    raw = operand.raw or _variable_of_optional_value(compiler, operand)
    changes = writer.moves - moves > bool(operand.steps)
    removal = [] if changes else _remove_step_costs(compiler, operand)[1]
    steps = 0 if changes else operand.steps
    repeated = writer.total - before + steps
    cost_since = _variable_of_cost_since(compiler, marker) if changes and uses else None
    with writer.collect_block() as chosen:
        writer.add_fixed_cost(steps + (repeated if uses else 0))
        if cost_since is not None:
            writer.add_runtime_cost(cost_since)
        term = _opt_map_body_code(compiler, node, raw, operand.type)
        is_raw = node.name == "optMap" or _is_surely_optional(term)
        named = code.name_node(writer.new_variable_name())
        value = variable_of_value_or_absent(compiler, term) if is_raw and node.name == "optFlatMap" else term.code
        value = converted_optional_code(compiler, node, value, is_raw=is_raw)
        writer.append_statement(code.assignment_node(named.id, value))
    writer.moves += 1
    absent = [
        *removal,
        code.add_cost_node(code.constant_node(1)),
        code.assignment_node(named.id, compiler.reference_to_object(ABSENT if is_raw else NONE)),
    ]
    writer.append_statement(code.if_node(presence_test(compiler, raw), chosen, absent))
    static = compiler.checked.type_of(node)
    return (
        optional_code_of_variable(compiler, named, static)
        if is_raw
        else ValueCode(named, static, raises=False, atom=True)
    )


def converted_optional_code(compiler: ExpressionCompiler, node: Node, value: ast.expr, *, is_raw: bool) -> ast.expr:
    """Return the code that converts the optional of `? :`, optMap or optFlatMap as in cel-go."""
    static = compiler.checked.type_of(node)
    value_type = static.parameters[0].name if static.name == "optional_type" else ""
    if id(node) in compiler.unread or static.name != "optional_type" or value_type in _PLAIN:
        return value
    return compiler.function_call(
        library.convert_branch_value_as_go if is_raw else library.convert_branch_optional_as_go,
        value,
        place=FailurePlace("call"),
    )


def _is_surely_optional(term: ValueCode) -> bool:
    return term.sure and term.type.name == "optional_type"


def _variable_of_optional_value(compiler: ExpressionCompiler, operand: ValueCode) -> ast.Name:
    # also writes a check that the operand is an optional
    if _is_surely_optional(operand):
        return variable_of_value_or_absent(compiler, operand)
    operand = compiler.reusable_code(operand)
    is_optional = code.is_comparison_node(
        code.call_node(compiler.reference_to_object(type), operand.code), compiler.reference_to_object(Optional)
    )
    refused = compiler.function_call(
        raise_no_such_overload, code.constant_node("hasValue"), operand.code, place=FailurePlace("call")
    )
    compiler.writer.append_statement(
        code.if_node(code.not_node(is_optional), [code.expression_statement_node(refused)])
    )
    return variable_of_value_or_absent(compiler, operand)


def _variable_of_cost_since(compiler: ExpressionCompiler, marker: int) -> ast.Name:
    # the variable gets its value at run time
    writer = compiler.writer
    cost = code.name_node(writer.new_variable_name())
    writer.body.insert(marker, code.assignment_node(cost.id, code.name_node(code.COST)))
    writer.append_statement(
        code.assignment_node(cost.id, code.binary_operation_node(code.name_node(code.COST), ast.Sub(), cost))
    )
    return cost


def _opt_map_body_code(compiler: ExpressionCompiler, node: Macro, raw: ast.Name, operand: Type) -> ValueCode:
    # the variable is bound to the value
    static = operand.parameters[0] if operand.parameters else DYN
    before = compiler.scope
    compiler.scope = {**before, node.variables[0]: ValueCode(raw, static, raises=False, atom=True)}
    term = compiler.value_code(node.arguments[0])
    compiler.scope = before
    compiler.writer.add_fixed_cost(node.name == "optMap")
    return term


def _uses_variable(node: Node, name: str) -> bool:
    pending = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, Ident) and at.name == name:
            return True
        pending.extend(children(at))
    return False
