"""What one serving process does: reviews a second over loopback TLS with keep-alive, beside a route that does nothing.

The server is a process of its own with the shipped policies, put together as `claimgate serve` does it. In front of it
stands one more path, /noop, which reads the body and answers with constant bytes: the most that this HTTP stack can do.
Both are asked in turn, in short rounds, by this process; the medians of the rounds are shown. Ratios count: absolute
figures move by a third from run to run on shared machines.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import uvloop

from certs.keep import Days, issue
from certs.store import CA, SERVING, SERVING_KEY, Folder

REVIEWS = Path(__file__).parents[1] / "data" / "reviews"
SIZE = 6_000
CONNECTIONS = (1, 8)
ROUNDS, ROUND_S = 7, 0.8

Asked: TypeAlias = tuple[str, str]
NOOP: Asked = ("/noop", "plain")
ASKED: tuple[Asked, ...] = (
    NOOP,
    ("/validate", "plain"),
    ("/mutate", "plain"),
    ("/validate", "claims"),
    ("/mutate", "claims"),
)


def review(kind: str = "plain") -> bytes:
    """A Pod of 6 KB as an API server sends it: compact, ended by a newline.

    Args:
        kind: `plain` is what most Pods are; `claims` has a device claim and a GPU, which the shipped policies look at.
    """
    sent = json.loads((REVIEWS / "controller-replicaset-controller-create-pods.json").read_text())
    spec = sent["request"]["object"]["spec"]
    if kind == "claims":
        spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "one-gpu"}]
        gpu = {"nvidia.com/gpu": "1"}
        spec["containers"][0]["resources"] = {"claims": [{"name": "gpus"}], "limits": gpu, "requests": gpu}
    environment = spec["containers"][0].setdefault("env", [])
    while (missing := SIZE - len(_compact(sent))) > 0:
        environment.append({"name": f"OPTION_{len(environment)}", "value": "x" * min(64, missing)})
    return _compact(sent)


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


@dataclass
class Round:
    """What one round over one path measured."""

    times_s: list[float] = field(default_factory=list)
    elapsed_s: float = 0.0

    @property
    def per_second(self) -> float:
        return len(self.times_s) / self.elapsed_s

    def percentile(self, share: float) -> float:
        ordered = sorted(self.times_s)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class _Caller(asyncio.Protocol):
    """One connection that asks again as soon as it is answered, until the round is over."""

    def __init__(self, request: bytes, end: float, found: Round) -> None:
        self.request, self.end, self.found = request, end, found
        self.done = asyncio.get_running_loop().create_future()
        self.heard = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.asked = perf_counter()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.heard += data
        head, separator, body = self.heard.partition(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]) if separator else 0
        if not separator or len(body) < length:
            return
        now = perf_counter()
        self.found.times_s.append(now - self.asked)
        if not head.startswith(b"HTTP/1.1 200") or b'"allowed":true' not in body:
            self.done.set_exception(RuntimeError(self.heard.decode()))
        elif now < self.end:
            self.heard = b""
            self.ask()
        else:
            self.done.set_result(None)
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("closed"))


async def one_round(port: int, tls: ssl.SSLContext, asked: Asked, connections: int, seconds: float = ROUND_S) -> Round:
    """Ask one thing over that many connections."""
    path, kind = asked
    body = review(kind)
    head = f"POST {path}?timeout=10s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-apiserver-admission\r\n"
    head += f"Content-Length: {len(body)}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"
    head += "Accept-Encoding: gzip\r\n\r\n"
    found, loop = Round(), asyncio.get_running_loop()
    request, started = head.encode() + body, perf_counter()
    made = [
        loop.create_connection(lambda: _Caller(request, started + seconds, found), "localhost", port, ssl=tls)
        for _ in range(connections)
    ]
    callers = [caller for _, caller in await asyncio.gather(*made)]
    await asyncio.gather(*(caller.done for caller in callers))
    found.elapsed_s = perf_counter() - started
    return found


async def measure(port: int, tls: ssl.SSLContext) -> list[dict[str, Any]]:
    """Everything at every number of connections, in turn."""
    rows = []
    for connections in CONNECTIONS:
        rounds: dict[Asked, list[Round]] = {asked: [] for asked in ASKED}
        for asked in rounds:
            await one_round(port, tls, asked, connections, 0.3)
        for _ in range(ROUNDS):
            for asked, found in rounds.items():
                found.append(await one_round(port, tls, asked, connections))
        noop = statistics.median(one.per_second for one in rounds[NOOP])
        rows += [_row(asked, connections, found, noop) for asked, found in rounds.items()]
    return rows


def _row(asked: Asked, connections: int, rounds: list[Round], noop: float) -> dict[str, Any]:
    per_second = statistics.median(one.per_second for one in rounds)
    return {
        "path": asked[0],
        "pod": asked[1],
        "connections": connections,
        "reviews_per_second": round(per_second),
        "p50_ms": round(statistics.median(one.percentile(0.5) for one in rounds) * 1000, 3),
        "p99_ms": round(statistics.median(one.percentile(0.99) for one in rounds) * 1000, 3),
        "ratio_to_noop": round(per_second / noop, 2),
    }


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    """The server in a process of its own; its port."""
    issue(Folder(folder), ["localhost", "127.0.0.1"], now=datetime.now(UTC), days=Days())
    log = folder / "server.log"
    with log.open("wb") as stream:
        process = subprocess.Popen([sys.executable, "-m", "tests.bench.bench_server", str(folder)], stderr=stream)
    try:
        while not (lines := log.read_text().splitlines()):
            assert process.poll() is None, "the server ended"
            asyncio.run(asyncio.sleep(0.05))
        yield json.loads(lines[0])["port"]
    finally:
        process.terminate()
        process.wait()


def serve(folder: Path) -> None:
    """The server process: everything as in `claimgate serve`, and /noop in front."""
    from webhook.log_writer import LogWriter
    from webhook.logs import Log
    from webhook.server import runtime as serving
    from webhook.server.connections import ConnectionTimeouts
    from webhook.server.listener import Place
    from webhook.server.review_endpoint import Limits
    from webhook.server.tls import Certificates, Files
    from webhook.settings.shared import Settings

    certificates = Certificates(Files(certificate=folder / SERVING, key=folder / SERVING_KEY))
    place = Place(host="127.0.0.1", port=0, tls=certificates.listening, timeouts=ConnectionTimeouts(), drain_s=0)
    log, settings = Log(writer=LogWriter.to_stderr()), Settings()
    held = serving.ServedState.make(settings, is_live=False, kubeconfig=None, log=log)
    serving.serve(held, certificates, place, Limits(), log=log, reload_s=2.0, started=perf_counter(), before=_noop)


def _noop(door: Any) -> Any:
    answer = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"U","allowed":true}}'
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") != "/noop":
            await door(scope, receive, send)
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return application


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name, serving(Path(name)) as port:
        tls = ssl.create_default_context(cafile=str(Path(name) / CA))
        rows = uvloop.run(measure(port, tls))
    print(f"one process, loopback TLS, keep-alive, review of a Pod of {len(review())} bytes, shipped policies")
    print(f"{'path':<10} {'pod':<7} {'connections':>11} {'reviews/s':>10} {'p50 ms':>8} {'p99 ms':>8} {'of no-op':>9}")
    form = "{path:<10} {pod:<7} {connections:>11} {reviews_per_second:>10} {p50_ms:>8} {p99_ms:>8} {ratio_to_noop:>9}"
    for row in rows:
        print(form.format(**row))
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(Path(sys.argv[1]))
    else:
        sys.exit(main())
