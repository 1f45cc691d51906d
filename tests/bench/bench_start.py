"""Measures how long a server takes to be ready, as in a rollout.

`claimgate serve` starts with 100 policies, including the shipped ones. The API server has 5,000 objects of the kinds
that the policies look up. The table shows the seconds until `/readyz` answers 200, and until then the processor
seconds and the most memory. The last two need Linux (`/proc`).

    python -m tests.bench.bench_start --check    exits 1 when it takes over 3 s or 250 MB
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import httpx

from certs.keep import Days, issue
from certs.store import SERVING, SERVING_KEY, Folder
from tests.bench import bench_policies, bench_view
from tests.bench.bounds.server import ROOT
from tests.bench.processor_time import spent_s

POLICIES: Final = 100
OBJECTS: Final = {
    "ResourceClaim": 2000,
    "ResourceSlice": 1000,
    "ResourceClaimTemplate": 900,
    "JobSet": 500,
    "Namespace": 500,
    "DeviceClass": 100,
}
"""5,000 objects of 10 KB each, as in bench_view."""
MOST_S, MOST_MB = 3.0, 250.0
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Start:
    """How long a server took to be ready, how much processor time it used, and its largest memory until then."""

    elapsed_s: float
    processor_s: float
    peak_mb: float


def policy_file(folder: Path, count: int) -> Path:
    file = folder / "policies.json"
    items = [each.value for each in bench_policies.manifests(count)]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return file


@contextmanager
def api_server() -> Iterator[int]:
    """Run an API server with the objects in a separate process, and yield its port."""
    mine, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(
        target=bench_view.api_server, args=(OBJECTS, theirs), kwargs={"is_prepared": True}, daemon=True
    )
    process.start()
    try:
        yield mine.recv()
    finally:
        process.kill()


def start_once(folder: Path, port: int, policies: Path) -> Start:
    """Start a server, wait until it is ready, and end it.

    Raises:
        RuntimeError: the server was not ready in time.
    """
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(bench_view.kubeconfig_for(port)))
    pair = ["--tls-cert", str(folder / SERVING), "--tls-key", str(folder / SERVING_KEY)]
    where = ["--host", "127.0.0.1", "--port", "0", "--probe-port", "0"]
    what = ["--kubeconfig", str(kubeconfig), "--policies", str(policies)]
    log = folder / "log"
    began = time.perf_counter()
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "webhook", "serve", *where, *pair, *what], stderr=stream, cwd=ROOT
        )
    try:
        while not _is_ready(log):
            if process.poll() is not None or time.perf_counter() - began > PATIENCE_S:
                raise RuntimeError(f"the server was not ready:\n{log.read_text()[-4000:]}")
            time.sleep(0.02)
        return Start(time.perf_counter() - began, spent_s(process.pid), peak_mb(process.pid))
    finally:
        process.kill()
        process.wait()


def _is_ready(log: Path) -> bool:
    """Return whether the server is ready, by a probe like a kubelet's. The log must have the port first."""
    found = re.search(r'"probe_port": (\d+)', log.read_text())
    if found is None:
        return False
    with suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{found[1]}/readyz", timeout=5).is_success
    return False


def peak_mb(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit 1 when a goal is missed")
    parser.add_argument("--rounds", type=int, default=3, help="starts; the median counts (default: 3)")
    chosen = parser.parse_args()
    shipped = len(list((ROOT / "policies").glob("*/policy.yaml")))
    with tempfile.TemporaryDirectory() as name, api_server() as port:
        folder = Path(name)
        issue(Folder(folder), ["localhost", "127.0.0.1"], now=datetime.now(UTC), days=Days())
        policies = policy_file(folder, POLICIES - shipped)
        starts = [start_once(folder, port, policies) for _ in range(chosen.rounds)]
    print(f"{POLICIES} policies ({shipped} shipped), {sum(OBJECTS.values())} objects of 10 KB")
    print(f"{'start':>6} {'ready':>8} {'processor':>10} {'peak':>9}")
    for number, each in enumerate(starts, 1):
        print(f"{number:>6} {each.elapsed_s:>6.2f} s {each.processor_s:>8.2f} s {each.peak_mb:>6.0f} MB")
    elapsed = statistics.median(each.elapsed_s for each in starts)
    peak = max(each.peak_mb for each in starts)
    print(f"median {elapsed:.2f} s of at most {MOST_S:.0f}, peak {peak:.0f} MB of at most {MOST_MB:.0f}")
    return 1 if chosen.check and (elapsed > MOST_S or peak > MOST_MB) else 0


if __name__ == "__main__":
    sys.exit(main())
