"""Measures the memory of the live view of a large cluster.

One process simulates an API server: it creates each object when it sends the object, and keeps none. Another process
holds the view of the shipped policies until it watches all kinds. The table shows the largest growth of its resident
set, and the growth at the end. Linux only (`/proc`, `VmHWM`).

    python -m tests.bench.bench_view --check    exits 1 when a goal is missed
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from webhook import assembly
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.connection import connect_to_cluster
from webhook.cluster.interest import EVERY, interest_in_fields
from webhook.cluster.watch import WatchCluster
from webhook.logs.structured import Log
from webhook.settings.shared import Settings

MEGABYTE, TEN_KB = 1 << 20, 10_000
KINDS = {
    "ConfigMap": ("/api/v1", "configmaps", True),
    "Namespace": ("/api/v1", "namespaces", False),
    "JobSet": ("/apis/jobset.x-k8s.io/v1alpha2", "jobsets", True),
    "ResourceClaim": ("/apis/resource.k8s.io/v1", "resourceclaims", True),
    "ResourceClaimTemplate": ("/apis/resource.k8s.io/v1", "resourceclaimtemplates", True),
    "DeviceClass": ("/apis/resource.k8s.io/v1", "deviceclasses", False),
    "ResourceSlice": ("/apis/resource.k8s.io/v1", "resourceslices", False),
}
LISTED = "200 of 1 MB, one field of each held"
"""A kind that shipped policies do not look up. It shows that a list is decoded object by object."""
CLUSTERS: dict[str, tuple[dict[str, int], float | None]] = {
    "an empty cluster": ({}, None),
    "1,000 ConfigMaps of 1 MB": ({"ConfigMap": 1000}, 20.0),
    LISTED: ({"ConfigMap": 200}, 40.0),
    "5,000 ResourceClaims of 10 KB": ({"ResourceClaim": 5000}, None),
    "5,000 JobSets of 10 KB": ({"JobSet": 5000}, None),
    "5,000 Namespaces of 10 KB": ({"Namespace": 5000}, None),
}
"""The number of objects of each kind, and the MB by which they may increase the resident set"""


def made(kind: str, number: int) -> Any:
    metadata = {"name": f"{kind.lower()}-{number:05}", "uid": f"{number:036}", "resourceVersion": str(number + 1)}
    if KINDS[kind][2]:
        metadata["namespace"] = f"team-{number % 50}"
    if kind == "ConfigMap":
        body: dict[str, Any] = {"data": {"blob": "x" * MEGABYTE}}
    elif kind == "ResourceClaim":
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 1}}
        body = {"spec": {"devices": {"requests": [request]}}, "status": {"allocation": _many("x" * TEN_KB)}}
    elif kind == "JobSet":
        jobs = [{"name": "node", "active": 1, "ready": 1, "failed": 0}]
        body = {"spec": _many("x" * TEN_KB), "status": {"replicatedJobsStatus": jobs}}
    else:
        body = {"spec": _many("x" * TEN_KB)}
    labels = {"team": f"team-{number % 50}", "kubernetes.io/metadata.name": metadata["name"]}
    return {"metadata": {**metadata, "labels": labels}, **body}


def _many(text: str) -> Any:
    """Return a value with many small objects, made of pieces of the text."""
    return {"items": [{"name": f"field-{at}", "value": text[at : at + 32]} for at in range(0, len(text), 64)]}


class Handler(BaseHTTPRequestHandler):
    """Answers as an API server: discovery, lists in pages, and watches without events. `counts` has the number of
    objects of each kind.
    """

    protocol_version = "HTTP/1.1"
    counts: dict[str, int]
    prepared: ClassVar[dict[tuple[str, int], bytes]] = {}

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        kind = next((kind for kind, (_, plural, _) in KINDS.items() if parts.path.endswith(f"/{plural}")), "")
        if not kind:
            rows = [
                {"name": plural, "kind": kind, "namespaced": scope}
                for kind, (root, plural, scope) in KINDS.items()
                if root == parts.path
            ]
            self._chunks(iter([json.dumps({"resources": rows}).encode()]))
        elif query.get("watch"):
            self._chunks(_silence())
        else:
            self._chunks(self._list(kind, query))

    def _list(self, kind: str, query: dict[str, str]) -> Iterator[bytes]:
        start, limit = int(query.get("continue", 0)), int(query.get("limit", 1 << 30))
        # a view also asks for objects by name, and none of these exists
        count = 0 if "fieldSelector" in query else self.counts.get(kind, 0)
        end = min(start + limit, count)
        metadata = {"resourceVersion": "9000000", "continue": str(end) if end < count else ""}
        yield f'{{"apiVersion":"v1","kind":"List","metadata":{json.dumps(metadata)},"items":['.encode()
        for number in range(start, end):
            yield (b"," if number > start else b"") + self._object(kind, number)
        yield b"]}"

    def _object(self, kind: str, number: int) -> bytes:
        if "PartialObjectMetadata" in self.headers["accept"]:
            return json.dumps({"metadata": made(kind, number)["metadata"]}).encode()
        return self.prepared.get((kind, number)) or json.dumps(made(kind, number)).encode()

    def _chunks(self, parts: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for part in parts:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            return

    def log_message(self, *_: object) -> None:
        pass


def _silence() -> Iterator[bytes]:
    while True:
        time.sleep(600)
        yield b"\n"


class Server(ThreadingHTTPServer):
    """Ignores clients that disconnect, because each measurement ends with open connections.

    A view opens a connection for each kind at the same time, so `request_queue_size` is large. The kernel would drop
    further connections, and their clients would wait seconds.
    """

    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect, and print other errors."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def api_server(counts: dict[str, int], port: Any, *, is_prepared: bool = False) -> None:
    """Serve until killed. With `is_prepared`, all objects are made before the first request, so requests take less time
    and the process more memory.
    """
    Handler.counts = counts
    if is_prepared:
        Handler.prepared.update(
            ((kind, number), json.dumps(made(kind, number)).encode())
            for kind, count in counts.items()
            for number in range(count)
        )
    server = Server(("127.0.0.1", 0), Handler)
    port.send(server.server_port)
    server.serve_forever()


def memory(name: str) -> float:
    """Return a size of this process in MB: `VmRSS` is the present size, and `VmHWM` the largest so far."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def client(kubeconfig: Path, *, lists: bool) -> None:
    """Hold the view of the shipped policies and print how far the resident set grew."""
    policies = assembly.assemble_policies_and_context(Settings()).policies
    policies.compile_ahead_of_requests()
    config_map = interest_in_fields(GroupVersionKind("", "v1", "ConfigMap"), "data.field")
    interests = (*policies.interests(), *((config_map,) if lists else ()))
    view = WatchCluster(connect_to_cluster(kubeconfig), interests, Log(level="error"))
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
    before, began = memory("VmRSS"), time.perf_counter()
    view.start()
    if not view.wait_until_synced(600):
        raise SystemExit(f"not synced: {view.failures()}")
    elapsed_s = time.perf_counter() - began
    listed = [each for each in interests if view.is_synced(each.gvk) and each.scope == EVERY and not each.only]
    held = sum(len(view.list(each.gvk, None)) for each in listed)
    grown = {"peak": memory("VmHWM") - before, "after": memory("VmRSS") - before}
    print(json.dumps({**grown, "elapsed_s": elapsed_s, "held": held}))


