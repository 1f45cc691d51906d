"""A short run of `python -m tests.fuzz.cel`, and laws that hold for any expression."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.cel import outcome, run
from tests.fuzz.expressions import BINDINGS, VARIABLES, Expressions
from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.errors import BudgetExceeded, CompileError, EvaluationError, EvaluationPanic

ENVIRONMENT = Environment(variables=VARIABLES, mutation=True)


def test_random_expressions_have_a_value_or_an_error():
    outcomes = run(1500, seed=7)
    assert set(outcomes) == {"value", "failed", "refused"}
    assert min(outcomes.values()) > 50


def evaluate(text):
    try:
        return compiled_engine().compile(text, ENVIRONMENT).evaluate(BINDINGS, CostMeter())
    except CompileError:
        return CompileError
    except (EvaluationPanic, BudgetExceeded):
        return EvaluationPanic  # `&&` and `||` do not absorb these errors
    except EvaluationError:
        return EvaluationError  # the order of two failing operands decides which error is reported


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_laws_of_logic(seed):
    expressions = Expressions(seed, wrong=0.02)
    one, two = (f"({expressions._of('bool', 2)})" for _ in range(2))
    both = evaluate(f"{one} && {two}")
    if any(answer in (CompileError, EvaluationPanic) for answer in (both, evaluate(one), evaluate(two))):
        return
    assert evaluate(f"!(!({one}) || !({two}))") == both
    assert evaluate(f"{two} && {one}") == both
    assert evaluate(f"{one} || true") is True
    assert evaluate(f"false && {two}") is False
    if type(evaluate(one)) is bool:
        assert evaluate(f"[{one}].all(x, x)") == evaluate(f"[{one}].map(x, x)[0]")


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=40))
def test_every_random_expression_has_an_outcome(text):
    assert outcome(compiled_engine(), ENVIRONMENT, text) in ("value", "failed", "refused")


def test_a_panic_is_not_absorbed():
    assert evaluate("dyn(1).distinct() == [] || true") is EvaluationPanic
    assert evaluate("true || dyn(1).distinct() == []") is True


def test_a_chain_of_values_that_are_not_bools_is_an_error():
    for text in ("dyn('a') && dyn('b')", "dyn('a') || dyn('b')", "true && dyn(1)"):
        assert evaluate(text) is EvaluationError
    assert evaluate("dyn('a') || true") is True
