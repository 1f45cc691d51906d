"""The type `any`, and maps with a value for every key. Kubernetes uses both in device selectors."""

from __future__ import annotations

import pytest

from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.cel.types import ANY, BOOL, DYN, STRING, map_of
from webhook.cel.values import DictWithEmptyMaps
from webhook.errors import CompileError, EvaluationError

ENVIRONMENT = Environment(variables={"a": ANY, "m": map_of(STRING, ANY), "d": DYN})


@pytest.mark.parametrize(
    "expression",
    ["a == 'x'", "a > 1", "a.b.c == 1", "a['b'] == 1", "a[0] == 1", "1 in a", "a in [1]", "a && true", "m.b + 1 == 2", "has(a.b)", "a.?b.hasValue()"],
)  # fmt: skip
def test_type_any_fits_every_type(expression: str) -> None:
    assert compiled_engine().compile(expression, ENVIRONMENT).result == BOOL


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("a.exists(x, x == 1)", "expression of type 'any' cannot be range of a comprehension"),
        ("[a, 'x'] == []", "expected type 'any' but found 'string'"),
        ("{'a': a, 'b': 1} == {}", "expected type 'any' but found 'int'"),
    ],
)
def test_type_any_cannot_be_a_loop_range_or_mixed_in_a_list(expression: str, complaint: str) -> None:
    with pytest.raises(CompileError, match=complaint.replace("'", ".")):
        compiled_engine().compile(expression, ENVIRONMENT)


@pytest.mark.parametrize(
    ("expression", "result"),
    [("a", ANY), ("m.b", ANY), ("true ? a : 1", ANY), ("true ? 1 : a", ANY), ("dyn(a)", DYN), ("a.b", DYN)],
)
def test_any_is_a_type_of_its_own(expression: str, result: object) -> None:
    assert compiled_engine().compile(expression, ENVIRONMENT).result == result


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("d.x.size() == 0", True),
        ("d['x'] == {}", True),
        ("has(d.x)", True),
        ("'x' in d", False),
        ("'here' in d", True),
        ("d.size() == 1", True),
        ("d == {'here': 1}", True),
        ("d == d", True),
        ("d.exists(k, k == 'here')", True),
        ("d.all(k, v, k == 'here' && v == 1)", True),
        ("type(d) == map", True),
    ],
)
def test_a_defaulting_map_returns_an_empty_map_for_every_key(expression: str, value: object) -> None:
    program = compiled_engine().compile(expression, ENVIRONMENT)
    assert program.evaluate({"d": DictWithEmptyMaps(here=1)}, CostMeter()) == value


def test_a_missing_key_of_a_default_map_is_an_error() -> None:
    program = compiled_engine().compile("d.x.y == 1", ENVIRONMENT)
    with pytest.raises(EvaluationError, match="no such key: y"):
        program.evaluate({"d": DictWithEmptyMaps()}, CostMeter())
