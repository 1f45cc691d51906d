"""The work of compiling a selector is estimated from above, whatever its patterns are."""

from __future__ import annotations

import time

import pytest

from webhook.cel.library.regex import _compile
from webhook.facts.dra.selector_work import SelectorWork, selector_work


@pytest.mark.parametrize(
    ("expression", "steps"),
    [
        ("1 < 2", 0),
        ("device.driver.matches('abc')", 3),
        ("device.driver.matches('a{10}')", 10),
        ("device.driver.matches('(ab){2,10}c')", 21),
        ("device.driver.matches('((a{10}){10}){10}')", 1000),
        ("device.driver.matches('a{2,}')", 2),
        ("device.driver.matches('[a-z]')", 8),
        (r"device.driver.matches(r'\pL{2}')", 1000),
        ("device.driver.matches('\\\\pL{2}')", 1000),
        ("device.driver.matches('\\x5cpL\\x7b2\\x7d')", 1000),
        ("device.driver.matches('))a')", 1),
        ("device.driver.matches('" + "\\\\pL{1000}" * 3 + "')", 100_000),
        ("device.driver == 'ab' || device.driver == 'c'", 3),
        (r"device.driver.matches('\UFFFFFFFF')", 0),
    ],
)
def test_the_steps_of_patterns(expression: str, steps: int) -> None:
    assert selector_work(expression) == SelectorWork(len(expression), steps)


@pytest.mark.parametrize("pattern", [r"\pL{200}", r"[^\pL]{150}", r"(?i)[\pL\pN]{100}", r"\PN{200}", r"(\pL\d|x){100}"])
def test_an_estimate_is_from_above(pattern: str) -> None:
    started = time.process_time()
    _compile(pattern)
    spent = time.process_time() - started
    assert spent < 3 * selector_work(f"device.driver.matches(r'{pattern}')").seconds


def test_unclosed_classes_are_looked_at_once() -> None:
    started = time.process_time()
    selector_work("'" + "[" * 10_000 + "'")
    assert time.process_time() - started < 1
