"""Compares two checkouts in one run. The ratios of this checkout to the other are about processor time for each review,
and about reviews a second.

    python -m tests.bench.compare OTHER_TREE [--quick] [--only TEXT]

Every round starts a server of both trees, and sends the same reviews to both. The order alternates. A ratio is of one
round, so its measurements are seconds apart. The table shows the median, the least and the largest ratio. Processor time
includes all processes of a server.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.bench.bounds.server import ROOT
from tests.bench.measuring import SCENARIOS, Measured, Numbers, Scenario, calls_of, measure, requests, server

CONNECTIONS = 8
ROUNDS, ROUND_S = 5, 1.2
QUICK_ROUNDS, QUICK_S = 3, 0.4


def one_round(
    trees: Sequence[Path], scenarios: Sequence[Scenario], numbers: Numbers, seconds: float
) -> Iterator[tuple[Scenario, dict[Path, Measured]]]:
    for policies in dict.fromkeys(scenario.policies for scenario in scenarios):
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            servers = {
                tree: stack.enter_context(server(Path(folder, str(place)), policies, tree))
                for place, tree in enumerate(trees)
            }
            for scenario in scenarios:
                if scenario.policies == policies:
                    calls = [calls_of(seconds, one, scenario, numbers, CONNECTIONS) for one in servers.values()]
                    sent = requests(scenario, numbers.take(min(calls)))
                    yield scenario, {tree: measure(one, sent, CONNECTIONS) for tree, one in servers.items()}


def run(other: Path, scenarios: Sequence[Scenario], rounds: int, seconds: float) -> None:
    """Measure both checkouts in rounds and print the ratios. The progress goes to stderr."""
    numbers, results = Numbers(), dict[Scenario, list[dict[Path, Measured]]]()
    for number in range(rounds):
        trees = (ROOT, other) if number % 2 == 0 else (other, ROOT)
        for scenario, measured in one_round(trees, scenarios, numbers, seconds):
            results.setdefault(scenario, []).append(measured)
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    print(f"{ROOT} beside {other}: {CONNECTIONS} connections, {rounds} rounds in turn, median (least to largest)")
    print(f"{'':44} {'processor ms':>13} {'ratio':>21} {'reviews/s':>10} {'ratio':>21}")
    for scenario, found in results.items():
        here = [statistics.median(getattr(one[ROOT], name) for one in found) for name in ("processor_ms", "per_second")]
        ratios = [
            sorted(getattr(one[ROOT], name) / getattr(one[other], name) for one in found)
            for name in ("processor_ms", "per_second")
        ]
        shown = [f"{statistics.median(each):.2f} ({each[0]:.2f} to {each[-1]:.2f})" for each in ratios]
        print(f"{scenario!s:44} {here[0]:>13.3f} {shown[0]:>21} {here[1]:>10.0f} {shown[1]:>21}", flush=True)


def main() -> int:
    flags = argparse.ArgumentParser(prog="python -m tests.bench.compare")
    flags.add_argument("other", type=Path, metavar="OTHER_TREE", help="a checkout; its .venv is used if it has one")
    flags.add_argument("--quick", action="store_true", help="fewer and shorter rounds: a first look")
    flags.add_argument("--only", default="", metavar="TEXT", help="only scenarios with this in their name")
    given = flags.parse_args()
    other = given.other.resolve()
    if not (other / "webhook").is_dir():
        flags.error(f"{other}: not a checkout, it has no folder `webhook`")
    if other == ROOT:
        flags.error(f"{other}: is this checkout itself")
    scenarios = [scenario for scenario in SCENARIOS if given.only in str(scenario)]
    rounds, seconds = (QUICK_ROUNDS, QUICK_S) if given.quick else (ROUNDS, ROUND_S)
    run(other, scenarios, rounds, seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
