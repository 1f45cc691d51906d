"""Compiles `&&`, `||`, `!`, `? :`, `==` and `!=`.

Every operand of a chain of && or || is evaluated only if none before it has decided, and in a separate try if it can
fail; the first error is raised only if no later operand decides (cel-go v0.26.0 interpreter/interpretable.go evalAnd,
evalOr). In Python 3.11 a try costs nothing until something is raised.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeAlias, TypeGuard

from webhook.cel.compile import code
from webhook.cel.compile import optional as optionals
from webhook.cel.compile.code import FailurePlace, ValueCode
from webhook.cel.compile.expression import ExpressionCompiler
from webhook.cel.compile.failure import ERRORS
from webhook.cel.compile.membership import may_be_opaque
from webhook.cel.equality import are_equal, are_equal_without_error
from webhook.cel.library import runtime
from webhook.cel.library.conversions import type_of_value
from webhook.cel.library.refusal import raise_no_such_overload
from webhook.cel.syntax.tree import Call, Node
from webhook.cel.types import BOOL, NULL, Type
from webhook.cel.values import TYPE_NAMES, Map, TypeValue, UInt, fail_with_no_such_overload

_SIZED = frozenset(("string", "bytes", "list", "map", "dyn", "any", "optional_type"))
Equals: TypeAlias = "Callable[..., bool]"
_EXACT = 2**53
"""Below this every int is exactly a double, so that Python's exact comparison and cel-go's agree."""


def and_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of a && b && …"""
    return _and_or_code(compiler, node, decides=False)


def or_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of a || b || …"""
    return _and_or_code(compiler, node, decides=True)


def _flattened_operands(node: Call) -> list[Node]:
    operands: list[Node] = []
    pending: list[Node] = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, Call) and at.function == node.function:
            pending.extend(reversed(at.arguments))
        else:
            operands.append(at)
    return operands


def _and_or_code(compiler: ExpressionCompiler, node: Call, *, decides: bool) -> ValueCode:
    writer = compiler.writer
    result, error = writer.new_variable_name(), writer.new_variable_name()
    operands = _flattened_operands(node)
    is_long = len(operands) > _NESTED
    writer.depth += 1 + is_long
    bodies: list[list[ast.stmt]] = []
    fails = False
    for position, operand in enumerate(operands):
        last = position == len(operands) - 1
        writer.level += not last
        with writer.collect_nested_statements() if position == 0 else writer.collect_block() as body:
            term = compiler.value_code(operand)
            raises = bool(body) or term.raises or not is_surely_bool(term)
            writer.append_statement(code.assignment_node(result, term.code))
            if not is_surely_bool(term):
                write_bool_check(compiler, code.name_node(result))
        writer.level -= not last
        if raises and (fails or not last):
            body = [operand_try_statement(compiler, body, error)]
            fails = True
        bodies.append(body)
    writer.depth -= 1 + is_long
    if fails:
        writer.append_statement(code.assignment_node(error, code.constant_node(None)))
        writer.append_statement(code.assignment_node(result, code.constant_node(not decides)))
        bodies.append(_raise_stored_error_statements(error))
    join = _successive_operand_statements if is_long else _nested_operand_statements
    writer.body.extend(join(code.name_node(result), bodies, decides=decides))
    return ValueCode(code.name_node(result), BOOL, raises=False, atom=True, sure=True)


_NESTED = 8
"""How many operands of a chain are nested; Python cannot compile much deeper code."""


def _nested_operand_statements(result: ast.Name, bodies: list[list[ast.stmt]], *, decides: bool) -> list[ast.stmt]:
    """Return statements in which each operand is nested in the condition that those before it have not decided."""
    undecided = code.is_not_comparison_node(result, code.constant_node(decides))
    inner: list[ast.stmt] = []
    for body in reversed(bodies):
        inner = [*body, code.if_node(undecided, inner)] if inner else body
    return inner


def _successive_operand_statements(result: ast.Name, bodies: list[list[ast.stmt]], *, decides: bool) -> list[ast.stmt]:
    """Return a loop that runs once, evaluates one operand after the other, and ends when an operand decides the
    result.
    """
    decided = code.if_node(code.is_comparison_node(result, code.constant_node(decides)), [code.break_node()])
    row = [statement for body in bodies for statement in (*body, decided)]
    return [code.while_once_node([*row, code.break_node()])]


def operand_try_statement(compiler: ExpressionCompiler, body: list[ast.stmt], error: str) -> ast.stmt:
    """Return a statement that runs `body` and stores its error unless an earlier one is stored."""
    refund_for = code.call_node(compiler.reference_to_object(compiler.refund_for), code.name_node("x"))
    keep = code.if_node(
        code.is_comparison_node(code.name_node(error), code.constant_node(None)),
        [code.assignment_node(error, code.name_node("x"))],
    )
    compiler.writer.moves += 1
    return code.try_node(body, compiler.reference_to_object(ERRORS), [code.subtract_cost_node(refund_for), keep])


def _raise_stored_error_statements(error: str) -> list[ast.stmt]:
    pending = code.is_not_comparison_node(code.name_node(error), code.constant_node(None))
    return [code.if_node(pending, [code.raise_node(code.name_node(error))])]


def is_surely_bool(term: ValueCode) -> bool:
    """Return whether a value is certain to be a bool."""
    return term.sure and term.type.name == "bool"


def write_bool_check(compiler: ExpressionCompiler, value: ast.expr, operator: str = "") -> None:
    """Write a statement that fails unless the value is a bool; the error names `operator` if one is given."""
    wrong = code.and_node(
        code.is_not_comparison_node(value, code.constant_node(value=True)),
        code.is_not_comparison_node(value, code.constant_node(value=False)),
    )
    refused = compiler.function_call(fail_with_no_such_overload, place=FailurePlace("call"))
    if operator:
        refused = compiler.function_call(
            raise_no_such_overload, code.constant_node(operator), value, place=FailurePlace("call")
        )
    compiler.writer.append_statement(code.if_node(wrong, [code.expression_statement_node(refused)]))


def code_checked_as_bool(compiler: ExpressionCompiler, term: ValueCode, operator: str = "") -> ast.expr:
    """Return the code of a value as a bool, after writing a check if it might be something else."""
    if is_surely_bool(term):
        return term.code
    reusable = compiler.reusable_code(term)
    write_bool_check(compiler, reusable.code, operator)
    return reusable.code


def not_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of !a."""
    compiler.writer.add_fixed_cost(1)
    term = compiler.value_code(node.arguments[0])
    return ValueCode(code.not_node(code_checked_as_bool(compiler, term, "!_")), BOOL, raises=term.raises, sure=True)


