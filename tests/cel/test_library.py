"""The libraries give the API server's answers and costs, for each version, and every call is bounded."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rows import all_rows
from webhook.cel import CostMeter, Environment, compiled_engine, corpus
from webhook.cel.equality import are_equal
from webhook.cel.library import authorizer, extended_lists, lists, overloads_of_version, regex, strings
from webhook.cel.library.membership import ValueSet
from webhook.cel.types import DYN
from webhook.cel.values import UInt
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, CompileError, EvaluationError

DATA = Path(__file__).parents[1] / "data" / "cel"


def _value(expression, version=(1, 36), **variables):
    environment = Environment(version=version, variables=dict.fromkeys(variables, DYN))
    return compiled_engine().compile(expression, environment).evaluate(variables, CostMeter())


def test_random_calls_have_the_api_servers_answers_and_costs() -> None:
    outcomes = list(corpus.evaluate_rows(corpus.read_rows(DATA / "library_calls.jsonl"), compiled_engine()))
    assert [each for each in outcomes if not each.passed] == []
    assert [each for each in outcomes if each.cost_equal is False] == []
    assert len(outcomes) > 1400


# ---- versions


@pytest.mark.parametrize(
    ("name", "since"),
    [
        ("ip", (1, 30)),
        ("cidr", (1, 30)),
        ("format.named", (1, 31)),
        ("fieldSelector", (1, 31)),
        ("jsonpatch.escapeKey", (1, 32)),
        ("semver", (1, 33)),
        ("first", (1, 33)),
        ("slice", (1, 34)),
        ("lists.range", (1, 34)),
        ("includes", (1, 37)),
    ],
)
def test_functions_come_with_their_version(name: str, since: tuple[int, int]) -> None:
    before = (since[0], since[1] - 1)
    assert name in {each.name for each in overloads_of_version(since)}
    assert name not in {each.name for each in overloads_of_version(before)}


def test_functions_that_kubernetes_leaves_out_do_not_exist() -> None:
    for expression in ("math.greatest(1, 2)", "base64.encode(b'a')", "cel.bind(a, 1, a)", "'abc'.reverse()"):
        with pytest.raises(CompileError):
            _value(expression)


@all_rows(
    ("expression", "version", "expected"),
    [
        ("x.orValue('w')", (1, 36), "v"),
        ("x.orValue('w')", (1, 37), EvaluationError),
        ("'abc'.indexOf('c', 9)", (1, 31), EvaluationError),
        ("'abc'.indexOf('c', 9)", (1, 32), -1),
        ("''.indexOf('c')", (1, 31), EvaluationError),
        ("'abc'.indexOf('', 9)", (1, 36), 9),
        ("'abc'.indexOf('', 9)", (1, 37), 3),
        ("'abc'.lastIndexOf('c', 9)", (1, 31), EvaluationError),
        ("''.lastIndexOf('c')", (1, 33), EvaluationError),
        ("''.lastIndexOf('c')", (1, 34), -1),
        ("'abc'.lastIndexOf('', 9)", (1, 37), 3),
        ("format.qualifiedName().validate('a/b/c').value()[0].startsWith('a qualified name')", (1, 34), True),
        ("format.qualifiedName().validate('a/b/c').value()[0].startsWith('a valid label key')", (1, 35), True),
        ("format.labelValue().validate(long).value()", (1, 34), ["must be no more than 63 characters"]),
        ("format.labelValue().validate(long).value()", (1, 35), ["must be no more than 63 bytes"]),
    ],
)
def test_behaviour_follows_the_cel_go_of_the_version(expression, version, expected) -> None:
    if expected is EvaluationError:
        with pytest.raises(EvaluationError):
            _value(expression, version, x="v", long="a" * 64)
    else:
        assert _value(expression, version, x="v", long="a" * 64) == expected


# ---- bounds


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(100000000)",
        "s.replace('', s)",
        "l.join(s)",
        "l.map(x, l).flatten()",
        "maps.distinct()",
        "sets.equivalent(maps, maps)",
        "'%.60000e%.60000e'.format([1.0, 1.0]).replace('', s)",
    ],
)
def test_no_call_runs_without_bound(expression: str) -> None:
    variables = {
        "s": "x" * 20_000,
        "l": ["a"] * 3_000,
        "maps": [{"k": number} for number in range(20_000)],
    }
    with pytest.raises(BudgetExceeded):
        _value(expression, **variables)


def test_matching_of_hostile_patterns_ends() -> None:
    """An engine that backtracks would not end in time."""
    assert _value("s.matches('^(a+)+$')", s="a" * 200_000 + "!") is False
    assert _value("s.find('(x+x+)+y')", s="x" * 50_000) == ""


def test_find_all_stops_if_each_match_reads_the_whole_text() -> None:
    with pytest.raises(BudgetExceeded):
        regex.find_all(Deadline(), "a" * 200_000, "a.*b|a")
    assert len(regex.find_all(Deadline(), "a1" * 50_000, "[0-9]+")) == 50_000


# ---- laws

TEXT = st.text(alphabet="ab,é😀 ", max_size=12)
SCALARS = st.one_of(
    st.integers(-3, 3),
    st.integers(0, 3).map(UInt),
    st.sampled_from([0.0, 1.0, 1.5, -2.0]),
    st.booleans(),
    st.none(),
    st.sampled_from(["", "a", "b"]),
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=5)


@given(TEXT, st.sampled_from([",", "a", "é", "ab", ""]))
def test_join_undoes_split(text: str, separator: str) -> None:
    assert strings.join(Deadline(), strings.split(Deadline(), text, separator), separator) == text


@given(TEXT, TEXT)
def test_a_part_is_where_index_of_says(text: str, part: str) -> None:
    place = strings.index_of(text, part)
    assert place == -1 or strings.substring_between(text, place, place + len(part)) == part
    assert place <= strings.last_index_of(text, part)


@given(st.lists(VALUES, max_size=8))
def test_distinct_keeps_one_of_equal_values(values: list[object]) -> None:
    kept = extended_lists.distinct(Deadline(), values)
    assert extended_lists.distinct(Deadline(), kept) == kept
    assert all(any(are_equal(value, other) for other in kept) for value in values)


@given(st.lists(VALUES, max_size=8), VALUES)
def test_membership_uses_equality(values: list[object], value: object) -> None:
    assert (value in ValueSet(Deadline(), values)) is any(are_equal(value, other) for other in values)


@given(st.lists(st.floats(), max_size=10))
def test_sorting_is_idempotent_without_nan(values: list[float]) -> None:
    if not any(value != value for value in values):
        once = extended_lists.sort(Deadline(), values)
        assert extended_lists.sort(Deadline(), once) == once
        assert lists.is_sorted(Deadline(), once)


@settings(max_examples=200)
@given(TEXT, st.sampled_from(["a", "a*", "[^a]", "", ".", "é|b", "\\b", "(?i)A+"]))
def test_find_is_the_first_of_find_all(text: str, pattern: str) -> None:
    found = regex.find_all(Deadline(), text, pattern)
    assert regex.find_first(Deadline(), text, pattern) == (found[0] if found else "")
    assert regex.find_all(Deadline(), text, pattern, 1) == found[:1]


# ---- authorizer


def test_a_missing_decision_is_an_error_that_says_so() -> None:
    environment = Environment(variables={"authorizer": authorizer.AUTHORIZER})
    program = compiled_engine().compile("authorizer.path('/x').check('get').allowed()", environment)
    value = authorizer.authorizer_of("alice", authorizer.NO_DECISIONS)
    with pytest.raises(EvaluationError, match="no decision is given for user `alice` verb `get` path `/x`"):
        program.evaluate({"authorizer": value}, CostMeter())


def test_two_checks_fit_into_one_expression_and_three_do_not() -> None:
    environment = Environment(variables={"r": authorizer.RESOURCE_CHECK})
    table = authorizer.ListedAuthorizer([{"allowed": True}])
    value = authorizer.check_of_request_resource("alice", table, resource="pods", namespace="team")
    check = "r.check('get').allowed()"
    meter = CostMeter()
    program = compiled_engine().compile(f"{check} && {check}", environment)
    assert program.evaluate({"r": value}, meter) is True
    assert meter.spent == 2 * (1 + authorizer.CHECK_COST + 1)
    with pytest.raises(BudgetExceeded):
        compiled_engine().compile(f"{check} && {check} && {check}", environment).evaluate({"r": value}, CostMeter())
