"""Measures how time grows with each list that a user can lengthen.

Both phases of a review with all shipped policies run in this process, for a list of n and of 4 n items. --size is the
size of the longer object. Linear work takes four times as long.

    python -m tests.bench.bench_growth --size 3000000      up to 3 MB
    python -m tests.bench.bench_growth --only claims       only lists with this word in their name
    python -m tests.bench.bench_growth --check             exits 1 when a ratio is over the goal
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from dataclasses import replace
from pathlib import Path
from time import monotonic, perf_counter

from tests.bench.job_traffic import CLASS, claim_template, runtime
from tests.growth import LISTS, Make, longest, review
from webhook.admission.decode import decode_review_bytes
from webhook.admission.review import answer_request as answer
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.deadline import Deadline
from webhook.input import shipped
from webhook.policy.load import Options, load_policy_set
from webhook.policy.policy_set import PolicySet
from webhook.workloads import table

GOAL = 5.0
SIZE = 400_000
LONGEST_S = 20.0
"""A run that takes longer is stopped, and its ratio counts as too high."""


def seconds(make: Make, number: int, policies: PolicySet, rounds: int) -> float:
    """Return the shortest time of several rounds. Each round runs both phases, and does not count decoding."""
    cluster = ClusterWithAssumedNamespaces(FilesCluster([runtime(), claim_template("team", "one-gpu", 1), CLASS]))
    best = LONGEST_S
    for _ in range(rounds):
        sent = decode_review_bytes(json.dumps(review(make(number)), separators=(",", ":")).encode())
        gc.collect()
        start = perf_counter()
        for phase in Phase:
            answer(replace(sent), policies, cluster, phase=phase, deadline=Deadline(monotonic() + LONGEST_S))
        best = min(best, perf_counter() - start)
        if best > 1:
            break
    return best


def main() -> int:
    flags = argparse.ArgumentParser()
    flags.add_argument("--size", type=int, default=SIZE, help="bytes of the longer object")
    flags.add_argument("--only", default="", help="only lists with this word in their name")
    flags.add_argument("--check", action="store_true", help="exit 1 when a ratio is over the goal")
    given = flags.parse_args()
    policies = load_policy_set([Path(shipped.policies_folder())], Options(table=table.load_table()))
    policies.compile_ahead_of_requests()
    print(f"{'list':52} {'4 n':>8} {'n, ms':>10} {'4 n, ms':>10} {'ratio':>6}")
    worst = 0.0
    for name, make in LISTS.items():
        if given.only in name:
            number = longest(make, given.size)
            short, long = (seconds(make, each, policies, 3) for each in (number // 4, number))
            worst = max(worst, long / short)
            note = "  <--" if long / short > GOAL else ""
            print(
                f"{name:52} {number:>8} {short * 1e3:>10.1f} {long * 1e3:>10.1f} {long / short:>6.1f}{note}", flush=True
            )
    print(f"the worst ratio: {worst:.1f}, goal {GOAL:.0f}")
    return int(given.check and worst > GOAL)


if __name__ == "__main__":
    sys.exit(main())
