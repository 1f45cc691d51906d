"""Compiles the operands of calls that end the whole evaluation (library/tracking.py) when one of them has failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from webhook.cel.compile import code
from webhook.cel.compile.code import Place, Term
from webhook.cel.compile.failure import ERRORS
from webhook.cel.library.declaration import Overload
from webhook.cel.library.tracking import failed_int, failed_list, require_int, require_list, tracked_argument
from webhook.cel.syntax.tree import Node

if TYPE_CHECKING:
    from webhook.cel.compile.compiler import Compiler


def tracked_operands(compiler: Compiler, overloads: Sequence[Overload], arguments: Sequence[Node]) -> list[Term]:
    """Return the code of the arguments of a call that ends the evaluation if one has not the class that its
    cost needs.
    """
    writer = compiler.writer
    terms: list[Term] = []
    for place, argument in enumerate(arguments):
        if place != tracked_argument(overloads):
            terms.append(compiler.reusable(compiler.value(argument)))
            continue
        is_int = overloads[0].name == "flatten"
        with breaking_off(compiler, failed_int if is_int else failed_list):
            term = compiler.reusable(compiler.value(argument))
        require = require_int if is_int else require_list
        writer.emit(code.expression(compiler.call(require, term.code, place=Place("call"))))
        terms.append(replace(term, sure=True))
    return terms


@contextmanager
def breaking_off(compiler: Compiler, failed: Callable[[Exception], NoReturn]) -> Iterator[None]:
    """Write statements that end the whole evaluation when they fail, as cel-go's cost counting does."""
    writer = compiler.writer
    writer.depth += 1
    writer.level += 1
    with writer.nested() as body:
        yield
    writer.level -= 1
    writer.depth -= 1
    if body:
        raised = code.expression(code.call(compiler.bind(failed), code.name("x")))
        writer.emit(code.attempt(body, compiler.bind(ERRORS), [raised]))
