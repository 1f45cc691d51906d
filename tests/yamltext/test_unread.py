"""Unread parts of objects are written unchanged, compared by value, and never count as empty."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from webhook.cel import CostMeter, Environment, compiled_engine, values
from webhook.cel.equality import are_equal
from webhook.cel.types import DYN
from webhook.deadline import Deadline
from webhook.errors import EvaluationError, UnreadPartError
from webhook.yamltext.unread import _TOKEN, Unread, cut_deep_parts

DEEP = Unread('{"a":[1,{"b":"x"}]}', "it is deep")

EQUAL = {
    "an equal text": ('{"a":1}', '{"a":1}', True),
    "blanks": ('{"a":[1,2]}', '{ "a" : [1, 2] }', True),
    "another order of keys": ('{"a":1,"b":[2]}', '{"b":[2],"a":1}', True),
    "another order of items": ("[1,2]", "[2,1]", False),
    "another value": ('{"a":1}', '{"a":2}', False),
    "an additional key": ('{"a":1}', '{"a":1,"b":1}', False),
    "only the last value of a repeated key differs": ('{"a":2,"a":1}', '{"a":1}', True),
    "an escaped letter": (r'["\u0061"]', '["a"]', True),
    "the form of a number": ("[1.0,1e1]", "[1,10]", True),
    "a text and a number": ('["1"]', "[1]", False),
    "a list and an object": ("[]", "{}", False),
    "an integer that no double has": ("[9007199254740993]", "[9007199254740992]", False),
    "10,000 levels": ("[" * 10_000 + "]" * 10_000, "[ " + "[" * 9_999 + "]" * 10_000, True),
    "10,001 levels": ("[" * 10_000 + "]" * 10_000, "[" * 10_001 + "]" * 10_001, False),
}


@pytest.mark.parametrize(("one", "other", "same"), EQUAL.values(), ids=EQUAL.keys())
def test_parts_are_compared_by_value(one: str, other: str, same: bool) -> None:
    assert (Unread(one, "") == Unread(other, "")) is same
    assert ({"x": [Unread(one, "")]} == {"x": [Unread(other, "")]}) is same
    assert are_equal([Unread(one, "")], [Unread(other, "")]) is same


@pytest.mark.parametrize("other", [{"a": 1}, [1], {}, []], ids=repr)
def test_comparing_an_unread_part_with_an_object_is_an_error(other: Any) -> None:
    for ask in (lambda: other == DEEP, lambda: are_equal(other, DEEP), lambda: are_equal(DEEP, other)):
        with pytest.raises(UnreadPartError):
            ask()


@pytest.mark.parametrize("other", ["a", 1, 1.5, True, None], ids=repr)
def test_a_part_equals_no_plain_value(other: Any) -> None:
    assert not are_equal(other, DEEP)
    assert not are_equal(DEEP, other)


ASKS: dict[str, Callable[[Any], Any]] = {
    "the length": len,
    "the entries": list,
    "an entry": lambda part: part["a"],
    "an item": lambda part: part[0],
    "whether an entry exists": lambda part: "a" in part,
    "an entry, or None": lambda part: part.get("a"),
    "the keys": lambda part: part.keys(),
    "the hash": hash,
    "a comparison by size": lambda part: part < 1,
    "the number": int,
    "the type in CEL": values.type_name,
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
def test_reading_an_unread_part_is_an_error(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(UnreadPartError, match="a part of the object was not read"):
        ask(DEEP)


def test_a_part_is_copied_and_sent_to_other_processes() -> None:
    for made in (copy.deepcopy(DEEP), pickle.loads(pickle.dumps(DEEP))):
        assert (made.text, made.reason) == (DEEP.text, DEEP.reason)


def test_a_message_gives_the_reason_for_an_unread_part() -> None:
    assert json.dumps({"a": DEEP}, default=str) == '{"a": "(not read: it is deep)"}'
    with pytest.raises(EvaluationError, match=r"^a part of the object was not read: it is deep$"):
        len(DEEP)  # type: ignore[arg-type]


EVALUATED = {
    "object.before == 1": True,
    "object.deep == old.deep": True,
    "object.deep != old.deep": False,
    "object == old": True,
    "object.deep == 1": False,
    "object.deep != 'a'": True,
    "object.list.exists(item, item == old.deep)": True,
    "size(object.list)": 2,
    "'a' in object.list": True,
    "has(object.deep)": True,
    "object.before == 1 || object.deep.a == 1": True,
    "object.?deep.hasValue()": True,
}
REFUSED = (
    "object.deep.a == 1",
    "object.deep['a'] == 1",
    "object.deep[0] == 1",
    "has(object.deep.a)",
    "object.deep.?a.hasValue()",
    "object.?deep.?a.orValue(1) == 1",
    "object.deep[?'a'].hasValue()",
    "size(object.deep) == 1",
    "'a' in object.deep",
    "object.deep.all(key, key == 'a')",
    "object.deep.map(key, key)",
    "object.deep.exists(key, value, value == 1)",
    "object.deep == {}",
    "object.deep == [1]",
    "object.deep != {}",
    "{} == object.deep",
    "object.list.exists(item, item == {})",
    "{} in object.list",
    "type(object.deep) == map",
    "string(object.deep) == ''",
    "object.deep > 1",
    "{object.deep: 1}.size() == 1",
    "object.list.isSorted()",
    "sets.contains(object.list, [{}])",
)


def evaluate(expression: str) -> Any:
    held = {"before": 1, "deep": DEEP, "list": ["a", DEEP]}
    old = {"before": 1, "deep": Unread('{ "a":[1,{"b":"x"}]}', ""), "list": ["a", DEEP]}
    environment = Environment(variables={"object": DYN, "old": DYN})
    return compiled_engine().compile(expression, environment).evaluate({"object": held, "old": old}, CostMeter())


@pytest.mark.parametrize(("expression", "expected"), EVALUATED.items())
def test_an_expression_outside_an_unread_part_is_evaluated(expression: str, expected: Any) -> None:
    assert evaluate(expression) == expected


@pytest.mark.parametrize("expression", REFUSED)
def test_an_expression_about_an_unread_part_is_an_error(expression: str) -> None:
    with pytest.raises(EvaluationError):
        evaluate(expression)


def test_a_text_without_its_end_is_read_once() -> None:
    """A quote in the text would begin another string, also without an end."""
    text = "[" * 300 + '"' + '\\"' * 10_000
    whole, parts = cut_deep_parts(text, 200, "deep", Deadline())
    assert (whole, [*parts]) == ("[" * 200, [])
    assert [match.span() for match in _TOKEN.finditer(text, 300)] == [(300, len(text))]
