"""Compiled programs: the values and costs of expressions, and the bounds of each evaluation."""

import gc
import sys
import threading
import time
from contextlib import suppress
from types import MappingProxyType

import pytest

from tests.rows import all_rows
from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.cel.library.declaration import Overload
from webhook.cel.library.optional_value import NONE, Optional
from webhook.cel.types import BOOL, DYN, INT, STRING, Structure, list_of, map_of, object_type
from webhook.cel.values import JSONPatch, TypeValue, UInt, make_map
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, CompileError, EvaluationError, EvaluationPanic, NoSuchOverload

OBJECT = {
    "name": "train-0",
    "replicas": 3,
    "ratio": 1.0,
    "on": True,
    "nothing": None,
    "empty": "",
    "labels": {"team": "a", "a/b": "c"},
    "list": [1, 2, 3],
    "items": [{"name": "x", "n": 1}, {"name": "y"}, {"name": "z", "n": 3}],
}
ENVIRONMENT = Environment(variables={"object": DYN, "other": DYN, "text": STRING}, mutation=True)
ACTIVATION = MappingProxyType({"object": OBJECT, "other": None, "text": "abc"})


def evaluate(expression, activation=ACTIVATION, environment=ENVIRONMENT, meter=None):
    program = compiled_engine().compile(expression, environment)
    return program.evaluate(activation, meter or CostMeter())


def cost(expression, activation=ACTIVATION):
    meter = CostMeter()
    with suppress(EvaluationError):
        evaluate(expression, activation, meter=meter)
    return meter.spent


@all_rows(
    ("expression", "value"),
    [
        # plain JSON is read unchanged
        ("object.labels['a/b']", "c"),
        ("object.list[2]", 3),
        ("object.items[0].name + '!'", "x!"),
        ("object.replicas * 2 - 1", 5),
        ("object.nothing == null", True),
        ("other == null", True),
        # has() and optionals
        ("has(object.labels.team)", True),
        ("has(object.labels.nope)", False),
        ("has(object.nothing.a)", False),
        ("has(object.name.a)", False),
        ("object.?labels.?team", Optional("a")),
        ("object.?labels.?nope.?deeper", NONE),
        ("object.?labels.nope.deeper", NONE),
        ("object.?list[?9]", NONE),
        ("object.?list[1]", Optional(2)),
        ("object.?labels.?team.orValue('b')", "a"),
        ("object.?labels.?nope.or(object.?name)", Optional("train-0")),
        ("object.?replicas.optMap(r, r + 1)", Optional(4)),
        ("object.?nope.optMap(r, r + 1)", NONE),
        ("object.?labels.optFlatMap(l, l.?team)", Optional("a")),
        ("[?object.?nope, ?object.?replicas, dyn(5)]", [3, 5]),
        ("{?'a': object.?nope, 'b': dyn(1)}", {"b": 1}),
        # equality and order across types
        ("object.on == 1", False),
        ("object.ratio == 1", True),
        ("object.list == [1, 2.0, 3]", None),
        ("object.list == [1, 2, 3]", True),
        ("object.name != 5", True),
        ("object.replicas < 3.5", True),
        ("dyn(quantity('1')) != 1", True),
        ("object.replicas in [1, 2, 3]", True),
        ("'team' in object.labels", True),
        ("object.on in [1, 2]", False),
        # an operand that decides absorbs errors
        ("object.nope == 1 || object.on", True),
        ("object.on || object.nope == 1", True),
        ("object.nope == 1 && !object.on", False),
        ("object.items.exists(i, i.n == 3)", True),
        ("object.items.all(i, i.n == 7)", False),
        ("object.replicas == 3 || 1 / 0 > 0", True),
        # comprehensions
        ("object.items.filter(i, has(i.n)).map(i, i.n)", [1, 3]),
        ("object.items.map(i, has(i.n), i.name)", ["x", "z"]),
        ("object.items.exists_one(i, i.name == 'y')", True),
        ("object.labels.all(k, k != '')", True),
        ("object.labels.exists(k, v, v == 'c' && k == 'a/b')", True),
        ("object.list.transformList(i, v, i * 10 + v)", [1, 12, 23]),
        ("object.labels.transformMap(k, v, v + k)", {"team": "ateam", "a/b": "ca/b"}),
        ("object.list.transformMap(i, v, v > 1, v)", make_map([(1, 2), (2, 3)])),
        ("object.labels.transformMapEntry(k, v, {v: k})", {"a": "team", "c": "a/b"}),
        ("object.items.sortBy(i, i.name != 'y').map(i, i.name)", ["y", "x", "z"]),
        ("[1, 2].map(x, [3].map(x, x)[0] + x)", [4, 5]),
        # numbers, types, structures
        ("uint(3) + 2u", UInt(5)),
        ("type(object.replicas) == int", True),
        ("type(1u)", TypeValue("uint")),
        ("{1: 'a', 2: 'b'}[2]", "b"),
        ("{true: 1}[true]", 1),
        ("Object{spec: Object.spec{n: object.replicas}}.spec.n", 3),
        ("Object{}.unset", None),
        ("object.on ? 'yes' : object.nope", "yes"),
        ("size(object.name) + size(object.list) + size(object.labels)", 12),
        ("object.name.matches('^train-[0-9]+$')", True),
    ],
)
def test_an_expression_has_this_value(expression, value):
    if expression == "object.list == [1, 2.0, 3]":  # mixed literals are refused
        with pytest.raises(CompileError):
            evaluate(expression)
        return
    found = evaluate(expression)
    assert found == value
    assert type(found) is type(value)


