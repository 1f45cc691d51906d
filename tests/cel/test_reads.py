"""Which fields of its variables an expression reads."""

import pytest

from webhook.cel import Environment
from webhook.cel.check.checked import parse_and_check
from webhook.cel.check.reads import paths_read_by
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
        ("a.c.d == 1 && a.x", {"a.c": {"d"}, "a": {"x"}}),
        ("{'k': a.x, 'l': a.y}.k == [a.z]", {"a": {"x", "y", "z"}}),
        ("size(a.x) > 0 ? type(a.y) == int : a.z.startsWith('x')", {"a": {"x", "y", "z"}}),
    ],
)
def test_fields(source, expected):
    assert paths_read_by(parse_and_check(source, PLACE)).fields_by_variable == expected


@pytest.mark.parametrize(
    ("source", "paths", "always"),
    [
        ("a.x.y == 1 && a.x.z", {"a.x.y", "a.x.z"}, {"a"}),
        ("has(a.x.y)", {"a.x.y"}, {"a"}),
        ("a.?x.?y.orValue([]).all(each, each.z == b[0])", {"a.x.y", "b"}, {"a"}),
        ("a.x[0].y == 1", {"a.x"}, {"a"}),
        ("1 == 2 || a.x && size(b) > 0", {"a.x", "b"}, set()),
        ("size(b) > 0 ? a.x : a.y", {"a.x", "a.y", "b"}, {"b"}),
        ("size(b) + a.x > 0 || a.c", {"a.x", "a/c", "b"}, {"a", "b"}),
    ],
)
def test_paths(source, paths, always):
    found = paths_read_by(parse_and_check(source, PLACE))
    assert found.paths == {("a.c",) if path == "a/c" else tuple(path.split(".")) for path in paths}
    assert found.always == always
