"""The measurements of a server: scenarios, servers with their policies, one round of one scenario."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench import bench_policies, connections, traffic
from tests.bench.bounds.server import ROOT, Server, serving
from tests.bench.processor_time import spent_s

SHIPPED, SITE, NONE = "shipped", "16 CEL policies", "no policy for Pods"


@dataclass(frozen=True)
class Scenario:
    policies: str
    path: str
    kind: str

    def __str__(self) -> str:
        return f"{self.policies}, {self.kind}, {self.path[1:]}"


SCENARIOS: Final = (
    Scenario(NONE, "/validate", "plain Pod"),
    Scenario(SITE, "/validate", "plain Pod"),
    *(Scenario(SHIPPED, path, kind) for kind in traffic.OBJECTS for path in ("/validate", "/mutate")),
)


@dataclass(frozen=True)
class Measured:
    processor_ms: float
    per_second: float
    p50_ms: float
    p99_ms: float


class Numbers:
    """Makes a unique number for each review of a run."""

    def __init__(self) -> None:
        self._next = 0

    def take(self, count: int) -> range:
        self._next += count
        return range(self._next - count, self._next)


def requests(scenario: Scenario, numbers: range) -> list[bytes]:
    return [connections.request(scenario.path, body) for body in traffic.reviews(scenario.kind, numbers)]


def measure(server: Server, calls: Sequence[bytes], count: int) -> Measured:
    before = spent_s(server.pid)
    sent = connections.send(server.address.port, server.address.ca, calls, count)
    return Measured(
        processor_ms=(spent_s(server.pid) - before) / len(calls) * 1000,
        per_second=sent.per_second,
        p50_ms=sent.percentile(0.5) * 1000,
        p99_ms=sent.percentile(0.99) * 1000,
    )


def calls_of(seconds: float, server: Server, scenario: Scenario, numbers: Numbers, count: int) -> int:
    """Return how many reviews the server answers in this time. The measurement also sends the first reviews, which are
    slower.
    """
    measured = Measured(0, 0, 0, 0)
    for _ in range(2):
        measured = measure(server, requests(scenario, numbers.take(64)), count)
    return max(32, round(seconds * measured.per_second))


@contextmanager
def server(folder: Path, policies: str, tree: Path = ROOT) -> Iterator[Server]:
    folder.mkdir(parents=True)
    context = folder / "context.json"
    context.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(traffic.context())}))
    with serving(folder / "server", _policies(folder, policies), [context], tree=tree) as made:
        yield made


def _policies(folder: Path, policies: str) -> list[Path]:
    if policies == SHIPPED:
        return []
    file = folder / "policies.json"
    resource = "pods" if policies == SITE else "services"
    items: list[Any] = [each.value for each in bench_policies.manifests(16, resource)]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return [file]
