"""Compiles `in`: a constant list of plain values becomes a set, and a text is searched by Python's own `in`.

Source: cel-go v0.26.0 interpreter/decorators.go maybeOptimizeSetMembership, common/types/map.go.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from webhook.cel.check.folding import is_turned_into_set
from webhook.cel.compile import code
from webhook.cel.compile.code import FailurePlace, ValueCode
from webhook.cel.compile.expression import ExpressionCompiler
from webhook.cel.library import standard
from webhook.cel.library.membership import is_member, membership_set
from webhook.cel.syntax.tree import Call, Macro, MapNode
from webhook.cel.types import BOOL
from webhook.deadline import STEP as ITERATIONS

_CONTAINERS: Mapping[str, tuple[type, ...]] = {"list": (list,), "map": (dict,)}


def membership_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of `a in b`. A constant list of plain values becomes a set, whose look-up cel-go does not
    count.
    """
    left, right = node.arguments
    static = compiler.checked.type_of(right)
    if compiler.is_constant(right) and static.name == "list" and is_turned_into_set(compiler.constants[id(right)]):
        return _set_membership_code(compiler, compiler.value_code(left), compiler.constants[id(right)])
    term, container = compiler.value_codes((left, right))
    if not container.atom:
        term = compiler.reusable_code(term)
    overloads = compiler.overloads_fitting_static_types(node)
    if isinstance(right, MapNode | Macro) and may_be_opaque(compiler, term):
        compiler.writer.add_fixed_cost(1)
        answer = compiler.function_call(
            standard.contains_or_panic_if_unhashable,
            compiler.deadline_code(),
            term.code,
            container.code,
            place=FailurePlace("call"),
        )
        return ValueCode(answer, BOOL, sure=True)
    compiler.writer.add_fixed_cost(1)  # also when the container fails, which then counts as one of size 1
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
        # a text equals nothing but texts, so Python's own look-up is right for lists and maps of anything
        container = compiler.reusable_code(container)
        kind = code.call_node(compiler.reference_to_object(type), container.code)
        classes: tuple[type, ...] = _CONTAINERS.get(container.type.name, (dict, list))
        checks = [code.is_comparison_node(kind, compiler.reference_to_object(each)) for each in classes]
        if list in classes and not is_counted:
            checks[-1] = code.and_node(checks[-1], _short_list_test(compiler, container.code))
        known = checks[0] if len(checks) == 1 else code.or_node(*checks)
        term = compiler.reusable_code(term)
        quick = code.comparison_node(term.code, ast.In(), container.code)
        slow = compiler.function_call(
            standard.contains, compiler.deadline_code(), term.code, container.code, place=FailurePlace("call")
        )
        return ValueCode(code.if_else_node(known, quick, slow), BOOL, sure=True)
    answer = compiler.function_call(
        standard.contains, compiler.deadline_code(), term.code, container.code, place=FailurePlace("call")
    )
    return ValueCode(answer, BOOL, sure=True)


def may_be_opaque(compiler: ExpressionCompiler, term: ValueCode) -> bool:
    """Return whether a value may have a type that JSON lacks; Python compares such values in its own way."""
    static = term.type
    if static.kind == "opaque" or static.name == "bytes":
        return True
    return compiler.checked.has_opaque and (static.name in ("dyn", "any") or static.kind == "param")


def _short_list_test(compiler: ExpressionCompiler, container: ast.expr) -> ast.expr:
    """Return the code that tests whether a list is short enough to be searched without reading the clock."""
    return code.comparison_node(
        code.call_node(compiler.reference_to_object(len), container), ast.LtE(), code.constant_node(ITERATIONS)
    )


def _set_membership_code(compiler: ExpressionCompiler, term: ValueCode, values: list[Any]) -> ValueCode:
    raises = term.raises
    if all(type(value) is str for value in values) and not may_be_opaque(compiler, term):
        members = code.constant_node(frozenset(values))
        first, again = compiler.first_and_later_use(term)
        if term.sure and term.type.name == "string":
            return ValueCode(code.comparison_node(first, ast.In(), members), BOOL, raises=raises, sure=True)
        is_text = code.is_comparison_node(
            code.call_node(compiler.reference_to_object(type), first), compiler.reference_to_object(str)
        )
        return ValueCode(
            code.and_node(is_text, code.comparison_node(again, ast.In(), members)), BOOL, raises=raises, sure=True
        )
    constants = compiler.reference_to_object(membership_set(values))
    return ValueCode(
        compiler.function_call(is_member, term.code, constants, place=FailurePlace("call")), BOOL, sure=True
    )