def conditional_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of a ? b : c. Only the chosen branch is evaluated, and the condition's error is the result's."""
    writer = compiler.writer
    test = code_checked_as_bool(compiler, compiler.value_code(node.arguments[0]))
    result = code.name_node(writer.new_variable_name())
    terms: list[ValueCode] = []
    bodies: list[list[ast.stmt]] = []
    for branch in node.arguments[1:]:
        with writer.collect_block() as body:
            terms.append(compiler.value_code_without_attribute_cost(branch))
        bodies.append(body)
    raw = [term.raw for term in terms if term.raw is not None]
    values = raw if len(raw) == len(terms) else [term.code for term in terms]
    for body, value in zip(bodies, values, strict=True):
        body.append(code.assignment_node(result.id, value))
    writer.append_statement(code.if_node(test, *bodies))
    value = optionals.converted_optional_code(compiler, node, result, is_raw=values is raw)
    if value is not result:
        writer.append_statement(code.assignment_node(result.id, value))
    if values is raw:
        return optionals.optional_code_of_variable(compiler, result, compiler.checked.type_of(node))
    sure = terms[0].sure and terms[1].sure and terms[0].type == terms[1].type
    return ValueCode(result, compiler.checked.type_of(node), raises=False, atom=True, sure=sure)


# ---- equality


def equality_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of a == b or a != b, which compares values of any types; it costs 1 for every 10 of the smaller
    size.
    """
    left, right = node.arguments
    if compiler.is_constant(left) and not compiler.is_constant(right):
        left, right = right, left
    compiler.writer.add_fixed_cost(1)
    # only an opaque value on the left refuses to be compared
    equals = are_equal_without_error if node.function == "_!=_" or left is not node.arguments[0] else are_equal
    if _is_type_call(left, compiler) and type(compiler.constants.get(id(right))) is TypeValue:
        result = _type_comparison_code(compiler, left, compiler.constants[id(right)].name)
    else:
        first, second = compiler.value_codes((left, right))
        if compiler.is_constant(right):
            result = _constant_comparison_code(compiler, first, second, compiler.constants[id(right)], equals)
        else:
            result = _value_comparison_code(compiler, first, second, equals)
    if node.function == "_!=_":
        result.code, result.atom = code.not_node(result.code), False
    return result


