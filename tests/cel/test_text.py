"""Every tree written as text is read back as the same tree."""

import contextlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.cel import corpus
from webhook.cel.environment import Environment
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.text import source_text
from webhook.cel.syntax.tree import Call, Ident, ListNode, Literal, Macro, MapEntry, MapNode, Select
from webhook.cel.values import UInt
from webhook.errors import CompileError
from webhook.input import shipped
from webhook.yamltext import yamlfile

DATA = Path(__file__).parent.parent / "data" / "cel"
EVERYTHING = Environment(
    mutation=True, escaped_fields=True, extensions=frozenset({"bindings", "encoders", "format", "math"})
)


def bare(node: object) -> object:
    """Return a tree without offsets, and with the types of numbers, so 1, 1u, 1.0 and true differ."""
    if isinstance(node, msgspec.Struct):
        parts = tuple(bare(getattr(node, name)) for name in node.__struct_fields__ if name != "offset")
        return (type(node).__name__, *parts)
    if isinstance(node, tuple):
        return tuple(map(bare, node))
    return (type(node).__name__, repr(node))


def expressions() -> list[str]:
    found = [row["expr"] for path in sorted(DATA.glob("cel_*.jsonl")) for row in corpus.read_rows(path)]
    for path in sorted(shipped.policies_folder().glob("*/policy.yaml")):
        for document in yamlfile.read(path):
            found.extend(texts(document.value.get("spec")))
    return found


def texts(value: object, key: str = "") -> list[str]:
    if isinstance(value, dict):
        return [text for name, item in value.items() for text in texts(item, name)]
    if isinstance(value, list):
        return [text for item in value for text in texts(item, key)]
    return [value] if isinstance(value, str) and key.lower().endswith("expression") else []


def test_every_expression_of_the_corpora_and_of_the_policies():
    read = 0
    for expression in expressions():
        with contextlib.suppress(CompileError):
            tree = parse(expression, EVERYTHING)
            assert bare(parse(source_text(tree), EVERYTHING)) == bare(tree), expression
            read += 1
    assert read > 3000


NAMES = st.sampled_from(["a", "b", "object", ".a"])
LITERALS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1).map(UInt),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
).map(lambda value: Literal(0, value))
BINARIES = ["_+_", "_-_", "_*_", "_/_", "_%_", "_==_", "_!=_", "_<_", "_<=_", "@in", "_[_]", "_[?_]"]


def larger(inner: st.SearchStrategy) -> st.SearchStrategy:
    many = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Select, st.just(0), inner, st.sampled_from(["a", "in", "x-y"]), st.just(False)),
        st.builds(lambda operand: Select(0, operand, "c", optional=True), inner),
        st.builds(lambda name, left, right: Call(0, name, None, (left, right)), st.sampled_from(BINARIES), inner, inner),
        st.builds(lambda name, one, two, more: Call(0, name, None, (one, two, *more)), st.sampled_from(["_&&_", "_||_"]), inner, inner, many),
        st.builds(lambda name, one: Call(0, name, None, (one,)), st.sampled_from(["!_", "-_"]), inner),
        st.builds(lambda one, two, three: Call(0, "_?_:_", None, (one, two, three)), inner, inner, inner),
        st.builds(lambda target, arguments: Call(0, "f", target, arguments), st.one_of(st.none(), inner), many),
        st.builds(lambda operand, argument: Macro(0, "map", operand, ("x",), (argument,)), inner, inner),
        st.builds(lambda operand, argument: Macro(0, "all", operand, ("i", "x"), (argument,)), inner, inner),
        st.builds(lambda elements: ListNode(0, elements, frozenset({0} if elements else ())), many),
        st.builds(lambda key, value: MapNode(0, (MapEntry(0, key, value), MapEntry(0, key, value, optional=True))), inner, inner),
    )  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.recursive(st.one_of(LITERALS, NAMES.map(lambda name: Ident(0, name))), larger, max_leaves=12))
def test_every_tree_prints_and_parses_back(tree):
    assert bare(parse(source_text(tree), EVERYTHING)) == bare(tree)


@pytest.mark.parametrize(
    "expression",
    [
        "a || b && !c",
        "(a || b) && c",
        "a - (b - c) - d",
        "(a ? b : c) ? d : e ? f : g",
        "-(-a)",
        "-(5)",
        "(5).f()",
        "a - -5",
        'has(a.b) && x.?y[?"z"].orValue("\\"\\u0000")',
        "Object.spec{a: 1, ?b: c}",
        "a.b in [?c, d]",
    ],
)
def test_no_needless_brackets(expression):
    assert source_text(parse(expression, EVERYTHING)) == expression


def test_brackets_up_to_the_limit_are_parsed():
    deep = "-(" * 240 + "a" + ")" * 240
    assert bare(parse(source_text(parse(deep)))) == bare(parse(deep))
