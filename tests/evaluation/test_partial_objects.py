"""An expression that reads an unknown field fails. The field never counts as absent."""

from collections.abc import Callable
from typing import Any

import pytest

from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.cel.types import DYN
from webhook.errors import NoDecision
from webhook.evaluation.merged_pods import PartialObject

SPEC = PartialObject({"image": "a"}, {"image", "tolerations"}.__contains__, "spec.", "Kind does not say what {} is")


@pytest.mark.parametrize(
    "ask",
    [
        lambda: SPEC["volumes"],
        lambda: SPEC.get("volumes"),
        lambda: "volumes" in SPEC,
        lambda: list(SPEC),
        SPEC.items,
        lambda: SPEC == {},
        lambda: len(SPEC),
        lambda: bool(PartialObject({}, lambda _: False, "spec.", "Kind does not say what {} is")),
    ],
    ids=["index", "get", "in", "iteration", "items", "comparison", "size", "truth"],
)
def test_reading_an_unknown_value_is_an_error(ask: Callable[[], Any]) -> None:
    with pytest.raises(NoDecision, match=r"^Kind does not say what spec\."):
        ask()


def test_known_fields_of_a_partial_object_behave_normally() -> None:
    assert SPEC["image"] == "a"
    assert "tolerations" not in SPEC
    assert SPEC.get("tolerations", 1) == 1
    with pytest.raises(KeyError):
        SPEC["tolerations"]


def value(expression: str) -> Any:
    environment = Environment(variables={"spec": DYN})
    return compiled_engine().compile(expression, environment).evaluate({"spec": SPEC}, CostMeter())


@pytest.mark.parametrize(
    "expression",
    [
        "has(spec.image)",
        "!has(spec.tolerations)",
        "'image' in spec",
        "spec.?image.hasValue()",
        "true || has(spec.volumes)",
    ],
)
def test_expressions_can_read_known_values(expression: str) -> None:
    assert value(expression) is True


@pytest.mark.parametrize(
    "expression",
    [
        "has(spec.volumes)",
        "spec.volumes == 1",
        "'volumes' in spec",
        "spec.?volumes.hasValue()",
        "spec[?'volumes'].hasValue()",
        "spec.all(name, true)",
        "spec.all(name, v, true)",
        "spec == {}",
        "{} == spec",
        "size(spec) > 0",
        "spec.size() == 1",
        "spec.tolerations == 1 || spec.volumes == 1",
        "spec.tolerations == 1 && spec.volumes == 1",
        "spec.volumes == 1 || spec.tolerations == 1",
        "[1, 2].exists(x, x == 1 ? spec.tolerations == x : spec.volumes == x)",
        "[1, 2].all(x, x == 1 ? spec.tolerations == x : spec.volumes == x)",
    ],
)
def test_expressions_that_read_unknown_values_fail(expression: str) -> None:
    with pytest.raises(NoDecision):
        value(expression)
