"""claimgate creates no object for these optionals; values and costs are those of the Kubernetes 1.36 environment."""

import pytest

from tests.rows import all_rows
from webhook.cel import CostMeter, Environment, compiled_engine, typed_json
from webhook.cel.types import DYN
from webhook.errors import EvaluationError

OBJECT = {"a": {"b": [1, 2]}, "e": "", "l": [{"n": "x"}], "t": "text"}


def evaluate(text):
    meter = CostMeter()
    program = compiled_engine().compile(text, Environment(variables={"o": DYN}))
    try:
        return typed_json.encode_value(program.evaluate({"o": OBJECT}, meter)), meter.spent
    except EvaluationError as error:
        return str(error), meter.spent


@all_rows(
    "text, value, cost",
    [
        ("o.?a.?b.hasValue()", {"bool": True}, 4),
        ("o.?x.?b.hasValue()", {"bool": False}, 2),
        ("o.?a.?x.?y.hasValue()", {"bool": False}, 3),
        ("o.?l.?n.hasValue()", "unsupported index type 'string' in list", 3),
        ("o.?e.optFlatMap(v, optional.ofNonZeroValue(v)).orValue('none')", {"string": "none"}, 8),
        ("o.?t.optFlatMap(v, optional.ofNonZeroValue(v)).orValue('none')", {"string": "text"}, 8),
        ("o.?x.optFlatMap(v, optional.ofNonZeroValue(v)).orValue('none')", {"string": "none"}, 3),
        ("o.?a.optMap(v, v.b).hasValue()", {"bool": True}, 10),
        ("o.?a.optMap(v, 1)", {"optional": {"int": "1"}}, 4),
        ("o.?x.optMap(v, v.b)", {"optional": None}, 3),
        ("o.?x.or(o.?a).hasValue()", {"bool": True}, 4),
        ("o.?a.or(o.?x).hasValue()", {"bool": True}, 3),
        ("o.?x.or(optional.of(1)).orValue(2)", {"int": "1"}, 2),
        ("optional.of(o.?x)", {"optional": {"optional": None}}, 2),
        ("optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()", {"bool": False}, 2),
        ("optional.ofNonZeroValue(timestamp(0)).hasValue()", {"bool": True}, 2),
        ("optional.ofNonZeroValue(duration('0s')).hasValue()", {"bool": False}, 2),
        ("optional.of(o).optFlatMap(v, v.l.first()).hasValue()", {"bool": True}, 10),
        ("optional.none().or(null).optFlatMap(y, optional.of(y))", "no such overload: hasValue(null_type)", 2),
        (
            "optional.of([1]).optFlatMap(v, type(v) == list ? optional.of(v[0]) : optional.none())",
            {"optional": {"int": "1"}},
            10,
        ),
        ("o.?t.optMap(v, quantity('1')).hasValue()", {"bool": True}, 6),
        ("o.?t.optMap(v, quantity('1')).value()", "unsupported conversion to ref.Val: (*resource.Quantity)1", 6),
        ("o.?x.optMap(v, quantity('1')).orValue(quantity('2')) == quantity('2')", {"bool": True}, 6),
        ("o.?t.optFlatMap(v, optional.of(ip('::1'))).value()", "unsupported conversion to ref.Val: (netip.Addr)::1", 6),
        (
            "(has(o.t) ? optional.of(semver('1.2.3')) : o.?x).value().major()",
            "unsupported conversion to ref.Val: (semver.Version)1.2.3",
            5,
        ),
        ("(has(o.t) ? optional.of(optional.of(1)) : optional.none()).value()", {"int": "1"}, 4),
        ("o.?t.optMap(v, type(v)).value()", {"string": "string"}, 10),
        ("o.?t.optMap(v, o.?x).value() == null", {"bool": True}, 7),
        ("[?o.?a.?b, ?o.?z]", {"list": [{"list": [{"int": "1"}, {"int": "2"}]}]}, 14),
        ("o.?a == o.?x", {"bool": False}, 4),
        ("(true ? o.?a : o.?x).?b.hasValue()", {"bool": True}, 3),
    ],
)
def test_an_optional_has_this_value_and_cost(text, value, cost):
    assert evaluate(text) == (value, cost)


@pytest.mark.parametrize(
    "text, value, cost",
    [
        ("o.?a.optFlatMap(v, v.?b)[?0]", {"optional": {"int": "1"}}, 9),
        ("o.?a.optFlatMap(v, v.?b).?x", "unsupported index type 'string' in list", 8),
        ("o.?x.optFlatMap(v, v.?b)[0]", {"optional": None}, 3),
        ("has(o.?a.optFlatMap(v, optional.ofNonZeroValue(v)).b)", {"bool": True}, 8),
        ("true ? (true ? o.a : o).b : o", {"list": [{"int": "1"}, {"int": "2"}]}, 2),
        ("true ? o.?l.optFlatMap(v, optional.of(v))[?0].n : o.?x", {"optional": {"string": "x"}}, 10),
        ("o.a.b[(true ? {'i': 0} : o).i]", {"int": "1"}, 5),
    ],
)
def test_a_path_that_begins_with_an_optional_macro_has_no_cost_of_its_own(text, value, cost):
    assert evaluate(text) == (value, cost)


@pytest.mark.parametrize(
    "text, value, cost",
    [
        ("o.?x[?o.t.lowerAscii()]", {"optional": None}, 1),
        ("o.?a[?o.t.lowerAscii()]", {"optional": None}, 5),
        ("optional.none()[?o.t.lowerAscii()]", {"optional": None}, 2),
        ("optional.of(o)[?o.t.lowerAscii()]", {"optional": None}, 6),
    ],
)
def test_a_key_is_computed_only_where_it_is_needed(text, value, cost):
    assert evaluate(text) == (value, cost)


@pytest.mark.parametrize(
    "text, value, cost",
    [
        ("type(o.a) == map", True, 4),
        ("type(o.?a) == optional_type", True, 4),
        ("type(o.a.b[0]) != int", False, 6),
        ("string == type(o.a)", False, 4),
    ],
)
def test_a_type_that_is_only_compared(text, value, cost):
    assert evaluate(text) == ({"bool": value}, cost)
