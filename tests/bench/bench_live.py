"""Measures the memory and the rate of an audit of a cluster.

The cluster is the API server of the tests. Both are separate processes, because the peak of a process includes the
memory of its parent at the start. The objects are Pods of five kilobytes with a GPU, in 100 namespaces. A tenth of the
objects is audited first, so the difference shows the memory of one more object.

    python -m tests.bench.bench_live --objects 50000
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final

from tests.bench.bench_audit import Run, measured
from tests.cluster.server import ApiServer
from webhook.yamltext import yamlfile

NAMESPACES: Final = 100
POLICIES: Final = Path(__file__).parents[2] / "policies"
_GROUPS: Final = "/apis"


def pod(number: int) -> dict[str, Any]:
    """Return a stored Pod of the usual size, with the fields that controllers write."""
    name, namespace = f"trainer-{number}", f"team-{number % NAMESPACES}"
    env = [{"name": f"VARIABLE_{index}", "value": f"{index:040}"} for index in range(30)]
    main = {"name": "main", "image": "registry.example/train:1", "env": env}
    main["resources"] = {"limits": {"nvidia.com/gpu": "1", "cpu": "4"}, "requests": {"nvidia.com/gpu": "1", "cpu": "4"}}
    conditions = [{"type": f"Condition{index}", "status": "True", "message": "x" * 100} for index in range(8)]
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{number}", "labels": {"app": name}},
        "spec": {"nodeName": f"node-{number % 500}", "containers": [main]},
        "status": {"phase": "Running", "conditions": conditions},
    }


def serve(count: int) -> ApiServer:
    server = ApiServer()
    kinds = [("pods", "Pod", True), ("namespaces", "Namespace", False), ("configmaps", "ConfigMap", True)]
    listed = [{"name": name, "kind": kind, "namespaced": scope, "verbs": ["list"]} for name, kind, scope in kinds]
    server.answers["/api/v1"] = 200, {"resources": listed}
    server.answers[_GROUPS] = 200, {"groups": []}
    server.objects["/api/v1/pods"] = [pod(number) for number in range(count)]
    server.objects["/api/v1/configmaps"] = [
        document.value
        for file in sorted(POLICIES.glob("*/params.yaml"))
        for document in yamlfile.load(file.read_text())
    ]
    server.objects["/api/v1/namespaces"] = [{"metadata": {"name": f"team-{number}"}} for number in range(NAMESPACES)]
    return server


def serve_until(count: int, folder: str, ready: Event, done: Event) -> None:
    """Write a kubeconfig into the folder, and serve this number of Pods in this process until `done`."""
    server = serve(count)
    server.kubeconfig(Path(folder))
    ready.set()
    done.wait(3600)
    server.shutdown()
    server.server_close()


def measured_audit(count: int, output: str) -> Run:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    with tempfile.TemporaryDirectory() as folder:
        server = context.Process(target=serve_until, args=(count, folder, ready, done))
        server.start()
        try:
            assert ready.wait(300)
            config = str(Path(folder, "kubeconfig"))
            command = [sys.executable, "-m", "webhook", "audit", "--kubeconfig", config, "-o", output]
            return measured(command, codes=(0, 1, 2, 3))
        finally:
            done.set()
            server.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=50_000)
    parser.add_argument("--output", default="ndjson")
    chosen = parser.parse_args()
    for count in (chosen.objects // 10, chosen.objects):
        run = measured_audit(count, chosen.output)
        print(f"{count:7} objects: peak {run.peak_mb:6.1f} MB, {run.processor_s:6.1f} processor seconds", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
