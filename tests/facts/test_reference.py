"""The page of facts agrees with the declarations, and its examples are valid expressions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts import facts_page
from tests.rows import all_rows
from webhook.cel import Environment, compiled_engine
from webhook.cel.types import Type
from webhook.facts.subject import SHIPPED

PAGE = Path(__file__).parents[2] / "docs" / "facts.md"
FACTS = [SHIPPED.fact(name) for name in SHIPPED.fact_names]


def test_the_page_is_up_to_date(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PAGE.write_text(facts_page.facts_as_markdown(SHIPPED))
    assert PAGE.read_text() == facts_page.facts_as_markdown(SHIPPED), "the facts changed: run make docs"


@all_rows(
    ("name", "example"),
    [(fact.name, example) for fact in FACTS for example in fact.examples],
)
def test_an_example_is_an_expression_that_reads_the_fact(name: str, example: str) -> None:
    fact = SHIPPED.fact(name)
    structures = {each.structure.name: each.structure for each in fact.structures}
    place = Environment(variables={name: fact.type}, structures=structures)
    assert compiled_engine().compile(example, place).result == Type("bool")


def test_every_fact_has_an_example_and_every_field_a_meaning() -> None:
    assert [fact.name for fact in FACTS if not fact.examples] == []
    for fact in FACTS:
        for each in fact.structures:
            assert all(text and not text.endswith(".") for text in each.texts.values())