def _is_type_call(node: Node, compiler: ExpressionCompiler) -> TypeGuard[Call]:
    """Return whether a node is type(x)."""
    overloads = compiler.overloads_fitting_static_types(node) if isinstance(node, Call) else ()
    return len(overloads) == 1 and overloads[0].implementation is type_of_value and not compiler.is_constant(node)


def _type_comparison_code(compiler: ExpressionCompiler, node: Call, name: str) -> ValueCode:
    """Return the code of type(x) == name, which compares the class of x without creating a type value."""
    compiler.writer.add_fixed_cost(1)
    term = compiler.value_code(node.arguments[0])
    if name in _ONLY and term.type.kind != "object":
        is_one = code.is_comparison_node(
            code.call_node(compiler.reference_to_object(type), term.code), compiler.reference_to_object(_ONLY[name])
        )
        return ValueCode(is_one, BOOL, raises=term.raises, sure=True)
    first, again = compiler.first_and_later_use(term) if name == "map" else (term.code, term.code)
    line = compiler.writer.new_line_number(FailurePlace("call"))
    named = code.subscript_node(
        compiler.reference_to_object(TYPE_NAMES), code.call_node(compiler.reference_to_object(type), again), line
    )
    test: ast.expr = code.comparison_node(named, ast.Eq(), code.constant_node(name))
    if name == "map":
        test = code.or_node(
            code.is_comparison_node(
                code.call_node(compiler.reference_to_object(type), first), compiler.reference_to_object(dict)
            ),
            test,
        )
    return ValueCode(test, BOOL, sure=True)


_ONLY: dict[str, type] = {
    "bool": bool,
    "int": int,
    "uint": UInt,
    "double": float,
    "string": str,
    "bytes": bytes,
    "list": list,
    "null_type": type(None),
}
"""Types whose values have exactly one Python class."""


def _constant_comparison_code(
    compiler: ExpressionCompiler, term: ValueCode, constant: ValueCode, value: Any, equals: Equals
) -> ValueCode:
    writer = compiler.writer
    kind = type(value)
    raises = term.raises
    if kind in (str, list, bytes, dict, Map):
        if not value:
            writer.add_fixed_cost(-1)  # the smaller size is 0
            return ValueCode(_equals_constant_code(compiler, term, value, equals), BOOL, raises=raises, sure=True)
        if kind is not str:
            return _value_comparison_code(compiler, term, constant, equals)
        if len(value) > 10 and not may_be_opaque(compiler, term):
            return _long_text_comparison_code(compiler, term, value)
    if may_have_size(term.type):
        term = compiler.reusable_code(term)
        writer.moves += 1
        empty = compiler.function_call(runtime.one_if_sized, term.code)
        writer.append_statement(code.if_node(code.not_node(term.code), [code.subtract_cost_node(empty)]))
    return ValueCode(_equals_constant_code(compiler, term, value, equals), BOOL, raises=raises, sure=True)


def _long_text_comparison_code(compiler: ExpressionCompiler, term: ValueCode, value: str) -> ValueCode:
    reusable = compiler.reusable_code(term)
    result = compiler.writer.stored_in_variable(
        code.comparison_node(reusable.code, ast.Eq(), code.constant_node(value))
    )
    compiler.writer.add_fixed_cost(tenth_rounded_up(len(value)) - 1)
    compiler.writer.moves += 1
    compiler.writer.append_statement(
        code.if_node(code.not_node(result), _refund_statements_for_shorter_text(compiler, reusable.code, len(value)))
    )
    return ValueCode(result, BOOL, raises=False, atom=True, sure=True)


def tenth_rounded_up(length: int) -> int:
    """Return a tenth of a length, rounded up."""
    return (length + 9) // 10


def _refund_statements_for_shorter_text(compiler: ExpressionCompiler, value: ast.expr, length: int) -> list[ast.stmt]:
    """Return statements that subtract the cost of the characters by which a value is shorter than the text it is
    compared with.
    """
    size = code.name_node(compiler.writer.new_variable_name())
    is_text = code.is_comparison_node(
        code.call_node(compiler.reference_to_object(type), value), compiler.reference_to_object(str)
    )
    other = compiler.function_call(runtime.actual_size, value)
    measured = code.if_else_node(is_text, code.call_node(compiler.reference_to_object(len), value), other)
    rounded = code.binary_operation_node(
        code.binary_operation_node(size, ast.Add(), code.constant_node(9)), ast.FloorDiv(), code.constant_node(10)
    )
    less = code.subtract_cost_node(
        code.binary_operation_node(code.constant_node(tenth_rounded_up(length)), ast.Sub(), rounded)
    )
    is_shorter = code.comparison_node(size, ast.Lt(), code.constant_node(length))
    return [code.assignment_node(size.id, measured), code.if_node(is_shorter, [less])]


