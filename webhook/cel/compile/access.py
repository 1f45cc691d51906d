"""Compiles names, fields, indexes, has() and optional selections.

A path `a.b[c].d` is a chain of Python subscripts. On plain JSON, a subscript raises KeyError or TypeError exactly where
cel-go has an error. A path costs 1, and each step that is tried costs 1. A step after an optional step costs 1 only if
the step finds a value (cel-go v0.26.0 interpreter/attributes.go, runtimecost.go).
"""

from __future__ import annotations

import ast

from msgspec.structs import replace

from webhook.cel.compile import code
from webhook.cel.compile import optional as optionals
from webhook.cel.compile.code import FailurePlace, ValueCode
from webhook.cel.compile.expression import ExpressionCompiler, is_conditional_expression, path_steps_and_start
from webhook.cel.library import runtime
from webhook.cel.library.optional_value import is_field_present
from webhook.cel.syntax.tree import Call, Has, Ident, Node, Select
from webhook.cel.types import BOOL, Type

_BUILT = ("Object", "JSONPatch")
"""Structures that expressions build. A field that is not set is null."""


def variable_code(compiler: ExpressionCompiler, node: Ident) -> ValueCode:
    """Return the code of a variable."""
    compiler.writer.add_fixed_cost(1)
    return _variable_lookup_code(compiler, node)


def _variable_lookup_code(compiler: ExpressionCompiler, node: Ident | Select) -> ValueCode:
    reference = compiler.checked.name_referred_to(node)
    if reference is None:
        assert isinstance(node, Ident)
        return compiler.scope[node.name.removeprefix(".")]
    line = compiler.writer.new_line_number(FailurePlace("variable", reference))
    value = code.subscript_node(code.name_node(code.ACTIVATION), code.constant_node(reference), line)
    return ValueCode(value, compiler.checked.type_of(node))


def path_code(compiler: ExpressionCompiler, node: Select | Call) -> ValueCode:
    """Return the code of a path: fields and indexes of a value."""
    compiler.writer.add_fixed_cost(1)
    return _path_steps_code(compiler, node)


def code_of_has_macro(compiler: ExpressionCompiler, node: Has) -> ValueCode:
    """Return the code of has(operand.field). The field costs 1 as a step. The path as a whole costs nothing."""
    writer = compiler.writer
    with writer.subtract_cost_of_unreached_parts() as part:
        part()
        term = _path_start_code(compiler, node.operand)
        part()
        optional = term.type.name == "optional_type"
        writer.add_fixed_cost(not optional)
        part()
    if is_conditional_expression(node.operand):
        writer.add_fixed_cost(-1)  # for a path after `? :`, cel-go does not count the 1 of the whole path
    if optional:
        answer = writer.stored_in_variable(
            compiler.function_call(
                is_field_present, term.code, code.constant_node(node.field), place=FailurePlace("call")
            )
        )
        writer.add_runtime_cost(answer)
        return ValueCode(answer, BOOL, raises=False, atom=True, sure=True)
    if _is_built_by_expression(term):
        is_set = compiler.function_call(
            runtime.has_field, term.code, code.constant_node(node.field), place=FailurePlace("call")
        )
        return ValueCode(is_set, BOOL, sure=True)
    first, later = compiler.first_and_later_use(term)
    test = code.is_comparison_node(
        code.call_node(compiler.reference_to_object(type), first), compiler.reference_to_object(dict)
    )
    inside = code.comparison_node(code.constant_node(node.field), ast.In(), later)
    slow = compiler.function_call(is_field_present, later, code.constant_node(node.field), place=FailurePlace("call"))
    return ValueCode(code.if_else_node(test, inside, slow), BOOL, sure=True)


def _path_start_code(compiler: ExpressionCompiler, node: Node) -> ValueCode:
    # does not count the cost of 1 for the whole path
    if compiler.is_constant(node):
        return compiler.value_code(node)
    if isinstance(node, Ident):
        return _variable_lookup_code(compiler, node)
    if isinstance(node, Select) or (isinstance(node, Call) and node.function in ("_[_]", "_[?_]")):
        return _path_steps_code(compiler, node)
    return compiler.value_code(node)


