"""The findings about a value of a wrong type."""

from __future__ import annotations

import pytest

from webhook.apimachinery.attributes import JSON
from webhook.schema import Mismatch

QUOTE, UNQUOTE = "put it in quotes", "write it without quotes"


@pytest.mark.parametrize(
    ("expected", "value", "fix"),
    [
        ("a string", 4, QUOTE),
        ("a string", 1.5, QUOTE),
        ("a string", False, f"{QUOTE}, because YAML reads words such as yes, no, on and off as true or false"),
        ("a string", ["a"], ""),
        ("a whole number", "-4", UNQUOTE),
        ("a whole number of 32 bits", "4", UNQUOTE),
        ("a number", "-0.5", UNQUOTE),
        ("a number", "half", ""),
        ("a whole number", "four", ""),
        ("a whole number", "4.5", ""),
        ("true or false", "true", UNQUOTE),
        ("true or false", "yes", ""),
        ("a whole number or a string", 1.5, ""),
        ("a list", "4", ""),
    ],
)
def test_the_fix_adds_or_removes_quotes(expected: str, value: JSON, fix: str) -> None:
    assert Mismatch(at=("spec", "x"), expected=expected, value=value).fix == fix
