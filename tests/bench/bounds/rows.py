"""The section `victims` of the report. Each row is one attack, with the results of victims, probes and attackers."""

from __future__ import annotations

import re
import time
from dataclasses import replace

from tests.bench.bounds.attackers import Attackers, Heard
from tests.bench.bounds.attacks import Attack
from tests.bench.bounds.calls import GET_HEALTH, GET_METRICS, Connection, Prepared, uid
from tests.bench.bounds.connections import Behaviour, Running
from tests.bench.bounds.memory import MB, Sampler
from tests.bench.bounds.report import (
    FRESH_MS,
    HEALTH_MS,
    LONGER,
    VICTIMS_P99_MS,
    Report,
    counted,
    late,
    percentile,
)
from tests.bench.bounds.server import Address, Server
from tests.bench.bounds.victims import Question, Seen, Victims

HEADER = (
    f"{'what four attackers send':<46} {'KB':>6} {'n':>5} {'p50':>6} {'p99':>7} {'max':>7} {'lost':>4} {'health':>7}"
    f" {'anew':>6} {'work':>6} {'loop':>6}  {'MB':>4} | answers to the attackers, slowest ms"
)
ABOUT = (
    "victims: small reviews over 4 connections, ms; health: slowest /healthz, ms, on a kept connection and anew;",
    "work: p99 of what is left where nobody waited for a processor, ms; loop: p99 of what the server's event loop ran for",
    "anybody until an answer came, ms: the figure to compare on a busy machine; MB: most memory (PSS) of the server;",
    f"targets: p99 < {VICTIMS_P99_MS} ms (less what the victims waited for a processor), none lost, /healthz < {HEALTH_MS} ms (anew {FRESH_MS} ms), every answer to an attacker",
    "before its deadline, a valid AdmissionReview (or a refusal where the body is none), with the failurePolicy's verdict;",
    "three attackers ask with ?timeout=1s, one with 3s; the latest answer is shown as a share of its deadline, too;",
    f"a row that misses only a percentile is measured again for {LONGER} times as long (AGAIN), and the second row counts",
)
SETTLE_S = 4.0
WARM_S, QUICK_S, QUICK_ANSWERS = 20.0, 0.01, 200


def victims_missed(seen: Seen, p99_ms: float = VICTIMS_P99_MS) -> list[str]:
    """Return the missed targets of the victims. Each text also has the value without waiting for a processor."""
    missed = [
        *late("victims' p99", seen.times, 0.99, p99_ms),
        *late("/healthz", seen.health, 1, HEALTH_MS),
        *late("/healthz anew", seen.fresh, 1, FRESH_MS),
    ]
    return [*missed, f"lost {counted(seen.lost)}"] if seen.lost else missed


def victims_text(seen: Seen) -> str:
    times = [took.seconds for took in seen.times]
    p50, p99, most = (percentile(times, share) * 1000 for share in (0.5, 0.99, 1))
    health, fresh = (max((took.seconds for took in of), default=0) * 1000 for of in (seen.health, seen.fresh))
    work = percentile([took.work_s for took in seen.times], 0.99) * 1000
    loop = percentile([took.loop_s for took in seen.times], 0.99) * 1000
    counts = f"{seen.answered:>5} {p50:>6.1f} {p99:>7.1f} {most:>7.1f} {sum(seen.lost.values()):>4}"
    return f"{counts} {health:>7.1f} {fresh:>6.0f} {work:>6.1f} {loop:>6.1f}"


def heard_text(heard: Heard) -> str:
    return f"{counted(heard.answers)}, {heard.slowest_s * 1000:.0f} ({heard.closest:.2f} of the deadline)"


