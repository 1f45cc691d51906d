"""cel-python reports what it cannot evaluate. Otherwise it agrees with the compiled engine, except for its known
mistakes."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rows import all_rows
from webhook.cel import CostMeter, Environment, celpy_engine, compiled_engine
from webhook.cel.equality import are_equal
from webhook.cel.types import BOOL, DYN
from webhook.cel.values import Duration, Timestamp, TypeValue, UInt
from webhook.errors import BudgetExceeded, CompileError, EvaluationError

ENVIRONMENT = Environment(variables={"object": DYN, "variables": DYN}, mutation=True)


def _value(engine, expression, **variables):
    return engine.compile(expression, ENVIRONMENT).evaluate(variables, CostMeter())


def _outcome(engine, expression, **variables):
    try:
        return "value", _value(engine, expression, **variables)
    except EvaluationError:
        return "error", None


@all_rows(
    ("expression", "what"),
    [
        ("object.?a", "optional syntax"),
        ("object[?'a']", "the function `_[?_]`"),
        ("[?object.?a]", "optional syntax"),
        ("{?'a': object.?a}", "optional syntax"),
        ("object.all(k, v, true)", "the macro `all` in this form"),
        ("[1].map(x, x > 0, x)", "the macro `map` in this form"),
        ("[1].transformList(i, v, v)", "the macro `transformList` in this form"),
        ("[2, 1].sortBy(x, x)", "the macro `sortBy` in this form"),
        ("quantity('1').isInteger()", "the function `quantity`"),
        ("'a'.find('b')", "the function `find`"),
        ("sets.contains([1], [1])", "the function `sets.contains`"),
        ("Object{}", "the structure `Object`"),
    ],
)
def test_the_reference_engine_refuses_what_cel_python_lacks(expression: str, what: str) -> None:
    with pytest.raises(CompileError) as caught:
        celpy_engine().compile(expression, ENVIRONMENT)
    assert f"cel-python lacks {what}: use the compiled engine" in str(caught.value)


def test_a_refusal_points_at_its_place() -> None:
    with pytest.raises(CompileError) as caught:
        celpy_engine().compile("true &&\n  object.?a.hasValue()", ENVIRONMENT)
    assert {(issue.line, issue.column) for issue in caught.value.issues} == {(2, 8), (2, 20)}


def test_the_reference_engine_refuses_what_the_checker_refuses() -> None:
    for expression in ("1 + 'a'", "nobody", "1 +"):
        with pytest.raises(CompileError):
            celpy_engine().compile(expression, ENVIRONMENT)
    with pytest.raises(CompileError):
        celpy_engine().compile("1", ENVIRONMENT, expects=(BOOL,))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("object.a + 1", 3),
        ("[1u, 2u][0]", UInt(1)),
        ("{'a': [dyn(1.5), dyn(null), dyn(b'x')]}", {"a": [1.5, None, b"x"]}),
        ("type(1)", TypeValue("int")),
        ("duration('1.5s')", Duration(1_500_000_000)),
        ("timestamp('1970-01-01T00:00:01Z')", Timestamp(1_000_000_000)),
        ("variables.lazy + 1", 42),
    ],
)
def test_the_reference_engine_returns_our_value_types(expression: str, expected: object) -> None:
    class Lazy(dict):
        def __missing__(self, name: str) -> int:
            return 41

    found = _value(celpy_engine(), expression, object={"a": 2}, variables=Lazy())
    assert type(found) is type(expected)
    assert are_equal(found, expected)


def test_an_error_of_a_lazy_variable_is_absorbed() -> None:
    class Failing(dict):
        def __missing__(self, name: str) -> int:
            raise EvaluationError("no such key: q")

    assert _value(celpy_engine(), "variables.x == 1 || true", variables=Failing()) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("object.b", "no such key: b"),
        ("1 / object.zero", "division by zero"),
        ("object.a + 'x'", "no such overload"),
        ("9223372036854775807 + object.a", "integer overflow"),
        ("duration(object.bad) == duration('1s')", "type conversion error"),
    ],
)
def test_errors_of_the_reference_engine_have_our_messages(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        _value(celpy_engine(), expression, object={"a": 2, "zero": 0, "bad": "a" * 40 + "!"})


def test_the_reference_engine_stops_at_the_cost_limit() -> None:
    program = celpy_engine().compile("object.all(x, object.all(y, x + y >= 0))", ENVIRONMENT)
    with pytest.raises(BudgetExceeded):
        program.evaluate({"object": list(range(2000))}, CostMeter())


def test_opaque_values_are_an_error() -> None:
    with pytest.raises(EvaluationError, match="cel-python has no values of type optional_type"):
        _value(celpy_engine(), "object == 1", object=_value(compiled_engine(), "optional.of(1)"))


def test_threads_do_not_see_each_others_variables() -> None:
    program = celpy_engine().compile("object.name", ENVIRONMENT)
    wrong: list[str] = []

    def ask(name: str) -> None:
        for _ in range(40):
            found = program.evaluate({"object": {"name": name}}, CostMeter())
            if found != name:
                wrong.append(found)

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("guest", "admin")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- comparison: expressions in the part of the language that cel-python evaluates correctly

OBJECT = {
    "n": 7,
    "zero": 0,
    "s": "pod",
    "f": 2.5,
    "t": True,
    "list": [3, 1, 2],
    "names": ["a", "b", ""],
    "map": {"k": 1, "l": 2},
}


def _ints(*leaves: str):
    return st.recursive(
        st.sampled_from(["object.n", "object.zero", "1", "2", "-3", "size(object.s)", "object.map.k", *leaves]),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            st.tuples(inner, inner).map(lambda t: f"(object.t ? {t[0]} : {t[1]})"),
        ),
        max_leaves=6,
    )


INTS = _ints("object.missing", "object.list[9]")
SURE_INTS = _ints()  # for bodies of macros: there, cel-python does not absorb errors in || and &&
TEXTS = st.recursive(
    st.sampled_from(["object.s", "'a'", "''", "object.names[1]", "object.gone"]),
    lambda inner: st.tuples(inner, inner).map(lambda t: f"({t[0]} + {t[1]})"),
    max_leaves=4,
)
BOOLS = st.recursive(
    st.one_of(
        st.tuples(INTS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), INTS).map(" ".join),
        st.tuples(TEXTS, st.sampled_from(["==", "!=", "<"]), TEXTS).map(" ".join),
        TEXTS.map(lambda t: f"{t}.startsWith('p')"),
        TEXTS.map(lambda t: f"{t}.matches('^[a-z]+$')"),
        TEXTS.map(lambda t: f"{t} in object.names"),
        SURE_INTS.map(lambda t: f"object.list.exists(x, x == {t})"),
        SURE_INTS.map(lambda t: f"object.list.all(x, x > {t})"),
        SURE_INTS.map(lambda t: f"object.list.exists_one(x, x > {t})"),
        SURE_INTS.map(lambda t: f"size(object.list.filter(x, x > {t})) > 1"),
        st.sampled_from(["object.t", "has(object.map.k)", "has(object.map.z)", "false"]),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda t: f"!({t})"),
    ),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(BOOLS)
def test_both_engines_agree(expression: str) -> None:
    assert _outcome(compiled_engine(), expression, object=OBJECT) == _outcome(celpy_engine(), expression, object=OBJECT)
