"""Estimates equal those of cel-go for recorded expressions, and are never below the cost of an evaluation."""

import json
from pathlib import Path

import pytest
from msgspec import structs

from webhook.cel import Environment, compiled_engine
from webhook.cel.check.checked import parse_and_check
from webhook.cel.cost import CostMeter
from webhook.cel.estimate.estimate import estimate_cost
from webhook.cel.estimate.sizes import UNBOUNDED, UNKNOWN, Range, is_bounded, range_of_value, uniform_size_bound
from webhook.cel.types import DYN, STRING, list_of
from webhook.errors import CompileError, EvaluationError

DATA = Path(__file__).parent.parent / "data" / "cel"
OVER = {
    "x0.flatten((-9223372036854775808))": "the depth wraps around in Go",
    "x0.slice(3, 1)": "the call fails, and a failed value counts as one of size 1",
}


def rows(name):
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").split("\n") if line]


def test_cel_go_estimates_the_same():
    for row in rows("estimates.jsonl"):
        environment = Environment(variables=dict.fromkeys(row["names"], DYN), mutation=True)
        sizes = None if row["size"] is None else uniform_size_bound(row["size"])
        found = estimate_cost(parse_and_check(row["expr"], environment), sizes)
        assert (row["expr"], found.least, found.most) == (row["expr"], row["min"], row["max"])


@pytest.mark.parametrize("name", ["cel_own_cases.jsonl", "cel_k8s_cases.jsonl", "library_calls.jsonl"])
def test_no_evaluation_costs_more_than_the_worst_case(name):
    over = []
    for row in rows(name):
        environment = Environment(variables=dict.fromkeys(row.get("bindings") or {}, DYN), mutation=True)
        try:
            checked = parse_and_check(row["expr"], environment)
        except CompileError:
            continue
        most = estimate_cost(checked, uniform_size_bound(100_000), worst=True).most
        if row.get("runtime_cost") is not None and most < row["runtime_cost"]:
            over.append(row["expr"])
    assert set(over) <= set(OVER)


@pytest.mark.parametrize(
    "text, size, expected",
    [
        ("1 + 1 == 2", None, (2, 2)),
        ("x.all(y, y > 0)", None, (2, UNBOUNDED)),
        ("x.all(y, y > 0)", 10, (2, 52)),
        ("[1, 2].map(y, [y]).map(y, y.map(z, z)).size() > 0", None, (128, 154)),
        ("x.matches('^a+$')", 100, (2, 12)),
        ("cel_unused", None, (1, 1)),
    ],
)
def test_the_estimated_cost_is_the_upper_bound(text, size, expected):
    environment = Environment(variables={"x": DYN, "cel_unused": DYN})
    program = compiled_engine().compile(text, environment)
    assert program.estimated_cost(None if size is None else uniform_size_bound(size)) == expected
    program.compile_now()
    assert program.estimated_cost(None if size is None else uniform_size_bound(size)) == expected


def test_sizes_are_looked_up_by_path():
    asked = []

    def sizes(path, static):
        asked.append((path, str(static)))
        return range_of_value(3) if path == ("x",) else None

    environment = Environment(variables={"x": list_of(STRING)})
    found = compiled_engine().compile("x.exists(y, y.startsWith('abc'))", environment).estimated_cost(sizes)
    assert found == (2 + 3 * (3 + 1), 2 + 3 * (3 + 1 + 1 + 1))
    assert {(("x",), "list(string)"), (("x", "@items"), "string")} <= set(asked)


def test_the_worst_case_counts_fields_of_dynamic_values():
    program = compiled_engine().compile("x.a.b.startsWith('a')", Environment(variables={"x": DYN}))
    assert program.estimated_cost(uniform_size_bound(50)) == (2, 2)
    assert program.estimated_cost(uniform_size_bound(50), worst=True) == (3, 8)
    meter = CostMeter()
    program.evaluate({"x": {"a": {"b": "b" * 50}}}, meter)
    assert meter.spent == 8


def test_an_expression_that_is_too_deep_has_no_bounds():
    checked = parse_and_check("1", Environment())
    node = checked.node
    for _ in range(2000):
        node = type(parse_and_check("[1]", Environment()).node)(0, (node,))
    assert estimate_cost(structs.replace(checked, node=node)) == UNKNOWN


def test_arithmetic_stops_at_the_bound():
    assert UNKNOWN + range_of_value(5) == Range(5, UNBOUNDED)
    assert UNKNOWN * range_of_value(3) == UNKNOWN
    assert UNKNOWN.multiplied_by(2) == UNKNOWN
    assert not is_bounded(UNKNOWN.multiplied_by(0.1).most)
    assert is_bounded(10**12)


GUARDED = {
    "a list whose size was compared": ("x.size() > 5 || x.all(y, y > 0)", 30),
    "a list whose size was compared from the other side": ("5 < x.size() || x.all(y, y > 0)", 30),
    "a comparison with >=, so the list has one element less": ("x.size() >= 6 || x.all(y, y > 0)", 30),
    "behind `short &&`": ("x.size() <= 5 && x.all(y, y > 0)", 30),
    "behind `!(long) &&`": ("!(x.size() > 5 || x.size() > 9) && x.all(y, y > 0)", 34),
    "size as a function": ("size(x) > 5 || x.all(y, y > 0)", 30),
    "a text in a loop": ("x.size() > 5 || x.exists(y, y.size() > 9 || y.matches('a'))", 50),
    "an optional": ("x.?a.orValue([]).size() > 5 || x.?a.orValue([]).all(y, y > 0)", 54),
}
UNGUARDED = {
    "another list": "x.size() > 5 || z.all(y, y > 0)",
    "the comparison comes later": "x.all(y, y > 0) || x.size() > 5",
    "a comparison that holds only for long lists": "x.size() > 5 && x.all(y, y > 0)",
    "only one of two comparisons must hold": "(x.size() > 5 && z.size() > 5) || x.all(y, y > 0)",
    "another element of the list": "x.exists(y, y.size() > 9 || x.exists(z, z.matches('a')))",
    "a variable of the same name": "z.size() > 5 || x.exists(z, z.all(y, y > 0))",
    "an optional with another default": "x.?a.orValue([1]).size() > 5 || x.?a.orValue([]).all(y, y > 0)",
    "a size that is not constant": "x.size() > z.size() || x.all(y, y > 0)",
}


@pytest.mark.parametrize(("text", "most"), GUARDED.values(), ids=GUARDED.keys())
def test_the_worst_case_knows_sizes_that_were_compared_before(text, most):
    program = compiled_engine().compile(text, Environment(variables={"x": DYN, "z": DYN}))
    assert program.estimated_cost(worst=True)[1] == most
    assert not is_bounded(program.estimated_cost()[1])
    for size in (0, 1, 5, 6, 50):
        for values in ([1] * size, ["b" * size] * size, {"a": [1] * size}):
            meter = CostMeter()
            try:
                program.evaluate({"x": values, "z": []}, meter)
            except EvaluationError:
                continue
            assert meter.cost <= most


@pytest.mark.parametrize("text", UNGUARDED.values(), ids=UNGUARDED.keys())
def test_the_worst_case_assumes_no_comparison_that_did_not_happen(text):
    program = compiled_engine().compile(text, Environment(variables={"x": DYN, "z": DYN}))
    assert not is_bounded(program.estimated_cost(worst=True)[1])
