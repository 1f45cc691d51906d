"""Compiles a checked tree to a Python function.

An expression becomes one function. The function reads the variables from an activation, and works on plain JSON. The
other modules of this folder compile the nodes of the expression. This module lists their handlers, and writes the start
and the end of the function:

    def f(A, L, M):                     activation, cost at which the meter is called, meter
        S = 1000                        cost between two reads of the clock
        C = 5                           cost of the first block
        try:
            …
            M.cost = C
            return …
        except E as x:
            C -= refund_for(x)          counted cost of the parts after the failure
            M.cost = C
            raise failure(x)

KeyError, TypeError, IndexError and AttributeError of plain subscripts and methods are CEL errors. Their messages are
written only for a reported error (failure.py).
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Mapping
from typing import Any, Protocol

from webhook.cel.check.checked import CheckedTree
from webhook.cel.compile import access, calls, code, literals, logic, macros, operators, optional
from webhook.cel.compile.code import ValueCode
from webhook.cel.compile.expression import ExpressionCompiler, Handler
from webhook.cel.compile.failure import CODE_NAME, ERRORS
from webhook.cel.cost import CostMeter
from webhook.cel.syntax.tree import (
    Call,
    Has,
    Ident,
    ListNode,
    Literal,
    Macro,
    MapNode,
    Select,
    StructNode,
)
from webhook.deadline import STEP as ITERATIONS
from webhook.errors import CompileError, CompileIssue

LEAST_STEP = 1_000
"""The least cost between two checks of the clock: a hundred ordinary iterations. More frequent checks would take more
than a hundredth of a short loop's time."""
NO_LOOP = 2**63
"""The step of an expression without loops: the clock is never checked."""


class CompiledFunction(Protocol):
    """A compiled expression. `limit` is the cost at which the function first calls the meter, and `step` the cost until
    the next call. The meter reads the clock only with a deadline.
    """

    step: int

    def __call__(self, activation: Mapping[str, Any], limit: int, meter: CostMeter, /) -> Any: ...


def compile_tree(checked: CheckedTree, source: str, *, exact: bool = False) -> CompiledFunction:
    """Compile a checked expression to a function.

    Raises:
        CompileError: a constant fails (folding.py), or the expression is too deep for Python's compiler.
    """
    try:
        return _compile_expression(checked, source, exact=exact)
    except RecursionError:
        # a new thread has an empty stack
        return _compile_in_thread(checked, source, exact=exact)


def _compile_in_thread(checked: CheckedTree, source: str, *, exact: bool) -> CompiledFunction:
    results: list[CompiledFunction] = []

    def compile_and_store() -> None:
        try:
            results.append(_compile_expression(checked, source, exact=exact))
        except (RecursionError, MemoryError):
            results.clear()

    thread = threading.Thread(target=compile_and_store)
    thread.start()
    thread.join()
    if not results:
        raise CompileError(source, (CompileIssue("expression is nested too deeply to be compiled", 1, 0),))
    return results[0]


def _compile_expression(checked: CheckedTree, source: str, *, exact: bool) -> CompiledFunction:
    compiler = ExpressionCompiler(checked, source, HANDLERS, exact=exact)
    writer = compiler.writer
    term = compiler.value_code(checked.node)
    cost = code.attribute_node(code.name_node(code.METER), "cost")
    store_cost = ast.Assign([_attribute_as_target(cost)], code.name_node(code.COST), lineno=1, col_offset=0)
    attempted = [*writer.body, store_cost, code.return_node(term.code)]
    handler = [
        store_cost,
        code.subtract_cost_node(code.call_node(compiler.reference_to_object(compiler.refund_for), code.name_node("x"))),
        store_cost,
        code.raise_node(code.call_node(compiler.reference_to_object(compiler.failure), code.name_node("x"))),
    ]
    body: list[ast.stmt] = [
        code.assignment_node(code.COST, code.constant_node(writer.total)),
        code.try_node(attempted, compiler.reference_to_object(ERRORS), handler),
    ]
    step = NO_LOOP
    if writer.lightest is not None:
        step = max(ITERATIONS * writer.lightest, LEAST_STEP)
        body.insert(0, code.assignment_node(code.STEP, code.constant_node(step)))
    evaluate = code.function_node("f", [code.ACTIVATION, code.LIMIT, code.METER], body)
    built = _build_function(evaluate, writer.constants)
    built.step = step
    return built


def _attribute_as_target(target: ast.Attribute) -> ast.Attribute:
    return ast.Attribute(target.value, target.attr, ast.Store(), lineno=1, col_offset=0)


def _build_function(evaluate: ast.FunctionDef, constants: Mapping[str, Any]) -> CompiledFunction:
    outer = code.function_node("g", list(constants), [evaluate, code.return_node(code.name_node("f"))])
    namespace: dict[str, Any] = {"__builtins__": {}}
    exec(compile(ast.Module([outer], []), CODE_NAME, "exec", dont_inherit=True), namespace)  # noqa: S102
    built: CompiledFunction = namespace["g"](*constants.values())
    return built


def _literal_code(compiler: ExpressionCompiler, node: Literal) -> ValueCode:
    return compiler.constant_code(node.value, compiler.checked.type_of(node))


def _operator_or_call_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    return OPERATORS.get(node.function, calls.call_code)(compiler, node)


HANDLERS: Mapping[type, Handler] = {
    Literal: _literal_code,
    Ident: access.variable_code,
    Select: access.path_code,
    Has: access.code_of_has_macro,
    Call: _operator_or_call_code,
    ListNode: literals.list_code,
    MapNode: literals.map_code,
    StructNode: literals.structure_code,
    Macro: macros.macro_code,
}

OPERATORS: Mapping[str, Handler] = {
    "_&&_": logic.and_code,
    "_||_": logic.or_code,
    "_?_:_": logic.conditional_code,
    "!_": logic.not_code,
    "_==_": operators.equality_code,
    "_!=_": operators.equality_code,
    **dict.fromkeys(operators.COMPARISONS, operators.comparison_code),
    **dict.fromkeys(operators.ARITHMETIC, operators.arithmetic_code),
    "_[_]": access.path_code,
    "_[?_]": access.path_code,
    "@in": operators.membership_code,
    "or": optional.optional_or_code,
    "orValue": optional.optional_or_code,
}
