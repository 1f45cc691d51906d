"""[…], {…}, Name{…}, with optional elements and entries. Constant ones are folded before and cost nothing.

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
    """[a, ?b]."""
    writer = compiler.writer
    writer.charge(LIST_COST)
    static = compiler.checked.type_of(node)
    if not node.optional:
        terms = []
        with writer.unreached() as part:
            for each in node.elements:
                part()
                terms.append(compiler.value(each))
            part()
        raises = any(term.raises for term in terms)
        return Term(code.listing([term.code for term in terms]), static, raises=raises, sure=True)
    result = code.name(writer.temporary())
    writer.emit(code.assign(result.id, code.listing([])))
    for position, element in enumerate(node.elements):
        value = compiler.value(element).code
        if position in node.optional:
            made = compiler.call(runtime.element_of, value, result, place=Place("call"))
        else:
            made = code.call(code.attribute(result, "append"), value)
        writer.emit(code.expression(made))
    return Term(result, static, raises=False, atom=True, sure=True)


def map_of(compiler: Compiler, node: MapNode) -> Term:
    """{k: v, ?k: v}."""
    compiler.writer.charge(MAP_COST)
    static = compiler.checked.type_of(node)
    keys = [compiler.constants.get(id(entry.key)) for entry in node.entries]
    plain = all(type(key) is str for key in keys) and not any(entry.optional for entry in node.entries)
    if plain and len(set(keys)) == len(keys):
        terms = []
        with compiler.writer.unreached() as part:
            for entry in node.entries:
                part()
                terms.append(compiler.value(entry.value))
            part()
        raises = any(term.raises for term in terms)
        made: ast.expr = code.mapping([code.literal(key) for key in keys], [term.code for term in terms])
        return Term(made, static, raises=raises, sure=True)
    entries = _entries(compiler, [(entry, compiler.value(entry.key).code) for entry in node.entries])
    return Term(compiler.call(make_map, entries, place=Place("call")), static, sure=True)


def structure_of(compiler: Compiler, node: StructNode) -> Term:
    """Name{field: value, ?field: value}."""
    compiler.writer.charge(STRUCT_COST)
    static = compiler.checked.type_of(node)
    fields: list[tuple[MapEntry, ast.expr]] = [
        (MapEntry(entry.offset, entry.value, entry.value, entry.optional), code.literal(entry.field))
        for entry in node.entries
    ]
    name = compiler.checked.reference(node) or node.name
    made = compiler.call(runtime.structure, code.literal(name), _entries(compiler, fields), place=Place("call"))
    return Term(made, static, sure=True)


def _entries(compiler: Compiler, entries: list[tuple[MapEntry, ast.expr]]) -> ast.expr:
    """A list of pairs."""
    writer = compiler.writer
    if not any(entry.optional for entry, _ in entries):
        return code.listing([code.pair(key, compiler.value(entry.value).code) for entry, key in entries])
    result = code.name(writer.temporary())
    writer.emit(code.assign(result.id, code.listing([])))
    for entry, key in entries:
        value = compiler.value(entry.value).code
        if entry.optional:
            made = compiler.call(runtime.entry_of, key, value, result, place=Place("call"))
        else:
            made = code.call(code.attribute(result, "append"), code.pair(key, value))
        writer.emit(code.expression(made))
    return result
