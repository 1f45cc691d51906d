"""An hour of reviews with only new names, at a bounded share of a processor. Memory must reach a plateau.

Most are small reviews of all kinds over TLS, in both phases. Some are large reviews for a worker, bodies that are not
reviews, unknown kinds, pages, or new connections. Meanwhile, an API server creates and deletes namespaces and runtimes.
The samples are written as lines of JSON with the server's tables, to find the cause of growth.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from statistics import median

import yaml

from tests.bench import traffic
from tests.bench.bounds.calls import UID, Connection, Prepared, uid
from tests.bench.bounds.fresh_reviews import FreshReviews, cases, lists
from tests.bench.bounds.live_view import KINDS, NAMESPACES, RUNTIMES, runtime
from tests.bench.bounds.memory import MB, family, look
from tests.bench.bounds.report import MEMORY_MB, Report, counted
from tests.bench.bounds.reviews import pod, review
from tests.bench.bounds.server import ROOT, Server, serving
from tests.bench.bounds.victims import FORK
from tests.cluster.server import ApiServer, event, resources
from webhook.apimachinery.attributes import JSON

SHARE, CONNECTIONS, EVERY = 0.4, 3, 32
"""The share of one processor for the server, its workers, the API server and the client together"""
LOOK_S, SAMPLE_S, ROW_S, THROTTLE_EVERY = 7.5, 30.0, 300.0, 40
CALLS_OF_A_CONNECTION, ODD_EVERY, TIMEOUT_S = 200, 400, 10.0
MORE_MB, MORE_SHARE = 3.0, 0.03
"""The allowed increase of the median from the second to the last quarter. Caches fill in the first quarter. The smaller
bound is for the server's own pages. The sum of both is for all processes, because the number of workers is random.
"""
NAMESPACES_PER_S, NAMESPACES_KEPT, RUNTIME_SIZE, WATCH_S = 2, 200, 4_000, 25


@dataclass(frozen=True)
class Sample:
    """The medians of the samples of half a minute, in bytes, and the number of reviews since the start.

    Attributes:
        pss: memory of the server and all its descendants.
        own: pages of the server's own process that no file backs.
        heap: the part of `own` in the heap of the C library.
        others: memory of workers, and of the processes that fork them.
    """

    at_s: float
    reviews: int
    pss: float
    own: float
    heap: float
    others: float


def run(minutes: float, samples: Path, folder: Path, report: Report) -> None:
    """Print a row every five minutes, and the verdict."""
    context = folder / "context"
    context.mkdir()
    (context / "cluster.yaml").write_text(yaml.safe_dump_all(list(traffic.context())))
    tables = samples.with_suffix(".tables")
    with _cluster(folder / "api-server") as kubeconfig:
        flags = ("--kubeconfig", str(kubeconfig))
        with serving(folder / "server", [ROOT / "policies"], [context], *flags, tables=tables) as server:
            report.section("never repeating", f"{minutes:g} minutes at {SHARE:.0%} of a processor; tables: {tables}")
            report.line(
                f"{'minute':>6} {'reviews':>9} {'a second':>8} {'PSS':>6} {'own':>6} {'heap':>6} {'forks':>6}  MB"
            )
            sent = _Sender(server, minutes * 60)
            with samples.open("a", buffering=1) as lines:
                taken = list(_samples(server, sent, minutes * 60, lines.write, report))
            sent.join()
            _verdict(taken, sent.counts, server, report)


class _Sender:
    """Threads that send one review after another. They pause when their share of the processor is used up."""

    def __init__(self, server: Server, seconds: float) -> None:
        self.reviews, self.counts = 0, Counter[str]()
        self._server, self._made = server, FreshReviews([*cases(), *lists()], EVERY)
        self._began, self._used = time.monotonic(), _processor_s()
        self._end = self._began + seconds
        self._threads = [threading.Thread(target=self._run, args=(index,), daemon=True) for index in range(CONNECTIONS)]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        address = self._server.address
        trust = address.trust()
        while time.monotonic() < self._end and self._server.is_alive:
            to = Connection(address.port, trust, TIMEOUT_S + 5)
            for _ in range(CALLS_OF_A_CONNECTION // THROTTLE_EVERY):
                for _ in range(THROTTLE_EVERY):
                    number += CONNECTIONS
                    self._send(to, number)
                    if number % ODD_EVERY == 0:
                        self._send_oddly(to, number)
                rest_s = (_processor_s() - self._used) / SHARE - (time.monotonic() - self._began)
                time.sleep(min(max(0.0, rest_s), 5.0))
                to.close_if_ended()
            to.close()

    def _send(self, to: Connection, number: int) -> None:
        body, sent = self._made.body(number), uid(number)
        path = ("/validate", "/mutate")[number // len(self._made) % 2]
        try:
            answer = to.ask(Prepared(path, body, "10s").with_uid(sent))
        except OSError as error:
            self.counts[f"lost: {type(error).__name__}"] += 1
            return
        self.reviews += 1
        found = answer.review(sent)
        self.counts[f"HTTP {answer.code}" if found is None else "allowed" if found["allowed"] else "denied"] += 1

    def _send_oddly(self, to: Connection, number: int) -> None:
        text = f"{number:08x}"
        foreign = {**pod(metadata={"name": text}), "apiVersion": f"{text}.example/v1", "kind": f"K{text}"}
        of_unknown_kind = review({**pod(metadata={"name": text})}, namespace=text).replace(
            b'"Pod"', b'"K%s"' % text.encode()
        )
        requests = (
            Prepared("/validate", of_unknown_kind, "10s").with_uid(uid(number)),
            Prepared("/validate", json.dumps(foreign).encode(), "10s").with_uid(UID),
            Prepared(f"/validate/{text}", b"{}", "10s").with_uid(UID),
            Prepared("/validate", b"no review " + text.encode(), f"{number % 10**6}ms").with_uid(UID),
            f"GET /{text}/{'x' * (number % 3000)}?{text} HTTP/1.1\r\nHost: {text}\r\nX-{text}: {text}\r\n\r\n".encode(),
            b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        )
        try:
            answer = to.ask(requests[number // ODD_EVERY % len(requests)])
            self.counts[f"odd: HTTP {answer.code}"] += 1
        except OSError as error:
            self.counts[f"odd: {type(error).__name__}"] += 1


def _processor_s() -> float:
    """Return the processor time of this process and all its descendants, also of those that have ended."""
    ticks = 0
    for pid in family(os.getpid()):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended, and its time counts with its parent
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _samples(server: Server, sent: _Sender, seconds: float, write: object, report: Report) -> Iterator[Sample]:
    began, next_row = time.monotonic(), ROW_S
    last = Sample(0.0, 0, 0, 0, 0, 0)
    while (now_s := time.monotonic() - began) < seconds and server.is_alive:
        looks = []
        while time.monotonic() - began < now_s + SAMPLE_S - LOOK_S / 2:
            time.sleep(LOOK_S)
            looks.append(_look(server.pid))
        pss, own, heap, others = (median(values) for values in zip(*looks, strict=True))
        sample = Sample(time.monotonic() - began, sent.reviews, pss, own, heap, others)
        write(json.dumps({**asdict(sample), "now": time.time()}) + "\n")  # type: ignore[operator]
        yield sample
        if sample.at_s >= next_row - 1:
            next_row += ROW_S
            rate = (sample.reviews - last.reviews) / (sample.at_s - last.at_s)
            figures = " ".join(f"{value / MB:>6.1f}" for value in (pss, own, heap, others))
            report.line(f"{sample.at_s / 60:>6.1f} {sample.reviews:>9} {rate:>8.0f} {figures}")
            last = sample


def _look(pid: int) -> tuple[int, int, int, int]:
    whole = look(pid).pss
    own, heap, proportional, is_heap = 0, 0, 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "Pss":
            proportional += int(value.split()[0]) * 1024
        elif name == "Rss":
            resident = int(value.split()[0]) * 1024
        elif name == "Anonymous":
            own += int(value.split()[0]) * 1024
            heap += resident if is_heap else 0
        elif "-" in line.partition(" ")[0]:
            is_heap = line.endswith("[heap]")
    return whole, own, heap, max(0, whole - proportional)


def _verdict(taken: list[Sample], counts: Counter[str], server: Server, report: Report) -> None:
    quarter = max(1, len(taken) // 4)
    second, last = taken[quarter : 2 * quarter] or taken, taken[-quarter:]
    for name, allowed in (("pss", sum), ("own", min)):
        before, after = (median(getattr(one, name) for one in part) / MB for part in (second, last))
        most = max(getattr(one, name) for one in taken) / MB
        missed = (
            [f"grew by {after - before:.1f} MB"] if after - before > allowed((MORE_MB, MORE_SHARE * before)) else []
        )
        missed += [f"{most:.0f} MB"] if most >= MEMORY_MB else []
        text = f"second quarter {before:.1f} MB, last quarter {after:.1f} MB, most {most:.1f} MB"
        report.row({"pss": "memory (PSS) of all processes", "own": "the server's own pages"}[name], text, missed)
    lost = [f"{counted(counts, 9)}"] if any("lost" in each for each in counts) else []
    report.row("answers", counted(counts, 12), [*lost, *([] if server.is_alive else ["the server died"])])


def _serve_cluster(pipe: Pipe, folder: Path) -> None:
    """Run an API server that creates and deletes namespaces. Each namespace has a runtime."""
    server, chance, number = ApiServer(), random.Random(1), 0
    for root, kinds in KINDS.items():
        server.answers[root] = resources(*kinds)
        for plural, _, _ in kinds:
            server.objects[f"{root}/{plural}"] = []
    pipe.send(server.kubeconfig(folder))
    while not pipe.poll(1 / NAMESPACES_PER_S):
        number += 1
        server.asked.clear()
        name = f"namespace-{number:08x}"
        metadata = {"name": name, "resourceVersion": str(100 + number), "labels": {f"label-{number}": name}}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        held = runtime(chance, f"runtime-{number}", RUNTIME_SIZE, 100 + number)
        held["metadata"]["namespace"] = name
        for path, made in ((NAMESPACES, namespace), (RUNTIMES, held)):
            _replace_oldest(server, path, made)
        if number % (WATCH_S * NAMESPACES_PER_S) == 0:  # an API server ends a watch before its client times out
            for waiting in list(server.watches.values()):
                waiting.put(None)


def _replace_oldest(server: ApiServer, path: str, made: JSON) -> None:
    kept = [*server.objects[path], made]
    server.send(path, event("ADDED", made))
    if len(kept) > NAMESPACES_KEPT:
        server.send(path, event("DELETED", kept.pop(0)))
    server.objects[path] = kept


@contextmanager
def _cluster(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=_serve_cluster, args=(theirs, folder), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("end")
        process.join(5)
        process.kill()
