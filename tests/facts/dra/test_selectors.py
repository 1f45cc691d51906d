"""Device selectors, compared with k8s.io/dynamic-resource-allocation v0.36.1 (tests/data/dra/README.md)."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.rows import all_rows
from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.cel.types import ANY, DYN
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, CompileError, EvaluationError, TooLargeToCompile
from webhook.facts.dra import selectors
from webhook.facts.dra import selectors as selecting

ROWS = [json.loads(line) for line in (Path(__file__).parents[2] / "data/dra/selectors.jsonl").read_text().splitlines()]
DEVICES = {row["name"]: row for row in ROWS if "name" in row}
ASKED = [row for row in ROWS if "expr" in row]
REFUSED = [row for row in ASKED if "refused" in row]
TAKEN = [row for row in ASKED if "refused" not in row]


def compiled(row: dict):
    return compiled_engine().compile(row["expr"], selectors._selector_environment(DYN if row["lists"] else ANY))


@all_rows("row", REFUSED, ids=lambda row: f"{row['expr'][:60]} lists {row['lists']}")
def test_selectors_that_kubernetes_refuses_are_refused(row: dict) -> None:
    assert selectors._compilation_error(row["expr"], Deadline(), lists=row["lists"])


@all_rows("row", TAKEN, ids=lambda row: f"{row['expr'][:60]} {row['device']}")
def test_selectors_that_kubernetes_accepts_have_its_type_cost_and_answer(row: dict) -> None:
    program, device, meter = compiled(row), DEVICES[row["device"]], CostMeter(limit=selectors.MOST_COST)
    assert str(program.result).replace("any", "google.protobuf.Any") == row["type"]
    assert program.estimated_cost(selectors._size_limit_of_path)[1] == row["max_cost"]
    if row["max_cost"] > selectors.MOST_COST:
        assert "may cost" in selectors._compilation_error(row["expr"], Deadline(), lists=row["lists"])
        return
    if "error" in row:
        with pytest.raises(EvaluationError):
            selecting.selector_matches_device(row["expr"], device["driver"], device)
        return
    assert selecting.selector_matches_device(row["expr"], device["driver"], device, meter) is row["match"]
    assert meter.spent == row.get("cost", meter.spent)


def test_cel_bind_exists_only_in_device_selectors() -> None:
    """kube-apiserver also refuses an admission policy with `cel.bind`."""
    with pytest.raises(CompileError, match="undeclared reference to 'cel'"):
        compiled_engine().compile("cel.bind(a, 1, a == 1)", Environment(variables={"object": DYN}))
    assert selectors.check_selector("cel.bind(a, device.driver, a == 'x')", Deadline()) == selectors.SelectorErrors()


def test_lists_of_attributes_need_their_feature_gate() -> None:
    judged = selectors.check_selector("device.attributes['a.b'].names.exists(n, n == 'x')", Deadline())
    assert judged.problem == ""
    assert judged.gated.startswith("does not compile: expression of type 'any' cannot be range of a comprehension")


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("", "there is no expression"),
        (" \n", "there is no expression"),
        ("'" + "ä" * 5120 + "' == ''", "the expression has 10248 bytes, at most 10240 are allowed"),
        ("device.driver", "evaluates to string, expected bool"),
        ("device.drivre == 'x'", "does not compile: undefined field 'drivre'"),
        (
            "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, true))))",
            "may cost 3348675, at most 1000000 is allowed: compare less, with fewer loops inside loops",
        ),
    ],
)
def test_a_problem_has_the_value_that_was_found(expression: str, problem: str) -> None:
    assert selectors.check_selector(expression, Deadline()).problem == problem


def test_names_without_a_domain_belong_to_the_driver() -> None:
    device = {"attributes": {"model": {"string": "a100"}}, "capacity": {"memory": {"value": "40Gi"}}}
    assert selecting.selector_matches_device("device.attributes['x.y'].model == 'a100'", "x.y", device)
    assert selecting.selector_matches_device(
        "device.capacity['x.y'].memory.isGreaterThan(quantity('39Gi'))", "x.y", device
    )


def test_an_attribute_without_a_value_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="unsupported attribute value"):
        selecting.selector_matches_device("true", "x.y", {"attributes": {"model": {"string": None}}})
    with pytest.raises(EvaluationError, match="not a bool"):
        selecting.selector_matches_device(
            "device.attributes['x.y'].model", "x.y", {"attributes": {"model": {"string": "a"}}}
        )


def test_long_lists_are_not_searched_for_similar_names() -> None:
    device = {"attributes": {"names": {"strings": ["a"] * 49}, "versions": {"versions": ["1.2.3"]}}}
    with pytest.raises(EvaluationError, match="longer than 48 values"):
        selecting.selector_matches_device("device.attributes['x'].names.includes('a')", "x", device)
    assert selecting.selector_matches_device("device.attributes['x'].versions.includes(semver('1.2.3'))", "x", device)


LARGE = "device.driver.matches('q1(" + "|".join(["\\\\pL{200}"] * 8) + ")')"
"""A pattern for which RE2 needs a tenth of a second"""


@pytest.mark.parametrize("expression", [LARGE, "1<2&&" * 400 + "true"], ids=["a large pattern", "a long expression"])
def test_a_slow_selector_is_not_compiled_if_too_little_time_is_left(expression: str) -> None:
    with pytest.raises(BudgetExceeded):
        selectors.check_selector(expression, Deadline(time.monotonic() + 0.02))
    with pytest.raises(BudgetExceeded):
        selectors.compile_selector(expression, Deadline(time.monotonic() + 0.02))
    assert selectors.check_selector(expression, Deadline()) == selectors.SelectorErrors()


def test_a_selector_that_is_too_large_is_not_called_invalid() -> None:
    with pytest.raises(TooLargeToCompile):
        selectors.check_selector("device.driver.matches('(\\\\pL{900}|\\\\PN{900})')", Deadline())


def test_only_small_selectors_are_cached() -> None:
    small = "device.driver.matches('^gpu[.]')"
    assert selectors.compile_selector(small, Deadline()) is selectors.compile_selector(small, Deadline())
    assert selectors.compile_selector(LARGE, Deadline()) is not selectors.compile_selector(LARGE, Deadline())


def test_a_selector_of_unknown_names_is_refused_for_the_first_of_them() -> None:
    expression = f"[{', '.join(['unknown'] * 1_100)}].size() > 0"
    problem = selectors.check_selector(expression, Deadline()).problem
    assert problem == "does not compile: undeclared reference to 'unknown' (in container '')"
