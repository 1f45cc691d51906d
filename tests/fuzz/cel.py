"""Compiles and evaluates many random expressions. Anything except a value or a CEL error is a failure with its seed.

python -m tests.fuzz.cel [COUNT [SEED]]        100,000 expressions by default
python -m tests.fuzz.cel COUNT [SEED] --server [KUBECONFIG] [--of KIND]
                                               compare with an API server's answers (server.py). Without a KUBECONFIG,
                                               KUBEBUILDER_ASSETS starts one. KIND may be `mutations` of a custom
                                               kind, or `policies`
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from tests.fuzz.expressions import BINDINGS, VARIABLES, Expressions
from webhook.cel import CostMeter, Environment, compiled_engine, typed_json
from webhook.errors import CompileError, EvaluationError


def run(count: int, seed: int) -> Counter[str]:
    engine, environment = compiled_engine(), Environment(variables=VARIABLES, mutation=True)
    outcomes: Counter[str] = Counter()
    expressions = Expressions(seed)
    for number in range(count):
        text = expressions.draw()
        try:
            outcomes[outcome(engine, environment, text)] += 1
        except Exception as error:
            raise AssertionError(f"expression {number} of seed {seed}: {text}") from error
    return outcomes


def outcome(engine, environment, text):
    """Return the result of an expression. A second evaluation must give the same result."""
    try:
        program = engine.compile(text, environment)
    except CompileError:
        return "refused"
    results = []
    for _ in range(2):
        meter = CostMeter()
        try:
            results.append((typed_json.encode_value(program.evaluate(BINDINGS, meter)), meter.spent))
        except EvaluationError as error:
            results.append((str(error), meter.spent))
    assert results[0] == results[1], results
    return "value" if isinstance(results[0][0], dict) else "failed"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.cel")
    parser.add_argument("count", type=int, nargs="?", default=100_000)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--server", metavar="KUBECONFIG", nargs="?", const="")
    parser.add_argument("--of", choices=("expressions", "mutations", "policies"), default="expressions")
    chosen = parser.parse_args()
    started = time.monotonic()
    if chosen.server is None:
        outcomes = run(chosen.count, chosen.seed)
    elif chosen.of == "mutations":
        from tests.fuzz.mutations import compare_mutations

        outcomes = compare_mutations(chosen.count, chosen.seed, chosen.server)
    elif chosen.of == "policies":
        from tests.fuzz.policies import compare_policies

        outcomes = compare_policies(chosen.count, chosen.seed, chosen.server)
    else:
        from tests.fuzz.server import compare

        outcomes = compare(chosen.count, chosen.seed, chosen.server)
    print(dict(outcomes.most_common()), f"{time.monotonic() - started:.0f} s")