def measure(
    server: Server,
    name: str,
    attacks: list[Attack],
    asked: list[Question],
    sampler: Sampler,
    seconds: float,
    report: Report,
) -> None:
    def once(seconds: float) -> tuple[str, list[str]]:
        victims = Victims(server.address, asked)
        attackers = Attackers(server.address, attacks, seconds, (1.0, 1.0, 1.0, 3.0))
        heard = attackers.heard()
        seen = victims.seen()
        missed = victims_missed(seen) + heard.missed() + settle(server, asked, sampler)
        memory = sampler.peak(name)[1].pss / MB
        size = attackers.size / 1000
        return f"{size:>6.0f} {victims_text(seen)}  {memory:>4.0f} | {heard_text(heard)}", missed

    sampler.doing = name
    server.mark(name)
    report.measured_row(name, seconds, once)


def measure_connections(
    server: Server, behaviour: Behaviour, asked: list[Question], sampler: Sampler, report: Report
) -> None:
    """Run one attack on connections, and print its row."""

    def once(seconds: float) -> tuple[str, list[str]]:
        victims = Victims(server.address, asked)
        counts = Running(server.address, replace(behaviour, seconds=seconds)).counts()
        seen = victims.seen()
        memory = sampler.peak(behaviour.name)[1].pss / MB
        missed = victims_missed(seen, behaviour.p99_ms) + settle(server, asked, sampler)
        return f"{'':>6} {victims_text(seen)}  {memory:>4.0f} | {counted(counts, 4)}", missed

    sampler.doing = behaviour.name
    server.mark(behaviour.name)
    report.measured_row(behaviour.name, behaviour.seconds, once)


def quiet(server: Server, asked: list[Question], seconds: float, report: Report) -> None:
    victims = Victims(server.address, asked)
    time.sleep(seconds)
    seen = victims.seen()
    report.row("nothing", f"{0:>6} {victims_text(seen)}  {0:>4} |", victims_missed(seen))


def settle(server: Server, asked: list[Question], sampler: Sampler) -> list[str]:
    """Wait until the server is fast again. Kill and restart a stuck server, and return the error."""
    end = time.monotonic() + SETTLE_S
    while server.is_alive and time.monotonic() < end:
        to = Connection(server.address.health_port, server.address.health_trust(), 1.0)
        try:
            if to.ask(GET_HEALTH).elapsed_s < 0.2:
                return []
        except OSError:
            time.sleep(0.1)
        finally:
            to.close()
    missed = f"stuck {SETTLE_S:g} s after the attack, restarted" if server.is_alive else "the server died, restarted"
    server.restart()
    sampler.pid = server.pid
    warm(server, asked)
    return [missed]


def lanes(server: Server) -> str:
    """Return the server's counts of inline reviews, workers and closed connections, or ""."""
    to = Connection(server.address.health_port, server.address.health_trust(), 5)
    try:
        lines = to.ask(GET_METRICS).body.decode().splitlines()
    finally:
        to.close()
    chosen = [line for line in lines if re.match(r"[a-z_]*(lane|worker|overrun|aborted)", line)]
    return "\n".join(["its own counters:", *chosen]) if chosen else "it counts no lanes or workers"


def check_small(address: Address, attack: Attack) -> str:
    """Return an error if the row's policy does not give the expected result for a small Pod."""
    if attack.small is None:
        return ""
    to, sent = Connection(address.port, address.trust(), 10), uid(1)
    try:
        response = to.ask(Prepared(attack.paths[0], attack.small(), "10s").with_uid(sent)).review(sent)
    finally:
        to.close()
    message = (response or {}).get("status", {}).get("message", "no review")
    return "" if f"(policy {attack.policy})" in message else f"{attack.name}: {message[:300]}"


def warm(server: Server, asked: list[Question]) -> None:
    """Wait until answers are quick. A server that has just started still prepares its policies."""
    end, quick, to = time.monotonic() + WARM_S, 0, Connection(server.address.port, server.address.trust(), WARM_S)
    for number in range(10**6):
        sent = asked[number % len(asked)].prepared().with_uid(uid(number))
        quick = quick + 1 if to.ask(sent).elapsed_s < QUICK_S else 0
        if quick >= QUICK_ANSWERS or time.monotonic() > end:
            break
        time.sleep(0.005)
    to.close()
