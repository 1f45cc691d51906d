"""The section of the crowds: the waits of victims during each crowd, and further targets for some crowds."""

from __future__ import annotations

import re
import time
from dataclasses import replace

from tests.bench.bounds import crowds
from tests.bench.bounds.connections import Behaviour, Running
from tests.bench.bounds.memory import MB, Sampler
from tests.bench.bounds.report import DIRECT_P99_MS, VICTIMS_P99_MS, Report, counted, late, percentile
from tests.bench.bounds.rows import HEADER, settle, victims_missed, victims_text, warm
from tests.bench.bounds.server import Server
from tests.bench.bounds.victims import Seen, Victims, questions

HONEST_MS, HONEST_PER_SECOND = 1000, 4
LOG_BYTES_PER_S, GROWN_MB = 20_000, 20
ABOUT = (
    "as above; beside 200 KB Pods of the accounts a user sends some that are as large; targets: victims' p99",
    f"< {VICTIMS_P99_MS} ms beside reviews, < {DIRECT_P99_MS} ms beside what an API server does not send; each of the others' Pods answered",
    f"within {HONEST_MS} ms; log of refusals < {LOG_BYTES_PER_S // 1000} KB/s; the server's own memory flat",
)


def measure(server: Server, sampler: Sampler, only: str, report: Report) -> None:
    report.section("crowds", *ABOUT, HEADER)
    warm(server, questions())
    for behaviour in crowds.CROWDS:
        if re.search(only, behaviour.name):
            _row(server, behaviour, sampler, report)


def _row(server: Server, behaviour: Behaviour, sampler: Sampler, report: Report) -> None:
    sampler.doing = behaviour.name
    server.mark(behaviour.name)

    def once(seconds: float) -> tuple[str, list[str]]:
        return _measured(server, replace(behaviour, seconds=seconds), sampler)

    report.measured_row(behaviour.name, behaviour.seconds, once)


def _measured(server: Server, behaviour: Behaviour, sampler: Sampler) -> tuple[str, list[str]]:
    """Return the text of a row and its missed targets."""
    logged, begun = server.log.stat().st_size, time.monotonic()
    victims = Victims(server.address, questions())
    has_honest = behaviour.name == crowds.LARGE_LANE
    honest = Victims(server.address, [crowds.honest()], HONEST_PER_SECOND) if has_honest else None
    counts = Running(server.address, behaviour).counts()
    lasted_s = time.monotonic() - begun
    seen = victims.seen()
    missed = victims_missed(seen, behaviour.p99_ms) + _growth(behaviour.name, sampler)
    text = counted(counts, 4)
    if honest is not None:
        large = honest.seen()
        missed += _honest(large)
        text += f"; 200 KB Pods of another: {large.answered}, {_slowest_ms(large):.0f} ms at most"
    if behaviour.run is crowds.refusals:
        written = (server.log.stat().st_size - logged) / lasted_s
        text += f"; log {written / 1000:.0f} KB/s"
        # each review of the victims is also a line, together some 100 KB/s
        allowed = LOG_BYTES_PER_S + 1000 * seen.answered / lasted_s
        missed += [f"log grew by {written / 1000:.0f} KB/s"] if written > allowed else []
    missed += settle(server, questions(), sampler)
    memory = sampler.peak(behaviour.name)[1].pss / MB
    return f"{'':>6} {victims_text(seen)}  {memory:>4.0f} | {text}", missed


def _honest(seen: Seen) -> list[str]:
    missed = late("200 KB Pods of another", seen.times, 1, HONEST_MS)
    return [*missed, f"lost {counted(seen.lost)}"] if seen.lost else missed


def _slowest_ms(seen: Seen) -> float:
    return percentile([took.seconds for took in seen.times], 1) * 1000


def _growth(name: str, sampler: Sampler) -> list[str]:
    """Return the missed target if the server's first process still grew in the last third of a row with only new texts.

    Workers do not count: --worker-memory bounds them, and their number varies. The tables of texts grow to a bound in
    bytes, and then drop half of their entries.
    """
    samples = [sample.main_rss / MB for doing, sample in sampler.samples if doing == name]
    third = len(samples) // 3
    if name != crowds.SELECTORS or third < 2:
        return []
    middle, last = (sum(part) / len(part) for part in (samples[third:-third], samples[-third:]))
    return [f"the server grew from {middle:.0f} to {last:.0f} MB"] if last > middle + GROWN_MB else []