def _equals_constant_code(compiler: ExpressionCompiler, term: ValueCode, value: Any, equals: Equals) -> ast.expr:
    if may_be_opaque(compiler, term) and value is not None:
        return compiler.function_call(
            equals, term.code, compiler.reference_to_object(value), place=FailurePlace("call")
        )
    if value is None or value is True or value is False:
        return code.is_comparison_node(term.code, code.constant_node(value))
    kind = type(value)
    plain = kind is str or (kind is int and abs(value) < _EXACT and value not in (0, 1))
    plain = plain or (kind is float and abs(value) < _EXACT and value not in (0.0, 1.0))
    # true == 1 in Python, so 0 and 1 need to know that the other side is not a bool
    if plain or (kind is int and abs(value) < _EXACT and term.sure and term.type.name == "int"):
        return code.comparison_node(term.code, ast.Eq(), code.constant_node(value))
    if kind is int and abs(value) < _EXACT:
        first, again = compiler.first_and_later_use(term)
        is_int = code.is_comparison_node(
            code.call_node(compiler.reference_to_object(type), first), compiler.reference_to_object(int)
        )
        quick = code.comparison_node(again, ast.Eq(), code.constant_node(value))
        return code.if_else_node(
            is_int, quick, compiler.function_call(equals, again, code.constant_node(value), place=FailurePlace("call"))
        )
    return compiler.function_call(equals, term.code, compiler.reference_to_object(value), place=FailurePlace("call"))


def _write_comparison_cost(compiler: ExpressionCompiler, left: ast.expr, right: ast.expr) -> None:
    """Write a statement that adds the cost of comparing two values by their sizes; short texts add nothing."""
    writer = compiler.writer
    is_text = code.is_comparison_node(
        code.call_node(compiler.reference_to_object(type), left), compiler.reference_to_object(str)
    )
    length = code.call_node(compiler.reference_to_object(len), left)
    short = ast.Compare(
        code.constant_node(0), [ast.Lt(), ast.Lt()], [length, code.constant_node(11)], lineno=1, col_offset=0
    )
    count = code.add_cost_node(compiler.function_call(runtime.equality_cost, left, right))
    writer.moves += 1
    writer.heavy += 1
    writer.append_statement(code.if_node(code.not_node(code.and_node(is_text, right, short)), [count]))


def may_have_size(static: Type) -> bool:
    """Return whether a value of this static type may have a size, and so be empty."""
    return static.name in _SIZED or static.kind == "object"


def _value_comparison_code(
    compiler: ExpressionCompiler, left: ValueCode, right: ValueCode, equals: Equals
) -> ValueCode:
    raises = left.raises or right.raises
    if may_have_size(left.type) and may_have_size(right.type) and NULL not in (left.type, right.type):
        left, right = compiler.reusable_code(left), compiler.reusable_code(right)
        _write_comparison_cost(compiler, left.code, right.code)
    elif may_have_size(left.type) or may_have_size(right.type):
        left, right = compiler.reusable_code(left), compiler.reusable_code(right)
        sized = left if may_have_size(left.type) else right
        compiler.writer.moves += 1
        empty = compiler.function_call(runtime.one_if_sized, sized.code)
        compiler.writer.append_statement(code.if_node(code.not_node(sized.code), [code.subtract_cost_node(empty)]))
    if left.type.name == right.type.name and left.type.name in ("string", "bool") and (left.sure or right.sure):
        return ValueCode(code.comparison_node(left.code, ast.Eq(), right.code), BOOL, raises=raises, sure=True)
    left, right = compiler.reusable_code(left), compiler.reusable_code(right)
    is_text = code.is_comparison_node(
        code.call_node(compiler.reference_to_object(type), left.code), compiler.reference_to_object(str)
    )
    quick = code.comparison_node(left.code, ast.Eq(), right.code)
    slow = compiler.function_call(equals, left.code, right.code, compiler.deadline_code(), place=FailurePlace("call"))
    return ValueCode(code.if_else_node(is_text, quick, slow), BOOL, raises=raises, sure=True)
