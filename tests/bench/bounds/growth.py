"""How the time of an answer grows with each list that a user can lengthen: n items against 4 n, up to 3 MB.

The server has one caller, and no review reaches its deadline. A list that is already slow at n is measured at a smaller
n, so a quadratic server is found within seconds.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from tests.bench.bounds import bodies
from tests.bench.bounds.calls import Connection, Prepared, uid
from tests.bench.bounds.memory import Sampler
from tests.bench.bounds.pods import DEVICE_LISTS, POD_LISTS, containers_by_claims
from tests.bench.bounds.report import GROWTH, Report
from tests.bench.bounds.reviews import JSON, Maker, container, count_for, pod, review
from tests.bench.bounds.rows import settle
from tests.bench.bounds.server import Address, Server
from tests.bench.bounds.victims import questions
from tests.bench.bounds.workloads import WORKLOAD_LISTS

MB = bodies.MB
QUICK_S, FIRST_S, LAST_S, LONG_S, AGAIN_S, LEAST, STEPS = 0.01, 0.3, 2.0, 0.3, 8.0, 30, 64
"""Limits for the time of 4 n. Below QUICK_S the ratio is not judged, and above LONG_S there are fewer rounds. A bad
ratio below AGAIN_S is measured again. The search for n begins with a part of 1/STEPS, at least LEAST items. It ends
above LAST_S, or above FIRST_S if the time grows too fast.
"""
PATHS = ("/mutate", "/validate")


@dataclass(frozen=True)
class Grown:
    """A list that a user can lengthen. `body` makes a body with n items, and `start` is the n for which 4 n items have
    about 3 MB.
    """

    name: str
    body: Callable[[int], bytes]
    start: int


def _of_list(name: str, maker: Maker) -> Grown:
    return Grown(name, lambda n: review(maker(n)), count_for(maker, 3 * MB) // 4)


def _of_text(name: str, piece: str, *, script: bool = True) -> Grown:
    numbers = count()  # the server remembers what a short command starts
    return Grown(name, lambda n: review(bodies.pod_text(n, piece, script=script, end=str(next(numbers)))), 3 * MB // 4)


def _users(n: int) -> JSON:
    return {
        "username": "mallory",
        "groups": [f"group-{i}" for i in range(n)],
        "extra": {f"k-{i}": ["v"] for i in range(n)},
    }


def _updated(n: int) -> bytes:
    made = [container(f"c-{i}", resources={"limits": {"nvidia.com/gpu": "1"}}) for i in range(n)]
    return review(pod({"containers": made}), old=pod({"containers": list(reversed(made))}))


def everything() -> Iterator[Grown]:
    """Yield everything that is measured. For texts and brackets, n is in bytes."""
    for name, maker in {**POD_LISTS, **DEVICE_LISTS, **WORKLOAD_LISTS}.items():
        yield _of_list(name, maker)
    yield _of_list("containers x as many claims / 100", lambda n: containers_by_claims(max(1, n // 10), 10))
    yield _of_text("shell words", "a 'b' \"c\" $(d) `e` \\f; ")
    yield _of_text("a shell's quotes", "'\"'\"")
    yield _of_text("torchrun in a shell", "torchrun --nproc_per_node=8 --nnodes=2 train.py && ")
    yield _of_text("mpirun in a shell", "mpirun -np 8 -x A=b -H a:1,b:2 python train.py | ")
    yield _of_text("one long argument", "--nproc_per_node=", script=False)
    yield _of_text("placeholders", "$(A){{ .b }}${C}")
    yield Grown("brackets, 190 levels", bodies.nested, 3 * MB // 4)
    yield Grown("maps, 190 levels", bodies.nested_maps, 3 * MB // 4)
    yield Grown("escaped quotes", bodies.quotes, 3 * MB // 4)
    yield Grown("groups of the user", lambda n: review(pod(), userInfo=_users(n)), 20_000)
    yield Grown("containers, updated", _updated, 3 * MB // 4 // 180)


def measure(server: Server, sampler: Sampler, only: str, report: Report) -> None:
    """Measure each list with a name that matches `only`, and print the table."""
    report.section(
        "growth",
        "time of /mutate and /validate together, alone on the server; medians; a smaller n where n is already slow",
        f"target: 4 n takes at most {GROWTH:g} times as long as n (not judged where 4 n takes less than {QUICK_S * 1000:g} ms)",
    )
    report.line(f"{'what grows':<46} {'n':>8} {'KB of 4 n':>9} {'n ms':>9} {'4 n ms':>9} {'ratio':>6}")
    for grown in everything():
        if re.search(only, grown.name):
            _row(_Asking(server.address), grown, report)
            settle(server, questions(), sampler)


def _row(asking: _Asking, grown: Grown, report: Report) -> None:
    try:
        n = asking.largest(grown)
        size = len(grown.body(4 * n))
        few_s, many_s = asking.both(grown, n)
        # other processes may have used the processor, so measure again
        if many_s > GROWTH * few_s and many_s < AGAIN_S:
            few_s, many_s = min((few_s, many_s), asking.both(grown, n), key=_ratio)
    except OSError as error:
        report.row(grown.name, "", [f"no answer: {error}"])
        return
    ratio = many_s / few_s
    missed = [f"ratio {ratio:.1f}"] if ratio > GROWTH and many_s >= QUICK_S else []
    report.row(
        grown.name, f"{n:>8} {size / 1000:>9.0f} {few_s * 1000:>9.1f} {many_s * 1000:>9.1f} {ratio:>6.1f}", missed
    )


def _ratio(times: tuple[float, float]) -> float:
    return times[1] / times[0]


class _Asking:
    def __init__(self, address: Address) -> None:
        self._to = Connection(address.port, address.trust(), 25)

    def once(self, body: bytes) -> float:
        """Return the seconds of one round over both paths.

        Raises:
            OSError: no answer, or an answer that is not an AdmissionReview.
        """
        elapsed_s = 0.0
        for path in PATHS:
            answer = self._to.ask(Prepared(path, body, "20s").with_uid(uid(1)))
            if answer.review(uid(1)) is None:
                raise OSError(f"HTTP {answer.code} {answer.body[:200]!r}")
            elapsed_s += answer.elapsed_s
        return elapsed_s

    def largest(self, grown: Grown) -> int:
        """Return the largest n at which the time does not yet grow faster than n."""
        n = max(LEAST, grown.start // STEPS)
        self.once(grown.body(n))  # the first call also opens the connection and prepares policies
        few_s = self.once(grown.body(n))
        while n < grown.start:
            more = min(4 * n, grown.start)
            many_s = self.once(grown.body(more))
            if many_s > FIRST_S and many_s > few_s * GROWTH:
                many_s = min(many_s, self.once(grown.body(more)))
            if many_s > FIRST_S and (many_s > few_s * GROWTH or many_s > LAST_S):
                break
            n, few_s = more, many_s
        return n

    def both(self, grown: Grown, n: int) -> tuple[float, float]:
        """Return the medians for n and 4 n, measured alternately."""
        times = [self._round(grown, n)]
        if times[0][1] < LONG_S * 4:
            times += [self._round(grown, n) for _ in range(2 if times[0][1] > LONG_S else 4)]
        return statistics.median(time for time, _ in times), statistics.median(time for _, time in times)

    def _round(self, grown: Grown, n: int) -> tuple[float, float]:
        return self.once(grown.body(n)), self.once(grown.body(4 * n))
