"""Compiles lists, maps and structures. Constant lists, maps and structures are folded earlier, and cost nothing.

Cost: 10 for a list, 30 for a map, 40 for a structure (cel-go v0.26.0 common/cost.go).
"""

from __future__ import annotations

import ast

from webhook.cel.compile import code
from webhook.cel.compile.code import FailurePlace, ValueCode
from webhook.cel.compile.expression import ExpressionCompiler
from webhook.cel.library import runtime
from webhook.cel.syntax.tree import ListNode, MapEntry, MapNode, StructNode
from webhook.cel.values import make_map

LIST_COST, MAP_COST, STRUCT_COST = 10, 30, 40


def list_code(compiler: ExpressionCompiler, node: ListNode) -> ValueCode:
    """Return the code of [a, ?b]."""
    writer = compiler.writer
    writer.add_fixed_cost(LIST_COST)
    static = compiler.checked.type_of(node)
    if not node.optional:
        terms: list[ValueCode] = []
        with writer.subtract_cost_of_unreached_parts() as part:
            for each in node.elements:
                part()
                terms.append(compiler.value_code_after(terms, each))
            part()
        raises = any(term.raises for term in terms)
        return ValueCode(code.list_node([term.code for term in terms]), static, raises=raises, sure=True)
    result = code.name_node(writer.new_variable_name())
    writer.append_statement(code.assignment_node(result.id, code.list_node([])))
    for position, element in enumerate(node.elements):
        value = compiler.value_code(element).code
        if position in node.optional:
            built = compiler.function_call(runtime.append_optional_element, value, result, place=FailurePlace("call"))
        else:
            built = code.call_node(code.attribute_node(result, "append"), value)
        writer.append_statement(code.expression_statement_node(built))
    return ValueCode(result, static, raises=False, atom=True, sure=True)


def map_code(compiler: ExpressionCompiler, node: MapNode) -> ValueCode:
    """Return the code of {k: v, ?k: v}."""
    compiler.writer.add_fixed_cost(MAP_COST)
    static = compiler.checked.type_of(node)
    keys = [compiler.constants.get(id(entry.key)) for entry in node.entries]
    plain = all(type(key) is str for key in keys) and not any(entry.optional for entry in node.entries)
    if plain and len(set(keys)) == len(keys):
        terms: list[ValueCode] = []
        with compiler.writer.subtract_cost_of_unreached_parts() as part:
            for entry in node.entries:
                part()
                terms.append(compiler.value_code_after(terms, entry.value))
            part()
        raises = any(term.raises for term in terms)
        built: ast.expr = code.dict_node([code.constant_node(key) for key in keys], [term.code for term in terms])
        return ValueCode(built, static, raises=raises, sure=True)
    entries = _entry_pairs_code(compiler, [(entry, None) for entry in node.entries])
    return ValueCode(compiler.function_call(make_map, entries, place=FailurePlace("call")), static, sure=True)


def structure_code(compiler: ExpressionCompiler, node: StructNode) -> ValueCode:
    """Return the code of Name{field: value, ?field: value}."""
    compiler.writer.add_fixed_cost(STRUCT_COST)
    static = compiler.checked.type_of(node)
    fields: list[tuple[MapEntry, ast.expr | None]] = [
        (MapEntry(entry.offset, entry.value, entry.value, entry.optional), code.constant_node(entry.field))
        for entry in node.entries
    ]
    name = compiler.checked.name_referred_to(node) or node.name
    structure = compiler.function_call(
        runtime.build_structure,
        code.constant_node(name),
        _entry_pairs_code(compiler, fields),
        place=FailurePlace("call"),
    )
    return ValueCode(structure, static, sure=True)


def _entry_pairs_code(compiler: ExpressionCompiler, entries: list[tuple[MapEntry, ast.expr | None]]) -> ast.expr:
    # the key of an entry with None instead of code is compiled here
    if not any(entry.optional for entry, _ in entries):
        return _plain_entry_pairs_code(compiler, entries)
    writer = compiler.writer
    result = code.name_node(writer.new_variable_name())
    writer.append_statement(code.assignment_node(result.id, code.list_node([])))
    for entry, name in entries:
        key, value = _entry_pair_code(compiler, entry, name)
        if entry.optional:
            built = compiler.function_call(runtime.set_optional_entry, key, value, result, place=FailurePlace("call"))
        else:
            built = code.call_node(code.attribute_node(result, "append"), code.pair_node(key, value))
        writer.append_statement(code.expression_statement_node(built))
    return result


def _entry_pair_code(compiler: ExpressionCompiler, entry: MapEntry, name: ast.expr | None) -> tuple[ast.expr, ast.expr]:
    if name is not None:
        return name, compiler.value_code(entry.value).code
    key, value = compiler.value_codes((entry.key, entry.value))
    return key.code, value.code


def _plain_entry_pairs_code(compiler: ExpressionCompiler, entries: list[tuple[MapEntry, ast.expr | None]]) -> ast.expr:
    # keys and values are evaluated in the order in which they are written
    terms: list[ValueCode] = []
    with compiler.writer.subtract_cost_of_unreached_parts() as part:
        for entry, name in entries:
            if name is None:
                part()
                terms.append(compiler.value_code_after(terms, entry.key))
            part()
            terms.append(compiler.value_code_after(terms, entry.value))
        part()
    rest = iter([term.code for term in terms])
    return code.list_node([code.pair_node(name or next(rest), next(rest)) for _, name in entries])
