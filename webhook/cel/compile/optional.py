"""Compiles optionals: selections `a.?b[?c]`, optMap, optFlatMap, or, orValue, hasValue, optional.of and ofNonZeroValue.

Most optionals are asked at once whether they have a value, so none is made: their value, or ABSENT, stands in a
variable (`Term.raw`), and only who wants the optional itself gets one made of it. Costs of selections: 1 for every step
that finds something (cel-go v0.26.0 interpreter/attributes.go, runtimecost.go).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.cel.compile import code
from webhook.cel.compile.code import Place, Term
from webhook.cel.library import optional as library
from webhook.cel.library import optional_value, runtime
from webhook.cel.library.optional_value import NONE, Optional
from webhook.cel.library.refusal import refuse
from webhook.cel.syntax.tree import Call, Ident, Macro, Node, Select, children
from webhook.cel.types import BOOL, DYN, STRING, Type
from webhook.cel.values import ABSENT

if TYPE_CHECKING:
    from webhook.cel.compile.compiler import Compiler


_PLAIN = frozenset(
    (
        *("string", "int", "uint", "double", "bool", "bytes", "list", "map", "null_type"),
        *("google.protobuf.Timestamp", "google.protobuf.Duration"),
    )
)
"""Types whose values are the same in Go and in CEL."""


def optional_of_variable(compiler: Compiler, raw: ast.Name, static: Type, steps: int = 0) -> Term:
    """Return the code of the optional whose value, or ABSENT, is in a variable."""
    construction = code.either(present(compiler, raw), code.call(compiler.bind(Optional), raw), compiler.bind(NONE))
    return Term(construction, static, raises=False, sure=True, raw=raw, steps=steps)


def present(compiler: Compiler, raw: ast.Name) -> ast.expr:
    """Return the code that tests whether a variable holds a value and not ABSENT."""
    return code.different(raw, compiler.bind(ABSENT))


def raw_of(compiler: Compiler, term: Term) -> ast.Name:
    """Return a variable with the value of an optional, or ABSENT; any other value counts as an optional that has it."""
    return term.raw or compiler.writer.in_variable(compiler.call(optional_value.value_or_absent, term.code))


# ---- selections


def steps(compiler: Compiler, term: Term, path: Sequence[Select | Call], part: Callable[[], None]) -> Term:
    """Return the code of a path's steps from the first optional one on; after a step that finds nothing no key is
    computed.
    """
    writer = compiler.writer
    static = term.type
    at: ast.expr = raw_of(compiler, term) if static.name == "optional_type" else compiler.reusable(term).code
    names: list[ast.Name] = []
    for step in path:
        part()
        with writer.block() as body:
            key = _key(compiler, step)
        is_first = step is path[0] and static.name != "optional_type"
        if body:
            _count(compiler, names)
            names = []
        names.append(_found(compiler, at, key, body, _Way(is_first=is_first, before=len(names))))
        at = names[-1]
    _count(compiler, names)
    counted = len(names) if len(names) == len(path) else 0
    return optional_of_variable(compiler, names[-1], compiler.checked.type_of(path[-1]), counted)


def _key(compiler: Compiler, step: Select | Call) -> Term:
    if isinstance(step, Select):
        return compiler.constant(step.field, STRING)
    return compiler.reusable(compiler.without_attribute_cost(step.arguments[1]))


@dataclass(frozen=True, slots=True)
class _Way:
    """Whether a step is the first of its path that may be absent, and how many steps before it are not counted yet."""

    is_first: bool
    before: int


def _found(compiler: Compiler, at: ast.expr, key: Term, body: list[ast.stmt], way: _Way) -> ast.Name:
    """Return a variable with the value under a key, or ABSENT; `body` computes the key."""
    writer = compiler.writer
    if not body or way.is_first:
        writer.body.extend(body)
        return writer.new_variable(_look_up(compiler, at, key, way))
    result = writer.temporary()
    body.append(code.assign(result, _look_up(compiler, at, key, way)))
    absent: list[ast.stmt] = [code.assign(result, compiler.bind(ABSENT))]
    writer.emit(code.branch(code.different(at, compiler.bind(ABSENT)), body, absent))
    return code.name(result)


def _look_up(compiler: Compiler, at: ast.expr, key: Term, way: _Way) -> ast.expr:
    """Return the code that looks a key up in a value; the result is ABSENT if the value is ABSENT."""
    missing = compiler.bind(ABSENT)
    value = compiler.call(optional_value.find, at, key.code, place=Place("call", refund=-way.before))
    if not way.is_first:
        value = code.either(code.identical(at, missing), missing, value)
    if not (key.sure and key.type.name == "string"):
        return value
    is_map = code.identical(code.call(compiler.bind(type), at), compiler.bind(dict))
    return code.either(is_map, code.call(code.attribute(at, "get"), key.code, missing), value)


def _count(compiler: Compiler, names: Sequence[ast.Name]) -> None:
    """Write a statement that counts 1 for every step up to the last one that found something."""
    statement: list[ast.stmt] = []
    for number, raw in enumerate(names, start=1):
        statement = [code.branch(present(compiler, raw), [code.add_cost(code.literal(number))], statement)]
    for each in statement:
        compiler.writer.moves += 1
        compiler.writer.emit(each)


# ---- functions


def has_value(compiler: Compiler, term: Term) -> Term | None:
    """Return the code of optional.hasValue(); None where the operand may be something else than an optional."""
    if term.raw is None:
        return None
    compiler.writer.charge(1)
    return Term(present(compiler, term.raw), BOOL, raises=False, sure=True)


def construction(compiler: Compiler, node: Call, arguments: Sequence[Node]) -> Term | None:
    """Return the code of optional.of(x), optional.ofNonZeroValue(x) or optional.none(); None for other functions."""
    overloads = compiler.overloads(node)
    implementation = overloads[0].implementation if overloads else None
    if implementation not in (Optional, library.of_non_zero_value, library.none):
        return None
    value = compiler.bind(ABSENT)
    if arguments:
        value = compiler.reusable(compiler.value(arguments[0])).code
    compiler.writer.charge(1)
    if implementation is library.of_non_zero_value:
        value = code.either(value, value, compiler.call(runtime.non_zero, value))  # what is true is no zero
    return optional_of_variable(compiler, compiler.writer.new_variable(value), compiler.checked.type_of(node))


def alternative(compiler: Compiler, node: Call) -> Term:
    """Return the code of a.or(b) or a.orValue(b), which evaluates b only when it is needed."""
    assert node.target is not None
    first = compiler.value(node.target)
    if first.raw is None:
        return _alternative_of_any_value(compiler, node, compiler.reusable(first))
    writer = compiler.writer
    here, absent = _uncounted(compiler, first)
    with writer.block() as other:
        term = compiler.value(node.arguments[0])
        is_raw = node.function == "or" and _is_optional(term)
        value = raw_of(compiler, term) if is_raw else term.code
    result = code.name(writer.temporary())
    preferred = first.raw if is_raw or node.function == "orValue" else first.code
    if here or absent or other:
        here.append(code.assign(result.id, preferred))
        other = [*absent, *other, code.assign(result.id, value)]
        writer.emit(code.branch(present(compiler, first.raw), here, other))
    else:
        writer.emit(code.assign(result.id, code.either(present(compiler, first.raw), preferred, value)))
    writer.moves += 1
    static = compiler.checked.type_of(node)
    return optional_of_variable(compiler, result, static) if is_raw else Term(result, static, raises=False, atom=True)


def _uncounted(compiler: Compiler, term: Term) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Remove the statement that counts the steps of a selection; return its parts for a present and for an absent
    value.

    It is the last one, and what asks for the value next is a branch anyway.
    """
    if not term.steps:
        return [], []
    count = compiler.writer.body.pop()
    assert isinstance(count, ast.If)
    return count.body, count.orelse