@all_rows(
    ("expression", "text"),
    [
        ("object.nope", "no such key: nope"),
        ("object.nope.deeper", "no such key: nope"),
        ("object.nothing.a", "no such key: a"),
        ("object.name.a", "no such key: a"),
        ("object.list.a", "unsupported index type 'string' in list"),
        ("has(object.list.a)", "unsupported index type 'string' in list"),
        ("object.list[7]", "index out of bounds: 7"),
        ("object.list[-1]", "index out of bounds: -1"),
        ("object.name[0]", "no such key: 0"),
        ("object.labels[object.name]", "no such key: train-0"),
        ("9223372036854775807 + object.replicas", "integer overflow"),
        ("object.replicas / 0", "division by zero"),
        ("object.replicas + object.name", "no such overload"),
        ("object.name + 1", "no such overload"),
        ("object.name && true", "no such overload"),
        ("object.name ? 1 : 2", "no such overload"),
        ("object.nope == 1 || object.gone == 2", "no such key: nope"),
        ("object.items.all(i, i.n > 0)", "no such key: n"),
        ("object.name.all(c, true)", "got 'types.String', expected iterable type"),
        ("size(object.replicas)", "no such overload: size"),
        ("1 in object.name", "no such overload"),
        ("dyn(quantity('1')) == 1", "no such overload"),
        ("double('NaN') < 1.0", "NaN values cannot be ordered"),
        ("optional.none().value()", "optional.none() dereference"),
    ],
)
def test_an_expression_fails_with_the_message_of_cel_go(expression, text):
    with pytest.raises(EvaluationError) as caught:
        evaluate(expression)
    assert str(caught.value) == text


def test_a_value_of_a_wrong_class_is_a_missing_overload():
    with pytest.raises(NoSuchOverload):
        evaluate("object.name.startsWith(object.replicas)")


@all_rows(
    ("expression", "units"),
    [
        # by cel-go v0.26.0 in k8s.io/apiserver v0.36.1's environment
        ("1 + 2", 1),
        ("object.name", 2),
        ("object.labels.team == 'a'", 4),
        ("has(object.labels.team)", 2),
        ("has(object.labels.team) && object.labels.team == 'a'", 6),
        ("object.name == ''", 2),
        ("object.empty == 'a'", 2),
        ("object.name == 'a text of twenty char'", 3),
        ("[1, 2, 3].all(x, x > 0)", 16),
        ("[1, 2, 3].exists(x, x == 1)", 9 + 1),
        ("[1, 2, 3].map(x, x)", 40),
        ("[1, 2, 3].map(x, 1)", 7),
        ("[1, 2, 3].filter(x, x > 1)", 33),
        ("[1, 2, 3].exists_one(x, x > 2)", 10),
        ("object.on ? object.name : object.empty", 3),
        ("object.?labels.?nope", 2),
        ("object.nope.deeper.still", 2),
        ("object.nope == 1 || object.on", 5),
        ("1 in [1, 2, 3]", 0),
        ("object.list[0]", 3),
        ("object.name.startsWith('train')", 3),
        ("object.name.matches('^train-[0-9]+$')", 6),
        ("dyn([1, 2])", 0),
    ],
)
def test_an_expression_costs_what_the_api_server_counts(expression, units):
    assert cost(expression) == units


