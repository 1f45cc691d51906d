"""Names, fields, indexes, has() and optionals.

A path `a.b[c].d` is one run of subscripts: on plain JSON their KeyError and TypeError are cel-go's errors. Cost: 1 for
the path, 1 for every step that is tried; steps after an optional one only if they find something (cel-go v0.26.0
interpreter/attributes.go, runtimecost.go).
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.cel import compiler_code as code
from webhook.cel import runtime
from webhook.cel.compiler_code import Place, Term
from webhook.cel.tree import Call, Has, Ident, Node, Select
from webhook.cel.types import BOOL, Type
from webhook.cel.values import Optional

if TYPE_CHECKING:
    from webhook.cel.compiler import Compiler

_BUILT = ("Object", "JSONPatch")
"""Structures that expressions build: their unset fields are null."""


def variable(compiler: Compiler, node: Ident) -> Term:
    """A variable of the activation or of a macro."""
    compiler.writer.charge(1)
    return _variable(compiler, node)


def _variable(compiler: Compiler, node: Ident | Select) -> Term:
    reference = compiler.checked.reference(node)
    if reference is None:
        assert isinstance(node, Ident)
        return compiler.scope[node.name]
    line = compiler.writer.line(Place("variable", reference))
    found = code.subscript(code.name(code.ACTIVATION), code.literal(reference), line)
    return Term(found, compiler.checked.type_of(node))


def access(compiler: Compiler, node: Select | Call) -> Term:
    """A path: fields and indexes of a variable or of any other value."""
    compiler.writer.charge(1)
    return _steps(compiler, node)


def presence(compiler: Compiler, node: Has) -> Term:
    """The test has(operand.field): it costs its last step instead of the path's own 1."""
    writer = compiler.writer
    term = _root(compiler, node.operand, tested=1)
    if isinstance(node.operand, Call) and node.operand.function == "_?_:_":
        writer.charge(-1)  # cel-go takes the 1 back that it never counted for a conditional
    if term.type.name == "optional_type":
        found = writer.keep(compiler.call(runtime.has, term.code, code.literal(node.field), place=Place("call")))
        writer.charge_value(found)
        return Term(found, BOOL, raises=False, atom=True, sure=True)
    writer.charge(1)
    first, again = compiler.named(term)
    test = code.identical(code.call(compiler.bind(type), first), compiler.bind(dict))
    inside = code.compare(code.literal(node.field), ast.In(), again)
    slow = compiler.call(runtime.has, again, code.literal(node.field), place=Place("call"))
    return Term(code.either(test, inside, slow), BOOL, sure=True)


def _root(compiler: Compiler, node: Node, tested: int = 0) -> Term:
    """The operand of a step, without the 1 that the whole path costs once. tested: 1 when has() follows."""
    if compiler.is_constant(node):
        return compiler.value(node)
    if isinstance(node, Ident):
        return _variable(compiler, node)
    if isinstance(node, Select) or (isinstance(node, Call) and node.function in ("_[_]", "_[?_]")):
        return _steps(compiler, node, tested)
    return compiler.value(node)


def _steps(compiler: Compiler, node: Select | Call, tested: int = 0) -> Term:
    """All steps down to the root, outermost last; a loop, since paths may be long."""
    steps: list[Select | Call] = []
    at: Node = node
    while not compiler.is_constant(at):
        if isinstance(at, Select):
            if compiler.checked.reference(at) is not None:
                break
            steps.append(at)
            at = at.operand
        elif isinstance(at, Call) and at.function in ("_[_]", "_[?_]"):
            steps.append(at)
            at = at.arguments[0]
        else:
            break
    named = isinstance(at, Select) and not compiler.is_constant(at)
    term = _variable(compiler, at) if named and isinstance(at, Select) else _root(compiler, at)
    if isinstance(term.code, ast.Constant):
        term = replace(term, code=compiler.writer.hold(term.code))
    if isinstance(at, Call) and at.function == "_?_:_":
        compiler.writer.charge(-1)
    steps.reverse()
    optional = next((position for position, step in enumerate(steps) if _is_optional(step)), None)
    # what follows a step is counted ahead only up to the first optional one
    counted = len(steps) + tested if optional is None else optional
    for position, step in enumerate(steps, 1):
        if term.type.name == "optional_type" or (optional is not None and position > optional):
            term = _optional_step(compiler, term, step)
        else:
            term = _step(compiler, term, step, counted - position)
    return term


