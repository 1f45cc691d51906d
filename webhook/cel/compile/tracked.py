"""Compiles the operands of calls that end the whole evaluation (library/tracking.py) when one of them has failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from msgspec.structs import replace

from webhook.cel.compile import code
from webhook.cel.compile.code import FailurePlace, ValueCode
from webhook.cel.compile.expression import ExpressionCompiler
from webhook.cel.compile.failure import ERRORS
from webhook.cel.library.declaration import Overload
from webhook.cel.library.tracking import (
    index_of_tracked_argument,
    panic_for_failed_int,
    panic_for_failed_list,
    require_int,
    require_list,
)
from webhook.cel.syntax.tree import Node


def type_checked_argument_codes(
    compiler: ExpressionCompiler, overloads: Sequence[Overload], arguments: Sequence[Node]
) -> list[ValueCode]:
    """Return the code of the arguments of a call that ends the evaluation if one has not the class that its
    cost needs.
    """
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
    """Write statements that end the whole evaluation when they fail, as cel-go's cost counting does."""
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