def test_every_path_through_a_chain_has_its_own_cost():
    expression = "other == null || other.list.all(x, x > 0)"
    assert cost(expression) == 2
    assert cost(expression, {"object": None, "other": {"list": [1, 0, 1]}, "text": ""}) == 2 + 2 + 5 * 2 + 2 + 1


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(200000).all(i, i >= 0)",
        "lists.range(999).all(i, lists.range(999).all(j, lists.range(999).all(k, i + j + k >= 0)))",
        "lists.range(999).map(i, lists.range(999).map(j, lists.range(999).map(k, i + j + k))).size() > 0",
        "lists.range(100000000000)",
        "[text, text, text].all(t, lists.range(9999).all(i, t.matches('(a|b)*c' + t)))",
        "[1, 2].all(i, lists.range(300000).exists(j, j < 0)) || true",
        " + ".join(["text"] * 40) + " == ''",
    ],
)
def test_runaway_work_stops_at_the_budget(expression):
    with pytest.raises(BudgetExceeded):
        evaluate(expression, {"object": OBJECT, "other": None, "text": "x" * 3_000_000})


def test_giant_strings_are_not_built():
    with pytest.raises(BudgetExceeded):
        evaluate("text.replace('x', text).replace('x', text)", {"text": "x" * 20_000, "object": None, "other": None})


def test_matching_of_catastrophic_patterns_ends():
    """An engine that backtracks would need 2^5000 steps."""
    assert evaluate("text.matches('^(a+)+$')", {"text": "a" * 5000 + "!", "object": None, "other": None}) is False


def test_the_limit_is_exact_for_a_loop_that_ends_early():
    """A loop that stops at once does not fail, even if its whole range is above the limit."""
    meter = CostMeter()
    assert evaluate("lists.range(400000).exists(i, i == 2)", meter=meter) is True
    assert meter.spent == 400_011 + 3 * 6 + 3 + 1


def test_expressions_share_a_budget_until_it_is_used_up():
    program = compiled_engine().compile("object.list.all(x, x > 0)", ENVIRONMENT)
    meter = CostMeter(budget=40)
    assert program.evaluate(ACTIVATION, meter)
    assert program.evaluate(ACTIVATION, meter)
    assert (meter.spent, meter.budget) == (36, 4)
    with pytest.raises(BudgetExceeded, match="running out of cost budget"):
        program.evaluate(ACTIVATION, meter)
    assert meter.budget < 0
    with pytest.raises(BudgetExceeded):
        compiled_engine().compile("true", ENVIRONMENT).evaluate(ACTIVATION, meter)


def test_a_passed_deadline_stops():
    with pytest.raises(BudgetExceeded):
        evaluate("true", meter=CostMeter(deadline=Deadline(time.monotonic() - 1)))
    meter = CostMeter(limit=10**12, budget=10**12, deadline=Deadline(time.monotonic() + 0.2))
    with pytest.raises(BudgetExceeded, match="interrupted"):
        evaluate("lists.range(9999).all(i, lists.range(9999).all(j, i + j >= 0))", meter=meter)


@pytest.mark.parametrize(
    "expression",
    [
        " || ".join(["object.nope == 1"] * 240 + ["true"]),
        "(" * 100 + "object.on" + ")" * 100,
        " + ".join(["object.replicas"] * 120) + " > 0",
        "[" * 100 + "1" + "]" * 100 + " != []",
        "object.on ? (" * 20 + "true" + ") : false" * 20,
    ],
)
def test_nested_expressions_compile(expression):
    assert evaluate(expression) is True