def _is_optional(step: Select | Call) -> bool:
    return step.optional if isinstance(step, Select) else step.function == "_[?_]"


def _step(compiler: Compiler, term: Term, step: Select | Call, following: int) -> Term:
    static = compiler.checked.type_of(step)
    compiler.writer.charge(1)
    if isinstance(step, Select):
        if term.type.kind == "object" and term.type.name.partition(".")[0] in _BUILT:
            place = Place("call", refund=following)
            return Term(compiler.call(runtime.field_of, term.code, code.literal(step.field), place=place), static)
        place = Place("field", step.field, following)
        found: ast.expr = code.subscript(term.code, code.literal(step.field), compiler.writer.line(place))
        return Term(found, static)
    return _index(compiler, term, step, static, following)


def _index(compiler: Compiler, term: Term, step: Call, static: Type, following: int) -> Term:
    key = step.arguments[1]
    if compiler.is_constant(key):
        value = compiler.constants[id(key)]
        if type(value) is str:
            line = compiler.writer.line(Place("field", value, following))
            return Term(code.subscript(term.code, code.literal(value), line), static)
        if type(value) is int and value >= 0:
            first, again = compiler.named(term)
            line = compiler.writer.line(Place("element", value, following))
            quick = code.subscript(again, code.literal(value), line)
            slow = compiler.call(runtime.get, again, code.literal(value), place=Place("call", refund=following))
            return Term(code.either(_is_list(compiler, first), quick, slow), static)
    index = compiler.bare(key)
    place = Place("call", refund=following)
    if index.type.name == "string":
        line = compiler.writer.line(Place("key", refund=following))
        return Term(code.subscript(term.code, index.code, line), static)
    if index.type.name in ("int", "uint", "double"):
        return Term(compiler.call(runtime.get, term.code, index.code, place=place), static)
    kept, index = compiler.kept(term), compiler.kept(index)
    quick = code.subscript(kept.code, index.code, compiler.writer.line(Place("key", refund=following)))
    test = code.identical(code.call(compiler.bind(type), index.code), compiler.bind(str))
    slow = compiler.call(runtime.get, kept.code, index.code, place=place)
    return Term(code.either(test, quick, slow), static)


def _is_list(compiler: Compiler, value: ast.expr) -> ast.expr:
    return code.identical(code.call(compiler.bind(type), value), compiler.bind(list))


def _optional_step(compiler: Compiler, term: Term, step: Select | Call) -> Term:
    if isinstance(step, Select):
        key: ast.expr = code.literal(step.field)
    else:
        key = compiler.bare(step.arguments[1]).code
    found = compiler.writer.keep(compiler.call(runtime.look_up, term.code, key, place=Place("call")))
    # a step that finds nothing is not counted
    compiler.writer.charge_value(code.attribute(found, "present"))
    return Term(found, compiler.checked.type_of(step), raises=False, atom=True)


def alternative(compiler: Compiler, node: Call) -> Term:
    """a.or(b), a.orValue(b): the other value is computed only when it is needed, and the choice costs nothing."""
    writer = compiler.writer
    assert node.target is not None
    first = compiler.kept(compiler.value(node.target))
    result = writer.temporary()
    strict = compiler.overloads(node)[0].since >= (1, 37)
    is_optional = code.identical(code.call(compiler.bind(type), first.code), compiler.bind(Optional))
    here = code.attribute(first.code, "value") if node.function == "orValue" else first.code
    with writer.block() as other:
        term = compiler.value(node.arguments[0])
        writer.emit(code.assign(result, term.code))
    present = code.branch(code.attribute(first.code, "present"), [code.assign(result, here)], other)
    plain: ast.expr = first.code
    if strict:
        plain = compiler.call(compiler.overloads(node)[0].implementation, first.code, first.code, place=Place("call"))
    writer.emit(code.branch(is_optional, [present], [code.assign(result, plain)]))
    writer.moves += 1
    return Term(code.name(result), compiler.checked.type_of(node), raises=False, atom=True)
