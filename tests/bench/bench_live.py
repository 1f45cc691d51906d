"""Memory of an audit of a cluster: `python -m tests.bench.bench_live --objects 50000` prints the peak and the rate.

The cluster is the API server of the tests, in this process; the audit is a process of its own, so its memory is its
own. The objects are Pods of five kilobytes with a GPU in 100 namespaces; the policies are the shipped ones. A tenth of
the objects is audited first, so that the difference shows what one more object costs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.bench.bench_audit import measured
from tests.cluster.server import ApiServer
from webhook import yamlfile

NAMESPACES: Final = 100
POLICIES: Final = Path(__file__).parents[2] / "policies"
_GROUPS: Final = "/apis"


def pod(number: int) -> dict[str, Any]:
    """A stored Pod, as large as those of clusters with what controllers write into it."""
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
    """An API server with so many Pods."""
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


def peak_mb(count: int, output: str) -> tuple[float, float]:
    """The peak memory of an audit of so many objects in MB, and its processor seconds."""
    server = serve(count)
    try:
        with tempfile.TemporaryDirectory() as folder:
            config = server.kubeconfig(Path(folder))
            command = [sys.executable, "-m", "webhook", "audit", "--kubeconfig", str(config), "-o", output]
            run = measured(command, codes=(0, 1, 2, 3))
        return run.peak_mb, run.processor_s
    finally:
        server.shutdown()
        server.server_close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=50_000)
    parser.add_argument("--output", default="ndjson")
    chosen = parser.parse_args()
    for count in (chosen.objects // 10, chosen.objects):
        memory, seconds = peak_mb(count, chosen.output)
        print(f"{count:7} objects: peak {memory:6.1f} MB, {seconds:6.1f} processor seconds", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
