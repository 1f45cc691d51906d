"""The costs of failing calls in the Kubernetes 1.36 environment. A failed argument counts with size 1."""

import pytest

from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.errors import EvaluationError


@pytest.mark.parametrize(
    "text, cost",
    [
        ("dyn({}).x.flatten()", 14),
        ("dyn({}).x.map(v, v).flatten()", 14),
        ("[dyn({}).x].flatten()", 24),
        ("dyn({}).x.map(v, v).reverse()", 14),
        ("lists.range(dyn({}).x)", 14),
        ("dyn({}).x.map(v, v).sum()", 3),
        ("'ab'.find(dyn({}).x)", 3),
        ("dyn({}).x.find('a')", 2),
        ("dyn({}).x.findAll('a', 2)", 2),
        ("1 in [dyn(1)].slice(2, 1)", 13),
    ],
)
def test_a_failed_argument_costs_as_much_as_an_argument_of_size_1(text, cost):
    meter = CostMeter()
    with pytest.raises(EvaluationError):
        compiled_engine().compile(text, Environment()).evaluate({}, meter)
    assert meter.spent == cost


@pytest.mark.parametrize(
    "text, error",
    [
        ("dyn(true).find('a')", "no such overload"),
        ("dyn(true).findAll(r'\\d', 2)", "no such overload"),
        ("'a'.findAll('a', dyn('b'))", "no such overload"),
        ("dyn(true).find(dyn('a'))", "no such overload"),
        ("['a'].map(p, dyn(true).find(p))", "no such overload: find(bool, string)"),
    ],
)
def test_a_constant_pattern_accepts_only_a_string(text, error):
    with pytest.raises(EvaluationError) as raised:
        compiled_engine().compile(text, Environment()).evaluate({}, CostMeter())
    assert str(raised.value) == error
