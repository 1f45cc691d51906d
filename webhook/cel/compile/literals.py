"""Compiles lists, maps and structures with optional elements and entries. Constant ones are folded before and cost
nothing.

Cost: 10 for a list, 30 for a map, 40 for a structure (cel-go v0.26.0 common/cost.go).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from webhook.cel.compile import code
from webhook.cel.compile.code import Place, Term
from webhook.cel.library import runtime
from webhook.cel.syntax.tree import ListNode, MapEntry, MapNode, StructNode
from webhook.cel.values import make_map

if TYPE_CHECKING:
    from webhook.cel.compile.compiler import Compiler

LIST_COST, MAP_COST, STRUCT_COST = 10, 30, 40


def list_of(compiler: Compiler, node: ListNode) -> Term:
    """Return the code of a list such as [a, ?b]."""
    writer = compiler.writer
    writer.charge(LIST_COST)
    static = compiler.checked.type_of(node)
    if not node.optional:
        terms: list[Term] = []
        with writer.unreached() as part:
            for each in node.elements:
                part()
                terms.append(compiler.value_after(terms, each))
            part()
        raises = any(term.raises for term in terms)
        return Term(code.listing([term.code for term in terms]), static, raises=raises, sure=True)
    result = code.name(writer.temporary())
    writer.emit(code.assign(result.id, code.listing([])))
    for position, element in enumerate(node.elements):
        value = compiler.value(element).code
        if position in node.optional:
            built = compiler.call(runtime.element_of, value, result, place=Place("call"))
        else:
            built = code.call(code.attribute(result, "append"), value)
        writer.emit(code.expression(built))
    return Term(result, static, raises=False, atom=True, sure=True)


def map_of(compiler: Compiler, node: MapNode) -> Term:
    """Return the code of a map such as {k: v, ?k: v}."""
    compiler.writer.charge(MAP_COST)
    static = compiler.checked.type_of(node)
    keys = [compiler.constants.get(id(entry.key)) for entry in node.entries]
    plain = all(type(key) is str for key in keys) and not any(entry.optional for entry in node.entries)
    if plain and len(set(keys)) == len(keys):
        terms: list[Term] = []
        with compiler.writer.unreached() as part:
            for entry in node.entries:
                part()
                terms.append(compiler.value_after(terms, entry.value))
            part()
        raises = any(term.raises for term in terms)
        built: ast.expr = code.mapping([code.literal(key) for key in keys], [term.code for term in terms])
        return Term(built, static, raises=raises, sure=True)
    entries = _entries(compiler, [(entry, None) for entry in node.entries])
    return Term(compiler.call(make_map, entries, place=Place("call")), static, sure=True)


def structure_of(compiler: Compiler, node: StructNode) -> Term:
    """Return the code of a structure such as Name{field: value, ?field: value}."""
    compiler.writer.charge(STRUCT_COST)
    static = compiler.checked.type_of(node)
    fields: list[tuple[MapEntry, ast.expr | None]] = [
        (MapEntry(entry.offset, entry.value, entry.value, entry.optional), code.literal(entry.field))
        for entry in node.entries
    ]
    name = compiler.checked.reference(node) or node.name
    structure = compiler.call(runtime.structure, code.literal(name), _entries(compiler, fields), place=Place("call"))
    return Term(structure, static, sure=True)


def _entries(compiler: Compiler, entries: list[tuple[MapEntry, ast.expr | None]]) -> ast.expr:
    """Return the code of a list of key and value pairs; a key of None stands for the entry's own key expression."""
    if not any(entry.optional for entry, _ in entries):
        return _plain_entries(compiler, entries)
    writer = compiler.writer
    result = code.name(writer.temporary())
    writer.emit(code.assign(result.id, code.listing([])))
    for entry, name in entries:
        key, value = _pair(compiler, entry, name)
        if entry.optional:
            built = compiler.call(runtime.entry_of, key, value, result, place=Place("call"))
        else:
            built = code.call(code.attribute(result, "append"), code.pair(key, value))
        writer.emit(code.expression(built))
    return result


def _pair(compiler: Compiler, entry: MapEntry, name: ast.expr | None) -> tuple[ast.expr, ast.expr]:
    if name is not None:
        return name, compiler.value(entry.value).code
    key, value = compiler.values((entry.key, entry.value))
    return key.code, value.code


def _plain_entries(compiler: Compiler, entries: list[tuple[MapEntry, ast.expr | None]]) -> ast.expr:
    """Return the code of a list of pairs without optional entries, evaluated in the order in which they are written."""
    terms: list[Term] = []
    with compiler.writer.unreached() as part:
        for entry, name in entries:
            if name is None:
                part()
                terms.append(compiler.value_after(terms, entry.key))
            part()
            terms.append(compiler.value_after(terms, entry.value))
        part()
    rest = iter([term.code for term in terms])
    return code.listing([code.pair(name or next(rest), next(rest)) for _, name in entries])
