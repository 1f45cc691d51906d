"""Equality, order, maps and JSON of CEL values."""

import math

import pytest

from tests.rows import all_rows
from webhook.cel.equality import are_equal, compare
from webhook.cel.library.optional_value import NONE, Optional
from webhook.cel.types import opaque_type
from webhook.cel.values import (
    ABSENT,
    Duration,
    Map,
    Struct,
    Timestamp,
    UInt,
    make_map,
    map_find,
    map_keys,
    plain_double_text,
    to_json,
    type_name,
)
from webhook.errors import EvaluationError, NoSuchOverload


@all_rows(
    ("left", "right", "expected"),
    [
        (True, 1, False),
        (1, 1.0, True),
        (1, UInt(1), True),
        ([True], [1], False),
        ([1, [2.0]], [1.0, [UInt(2)]], True),
        ("1", 1, False),
        (None, False, False),
        (None, None, True),
        (math.nan, math.nan, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (make_map([(1, "x")]), make_map([(UInt(1), "x")]), True),
        (Optional(1), Optional(1.0), True),
        (NONE, Optional(None), False),
        (9007199254740993, 9007199254740992.0, True),
        (Struct("Object", [("a", 1)]), {"a": 1}, False),
        (Struct("Object", [("a", [1])]), Struct("Object", [("a", [1])]), False),
        (Struct("Object", [("a", 1)]), Struct("Object", [("a", 1.0)]), False),
        (b"a", "a", False),
    ],
)
def test_equality_is_heterogeneous_and_never_fails(left, right, expected):
    assert are_equal(left, right) is expected
    assert are_equal(right, left) is expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [(1, 2.5, -1), (UInt(3), 2, 1), ("a", "b", -1), (False, True, -1), (Duration(1), Duration(1), 0), (b"b", b"a", 1)],
)
def test_comparable_values_are_ordered(left, right, expected):
    assert compare(left, right) == expected


@pytest.mark.parametrize(("left", "right"), [(1, "a"), (None, None), ([1], [2]), (True, 1)])
def test_values_without_order_are_refused(left, right):
    with pytest.raises(NoSuchOverload):
        compare(left, right)


def test_map_keys_of_different_types_stay_apart():
    value = make_map([(1, "int"), (True, "bool"), (1.0, "double"), (UInt(2), "uint"), ("1", "string")])
    assert type(value) is Map
    assert len(value) == 5
    assert map_find(value, True) == "bool"
    assert map_find(value, 2) == "uint"
    assert map_find(value, 1.0) == "double"
    assert map_find(value, False) is ABSENT
    assert [type(key) for key in map_keys(value)] == [int, bool, float, UInt, str]


def test_double_finds_an_int_key_of_equal_value():
    value = make_map([(1, "a")])
    assert map_find(value, 1.0) == "a"
    assert map_find(value, 1.5) is ABSENT
    assert map_find(value, math.nan) is ABSENT


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e21, "1000000000000000000000"), (1.5e-7, "0.00000015"), (-2.5, "-2.5"), (3.0, "3"), (math.inf, "+Inf")],
)
def test_doubles_print_without_exponent(value, text):
    assert plain_double_text(value) == text


def test_json_of_values():
    value = Struct("Object", [("at", Timestamp(1_500_000_000)), ("for", Duration(1_500_000_000)), ("n", UInt(3))])
    assert to_json(value) == {"at": "1970-01-01T00:00:01.5Z", "for": "1.5s", "n": 3}
    assert to_json(make_map([(1, b"x"), (True, None)])) == {"1": "eA==", "true": None}
    with pytest.raises(EvaluationError):
        to_json(NONE)


def test_a_timestamp_prints_in_the_zone_it_was_written_in():
    assert str(Timestamp(0, 3600)) == "1970-01-01T01:00:00+01:00"
    assert str(Timestamp(-62_135_596_800_000_000_000, -3600)) == "0000-12-31T23:00:00-01:00"


def test_type_names():
    values = (1, UInt(1), 1.0, "", b"", [], {}, None, True, NONE, Timestamp(0))
    names = " ".join(map(type_name, values))
    assert names == ("int uint double string bytes list map null_type bool optional_type google.protobuf.Timestamp")


def test_opaque_values_refuse_comparison_except_inside_lists():
    class Opaque:
        cel_type = opaque_type("test.Opaque")

        def __eq__(self, other):
            return type(other) is Opaque

        __hash__ = None

    with pytest.raises(NoSuchOverload):
        are_equal(Opaque(), "x")
    assert are_equal("x", Opaque()) is False
    assert are_equal(Opaque(), None) is False
    assert are_equal([Opaque()], ["x"]) is True
    assert are_equal({"a": Opaque(), "b": 1}, {"a": 5, "b": 2}) is False
