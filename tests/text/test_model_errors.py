"""Mistakes of shape are described with the terms of YAML, never with those of a library or of Python."""

from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from webhook.text.model_errors import describe_model_error, is_unknown_field_error


class Sample(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: str = ""
    count: int = 0
    flag: bool = False
    kind: Literal["a", "b"] = "a"
    items: list[str] = Field(default=["x"], min_length=1)
    words: dict[str, str] = {}


def mistake(**fields):
    with pytest.raises(ValidationError) as caught:
        Sample.model_validate(fields)
    (found,) = caught.value.errors()
    return found


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": None}, "expected a string, found `null`"),
        ({"name": True}, "expected a string, found `true`"),
        ({"count": "1"}, 'expected an integer, found `"1"`'),
        ({"flag": "true"}, 'expected true or false, found `"true"`'),
        ({"count": {"a": [1]}}, 'expected an integer, found `{"a": [1]}`'),
        ({"flag": "yes\nno"}, "expected true or false, found `yes no`"),
        ({"kind": "A"}, "expected one of a, b, found `A`"),
        ({"items": "x" * 70}, f"expected a list, found `{'x' * 57}...`"),
        ({"items": []}, "expected one entry or more, found `[]`"),
        ({"words": []}, "expected a map, found `[]`"),
        ({"nam": ""}, "unknown field"),
    ],
)
def test_a_mistake_in_a_policy_is_reported_with_its_place(fields, text):
    found = mistake(**fields)
    assert describe_model_error(found) == text
    assert is_unknown_field_error(found) == (text == "unknown field")


def test_an_unknown_model_error_keeps_its_message():
    assert describe_model_error({"type": "other", "msg": "Is odd", "input": 1}) == "is odd"
    assert describe_model_error({"type": "missing", "msg": "", "input": {}}) == "is required"
