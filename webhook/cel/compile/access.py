"""Compiles names, fields, indexes, has() and optional selections.

A path `a.b[c].d` is one run of subscripts: on plain JSON their KeyError and TypeError are cel-go's errors. Cost: 1 for
the path, 1 for every step that is tried; steps after an optional one only if they find something (cel-go v0.26.0
interpreter/attributes.go, runtimecost.go).
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.cel.compile import code
from webhook.cel.compile import optional as optionals
from webhook.cel.compile.code import Place, Term
from webhook.cel.library import runtime
from webhook.cel.library.optional_value import has
from webhook.cel.syntax.tree import Call, Has, Ident, Macro, Node, Select
from webhook.cel.types import BOOL, Type

if TYPE_CHECKING:
    from webhook.cel.compile.compiler import Compiler

_BUILT = ("Object", "JSONPatch")
"""Structures that expressions build: their unset fields are null."""


def variable(compiler: Compiler, node: Ident) -> Term:
    """Return the code of a variable of the activation or of a macro."""
    compiler.writer.charge(1)
    return _variable(compiler, node)


def _variable(compiler: Compiler, node: Ident | Select) -> Term:
    reference = compiler.checked.reference(node)
    if reference is None:
        assert isinstance(node, Ident)
        return compiler.scope[node.name.removeprefix(".")]
    line = compiler.writer.line(Place("variable", reference))
    value = code.subscript(code.name(code.ACTIVATION), code.literal(reference), line)
    return Term(value, compiler.checked.type_of(node))


def access(compiler: Compiler, node: Select | Call) -> Term:
    """Return the code of a path: fields and indexes of a variable or of any other value."""
    compiler.writer.charge(1)
    return _steps(compiler, node)


def presence(compiler: Compiler, node: Has) -> Term:
    """Return the code of has(operand.field), which costs its last step and not the 1 of a path."""
    writer = compiler.writer
    with writer.unreached() as part:
        part()
        term = _root(compiler, node.operand)
        part()
        optional = term.type.name == "optional_type"
        writer.charge(not optional)
        part()
    if _is_conditional(node.operand):
        writer.charge(-1)  # cel-go takes the 1 back that it never counted for a conditional
    if optional:
        answer = writer.in_variable(compiler.call(has, term.code, code.literal(node.field), place=Place("call")))
        writer.charge_value(answer)
        return Term(answer, BOOL, raises=False, atom=True, sure=True)
    if _is_built(term):
        is_set = compiler.call(runtime.has_field, term.code, code.literal(node.field), place=Place("call"))
        return Term(is_set, BOOL, sure=True)
    first, again = compiler.first_and_later(term)
    test = code.identical(code.call(compiler.bind(type), first), compiler.bind(dict))
    inside = code.compare(code.literal(node.field), ast.In(), again)
    slow = compiler.call(has, again, code.literal(node.field), place=Place("call"))
    return Term(code.either(test, inside, slow), BOOL, sure=True)


def _root(compiler: Compiler, node: Node) -> Term:
    """Return the code of the value that a path starts from, without the 1 that a whole path costs once."""
    if compiler.is_constant(node):
        return compiler.value(node)
    if isinstance(node, Ident):
        return _variable(compiler, node)
    if isinstance(node, Select) or (isinstance(node, Call) and node.function in ("_[_]", "_[?_]")):
        return _steps(compiler, node)
    return compiler.value(node)


def _steps(compiler: Compiler, node: Select | Call) -> Term:
    """Return the code of a path with all its steps; a loop builds it, since paths may be long."""
    steps, at = _path(compiler, node)
    with compiler.writer.unreached() as part:
        part()
        named = isinstance(at, Select) and not compiler.is_constant(at)
        term = _variable(compiler, at) if named and isinstance(at, Select) else _root(compiler, at)
        if isinstance(term.code, ast.Constant):
            term = replace(term, code=compiler.writer.new_variable(term.code))
        for position, step in enumerate(steps):
            if term.type.name == "optional_type" or _is_optional(step):
                term = optionals.steps(compiler, term, steps[position:], part)
                break
            part()
            term = _step(compiler, term, step)
        part()
    if _is_conditional(at):
        compiler.writer.charge(-1)  # cel-go counts no 1 for a path that begins with a conditional
    return term


def has_a_cost(compiler: Compiler, node: Node) -> bool:
    """Return whether cel-go counts 1 for a path in addition to its steps, which it does unless the path starts with `?
    :`.
    """
    return not _is_conditional(_path(compiler, node)[1])


def _is_conditional(node: Node) -> bool:
    """Return whether a node is `? :`, or optMap or optFlatMap, which expand to it."""
    if isinstance(node, Macro):
        return node.name in ("optMap", "optFlatMap")
    return isinstance(node, Call) and node.function == "_?_:_"


def _path(compiler: Compiler, node: Node) -> tuple[list[Select | Call], Node]:
    """Return the steps of a path from the first to the last, and the node that the path starts from."""
    steps: list[Select | Call] = []
    while not compiler.is_constant(node):
        if isinstance(node, Select):
            if compiler.checked.reference(node) is not None:
                break
            steps.append(node)
            node = node.operand
        elif isinstance(node, Call) and node.function in ("_[_]", "_[?_]"):
            steps.append(node)
            node = node.arguments[0]
        else:
            break
    steps.reverse()
    return steps, node


def _is_optional(step: Select | Call) -> bool:
    return step.optional if isinstance(step, Select) else step.function == "_[?_]"


def _is_built(term: Term) -> bool:
    """Return whether a value is known to be an object that the expression itself builds."""
    return term.type.kind == "object" and term.type.name.partition(".")[0] in _BUILT


def _step(compiler: Compiler, term: Term, step: Select | Call) -> Term:
    static = compiler.checked.type_of(step)
    compiler.writer.charge(1)
    if isinstance(step, Call):
        return _index(compiler, term, step, static)
    if _is_built(term):
        return Term(compiler.call(runtime.field_of, term.code, code.literal(step.field), place=Place("call")), static)
    line = compiler.writer.line(Place("field", step.field))
    return Term(code.subscript(term.code, code.literal(step.field), line), static)


def _index(compiler: Compiler, term: Term, step: Call, static: Type) -> Term:
    key = step.arguments[1]
    writer = compiler.writer
    if compiler.is_constant(key):
        value = compiler.constants[id(key)]
        if type(value) is str:
            return Term(code.subscript(term.code, code.literal(value), writer.line(Place("field", value))), static)
        if type(value) is int and value >= 0:
            first, again = compiler.first_and_later(term)
            quick = code.subscript(again, code.literal(value), writer.line(Place("element", value)))
            slow = compiler.call(runtime.get, again, code.literal(value), place=Place("call"))
            is_list = code.identical(code.call(compiler.bind(type), first), compiler.bind(list))
            return Term(code.either(is_list, quick, slow), static)
    index = compiler.without_attribute_cost(key)
    if index.type.name == "string" and index.sure:
        index = compiler.reusable(index)
        line = writer.line(Place("key", arguments=(index.code,)))
        return Term(code.subscript(term.code, index.code, line), static)
    if index.type.name in ("int", "uint", "double"):
        return Term(compiler.call(runtime.get, term.code, index.code, place=Place("call")), static)
    reusable, index = compiler.reusable(term), compiler.reusable(index)
    quick = code.subscript(reusable.code, index.code, writer.line(Place("key", arguments=(index.code,))))
    test = code.identical(code.call(compiler.bind(type), index.code), compiler.bind(str))
    slow = compiler.call(runtime.get, reusable.code, index.code, place=Place("call"))
    return Term(code.either(test, quick, slow), static)