def _alternative_of_any_value(compiler: Compiler, node: Call, first: Term) -> Term:
    """Return the code of or() or orValue() for a value that may not be optional; up to 1.36 such a value is the
    result.
    """
    writer = compiler.writer
    result = writer.temporary()
    overload = compiler.overloads(node)[0]
    is_optional = code.identical(code.call(compiler.bind(type), first.code), compiler.bind(Optional))
    here = code.attribute(first.code, "value") if node.function == "orValue" else first.code
    with writer.block() as other:
        term = compiler.value(node.arguments[0])
        writer.emit(code.assign(result, term.code))
    chosen = code.branch(code.attribute(first.code, "present"), [code.assign(result, here)], other)
    plain: ast.expr = first.code
    if overload.since >= (1, 37):
        plain = compiler.call(overload.implementation, first.code, first.code, place=Place("call"))
    writer.emit(code.branch(is_optional, [chosen], [code.assign(result, plain)]))
    writer.moves += 1
    return Term(code.name(result), compiler.checked.type_of(node), raises=False, atom=True)


# ---- macros


def opt_map(compiler: Compiler, node: Macro) -> Term:
    """Return the code of optMap or optFlatMap; each use of the variable costs what computing the target costs."""
    writer = compiler.writer
    uses = _reads(node.arguments[0], node.variables[0])
    before, moves, marker = writer.total, writer.moves, len(writer.body)
    writer.charge(1)
    operand = compiler.value(node.operand)
    raw = operand.raw or _opened(compiler, operand)
    changes = writer.moves - moves > bool(operand.steps)
    gone = [] if changes else _uncounted(compiler, operand)[1]
    steps = 0 if changes else operand.steps
    repeated = writer.total - before + steps
    again = _difference(compiler, marker) if changes and uses else None
    with writer.block() as chosen:
        writer.charge(steps + (repeated if uses else 0))
        if again is not None:
            writer.charge_value(again)
        term = _body(compiler, node, raw, operand.type)
        is_raw = node.name == "optMap" or _is_optional(term)
        named = code.name(writer.temporary())
        value = raw_of(compiler, term) if is_raw and node.name == "optFlatMap" else term.code
        value = conditional_value(compiler, node, value, is_raw=is_raw)
        writer.emit(code.assign(named.id, value))
    writer.moves += 1
    absent = [*gone, code.add_cost(code.literal(1)), code.assign(named.id, compiler.bind(ABSENT if is_raw else NONE))]
    writer.emit(code.branch(present(compiler, raw), chosen, absent))
    static = compiler.checked.type_of(node)
    return optional_of_variable(compiler, named, static) if is_raw else Term(named, static, raises=False, atom=True)


