"""A rebuilt tree equals the original, only free names are replaced, and no definition fails at a new place."""

import contextlib

import pytest

from tests.cel.test_text import EVERYTHING, expressions
from tests.rows import all_rows
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.rewrite import (
    RewriteTooLong,
    VariableInliner,
    all_names,
    macro_bound_names,
    nesting_depth,
    replace_nodes,
    variable_read_by,
)
from webhook.cel.syntax.text import source_text
from webhook.cel.syntax.tree import Ident
from webhook.errors import CompileError


def test_every_tree_is_rebuilt_unchanged():
    for expression in expressions():
        with contextlib.suppress(CompileError):
            tree = parse(expression, EVERYTHING)
            assert replace_nodes(tree, lambda _: None) == tree


def test_names():
    tree = parse("a.map(b, c + variables.d)")
    assert (all_names(tree), macro_bound_names(tree), nesting_depth(tree)) == ({"a", "b", "c", "variables"}, {"b"}, 4)
    found = replace_nodes(tree, lambda node: Ident(0, "x") if isinstance(node, Ident) and node.name == "c" else None)
    assert source_text(found) == "a.map(b, x + variables.d)"
    assert [variable_read_by(parse(each)) for each in ("variables.d", "variables.?d", "other.d", "d")] == [
        "d",
        "",
        "",
        "",
    ]


A, B = "variables.a", "variables.b"


@all_rows(
    "expression, written",
    [
        ("x + 1", "x + 1"),
        (f"{A} + {A}", "[x].map(a, a + a)[0]"),
        (B, "[x].map(a, [a.y].map(b, b)[0])[0]"),
        (f"{B} + {A}", "[x].map(a, [a.y].map(b, b + a)[0])[0]"),
        (f"c || {A}", "c || [x].map(a, a)[0]"),
        (f"{A} || {A}", "[x].map(a, a || a)[0]"),
        (f"c ? {A} : 1", "c ? [x].map(a, a)[0] : 1"),
        (f"c ? {A} : {A}", "[x].map(a, c ? a : a)[0]"),
        (f"c.map(i, {A} + i)", "c.map(i, [x].map(a, a + i)[0])"),
        (f"{A}.map(i, {A} + i)", "[x].map(a, a.map(i, a + i))[0]"),
        (f"c.orValue({A})", "c.orValue([x].map(a, a)[0])"),
        (f"f({A}) && has({A}.c)", "[x].map(a, f(a) && has(a.c))[0]"),
    ],
)
def test_an_inlined_definition_is_evaluated_only_where_its_variable_was(expression, written):
    inliner = VariableInliner({"a": parse("x"), "b": parse(f"{A}.y")}, {"a": "a", "b": "b"})
    assert source_text(inliner.inline(parse(expression))) == written


def test_definitions_that_grow_exponentially_are_refused():
    definitions = {"v0": parse("1")}
    for index in range(14):
        definitions[f"v{index + 1}"] = parse(f"c ? variables.v{index} : c ? variables.v{index} : 1")
    with pytest.raises(RewriteTooLong):
        VariableInliner(definitions, {name: name for name in definitions}).inline(parse("variables.v14"))
