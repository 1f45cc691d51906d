"""Quantities calculate and print as resource.Quantity does."""

import json
import pathlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import all_rows
from webhook.apimachinery import quantity
from webhook.apimachinery.quantity import Quantity, parse_quantity

DATA = pathlib.Path(__file__).parents[1] / "data/quantity/cases.jsonl"
CASES = [json.loads(line) for line in DATA.read_text().splitlines()]
SUFFIXES = {
    **{s: Fraction(10) ** e for s, e in quantity._DECIMAL.items()},
    **{s: 2**e for s, e in quantity._BINARY.items()},
}
NUMBERS = st.tuples(st.integers(-(10**15), 10**15), st.integers(0, 6), st.sampled_from(sorted(SUFFIXES)))


def fraction(q: Quantity) -> Fraction:
    return q.unscaled * Fraction(10) ** q.scale


@all_rows("case", [c for c in CASES if "error" not in c], ids=lambda c: c["text"])
def test_a_quantity_behaves_as_in_the_go_library(case):
    q = parse_quantity(case["text"])
    assert [str(q), q.format, q.is_integer()] == [case["string"], case["format"], case["integer"]]
    assert q.as_approximate_float() == float(case["float"].replace("Inf", "inf"))
    assert str(q.add(parse_quantity("1"))) == case["add1"]
    assert str(q.sub(parse_quantity("1500m"))) == case["sub"]
    assert str(q.neg()) == case["neg"]
    if abs(fraction(q)) < 2**53 and (q.sign() >= 0 or not q.is_big):
        assert (q.value(), q.milli_value()) == (case["value"], case["milli"])


@all_rows("case", [c for c in CASES if "error" in c], ids=lambda c: c["text"])
def test_other_text_is_refused_with_the_message_of_the_go_library(case):
    with pytest.raises(ValueError) as raised:
        parse_quantity(case["text"])
    assert str(raised.value) == case["error"]


@pytest.mark.parametrize("text", ["1e1025", "1" * 1025, "1e" + "9" * 30, ".e-10"])
def test_quantities_that_take_too_long_to_parse_are_refused(text):
    with pytest.raises(ValueError, match=r"quantit"):
        parse_quantity(text)


@given(NUMBERS)
def test_a_parsed_quantity_is_the_number_rounded_up_to_nano(number):
    digits, places, suffix = number
    text = f"{digits:+0{places + 2}d}"
    text = f"{text[: len(text) - places]}.{text[len(text) - places :]}{suffix}" if places else f"{digits}{suffix}"
    exact = digits * SUFFIXES[suffix] / Fraction(10) ** places
    nano = exact * 10**9
    rounded = Fraction(-(-nano // 1) if nano > 0 else nano // 1, 10**9)
    if suffix in quantity._BINARY:
        rounded = max(min(rounded, quantity.MAX_INT64), -quantity.MAX_INT64)
    q = parse_quantity(text)
    assert fraction(q) == rounded
    again = str(q.neg().neg())
    if q.format != "DecimalSI" or abs(rounded) < 10**18:  # above exa, Go prints no suffix
        assert parse_quantity(again) == q


QUANTITIES = NUMBERS.map(lambda n: parse_quantity(f"{n[0]}{n[2]}"))


@given(QUANTITIES, QUANTITIES)
def test_arithmetic_and_order_are_exact(a, b):
    x, y = fraction(a), fraction(b)
    assert fraction(a.add(b)) == x + y
    assert fraction(a.sub(b)) == x - y
    assert fraction(a.neg()) == -x
    assert a.compare(b) == (x > y) - (x < y)
    assert (a < b, a == b, a >= b) == (x < y, x == y, x >= y)
    assert a.sign() == (x > 0) - (x < 0)
    assert bool(a) == bool(x)
    assert a.is_whole() == (x.denominator == 1)
    assert a != "1"
    if a == b:
        assert hash(a) == hash(b)


def test_quantities_of_one_value_are_one_key():
    assert len({parse_quantity("1"), parse_quantity("1000m"), parse_quantity("1e0"), parse_quantity("1.000")}) == 1
    assert hash(parse_quantity("0m")) == hash(parse_quantity("0k"))


@pytest.mark.parametrize(
    "value, text",
    [(" 4 ", "4"), (2, "2"), (1.5, "1500m"), ("1Gi", "1Gi"), (" " * 99 + "4", "4"), ("0." + "0" * 70 + "1", "1n")],
)
def test_json_forms(value, text):
    assert str(quantity.read_quantity_or_none(value)) == text


@pytest.mark.parametrize("value", [None, True, [], {}, "all", "x" * 99])
def test_other_json_is_not_a_quantity(value):
    assert quantity.read_quantity_or_none(value) is None


def test_cel_conversions():
    assert parse_quantity("2k").as_integer() == 2000
    with pytest.raises(ValueError, match="cannot convert value to integer"):
        parse_quantity("1000m").as_integer()
    assert str(quantity.from_int(1000)) == "1e3"
    huge = Quantity(10**400, 0, is_big=True)
    assert huge.as_approximate_float() == float("inf")
    assert Quantity(1, -400).as_approximate_float() == 0.0
    assert Quantity(1, -4000).value() == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16gb", "16G"),
        ("16 GB", "16G"),
        ("1.5 TiB", "1.5Ti"),
        ("512mi", "512Mi"),
        ("512 mb", "512M"),
        ("100 m", "100m"),
        (" 8K ", "8k"),
        ("2 ", "2"),
        ("1000i", ""),
        ("4 cores", ""),
        ("-1gb", ""),
        ("1.gb", ""),
        ("9" * 2000 + "gb", ""),
    ],
)
def test_the_nearest_quantity_has_a_unit_of_kubernetes(text, expected):
    assert quantity.nearest_quantity(text) == expected
    if expected:
        assert str(parse_quantity(expected))