def conditional_value(compiler: Compiler, node: Node, value: ast.expr, *, is_raw: bool) -> ast.expr:
    """Return the code that converts the optional result of `? :`, optMap or optFlatMap as cel-go does."""
    static = compiler.checked.type_of(node)
    held = static.parameters[0].name if static.name == "optional_type" else ""
    if id(node) in compiler.unread or static.name != "optional_type" or held in _PLAIN:
        return value
    return compiler.call(library.branch_value if is_raw else library.branch_optional, value, place=Place("call"))


def _is_optional(term: Term) -> bool:
    """Return whether a value is certain to be an optional."""
    return term.sure and term.type.name == "optional_type"


def _opened(compiler: Compiler, operand: Term) -> ast.Name:
    """Return a variable with the value of an optional, after writing a check that it is one."""
    if _is_optional(operand):
        return raw_of(compiler, operand)
    operand = compiler.reusable(operand)
    is_optional = code.identical(code.call(compiler.bind(type), operand.code), compiler.bind(Optional))
    refused = compiler.call(refuse, code.literal("hasValue"), operand.code, place=Place("call"))
    compiler.writer.emit(code.branch(code.negation(is_optional), [code.expression(refused)]))
    return raw_of(compiler, operand)


def _difference(compiler: Compiler, marker: int) -> ast.Name:
    """Return a variable with the cost of the statements from a marker on, computed at run time."""
    writer = compiler.writer
    cost = code.name(writer.temporary())
    writer.body.insert(marker, code.assign(cost.id, code.name(code.COST)))
    writer.emit(code.assign(cost.id, code.binary(code.name(code.COST), ast.Sub(), cost)))
    return cost


def _body(compiler: Compiler, node: Macro, raw: ast.Name, operand: Type) -> Term:
    """Return the code of the macro's expression with its variable bound to the value."""
    static = operand.parameters[0] if operand.parameters else DYN
    before = compiler.scope
    compiler.scope = {**before, node.variables[0]: Term(raw, static, raises=False, atom=True)}
    term = compiler.value(node.arguments[0])
    compiler.scope = before
    compiler.writer.charge(node.name == "optMap")
    return term


def _reads(node: Node, name: str) -> bool:
    """Return whether an expression uses a variable."""
    pending = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, Ident) and at.name == name:
            return True
        pending.extend(children(at))
    return False
