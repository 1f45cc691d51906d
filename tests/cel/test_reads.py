"""Which fields of its variables an expression reads."""

import pytest

from webhook.cel import Environment
from webhook.cel.check.checked import read
from webhook.cel.check.reads import reads
from webhook.cel.types import DYN, LIST_DYN

PLACE = Environment(variables={"a": DYN, "b": LIST_DYN, "a.c": DYN})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2", {}),
        ("a == 1", {"a": {""}}),
        ("a.x == a.y[0].z", {"a": {"x", "y"}}),
        ("has(a.x) && has(a.x.y)", {"a": {"x"}}),
        ("a.?x.orValue(1) == 1 || a[?'y'].hasValue()", {"a": {"x", ""}}),
        ("b.all(each, each.x == a.y)", {"b": {""}, "a": {"y"}}),
        ("b.all(a, a.x)", {"b": {""}}),
        ("a.c.d == 1 && a.x", {"a.c": {""}, "a": {"x"}}),
        ("{'k': a.x, 'l': a.y}.k == [a.z]", {"a": {"x", "y", "z"}}),
        ("size(a.x) > 0 ? type(a.y) == int : a.z.startsWith('x')", {"a": {"x", "y", "z"}}),
    ],
)
def test_fields(source, expected):
    assert reads(read(source, PLACE)) == expected
