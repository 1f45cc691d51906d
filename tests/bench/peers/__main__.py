"""Compares claimgate with Gatekeeper and Kyverno: `python -m tests.bench.peers` prints one table of one run.

Each controller has sixteen equal CEL policies (policies.py), and gets the same AdmissionReviews over TLS. One controller
runs at a time. First, the table measures reviews for each second of a processor, with different ordinary Pods of 6 KB.
Then victims send small reviews during each attack. Needs Go to build the other two, and the API server's binaries of
the e2e tests.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.bench import connections, traffic
from tests.bench.bounds import bodies, near_bounds
from tests.bench.bounds.attackers import Attackers
from tests.bench.bounds.attacks import MB, Attack, attacks
from tests.bench.bounds.calls import Connection
from tests.bench.bounds.memory import Sampler
from tests.bench.bounds.report import percentile
from tests.bench.bounds.victims import Question, Seen, Victims, questions
from tests.bench.peers import build, engines
from tests.bench.peers.engines import Engine
from tests.bench.processor_time import spent_s
from tests.e2e import apiserver

WARM, MEASURED, CONNECTIONS = 400, 3000, 8
TIMEOUTS_S = (1.0, 1.0, 1.0, 3.0)
ATTACKS = ("9,000 claims", "1,000 containers x 400 claims", "190 levels, 3 MB", "escapes, 3 MB", "20 MB of brackets")


@dataclass
class Result:
    name: str
    per_core_second: float = 0.0
    p99_ms: float = 0.0
    rows: dict[str, tuple[Seen, float]] = field(default_factory=dict)


def chosen_attacks() -> list[Attack]:
    """Return attacks on any webhook for Pods: large and deep objects, long texts, and invalid bodies."""
    named = {one.name: one for one in attacks()}
    mixed = Attack("Pods near our bounds", lambda: near_bounds.near("tiny containers", 1), vary=_pods, may_refuse=True)
    held = Attack("wrong types, 3 MB", lambda: traffic_review(bodies.wrong_types(15_000)))
    return [*(named[name] for name in ATTACKS), held, mixed]


def traffic_review(sent: Any) -> bytes:
    from tests.bench.bounds.reviews import review

    return review(sent)


def _pods(number: int) -> bytes:
    kinds = ("labels", "env", "node affinity", "quantities", "faulty containers", "tiny containers")
    return near_bounds.near(kinds[number % len(kinds)], number)


def ordinary(engine: Engine, result: Result) -> None:
    """Measure ordinary Pods: reviews for each second of a processor, and the p99 over eight connections."""
    made = traffic.reviews("plain Pod", range(WARM + MEASURED))
    calls = [connections.request(engine.path, body) for body in made]
    _send(engine, calls[:WARM])
    before = spent_s(engine.address.pid)
    times = _send(engine, calls[WARM:])
    result.per_core_second = MEASURED / (spent_s(engine.address.pid) - before)
    result.p99_ms = percentile(times, 0.99) * 1000


def _send(engine: Engine, calls: list[bytes]) -> list[float]:
    from concurrent.futures import ThreadPoolExecutor

    def some(index: int) -> list[float]:
        to = Connection(engine.address.port, engine.address.trust(), 30)
        times = []
        for call in calls[index::CONNECTIONS]:
            answer = to.ask(call)
            if b'"allowed":true' not in answer.body:
                raise SystemExit(f"{engine.name} did not allow an ordinary Pod: {answer.body[:500]!r}")
            times.append(answer.elapsed_s)
        to.close()
        return times

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return [time for times in pool.map(some, range(CONNECTIONS)) for time in times]


def attacked(engine: Engine, seconds: float, result: Result) -> None:
    asked = [replace(one, path=engine.path) for one in questions() if one.path == "/validate"]
    with Sampler(engine.address.pid) as sampler:
        for attack in (None, *chosen_attacks()):
            name = attack.name if attack else "nothing"
            sampler.doing = name
            seen = _row(engine, asked, attack, seconds)
            result.rows[name] = seen, sampler.peak(name)[1].pss / MB


def _row(engine: Engine, asked: list[Question], attack: Attack | None, seconds: float) -> Seen:
    victims = Victims(engine.address, asked)
    if attack is None:
        Attackers(engine.address, [_quiet(engine)], 0.01, (1.0,)).heard()
    else:
        Attackers(engine.address, [replace(attack, paths=(engine.path,))], seconds, TIMEOUTS_S).heard()
    return victims.seen()


def _quiet(engine: Engine) -> Attack:
    return Attack("nothing", lambda: traffic.review("plain Pod", 1), paths=(engine.path,))


def show(results: list[Result]) -> None:
    print("\nordinary Pods of 6 KB, 16 policies, 8 connections")
    print(f"{'':<12} {'reviews/s and core':>20} {'p99 ms':>8}")
    for result in results:
        print(f"{result.name:<12} {result.per_core_second:>20,.0f} {result.p99_ms:>8.1f}")
    print(
        "\nvictims: p50 and p99 in ms (p99 without waiting for a processor), reviews that were lost, most memory (PSS)"
    )
    for name in results[0].rows:
        for result in results:
            seen, memory = result.rows[name]
            times = [took.seconds for took in seen.times]
            p50, p99 = (percentile(times, share) * 1000 for share in (0.5, 0.99))
            work = percentile([took.work_s for took in seen.times], 0.99) * 1000
            lost = sum(seen.lost.values())
            print(f"{name:<34} {result.name:<12} {p50:>8.1f} {p99:>9.1f} ({work:>8.1f}) {lost:>5} {memory:>6.0f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    parser.add_argument("--engine", action="append", choices=tuple(engines.ENGINES), help="only this one; repeatable")
    parser.add_argument("--row-seconds", type=float, default=4.0, metavar="S", help="how long attackers of a row send")
    chosen = parser.parse_args()
    names = chosen.engine or list(engines.ENGINES)
    if names != ["claimgate"] and (reason := build.missing() or apiserver.missing()):
        print(reason, file=sys.stderr)
        return 2
    results = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="peers-") as folder:
            results.append(_measured(name, Path(folder), chosen.row_seconds))
    show(results)
    return 0


def _measured(name: str, folder: Path, seconds: float) -> Result:
    result = Result(name)
    (folder / "api").mkdir()
    if name == "claimgate":
        with engines.claimgate(folder / name, None) as engine:
            ordinary(engine, result)
            attacked(engine, seconds, result)
        return result
    with apiserver.running(folder / "api") as server, engines.ENGINES[name](folder / name, server) as engine:
        ordinary(engine, result)
        attacked(engine, seconds, result)
    return result


if __name__ == "__main__":
    sys.exit(main())
