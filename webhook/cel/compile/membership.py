"""Compiles `in`: a constant list of plain values becomes a set, and a text is searched by Python's own `in`.

Source: cel-go v0.26.0 interpreter/decorators.go maybeOptimizeSetMembership, common/types/map.go.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from webhook.cel.check.folding import is_set
from webhook.cel.compile import code
from webhook.cel.compile.code import Place, Term
from webhook.cel.library import standard
from webhook.cel.library.membership import is_member, membership_set
from webhook.cel.syntax.tree import Call, Macro, MapNode
from webhook.cel.types import BOOL
from webhook.deadline import STEP as ITERATIONS

if TYPE_CHECKING:
    from webhook.cel.compile.compiler import Compiler

_CONTAINERS: Mapping[str, tuple[type, ...]] = {"list": (list,), "map": (dict,)}


def membership(compiler: Compiler, node: Call) -> Term:
    """Return the code of `a in b`. A constant list of plain values becomes a set, whose look-up cel-go does not
    count.
    """
    left, right = node.arguments
    static = compiler.checked.type_of(right)
    if compiler.is_constant(right) and static.name == "list" and is_set(compiler.constants[id(right)]):
        return _in_set(compiler, compiler.value(left), compiler.constants[id(right)])
    term, container = compiler.values((left, right))
    if not container.atom:
        term = compiler.reusable(term)
    overloads = compiler.overloads(node)
    if isinstance(right, MapNode | Macro) and may_be_opaque(compiler, term):
        compiler.writer.charge(1)
        answer = compiler.call(
            standard.contains_hashed, compiler.deadline(), term.code, container.code, place=Place("call")
        )
        return Term(answer, BOOL, sure=True)
    compiler.writer.charge(1)  # also when the container fails, which then counts as one of size 1
    is_counted = len(overloads) == 1 and overloads[0].id == "in_list"
    if is_counted:
        container = compiler.reusable(container)
        length = code.call(compiler.bind(len), container.code, line=compiler.writer.line(Place("call")))
        compiler.writer.charge_value(code.binary(length, ast.Sub(), code.literal(1)))
    if term.type.name == "string":
        # a text equals nothing but texts, so Python's own look-up is right for lists and maps of anything
        container = compiler.reusable(container)
        kind = code.call(compiler.bind(type), container.code)
        classes: tuple[type, ...] = _CONTAINERS.get(container.type.name, (dict, list))
        checks = [code.identical(kind, compiler.bind(each)) for each in classes]
        if list in classes and not is_counted:
            checks[-1] = code.conjunction(checks[-1], _is_short(compiler, container.code))
        known = checks[0] if len(checks) == 1 else code.disjunction(*checks)
        term = compiler.reusable(term)
        quick = code.compare(term.code, ast.In(), container.code)
        slow = compiler.call(standard.contains, compiler.deadline(), term.code, container.code, place=Place("call"))
        return Term(code.either(known, quick, slow), BOOL, sure=True)
    answer = compiler.call(standard.contains, compiler.deadline(), term.code, container.code, place=Place("call"))
    return Term(answer, BOOL, sure=True)


def may_be_opaque(compiler: Compiler, term: Term) -> bool:
    """Return whether a value may have a type that JSON lacks; Python compares such values in its own way."""
    static = term.type
    if static.kind == "opaque" or static.name == "bytes":
        return True
    return compiler.checked.has_opaque and (static.name in ("dyn", "any") or static.kind == "param")


def _is_short(compiler: Compiler, container: ast.expr) -> ast.expr:
    """Return the code that tests whether a list is short enough to be searched without reading the clock."""
    return code.compare(code.call(compiler.bind(len), container), ast.LtE(), code.literal(ITERATIONS))


def _in_set(compiler: Compiler, term: Term, values: list[Any]) -> Term:
    raises = term.raises
    if all(type(value) is str for value in values) and not may_be_opaque(compiler, term):
        members = code.literal(frozenset(values))
        first, again = compiler.first_and_later(term)
        if term.sure and term.type.name == "string":
            return Term(code.compare(first, ast.In(), members), BOOL, raises=raises, sure=True)
        is_text = code.identical(code.call(compiler.bind(type), first), compiler.bind(str))
        return Term(code.conjunction(is_text, code.compare(again, ast.In(), members)), BOOL, raises=raises, sure=True)
    constants = compiler.bind(membership_set(values))
    return Term(compiler.call(is_member, term.code, constants, place=Place("call")), BOOL, sure=True)