def test_deep_alternation_is_compiled_into_separate_functions():
    expression = "object.nope == 2"
    for _ in range(30):
        expression = f"(object.nope == 1 || (true && {expression}))"
    assert evaluate(f"{expression} || true") is True
    loops = "x0"
    for depth in reversed(range(14)):
        loops = f"[1].map(x{depth}, {loops})" if depth == 0 else f"[x{depth - 1}].map(x{depth}, {loops})[0]"
    assert evaluate(loops) == [1]


def test_deep_objects_are_an_error_not_a_crash():
    deep = []
    for _ in range(sys.getrecursionlimit() * 2):
        deep = [deep]
    with pytest.raises(EvaluationError, match="nested too deeply"):
        evaluate("object == other", {"object": deep, "other": [*deep], "text": ""})


def test_no_text_of_an_expression_reaches_python():
    assert evaluate("'__import__(\"os\")' + object.name") == '__import__("os")train-0'
    with pytest.raises(CompileError):
        evaluate("__import__('os')")
    with pytest.raises(EvaluationError):
        evaluate("object.__class__")


def test_a_program_has_names_result_and_source():
    program = compiled_engine().compile("object.name == text", ENVIRONMENT, expects=(BOOL,))
    assert (program.variable_names, program.result, program.source) == ({"object", "text"}, BOOL, "object.name == text")


def test_constants_that_fail_refuse_the_expression():
    for expression in ("true || int('x') == 1", "object.name.matches('(')", "true || dyn(timestamp('x')) == null"):
        with pytest.raises(CompileError):
            compiled_engine().compile(expression, ENVIRONMENT)
    assert evaluate("quantity('zzz') == quantity('1') || true") is True


def test_programs_keep_no_state_between_threads():
    program = compiled_engine().compile(
        "object.list.map(x, x + object.replicas).all(y, y > object.replicas) && object.name == text", ENVIRONMENT
    )
    failures = []

    def run(number):
        value = {"list": [1, 2, 3], "replicas": number, "name": f"n{number}"}
        for _ in range(2000):
            meter = CostMeter()
            if program.evaluate({"object": value, "text": f"n{number}"}, meter) is not True:
                failures.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_absorbed_errors_leave_no_cycles():
    program = compiled_engine().compile("object.nope == 1 || object.items.exists(i, i.n == 3)", ENVIRONMENT)
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            program.evaluate(ACTIVATION, CostMeter())
        assert gc.collect() < 50
    finally:
        gc.enable()


def test_declared_structures_and_maps_that_fill_themselves():
    class Lazy(dict):
        def __missing__(self, name):
            if name != "answer":
                raise KeyError(name)
            self[name] = 42
            return 42

    request = Structure("Request", {"name": STRING, "groups": list_of(STRING), "extra": map_of(STRING, DYN)})
    variables = Structure("Variables", {"answer": DYN})
    environment = Environment(
        variables={"request": object_type("Request"), "variables": object_type("Variables")},
        structures={"Request": request, "Variables": variables},
    )
    activation = {"request": {"name": "n", "groups": ["a"], "extra": {}}, "variables": Lazy()}
    assert evaluate("'a' in request.groups && request.name == 'n'", activation, environment) is True
    assert evaluate("has(variables.answer) && variables.answer == 42", activation, environment) is True
    with pytest.raises(EvaluationError):
        evaluate("request.groups[0] + request.extra.x", activation, environment)


def test_structures_have_their_names():
    found = evaluate("JSONPatch{op: 'add', path: '/a', value: [Object.spec{x: 1}]}")
    assert type(found) is JSONPatch
    assert found.name == "JSONPatch"
    assert found["value"][0].name == "Object.spec"


def test_a_field_of_a_dynamic_optional_is_selected():
    assert evaluate("[object[?'nope']].map(o, o.deeper)") == [NONE]
    assert evaluate("[object[?'labels']].map(o, o.team)") == [Optional("a")]
    assert evaluate("[object[?'labels']].exists(o, has(o.team))") is True


def test_a_bug_in_a_function_is_an_expression_error_that_cannot_be_absorbed():
    def broken(value):
        raise ZeroDivisionError("a fault")

    faulty = Overload("faulty", "faulty_int", (INT,), BOOL, broken)
    environment = Environment(variables={"object": DYN}, functions=(faulty,))
    with pytest.raises(EvaluationPanic, match="internal error: a fault"):
        evaluate("faulty(1) || true", {"object": {}}, environment)
