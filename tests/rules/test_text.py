"""Each problem is one sentence. Lists of problems end between two sentences."""

import pytest
from msgspec.structs import replace

from webhook.rules.problem import MissingObject, Problem
from webhook.rules.text import (
    join_fitting_texts,
    message_of_problems,
    problem_as_sentence,
    shorten_text,
    split_off_fix,
    with_short_expression,
)


def test_a_sentence_has_problem_reason_and_fix():
    found = Problem(code="g/r", path="spec.a", message="must be whole", fix="set 1", found="`500m`")
    assert problem_as_sentence(found) == "spec.a: `500m` must be whole: set 1"
    assert problem_as_sentence(Problem(code="g/r", path="", message="must be there")) == "must be there"


def test_missing_objects_are_named():
    lacking = (MissingObject(kind="DeviceClass", name="x"), MissingObject(kind="Queue", name="q", why="not looked up"))
    found = Problem(code="g/r", path="spec.a", missing=lacking)
    assert problem_as_sentence(found) == "spec.a: not evaluated: DeviceClass x not found, Queue q not looked up"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("must be whole", "must be whole"),
        ("expression 'a ==\n  b\n' resulted in error: no such key: a", "expression 'a == b' resulted in error: no such key: a"),
        (f"not evaluated: expression '{'x' * 121}' resulted in error: e", f"not evaluated: expression '{'x' * 120}…' resulted in error: e"),
        ("expression 'a", "expression 'a"),
    ],
)  # fmt: skip
def test_the_expression_of_an_error_is_one_short_line(message, shown):
    assert with_short_expression(message) == shown


def test_a_very_long_path_is_cut():
    assert problem_as_sentence(Problem(code="g/r", path="a" * 10_000, message="m")) == "a" * 500 + "…: m"


def test_lists_are_cut_between_sentences():
    problems = [Problem(code="g/r", path="spec.a", message=f"must be {index}") for index in range(10)]
    assert message_of_problems(problems, 5000).endswith("; spec.a: must be 7; and 2 more")
    assert join_fitting_texts(["one" * 9, "two", "three" * 9], 60) == f"{'one' * 9}; two; and 1 more"
    assert join_fitting_texts(["one", "two"], 30) == "one; two"


def test_the_same_problem_at_several_places_is_reported_once():
    whole = [Problem(code="g/r", path=f"spec.a[{index}]", message="must be whole", fix="set 1") for index in range(3)]
    other = Problem(code="g/r", path="spec.b", message="must be set")
    assert message_of_problems([whole[0], other, *whole[1:]], 5000) == (
        "spec.a[0] (likewise spec.a[1] and spec.a[2]): must be whole: set 1; spec.b: must be set"
    )
    many = [replace(whole[0], path=f"spec.a[{index}]") for index in range(10)]
    assert message_of_problems(many, 5000).endswith("spec.a[7] and 2 more): must be whole: set 1")


def test_problems_with_different_values_are_reported_separately():
    found = [Problem(code="g/r", path="spec.a", message="must be whole", found=each) for each in ("`1m`", "`2m`")]
    assert message_of_problems(found, 5000) == "spec.a: `1m` must be whole; spec.a: `2m` must be whole"


def test_a_foreign_text_may_be_shortened():
    assert shorten_text("word " * 10, 12) == "word word …"
    assert join_fitting_texts(["x" * 100, "y"], 60) == f"{'x' * 40} …; and 1 more"
    assert join_fitting_texts(["x" * 100], 60) == f"{'x' * 40} …"


@pytest.mark.parametrize(
    ("message", "said", "fix"),
    [
        ("spec.x: `all` is not allowed: set a number", "spec.x: `all` is not allowed", "set a number"),
        ("spec.x: `a: b` is not a number", "spec.x: `a: b` is not a number", ""),
        ('metadata.labels["a: b"]: is unknown', 'metadata.labels["a: b"]: is unknown', ""),
        ("spec.x[0]: no: set it; spec.x[1]: no: set it", "spec.x[0]: no; spec.x[1]: no", "set it"),
        ("spec.x: no; not at all: set it; spec.y: no", "spec.x: no; not at all; spec.y: no", "set it"),
        ("spec.x: no: set a; spec.y: no: set b", "spec.x: no; spec.y: no", "set a; set b"),
        ("the object is wrong: mend it", "the object is wrong", "mend it"),
        ("", "", ""),
    ],
)
def test_the_fix_of_a_cel_policy_is_the_end_of_its_message(message, said, fix):
    assert split_off_fix(message) == (said, fix)
