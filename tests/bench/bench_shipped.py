"""Measures the cost of the shipped policies.

The whole set runs on Pods of 6 KB. Every single policy runs on TrainJobs of 60 KB, with runtime, claim template and
device class in the cluster. All objects are different, and both phases run. The table has microseconds, and the ratio
to the standard library's decoding of the same review. Ratios can be compared between machines.

    python -m tests.bench.bench_shipped --check    exits 1 when a goal is missed
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter

from tests.bench import traffic
from webhook.admission import decode as admission
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.input import shipped
from webhook.policy.load import Options, load_policy_set
from webhook.policy.policy_set import PolicySet
from webhook.workloads import table

ROUNDS = 15
PODS, JOBS = 1000, 100
CLUSTER = ClusterWithAssumedNamespaces(FilesCluster(traffic.context()))
POD_GOAL_US, POLICY_GOAL_US = 300.0, 1000.0
"""For the whole set on a Pod of 6 KB, and the worst policy on a TrainJob of 60 KB."""


def median_us(*runs: Callable[[], object]) -> list[float]:
    """Return the median microseconds of each function. The functions run alternately."""
    found: list[list[float]] = [[] for _ in runs]
    times = [max(1, int(0.01 / _once(run))) for run in runs]
    for _ in range(ROUNDS):
        for number, run in enumerate(runs):
            start = perf_counter()
            for _ in range(times[number]):
                run()
            found[number].append((perf_counter() - start) / times[number] * 1e6)
    return [statistics.median(each) for each in found]


def _once(run: Callable[[], object]) -> float:
    run()  # the first calls compile the expressions
    start = perf_counter()
    run()
    return perf_counter() - start


def alone(policies: PolicySet) -> Iterator[tuple[str, PolicySet]]:
    for policy in policies.validating:
        yield policy.name, replace(policies, validating=(policy,), mutating=())
    for policy in policies.mutating:
        yield policy.name, replace(policies, validating=(), mutating=(policy,))


def both(
    sent: Sequence[Attributes], policies: PolicySet, cluster: ClusterWithAssumedNamespaces
) -> Callable[[], object]:
    """Return a function that answers the next review in both phases. Each phase computes its own facts."""
    waiting = itertools.cycle(sent)

    def run() -> None:
        attributes = next(waiting)
        for phase in Phase:
            answer_request(replace(attributes), policies, cluster, phase=phase)

    return run


def one(
    sent: Sequence[Attributes], policies: PolicySet, cluster: ClusterWithAssumedNamespaces, phase: Phase
) -> Callable[[], object]:
    waiting = itertools.cycle(sent)
    return lambda: answer_request(replace(next(waiting)), policies, cluster, phase=phase)


def pods(policies: PolicySet) -> float:
    """Print the time in each phase, and return the longest. The Pods break no rule."""
    print(f"{'Pods of 6 KB, the whole set':34} {'us':>9} {'x decode':>9}")
    worst = 0.0
    for kind in ("plain Pod", "GPU Pod", "claim Pod"):
        bodies = traffic.reviews(kind, range(PODS))
        sent = [admission.decode_review_bytes(body) for body in bodies]
        runs = [one(sent, policies, CLUSTER, phase) for phase in Phase]
        decode, *took = median_us(partial(json.loads, bodies[0]), *runs)
        for phase, us in zip(Phase, took, strict=True):
            print(f"{f'{kind} {phase}':34} {us:>9.1f} {us / decode:>9.2f}")
        worst = max(worst, *took)
    return worst


def jobs(policies: PolicySet) -> float:
    """Print the time of each single policy on TrainJobs, and return the longest."""
    bodies = traffic.reviews("TrainJob 60 KB", range(JOBS))
    sent = [admission.decode_review_bytes(body) for body in bodies]
    none = replace(policies, validating=(), mutating=())
    named = [(name, one) for name, one in alone(policies) if any(_asked(one, sent[0]))]
    sets = [none, policies, *(one for _, one in named)]
    decode, base, whole, *each = median_us(partial(json.loads, bodies[0]), *(both(sent, one, CLUSTER) for one in sets))
    print(f"\n{'TrainJobs of 60 KB, both phases':34} {'us':>9} {'x decode':>9}")
    rows = sorted(zip(each, (name for name, _ in named), strict=True), reverse=True)
    for us, name in ((whole, "the whole set"), *rows, (base, "no policy"), (decode, "decoding the review")):
        print(f"{name:34} {us:>9.1f} {us / decode:>9.2f}")
    return max(each) - base


def _asked(policies: PolicySet, sent: Attributes) -> Iterator[bool]:
    yield from (bool(policies.validating_for(sent, phase)) for phase in Phase)
    yield bool(policies.mutating_for(sent))


def main() -> int:
    flags = argparse.ArgumentParser()
    flags.add_argument("--check", action="store_true", help="exit 1 when a goal is missed")
    check = flags.parse_args().check
    policies = load_policy_set([Path(shipped.policies_folder())], Options(table=table.load_table()))
    pod, policy = pods(policies), jobs(policies)
    print(f"\nthe whole set on a Pod: {pod:.0f} us, goal {POD_GOAL_US:.0f}")
    print(f"the worst policy on a TrainJob: {policy:.0f} us, goal {POLICY_GOAL_US:.0f}")
    return int(check and (pod > POD_GOAL_US or policy > POLICY_GOAL_US))


if __name__ == "__main__":
    sys.exit(main())
