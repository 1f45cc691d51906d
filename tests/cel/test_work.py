"""Work is charged while it is done. A long walk is interrupted, and linear work needs linear time.

No test reads a real clock. A deadline that has passed stops at the first check. A `Counted` deadline counts units of
work.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.rows import some_quickly
from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.cel.cost import ClockCheckingIterator
from webhook.cel.types import BYTES, DYN, INT, STRING, list_of
from webhook.deadline import OVER_TIME, STEP, Deadline
from webhook.errors import BudgetExceeded, EvaluationError, InlineBudgetSpent

N = 3000
VARIABLES = {
    "ints": list_of(INT), "texts": list_of(STRING), "dicts": list_of(DYN), "text": STRING, "url": STRING, "data": BYTES,
    "deep": DYN, "other": DYN, "nested": DYN, "wide": DYN, "same": DYN, "names": DYN, "version": STRING, "span": STRING, "escaped": STRING,
    "some": DYN,
}  # fmt: skip
ENVIRONMENT = Environment(version=(1, 37), variables=VARIABLES, mutation=True, extensions=frozenset({"encoders"}))


class Counted(Deadline):
    """A deadline that never passes. It counts the work and the checks of the clock."""

    __slots__ = ("looks", "work")

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.work = 0

    def spend(self, work: int) -> None:
        self.work += work
        super().spend(work)

    def check_clock(self) -> None:
        self.looks += 1
        super().check_clock()


class Late(Deadline):
    """A deadline that passes only after some checks of the clock."""

    __slots__ = ("looks",)

    def __init__(self, looks: int = 1, overrun: type[Exception] = BudgetExceeded) -> None:
        super().__init__(overrun=overrun)
        self.looks = looks

    def check_clock(self) -> None:
        self.looks -= 1
        if self.looks < 0:
            self.at = -1
        super().check_clock()


def _items(n: int) -> dict[str, object]:
    return {"items": [{"name": f"n{number}", "list": [number, [number]]} for number in range(n)]}


def _wide(n: int) -> dict[str, object]:
    return {f"k{number}": {"n": number} for number in range(n)}


LONG: dict[str, Callable[[int], object]] = {
    "ints": lambda n: list(range(n)),
    "texts": lambda n: [f"t{number}" for number in range(n)],
    "dicts": lambda n: [{"name": f"n{number}", "value": "v"} for number in range(n)],
    "names": lambda n: [f"n{number}" for number in range(n)],
    "text": lambda n: "ab," * (n * 10 // 3),
    "url": lambda n: "https://" + "a" * n + "/%41" + "b" * n + "?" + "k=v&" * n,
    "escaped": lambda n: "/" + "%C3%A4" * n,
    "data": lambda n: b"x" * n,
    "deep": _items,
    "other": _items,
    "wide": _wide,
    "same": _wide,
    "nested": lambda n: [[[number], [number]] for number in range(n)],
    "version": lambda n: "1.2.3-" + ".".join("a" * 3 for _ in range(n)),
    "span": lambda n: "0s" * n,
    "some": lambda n: [number % 2 == 0 for number in range(n)],
}
"""The functions that build a variable with parts of length n."""


def activation(n: int, expression: str) -> dict[str, object]:
    """Return the variables that an expression names. Making all variables would take longer than most expressions."""
    return {name: make(n) for name, make in LONG.items() if name in expression}


WALKS = {
    # library: lists
    "ints.max() > 0": 1, "ints.min() == 0": 1, "ints.sum() > 0": 1, "ints.isSorted()": 1, "texts.indexOf('x') < 0": 1,
    "texts.lastIndexOf('x') < 0": 1, "ints.indexOf(-1) < 0": 1, "dicts.includes(1)": 1, "names.sort().size() > 0": 1.5,
    "dicts.map(d, d.name).sort().size() > 0": 1.5, "dicts.sortBy(d, d.name).size() > 0": 1.5, "names.distinct() != []": 1,
    "nested.flatten(3).size() > 0": 1, "[ints, ints].flatten().size() > 0": 1, "ints.reverse().size() > 0": 1,
    "ints.slice(1, size(ints)).size() > 0": 1, "lists.range(size(ints)).size() > 0": 1, "ints.map(i, optional.of(i)).unwrapOpt() != []": 1,
    "sets.contains(ints, ints)": 1, "sets.equivalent(texts, texts)": 1, "sets.intersects(ints, [-1])": 1,
    # library: texts
    "texts.join(',') != ''": 1, "text.split(',').size() > 0": 1, "text.split('').size() > 0": 1, "text.replace(',', ';;') != ''": 1,
    "text.findAll('[a-z]+').size() > 0": 2, "strings.quote(text) != ''": 1,
    "'%s'.format([deep]) != ''": 1, "'%s %s'.format([ints, texts]) != ''": 1, "texts.map(t, '%%').join().format([]) != ''": 1,
    "isURL(url)": 1, "url(url).getEscapedPath() != ''": 1, "isURL(escaped)": 1, "url(escaped).getQuery() == {}": 1,
    "format.uri().validate(url).hasValue()": 1, "isSemver(version)": 1, "semver(version).compareTo(semver(version)) == 0": 1,
    "duration(span) == duration('0s')": 1,
    # operators
    "deep == other": 1, "deep != other": 1, "5000000 in dyn(ints)": 1, "{'a': 1} in dicts": 1, "'x' in names": 1,
    "Object{spec: wide} == Object{spec: same}": 1, "optional.of(deep) == optional.of(other)": 1, "dyn(ints) + dyn(ints) != []": 1,
    # macros
    "ints.all(i, i >= 0)": 1, "ints.exists(i, i < 0)": 1, "ints.exists_one(i, i == 1)": 1, "ints.map(i, i).size() > 0": 1,
    "ints.map(i, 1).size() > 0": 1, "ints.filter(i, true).size() > 0": 1, "some.exists_one(i, true)": 1, "ints.filter(i, i > 1) != []": 1,
    "dicts.all(i, d, d.name != '')": 1, "dicts.transformList(i, d, d.name) != []": 1, "ints.transformMap(i, v, v) != {}": 1,
    "dicts.transformMapEntry(i, d, {d.name: 1}).size() > 0": 1, "deep.items.existsOne(i, d, d.name == '')": 1,
}  # fmt: skip
"""Expressions that walk a long value. The factor says how much faster than linearly the work may grow."""


def evaluate(expression: str, variables: dict[str, object], deadline: Deadline) -> object:
    """Evaluate an expression without a limit of its cost."""
    program = compiled_engine().compile(expression, ENVIRONMENT)
    return program.evaluate(variables, CostMeter(limit=10**15, budget=10**15, deadline=deadline))


@pytest.mark.parametrize("expression", WALKS)
def test_a_walk_is_stopped_when_the_time_is_up(expression):
    with pytest.raises(BudgetExceeded, match=f"^{OVER_TIME}$"):
        evaluate(expression, activation(20_000, expression), Late())


@pytest.mark.parametrize("overrun", [BudgetExceeded, InlineBudgetSpent])
@pytest.mark.parametrize(
    "around",
    [
        "({}) || true",
        "({}) && false",
        "[1].exists(x, ({}) || x == 1)",
        "[1].all(x, ({}) && false)",
        "(({}) ? true : true) || true",
        "[?optional.of({})] != [] || true",
        "has({{'a': {}}}.a) || true",
        "optional.of({}).hasValue() || true",
    ],
)
@pytest.mark.parametrize(
    "expression", some_quickly(["ints.max() > 0", "isSemver(version)", "deep == other", "ints.all(i, i >= 0)"], 3)
)
def test_the_end_of_the_deadline_is_not_absorbed(expression, around, overrun):
    with pytest.raises(overrun, match=OVER_TIME):
        evaluate(around.format(expression), activation(20_000, expression), Late(overrun=overrun))


@pytest.mark.parametrize(("expression", "more"), WALKS.items())
def test_work_grows_with_the_length(expression, more):
    small, large = Counted(), Counted()
    variables = activation(N, expression), activation(4 * N, expression)
    assert evaluate(expression, variables[0], small) == evaluate(expression, variables[1], large)
    assert small.looks >= 2
    assert large.looks <= 5 * more * small.looks


@pytest.mark.parametrize("expression", WALKS)
def test_the_work_meter_changes_neither_value_nor_cost(expression):
    program, found = compiled_engine().compile(expression, ENVIRONMENT), []
    variables = activation(N, expression)
    for deadline in (None, Counted()):
        meter = CostMeter(deadline=deadline)
        try:
            found.append((program.evaluate(variables, meter), meter.spent))
        except EvaluationError as error:
            found.append((str(error), meter.spent))
    assert found[0] == found[1]


NESTED = "lists.range(100).{}(a, lists.range(100).{}(b, lists.range(100).{}(c, a + b + c >= 0){}){}){}"


@pytest.mark.parametrize(
    "expression",
    [
        NESTED.format("all", "all", "all", "", "", ""),
        NESTED.format("map", "map", "map", "", "", "") + ".size() > 0",
        NESTED.format("exists", "exists", "exists_one", "", "", ""),
        NESTED.format("filter", "filter", "filter", " != []", " != []", "") + ".size() > 0",
        "ints.all(a, texts.indexOf('x') < 0)",
        "lists.range(50).all(a, lists.range(50).all(b, isURL(text) || true))",
        "dicts.all(d, names.exists(n, n == d.name))",
        "lists.range(100).exists_one(a, lists.range(100).exists_one(b, lists.range(100).exists_one(c, true)))",
    ],
)
def test_nested_loops_check_the_clock_all_the_time(expression):
    deadline = Late(looks=50)
    with pytest.raises(BudgetExceeded, match=OVER_TIME):
        evaluate(expression, activation(2000, expression), deadline)


def test_a_nested_loop_checks_the_clock_about_every_hundred_iterations():
    deadline = Counted()
    evaluate(NESTED.format("all", "all", "all", "", "", "").replace("100", "20", 1), {}, deadline)
    assert deadline.looks >= 200_000 / (2 * STEP)


def test_a_long_loop_that_ends_early_leaves_no_gap():
    """Work that is counted for the first inner loop must not spare later loops a check of the clock."""
    deadline = Counted()
    assert evaluate("ints.all(a, ints.exists(b, b == a))", {"ints": list(range(1000))}, deadline)
    assert deadline.looks >= 500_000 / (2 * STEP)


def test_an_interrupted_evaluation_leaves_the_program_usable():
    expression = "ints.map(i, i + 1).sum() > 0"
    program, variables = compiled_engine().compile(expression, ENVIRONMENT), activation(20_000, expression)
    for overrun in (BudgetExceeded, InlineBudgetSpent):
        meter = CostMeter(limit=10**15, budget=10**15, deadline=Late(2, overrun))
        with pytest.raises(overrun):
            program.evaluate(variables, meter)
        meter.deadline = None
        assert program.evaluate(variables, meter) is True


def test_a_paced_range_yields_all_items_and_knows_the_rest():
    deadline = Counted()
    paced = ClockCheckingIterator(range(250), deadline)
    assert paced.__length_hint__() == 250
    found, left = [], []
    for each in paced:
        found.append(each)
        left.append(paced.__length_hint__())
    assert found == list(range(250))
    assert left == list(range(249, -1, -1))
    assert deadline.looks == 3


def test_cost_computation_stops_at_the_deadline_too():
    """The cost of a failing call needs a walk over its arguments."""
    variables = {"names": [*map(str, range(30_000)), None]}
    with pytest.raises(BudgetExceeded, match=OVER_TIME):
        evaluate("dyn(names).min() == '' || true", variables, Late(looks=301))


def test_shortened_texts_stay_valid():
    text = json.dumps([f"é{number},aa" for number in range(20_000)])
    for part in (",", "aa", "a", "é1", '", "'):
        variables = {"text": text, "texts": [part]}
        assert evaluate("text.split(texts[0])", variables, Deadline()) == text.split(part)
        assert evaluate("text.replace(texts[0], 'xyz')", variables, Deadline()) == text.replace(part, "xyz")
        assert evaluate("text.replace(texts[0], 'xyz', 7)", variables, Deadline()) == text.replace(part, "xyz", 7)
        assert evaluate("text.split(texts[0], 7)", variables, Deadline()) == text.split(part, 6)
    assert evaluate("text.split('')", {"text": text}, Deadline()) == list(text)


def test_many_keys_come_in_the_order_of_pythons_sort():
    keys = [f"{number * 7919 % 1000}" for number in range(30_000)]
    rows = [{"name": key, "value": place} for place, key in enumerate(keys)]
    found = evaluate("dicts.sortBy(d, d.name)", {"dicts": rows}, Deadline())
    assert found == sorted(rows, key=lambda row: row["name"])
    same = [{"name": "a", "value": place} for place in range(30_000)]
    assert evaluate("dicts.sortBy(d, d.name)", {"dicts": same}, Deadline()) == same


def test_a_pattern_above_the_budget_is_not_started():
    """RE2 took a minute to search a text of 100 KB for itself."""
    for expression in ("text.find(text) == ''", "text.findAll(text) == []", "text.matches(text)"):
        with pytest.raises(BudgetExceeded, match="actual cost limit exceeded"):
            evaluate(expression, {"text": "ab€," * 25_000}, Deadline())


def test_an_error_names_the_beginning_of_a_large_key():
    program = compiled_engine().compile("[1, 2].transformMapEntry(i, v, {same: v})", ENVIRONMENT)
    with pytest.raises(EvaluationError) as told:
        program.evaluate({"same": [["a"] * 1000] * 1000}, CostMeter(limit=10**12, budget=10**12))
    assert str(told.value).startswith("insert failed: key [['a', 'a'")
    assert len(str(told.value)) < 2000