def _path_steps_code(compiler: ExpressionCompiler, node: Select | Call) -> ValueCode:
    # a loop and not a recursion, because paths may be long
    steps, at = path_steps_and_start(compiler, node)
    with compiler.writer.subtract_cost_of_unreached_parts() as part:
        part()
        named = isinstance(at, Select) and not compiler.is_constant(at)
        term = (
            _variable_lookup_code(compiler, at) if named and isinstance(at, Select) else _path_start_code(compiler, at)
        )
        if isinstance(term.code, ast.Constant):
            term = replace(term, code=compiler.writer.assign_to_new_variable(term.code))
        for position, step in enumerate(steps):
            if term.type.name == "optional_type" or _is_optional_step(step):
                term = optionals.optional_path_steps_code(compiler, term, steps[position:], part)
                break
            part()
            term = _path_step_code(compiler, term, step)
        part()
    if is_conditional_expression(at):
        compiler.writer.add_fixed_cost(-1)  # for a path after `? :`, cel-go does not count the 1 of the whole path
    return term


def _is_optional_step(step: Select | Call) -> bool:
    return step.optional if isinstance(step, Select) else step.function == "_[?_]"


def _is_built_by_expression(term: ValueCode) -> bool:
    return term.type.kind == "object" and term.type.name.partition(".")[0] in _BUILT


def _path_step_code(compiler: ExpressionCompiler, term: ValueCode, step: Select | Call) -> ValueCode:
    static = compiler.checked.type_of(step)
    compiler.writer.add_fixed_cost(1)
    if isinstance(step, Call):
        return _index_code(compiler, term, step, static)
    if _is_built_by_expression(term):
        return ValueCode(
            compiler.function_call(
                runtime.field_of, term.code, code.constant_node(step.field), place=FailurePlace("call")
            ),
            static,
        )
    line = compiler.writer.new_line_number(FailurePlace("field", step.field))
    return ValueCode(code.subscript_node(term.code, code.constant_node(step.field), line), static)


def _index_code(compiler: ExpressionCompiler, term: ValueCode, step: Call, static: Type) -> ValueCode:
    key = step.arguments[1]
    writer = compiler.writer
    if compiler.is_constant(key):
        value = compiler.constants[id(key)]
        if type(value) is str:
            return ValueCode(
                code.subscript_node(
                    term.code, code.constant_node(value), writer.new_line_number(FailurePlace("field", value))
                ),
                static,
            )
        if type(value) is int and value >= 0:
            first, later = compiler.first_and_later_use(term)
            quick = code.subscript_node(
                later, code.constant_node(value), writer.new_line_number(FailurePlace("element", value))
            )
            slow = compiler.function_call(
                runtime.value_at_key, later, code.constant_node(value), place=FailurePlace("call")
            )
            is_list = code.is_comparison_node(
                code.call_node(compiler.reference_to_object(type), first), compiler.reference_to_object(list)
            )
            return ValueCode(code.if_else_node(is_list, quick, slow), static)
    index = compiler.value_code_without_attribute_cost(key)
    if index.type.name == "string" and index.sure:
        index = compiler.reusable_code(index)
        line = writer.new_line_number(FailurePlace("key", arguments=(index.code,)))
        return ValueCode(code.subscript_node(term.code, index.code, line), static)
    if index.type.name in ("int", "uint", "double"):
        return ValueCode(
            compiler.function_call(runtime.value_at_key, term.code, index.code, place=FailurePlace("call")), static
        )
    reusable, index = compiler.reusable_code(term), compiler.reusable_code(index)
    quick = code.subscript_node(
        reusable.code, index.code, writer.new_line_number(FailurePlace("key", arguments=(index.code,)))
    )
    test = code.is_comparison_node(
        code.call_node(compiler.reference_to_object(type), index.code), compiler.reference_to_object(str)
    )
    slow = compiler.function_call(runtime.value_at_key, reusable.code, index.code, place=FailurePlace("call"))
    return ValueCode(code.if_else_node(test, quick, slow), static)
