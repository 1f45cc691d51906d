"""Compiles the operators on two values: `==` `!=`, `<` `<=` `>` `>=`, `+` `-` `*`, and `in`.

Python's operators compare and add values of plain classes, and functions of the library compare and add other values.
For `in`, a constant list of plain values becomes a set, and Python's `in` looks for a text. Sources: cel-go v0.26.0
interpreter/runtimecost.go, interpreter/decorators.go maybeOptimizeSetMembership, common/types/map.go.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeGuard

from webhook.cel.check.folding import is_turned_into_set
from webhook.cel.compile import code
from webhook.cel.compile.calls import overload_call_code, tenth_of_length_code
from webhook.cel.compile.code import FailurePlace, ValueCode
from webhook.cel.compile.expression import ExpressionCompiler
from webhook.cel.equality import are_equal, are_equal_without_error
from webhook.cel.library import costs, runtime, standard
from webhook.cel.library.conversions import type_of_value
from webhook.cel.library.declaration import Overload
from webhook.cel.library.membership import is_member, membership_set
from webhook.cel.syntax.tree import Call, Macro, MapNode, Node
from webhook.cel.types import BOOL, INT, NULL, Type
from webhook.cel.values import INT_MAX, INT_MIN, TYPE_NAMES, Map, TypeValue, UInt
from webhook.deadline import STEP as ITERATIONS

# ---- equality


_SIZED = frozenset(("string", "bytes", "list", "map", "dyn", "any", "optional_type"))
_Equals: TypeAlias = "Callable[..., bool]"
_EXACT = 2**53
"""Every int below this number is exactly a double, so Python's comparison agrees with cel-go's."""


def equality_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of a == b or a != b, for values of any types. A comparison costs 1 for every 10 of the smaller
    size.
    """
    left, right = node.arguments
    if compiler.is_constant(left) and not compiler.is_constant(right):
        left, right = right, left
    compiler.writer.add_fixed_cost(1)
    # only an opaque value on the left can refuse a comparison
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
    first, later = compiler.first_and_later_use(term) if name == "map" else (term.code, term.code)
    line = compiler.writer.new_line_number(FailurePlace("call"))
    named = code.subscript_node(
        compiler.reference_to_object(TYPE_NAMES), code.call_node(compiler.reference_to_object(type), later), line
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
"""Types with values of exactly one Python class."""


def _constant_comparison_code(
    compiler: ExpressionCompiler, term: ValueCode, constant: ValueCode, value: Any, equals: _Equals
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
        if len(value) > 10 and not _may_be_opaque(compiler, term):
            return _long_text_comparison_code(compiler, term, value)
    if _may_have_size(term.type):
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
    compiler.writer.add_fixed_cost(_tenth_rounded_up(len(value)) - 1)
    compiler.writer.moves += 1
    compiler.writer.append_statement(
        code.if_node(code.not_node(result), _refund_statements_for_shorter_text(compiler, reusable.code, len(value)))
    )
    return ValueCode(result, BOOL, raises=False, atom=True, sure=True)


def _tenth_rounded_up(length: int) -> int:
    return (length + 9) // 10


def _refund_statements_for_shorter_text(compiler: ExpressionCompiler, value: ast.expr, length: int) -> list[ast.stmt]:
    # the cost of the constant text is counted; for a shorter value, the difference is subtracted
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
        code.binary_operation_node(code.constant_node(_tenth_rounded_up(length)), ast.Sub(), rounded)
    )
    is_shorter = code.comparison_node(size, ast.Lt(), code.constant_node(length))
    return [code.assignment_node(size.id, measured), code.if_node(is_shorter, [less])]


def _equals_constant_code(compiler: ExpressionCompiler, term: ValueCode, value: Any, equals: _Equals) -> ast.expr:
    if _may_be_opaque(compiler, term) and value is not None:
        return compiler.function_call(
            equals, term.code, compiler.reference_to_object(value), place=FailurePlace("call")
        )
    if value is None or value is True or value is False:
        return code.is_comparison_node(term.code, code.constant_node(value))
    kind = type(value)
    plain = kind is str or (kind is int and abs(value) < _EXACT and value not in (0, 1))
    plain = plain or (kind is float and abs(value) < _EXACT and value not in (0.0, 1.0))
    # true == 1 in Python, so for 0 and 1 the other side must not be a bool
    if plain or (kind is int and abs(value) < _EXACT and term.sure and term.type.name == "int"):
        return code.comparison_node(term.code, ast.Eq(), code.constant_node(value))
    if kind is int and abs(value) < _EXACT:
        first, later = compiler.first_and_later_use(term)
        is_int = code.is_comparison_node(
            code.call_node(compiler.reference_to_object(type), first), compiler.reference_to_object(int)
        )
        quick = code.comparison_node(later, ast.Eq(), code.constant_node(value))
        return code.if_else_node(
            is_int, quick, compiler.function_call(equals, later, code.constant_node(value), place=FailurePlace("call"))
        )
    return compiler.function_call(equals, term.code, compiler.reference_to_object(value), place=FailurePlace("call"))


def _write_comparison_cost(compiler: ExpressionCompiler, left: ast.expr, right: ast.expr) -> None:
    # the cost follows from the sizes of both values; short texts add no cost
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


def _may_have_size(static: Type) -> bool:
    return static.name in _SIZED or static.kind == "object"


def _value_comparison_code(
    compiler: ExpressionCompiler, left: ValueCode, right: ValueCode, equals: _Equals
) -> ValueCode:
    raises = left.raises or right.raises
    if _may_have_size(left.type) and _may_have_size(right.type) and NULL not in (left.type, right.type):
        left, right = compiler.reusable_code(left), compiler.reusable_code(right)
        _write_comparison_cost(compiler, left.code, right.code)
    elif _may_have_size(left.type) or _may_have_size(right.type):
        left, right = compiler.reusable_code(left), compiler.reusable_code(right)
        sized = left if _may_have_size(left.type) else right
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


# ---- order and arithmetic


COMPARISONS: Mapping[str, tuple[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    "_<_": (ast.Lt, standard.less),
    "_<=_": (ast.LtE, standard.less_equals),
    "_>_": (ast.Gt, standard.greater),
    "_>=_": (ast.GtE, standard.greater_equals),
}
ARITHMETIC: Mapping[str, type[ast.operator]] = {"_+_": ast.Add, "_-_": ast.Sub, "_*_": ast.Mult}
_ORDERED = frozenset(("int", "uint", "string", "bytes", "bool"))
"""Types that Python orders as CEL does."""


def comparison_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of a < b, a <= b, a > b or a >= b."""
    operator, slow = COMPARISONS[node.function]
    left, right = compiler.value_codes(node.arguments)
    overloads = compiler.overloads_fitting_static_types(node)
    compiler.writer.add_fixed_cost(1)
    if len(overloads) == 1 and overloads[0].parameters[0].name in ("string", "bytes"):
        left, right = compiler.reusable_code(left), compiler.reusable_code(right)
        compiler.writer.add_runtime_cost(compiler.function_call(_comparison_cost_less_one, left.code, right.code))
    common_type = left.type.name if left.type.name == right.type.name and left.sure and right.sure else ""
    if common_type in _ORDERED:
        raises = left.raises or right.raises
        return ValueCode(code.comparison_node(left.code, operator(), right.code), BOOL, raises=raises, sure=True)
    if "int" in (left.type.name, right.type.name) and common_type != "double":
        left, right = compiler.reusable_code(left), compiler.reusable_code(right)
        checks = [
            code.is_comparison_node(
                code.call_node(compiler.reference_to_object(type), side.code), compiler.reference_to_object(int)
            )
            for side in (left, right)
            if not (side.sure and side.type.name == "int")
        ]
        quick = code.comparison_node(left.code, operator(), right.code)
        other = compiler.function_call(slow, left.code, right.code, place=FailurePlace("call"))
        return ValueCode(code.if_else_node(_conjunction_of_tests(checks), quick, other), BOOL, sure=True)
    return ValueCode(compiler.function_call(slow, left.code, right.code, place=FailurePlace("call")), BOOL, sure=True)


def _comparison_cost_less_one(left: Any, right: Any) -> int:
    return -(-min(costs.counted_size(left), costs.counted_size(right)) // 10) - 1


def _conjunction_of_tests(checks: list[ast.expr]) -> ast.expr:
    if not checks:
        return code.constant_node(value=True)
    return checks[0] if len(checks) == 1 else code.and_node(*checks)


def arithmetic_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of a + b, a - b or a * b."""
    terms = compiler.value_codes(node.arguments)
    overloads = compiler.overloads_fitting_static_types(node)
    static = compiler.checked.type_of(node)
    if len(overloads) == 1 and overloads[0].id == "add_string" and any(map(_is_surely_string, terms)):
        return _concatenation_code(compiler, terms, static)
    if static.name == "int" and len(overloads) == 1 and all(term.sure and term.type.name == "int" for term in terms):
        return _int_operation_code(compiler, node, terms, overloads[0])
    return overload_call_code(compiler, node, terms)


def _is_surely_string(term: ValueCode) -> bool:
    return term.sure and term.type.name == "string"


def _int_operation_code(
    compiler: ExpressionCompiler, node: Call, terms: list[ValueCode], overload: Overload
) -> ValueCode:
    compiler.writer.add_fixed_cost(1)
    left, right = (compiler.reusable_code(term) for term in terms)
    raw = code.binary_operation_node(left.code, ARITHMETIC[node.function](), right.code)
    result = compiler.writer.new_variable_name()
    fits = ast.Compare(
        code.constant_node(INT_MIN),
        [ast.LtE(), ast.LtE()],
        [code.walrus_node(result, raw), code.constant_node(INT_MAX)],
        lineno=1,
        col_offset=0,
    )
    overflow = compiler.function_call(overload.implementation, left.code, right.code, place=FailurePlace("call"))
    return ValueCode(code.if_else_node(fits, code.name_node(result), overflow), INT, sure=True)


def _concatenation_code(compiler: ExpressionCompiler, terms: list[ValueCode], static: Type) -> ValueCode:
    # Python itself raises an error if the other value is not a text
    writer = compiler.writer
    writer.add_fixed_cost(1)
    left, right = terms
    left = left if left.sure else compiler.reusable_code(left)
    line = writer.new_line_number(FailurePlace("operand", "_+_", arguments=(left.code,)))
    result = writer.stored_in_variable(code.binary_operation_node(left.code, ast.Add(), right.code, line))
    writer.add_runtime_cost(tenth_of_length_code(compiler, result))
    return ValueCode(result, static, raises=False, atom=True, sure=True)


# ---- in


_CONTAINERS: Mapping[str, tuple[type, ...]] = {"list": (list,), "map": (dict,)}


def membership_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of `a in b`. A constant list of plain values becomes a set, in which a lookup is free."""
    left, right = node.arguments
    static = compiler.checked.type_of(right)
    if compiler.is_constant(right) and static.name == "list" and is_turned_into_set(compiler.constants[id(right)]):
        return _set_membership_code(compiler, compiler.value_code(left), compiler.constants[id(right)])
    term, container = compiler.value_codes((left, right))
    if not container.atom:
        term = compiler.reusable_code(term)
    overloads = compiler.overloads_fitting_static_types(node)
    if isinstance(right, MapNode | Macro) and _may_be_opaque(compiler, term):
        compiler.writer.add_fixed_cost(1)
        answer = compiler.function_call(
            standard.contains_or_panic_if_unhashable,
            compiler.deadline_code(),
            term.code,
            container.code,
            place=FailurePlace("call"),
        )
        return ValueCode(answer, BOOL, sure=True)
    compiler.writer.add_fixed_cost(1)  # a failed container costs as much as a container of size 1
    is_counted = len(overloads) == 1 and overloads[0].id == "in_list"
    if is_counted:
        container = compiler.reusable_code(container)
        length = code.call_node(
            compiler.reference_to_object(len),
            container.code,
            line=compiler.writer.new_line_number(FailurePlace("call")),
        )
        compiler.writer.add_runtime_cost(code.binary_operation_node(length, ast.Sub(), code.constant_node(1)))
    if term.type.name == "string":
        # a text equals only texts, so Python's lookup is right
        container = compiler.reusable_code(container)
        kind = code.call_node(compiler.reference_to_object(type), container.code)
        classes: tuple[type, ...] = _CONTAINERS.get(container.type.name, (dict, list))
        checks = [code.is_comparison_node(kind, compiler.reference_to_object(each)) for each in classes]
        if list in classes and not is_counted:
            checks[-1] = code.and_node(checks[-1], _short_list_test(compiler, container.code))
        is_searchable = checks[0] if len(checks) == 1 else code.or_node(*checks)
        term = compiler.reusable_code(term)
        quick = code.comparison_node(term.code, ast.In(), container.code)
        slow = compiler.function_call(
            standard.contains, compiler.deadline_code(), term.code, container.code, place=FailurePlace("call")
        )
        return ValueCode(code.if_else_node(is_searchable, quick, slow), BOOL, sure=True)
    answer = compiler.function_call(
        standard.contains, compiler.deadline_code(), term.code, container.code, place=FailurePlace("call")
    )
    return ValueCode(answer, BOOL, sure=True)


def _may_be_opaque(compiler: ExpressionCompiler, term: ValueCode) -> bool:
    # Python's `==` differs from CEL's for types that JSON lacks
    static = term.type
    if static.kind == "opaque" or static.name == "bytes":
        return True
    return compiler.checked.has_opaque and (static.name in ("dyn", "any") or static.kind == "param")


def _short_list_test(compiler: ExpressionCompiler, container: ast.expr) -> ast.expr:
    # a short list is searched without reading the clock
    return code.comparison_node(
        code.call_node(compiler.reference_to_object(len), container), ast.LtE(), code.constant_node(ITERATIONS)
    )


def _set_membership_code(compiler: ExpressionCompiler, term: ValueCode, values: list[Any]) -> ValueCode:
    raises = term.raises
    if all(type(value) is str for value in values) and not _may_be_opaque(compiler, term):
        members = code.constant_node(frozenset(values))
        first, later = compiler.first_and_later_use(term)
        if term.sure and term.type.name == "string":
            return ValueCode(code.comparison_node(first, ast.In(), members), BOOL, raises=raises, sure=True)
        is_text = code.is_comparison_node(
            code.call_node(compiler.reference_to_object(type), first), compiler.reference_to_object(str)
        )
        return ValueCode(
            code.and_node(is_text, code.comparison_node(later, ast.In(), members)), BOOL, raises=raises, sure=True
        )
    constants = compiler.reference_to_object(membership_set(values))
    return ValueCode(
        compiler.function_call(is_member, term.code, constants, place=FailurePlace("call")), BOOL, sure=True
    )
