"""The first reviews after the server reports that it is ready must be as fast as later reviews."""

from __future__ import annotations

import time
from pathlib import Path

from tests.bench.bounds import context
from tests.bench.bounds.calls import Connection, uid
from tests.bench.bounds.report import VICTIMS_P99_MS, Report, late, percentile
from tests.bench.bounds.server import ROOT, Server, serving
from tests.bench.bounds.victims import questions
from tests.bench.bounds.waiting import Stopwatch

STARTS, REVIEWS, READY_S = 3, 300, 60.0
GET_READY = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def measure(folder: Path, report: Report) -> None:
    """Print a row for each start: the slowest of the first six reviews, one of each kind, and the p99 of later
    reviews.
    """
    report.section("starts", f"reviews right after the first 200 of /readyz; target: < {VICTIMS_P99_MS} ms")
    held = context.write(folder / "context")
    for number in range(1, STARTS + 1):
        with serving(folder / f"start-{number}", [ROOT / "policies"], held) as server:
            _row(f"start {number}", server, report)


def _row(name: str, server: Server, report: Report) -> None:
    ready_s = _until_ready(server)
    watch, asked = Stopwatch(server.pid), questions()
    to, times = Connection(server.address.port, server.address.trust(), 10), []
    for sent in range(REVIEWS):
        one = asked[sent % len(asked)].prepared().with_uid(uid(sent))
        with watch.timing() as took:
            to.ask(one)
        times.append(took)
        time.sleep(0.005)
    to.close()
    first, later = times[: len(asked)], times[len(asked) :]
    missed = late("the first of a kind", first, 1, VICTIMS_P99_MS)
    missed += late("p99 of the next", later, 0.99, VICTIMS_P99_MS)
    slowest, p99 = (
        percentile([one.seconds for one in part], share) * 1000 for part, share in ((first, 1), (later, 0.99))
    )
    report.row(name, f"ready after {ready_s:.2f} s, slowest first {slowest:.1f} ms, p99 then {p99:.1f} ms", missed)


def _until_ready(server: Server) -> float:
    begun = time.monotonic()
    while time.monotonic() - begun < READY_S:
        to = Connection(server.address.health_port, server.address.health_trust(), READY_S)
        try:
            if to.ask(GET_READY).code == 200:
                return time.monotonic() - begun
        finally:
            to.close()
        time.sleep(0.02)
    raise RuntimeError("the server did not become ready")
