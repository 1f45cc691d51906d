"""Evaluates random expressions on large inputs with small deadlines, and prints the greatest delay.

python -m tests.fuzz.deadlines [COUNT [SEED]]        20,000 expressions by default

The inputs are as large as a user can send them: lists and maps of a hundred thousand, nested objects, and texts of 100
KB. Texts are also patterns, which RE2 compiles without an interruption (0.3 microseconds a character). Costs have no
bound, so only the deadline stops an expression. Exits 1 after a delay of more than MOST_MS.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from random import Random
from typing import Any

from tests.fuzz.expressions import BINDINGS, VARIABLES, Expressions
from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.deadline import OVER_TIME, STEP, Deadline
from webhook.errors import CompileError, EvaluationError

MOST_MS = 50.0
DEADLINES_MS = (1, 5, 20)


def bindings() -> dict[str, Any]:
    item = {"n": "p", "v": 1, "list": ["a", "b", {"c": "d"}], "t": "text of some length"}
    large: dict[str, Any] = {
        "self": {
            **BINDINGS["self"],
            "a": 100_000,
            "b": "https://host/" + "%41b," * 20_000,
            "c": list(range(100_000)),
            "d": {f"k{number}": number for number in range(100_000)},
            "g": [{**item, "n": f"n{number}"} for number in range(30_000)],
        },
        "n": 50_000,
        "s": "é€b," * 25_000,
        "xs": [f"name-{number * 7919 % 100_003}" for number in range(100_000)],
        "m": {f"key-{number}": "1.2.3-a.b" for number in range(100_000)},
    }
    return {**BINDINGS, **large}


class CpuDeadline(Deadline):
    """A deadline by processor time, so other processes do not matter."""

    __slots__ = ()

    def check_clock(self) -> None:
        self.left = STEP
        if time.process_time() > self.at:
            raise self.overrun(OVER_TIME)


def overrun_ms(program: Any, variables: dict[str, Any], deadline_ms: float) -> float:
    meter = CostMeter(limit=10**15, budget=10**15, deadline=CpuDeadline(time.process_time() + deadline_ms / 1000))
    began = time.process_time()
    with suppress(EvaluationError):  # any error is right, because only the time is tested
        program.evaluate(variables, meter)
    return (time.process_time() - began) * 1000 - deadline_ms


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    engine, environment = compiled_engine(), Environment(variables=VARIABLES, mutation=True)
    expressions, random, variables = Expressions(seed), Random(seed), bindings()
    worst: list[tuple[float, str]] = []
    evaluated = 0
    for _ in range(count):
        text = expressions.draw()
        try:
            program = engine.compile(text, environment)
        except CompileError:
            continue
        program.compile_now()
        evaluated += 1
        over = overrun_ms(program, variables, random.choice(DEADLINES_MS))
        worst = sorted([*worst, (over, text)], reverse=True)[:8]
    print(
        f"{count} expressions drawn, {evaluated} evaluated, worst overrun {worst[0][0]:.1f} ms of {MOST_MS:.0f} allowed"
    )
    for over, text in worst:
        print(f"{over:8.1f} ms  {text[:200]}")
    return int(worst[0][0] > MOST_MS)


if __name__ == "__main__":
    sys.exit(main())
