"""Measures one serving process: reviews a second over loopback TLS, and the processor time of a review.

The server gets different Pods and jobs, as a cluster sends them (traffic.py). It has the shipped policies, or 16 CEL
policies of three validations each, or no policies about Pods, for the cost of decoding and answering. The scenarios
alternate in short rounds, and medians are shown. Compare ratios only: on shared machines, times differ by a third.

    python -m tests.bench.bench_server [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.bench.measuring import SCENARIOS, Measured, Numbers, Scenario, calls_of, measure, requests, server

CONNECTIONS = (1, 8)
ROUNDS, ROUND_S = 5, 0.8
QUICK_ROUNDS, QUICK_S = 3, 0.3


def run(rounds: int, seconds: float) -> dict[tuple[Scenario, int], list[Measured]]:
    numbers, results = Numbers(), dict[tuple[Scenario, int], list[Measured]]()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = {
            policies: stack.enter_context(server(Path(folder, policies.replace(" ", "-")), policies))
            for policies in dict.fromkeys(scenario.policies for scenario in SCENARIOS)
        }
        calls = {
            (scenario, count): calls_of(seconds, servers[scenario.policies], scenario, numbers, count)
            for scenario in SCENARIOS
            for count in CONNECTIONS
        }
        for _ in range(rounds):
            for (scenario, count), number in calls.items():
                sent = requests(scenario, numbers.take(number))
                results.setdefault((scenario, count), []).append(measure(servers[scenario.policies], sent, count))
    return results


def main() -> int:
    flags = argparse.ArgumentParser(prog="python -m tests.bench.bench_server")
    flags.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    is_quick = flags.parse_args().quick
    results = run(QUICK_ROUNDS, QUICK_S) if is_quick else run(ROUNDS, ROUND_S)
    print("one serving process, loopback TLS, keep-alive, objects that differ; medians")
    print(f"{'':44} {'connections':>11} {'reviews/s':>10} {'processor ms':>13} {'p50 ms':>8} {'p99 ms':>8}")
    for (scenario, count), measured in results.items():
        row = [
            statistics.median(getattr(one, name) for one in measured)
            for name in ("per_second", "processor_ms", "p50_ms", "p99_ms")
        ]
        print(f"{scenario!s:44} {count:>11} {row[0]:>10.0f} {row[1]:>13.3f} {row[2]:>8.3f} {row[3]:>8.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
