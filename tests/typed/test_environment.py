"""The variables of a container, read without creating an object for each variable."""

import pytest

from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.typed.environment import Environment, first_value
from webhook.typed.pods import Container
from webhook.typed.view import ReadingContext


def environment(*listed):
    return Container.of({"env": [*listed]}).environment


def test_a_variable_with_value_from_has_the_value_none():
    read = environment({"name": "A", "value": "1"}, {"name": "B", "valueFrom": {}}, {"name": "A", "value": "2"})
    assert read == Environment(["A", "B", "A"], ["1", None, "2"])
    assert read.pairs() == (("A", "1"), ("B", None), ("A", "2"))
    assert read.by_name() == {"A": "2", "B": None}


@pytest.mark.parametrize("variable", [{}, {"name": None}, {"name": 1, "value": 2}, "A", None])
def test_a_variable_of_another_shape_keeps_its_place(variable):
    assert environment(variable, {"name": "B", "value": "x"}) == Environment(["", "B"], [None, "x"])


@pytest.mark.parametrize("env", [None, [], {}, "A"])
def test_an_env_that_is_not_a_list_has_no_variables(env):
    assert Container.of({"env": env}).environment == Environment()


def test_variables_are_charged():
    container = Container.of({"env": [{"name": "A"}] * 200}, (), ReadingContext(Deadline(-1.0)))
    with pytest.raises(BudgetExceeded):
        _ = container.environment


@pytest.mark.parametrize(
    ("env", "value"),
    [
        ([{"name": "A"}, {"name": "B", "value": "1"}, {"name": "B", "value": "2"}], "1"),
        ([{"name": "B", "valueFrom": {}}, {"name": "B", "value": "2"}], ""),
        ([None, {"name": "B", "value": 1}], ""),
        ([None, {"name": "B", "value": "2"}], "2"),
        ([{"value": "1"}, {"name": "B", "value": "2"}], "2"),
        ([{"name": "A", "value": "1"}], ""),
        ({"name": "B"}, ""),
        (None, ""),
    ],
)
def test_the_first_variable_of_a_name_counts(env, value):
    assert first_value("B", env, Deadline()) == value