def measured(counts: dict[str, int], *, lists: bool) -> Any:
    """Run one simulated cluster in a separate process, and its view in another process."""
    mine, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=api_server, args=(counts, theirs), daemon=True)
    server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = Path(folder) / "kubeconfig"
            kubeconfig.write_text(json.dumps(kubeconfig_for(mine.recv())))
            command = [sys.executable, "-m", "tests.bench.bench_view", "--client", str(kubeconfig)]
            command += ["--lists"] if lists else []
            return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    finally:
        server.kill()


def kubeconfig_for(port: int) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": "none"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def main() -> int:
    """Print the table, or run as the process with the view."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit 1 when a goal is missed")
    parser.add_argument("--client", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--lists", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.client:
        client(chosen.client, lists=chosen.lists)
        return 0
    print(f"{'cluster':<34} {'peak':>10} {'after':>10} {'objects':>8} {'synced':>8}   goal")
    missed, empty = 0, 0.0
    for name, (counts, goal_mb) in CLUSTERS.items():
        found = measured(counts, lists=name == LISTED)
        empty = empty or found["peak"]
        missed += goal_mb is not None and found["peak"] - empty > goal_mb
        goal = f"adds at most {goal_mb:.0f} MB" if goal_mb is not None else ""
        print(
            f"{name:<34} {found['peak']:>+7.1f} MB {found['after']:>+7.1f} MB {found['held']:>8}"
            f" {found['elapsed_s']:>6.1f} s   {goal}"
        )
    return 1 if chosen.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
