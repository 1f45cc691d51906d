"""The quick reader of YAML gives the same result as the parser, or leaves the text to the parser."""

from pathlib import Path
from random import Random

import pytest

from tests.fuzz.yaml_readers import compare, corpus, is_quick, texts, told
from tests.rows import all_rows
from webhook import yamltext
from webhook.yamltext import block_style
from webhook.yamltext.reading import parse_documents

ROOT = Path(__file__).parents[2]
FOLDERS = ("policies", "examples", "deploy", "tests/data/manifests")


@pytest.fixture(scope="module")
def manifests():
    return [text for folder in FOLDERS for text in corpus(ROOT / folder)]


@pytest.mark.slow
def test_random_texts_are_read_as_by_the_parser(manifests):
    random, quick = Random(29), 0
    for text in texts(random, 2000, manifests):
        assert compare(text), text
        quick += is_quick(text)
    assert quick > 300


@pytest.mark.slow
def test_manifests_are_read_as_by_the_parser(manifests):
    assert [text for text in manifests if not compare(text)] == []


@all_rows(
    "text, value",
    [
        ("a: 017\nb: yes\nc: 1.0\nd: ~\ne:", {"a": 15, "b": True, "c": 1, "d": None, "e": None}),
        ("a:\n- b: 1\n  c: 2\n-\n  - x\n- - w\n  - z\nd: 3", {"a": [{"b": 1, "c": 2}, ["x"], ["w", "z"]], "d": 3}),
        ("--- # begins\n\na: 1 # ends\n  # between\nb: a#b", {"a": 1, "b": "a#b"}),
        ("a: |\n\n  x\n    y\n \n  z\n\nb: |-\n  q\n", {"a": "\nx\n  y\n\nz\n", "b": "q"}),
        (
            "a: \"x\\n\\\"y\\\"\"\nb: 'it''s'\nc: [a, -1, 'b']\nd: {}\n",
            {"a": 'x\n"y"', "b": "it's", "c": ["a", -1, "b"], "d": {}},
        ),
        ("true: 1\n'on': 2\n1: 3\n", {"true": 1, "on": 2, "1": 3}),
        (
            "a: {b: c, 'd': [1, {e: no}], f: {}}\nb: [[x], {w: z} ] # c\n",
            {"a": {"b": "c", "d": [1, {"e": False}], "f": {}}, "b": [["x"], {"w": "z"}]},
        ),
        ("- {a: b,c: [ ]}\n- [ {} ]\n", [{"a": "b", "c": []}, [{}]]),
        ("a: >-\n  x y\n  # z\n\nb: >\n  x\n", {"a": "x y # z", "b": "x\n"}),
        ("- --flag\n- http://x:8/y#z\n- a  b", ["--flag", "http://x:8/y#z", "a  b"]),
    ],
)
def test_block_style_is_read_quickly(text, value):
    assert repr(block_style.read_block_document(text)) == repr(value)
    assert compare(text)


@all_rows(
    "text",
    [
        "a: b\n  c",
        "a: &x 1",
        "a: *x",
        "a: !!str 1",
        "<<: 1",
        "a: 1\na: 2",
        "a: >\n  x\n\n  y\n",
        "a: >\n  x\n    y\n",
        "a: >\n  x \n  y\n",
        "a: >+\n  x\n",
        "a: b\n  c: d",
        "a:\n  b: 1\n c: 2",
        "- a\nb: 1",
        "a: 1\n- b",
        "a: [b: c]",
        "a: [[b, ]]",
        "a: [[b] [c]]",
        "a: [[b]] c",
        "a: [{b: c}",
        "a: [{b: c]}",
        "a: {b: c}}",
        "a: {b: c}, ",
        "a: {b}",
        "a: {b: }",
        "a: {b: , c: d}",
        "a: {b:c}",
        "a: {b: c, b: d}",
        "a: {b: c: d}",
        "a: {b c: d}",
        "a: {? b: c}",
        "a: {<<: b}",
        "a: {null: b}",
        "a: {b: *c}",
        "a: {b: {c: d},, e: f}",
        "a: {b: c,\n  d: e}",
        f"a: {'[' * 10}{']' * 10}",
        "- " * 195 + "{a: {b: {c: d}}}",
        "a:\tb",
        'a: "\\u0041"',
        'a: "x\n  y"',
        "a",
        "? a",
        "a: .inf",
        "null: 1",
        "a: |\n  x",
        "a: |\n \n  x\n",
        "a: |\nb: 1\n",
        "a: |+\n  x\n",
        "---# c\n- 1",
        "--- a",
        "a: b: c",
        "a: 'x' y",
        "a: x\x07",
        "a: \ufeffx",
        "- " * 201 + "x",
        "a: @x",
        "a: -",
        f"{'k' * 501}: 1",
    ],
)
def test_other_texts_are_left_to_the_parser(text):
    with pytest.raises(block_style.UnsupportedStyleError):
        block_style.read_block_document(text)
    assert compare(text)


def test_a_planted_difference_is_found():
    """The comparison must find different types, another order of keys, and different places."""
    assert told("a: 1", parse_documents) != told("a: 1.5", parse_documents)
    assert told("a: 1\nb: 2", parse_documents) != told("b: 2\na: 1", parse_documents)
    assert told("a: 1", parse_documents) != told(" a: 1", parse_documents)
    assert told("a: 1\n---\nb: 2", yamltext.read_documents)[0][1][1] == [(3, 1), (3, 1)]
