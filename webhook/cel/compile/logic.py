"""Compiles `&&`, `||`, `!` and `? :`.

An operand of && or || is evaluated only if no earlier operand decides the result. An operand that can fail has its own
try. The first error is raised only if no later operand decides (cel-go v0.26.0 interpreter/interpretable.go evalAnd,
evalOr). In Python 3.11 a try takes no time unless an exception is raised.
"""

from __future__ import annotations

import ast

from webhook.cel.compile import code
from webhook.cel.compile import optional as optionals
from webhook.cel.compile.code import FailurePlace, ValueCode
from webhook.cel.compile.expression import ExpressionCompiler
from webhook.cel.compile.failure import ERRORS, error_that_counts
from webhook.cel.library.refusal import raise_no_such_overload
from webhook.cel.syntax.tree import Call, Node
from webhook.cel.types import BOOL
from webhook.cel.values import fail_with_no_such_overload


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
                _write_bool_check(compiler, code.name_node(result))
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
"""Up to this number of operands, the code of an operand is nested in the code of the previous operand. Python cannot
compile much deeper code."""


def _nested_operand_statements(result: ast.Name, bodies: list[list[ast.stmt]], *, decides: bool) -> list[ast.stmt]:
    # an operand is evaluated only if no earlier operand has decided
    undecided = code.is_not_comparison_node(result, code.constant_node(decides))
    nested: list[ast.stmt] = []
    for body in reversed(bodies):
        nested = [*body, code.if_node(undecided, nested)] if nested else body
    return nested


def _successive_operand_statements(result: ast.Name, bodies: list[list[ast.stmt]], *, decides: bool) -> list[ast.stmt]:
    # a loop that runs once and ends when an operand decides
    decided = code.if_node(code.is_comparison_node(result, code.constant_node(decides)), [code.break_node()])
    row = [statement for body in bodies for statement in (*body, decided)]
    return [code.while_once_node([*row, code.break_node()])]


def operand_try_statement(compiler: ExpressionCompiler, body: list[ast.stmt], error: str) -> ast.stmt:
    """Return a statement that runs `body`, and stores its error if error_that_counts chooses this error."""
    refund_for = code.call_node(compiler.reference_to_object(compiler.refund_for), code.name_node("x"))
    first = code.call_node(compiler.reference_to_object(error_that_counts), code.name_node(error), code.name_node("x"))
    keep = code.assignment_node(error, first)
    compiler.writer.moves += 1
    return code.try_node(body, compiler.reference_to_object(ERRORS), [code.subtract_cost_node(refund_for), keep])


def _raise_stored_error_statements(error: str) -> list[ast.stmt]:
    pending = code.is_not_comparison_node(code.name_node(error), code.constant_node(None))
    return [code.if_node(pending, [code.raise_node(code.name_node(error))])]


def is_surely_bool(term: ValueCode) -> bool:
    """Return whether a value is certainly a bool."""
    return term.sure and term.type.name == "bool"


def _write_bool_check(compiler: ExpressionCompiler, value: ast.expr, operator: str = "") -> None:
    # the error names `operator`
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
    """Return the code of a value. If the value may not be a bool, the code also checks its class."""
    if is_surely_bool(term):
        return term.code
    reusable = compiler.reusable_code(term)
    _write_bool_check(compiler, reusable.code, operator)
    return reusable.code


def not_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of !a."""
    compiler.writer.add_fixed_cost(1)
    term = compiler.value_code(node.arguments[0])
    return ValueCode(code.not_node(code_checked_as_bool(compiler, term, "!_")), BOOL, raises=term.raises, sure=True)


def conditional_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    """Return the code of a ? b : c, which evaluates one branch. If the condition fails, its error is the result."""
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
