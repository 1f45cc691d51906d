"""Faults around a running installation that enforces. Objects are created without a pause, and no creation fails.

Users can always reach the API server. Replicas call it through a proxy that makes the faults.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE
from tests.e2e.creations import Creations, creating
from tests.e2e.installation import SANDBOX, failure_policies, go_on_in, has_bundles
from tests.e2e.proxies import FaultyProxy
from tests.e2e.replicas import Replica, Replicas, apply, certificates, rendered, service, until

pytestmark = pytest.mark.e2e

PHASES = (
    "slow start",
    "slow",
    "closed",
    "silent",
    "away",
    "away at start",
    "back",
    "compacted",
    "full log",
    "unread log",
)
MOST_MB = 250


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Run an API server without a watch cache. Its watches end with 410 when their revision is compacted."""
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(
        tmp_path_factory.mktemp("faults"), "--watch-cache=false", "--etcd-compaction-interval=0"
    ) as running:
        running.kubectl("create", "-f", str(SANDBOX))
        running.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        yield running


def test_no_creation_fails_during_faults(server: ApiServer, tmp_path: Path) -> None:
    url = httpx.URL(server.url)
    proxy = FaultyProxy(url.host, int(url.port or 443))
    try:
        with service(server, tmp_path) as replicas, creating(server) as made:
            replicas.address = f"https://127.0.0.1:{proxy.port}"
            objects = rendered(server, "overlays/enforce", replicas.port)
            apply(server, rendered(server, "base", replicas.port))
            with certificates(server, tmp_path):
                until(lambda: has_bundles(server), "both configurations have the bundle")
                replicas.roll()
                apply(server, objects)
                until(lambda: failure_policies(server) == {"Fail"}, "it is enforced")
                before = _megabytes(replicas)
                _the_api_server_is_slow_or_cut_off(replicas, proxy, made)
                _the_api_server_is_away(replicas, proxy, made)
                _the_past_is_compacted(replicas, proxy, made)
                sys.stdout.write(
                    f"replicas have {before} MB, and {_megabytes(replicas)} MB after faults of the network\n"
                )
                assert max(_megabytes(replicas)) < MOST_MB
                _nobody_takes_the_log(replicas, made)
    finally:
        proxy.close()
    sys.stdout.write(f"{made.count()} objects: {dict(made.seen)}\n")
    assert made.outcomes("plain", *PHASES) == {"created"}
    assert made.outcomes("own", *PHASES) == {"created as nvidia.com/gpu"}
    assert made.outcomes("portable", *PHASES) == {
        "created as nvidia.com/gpu",
        "created",
    }  # or with amd.com/gpu for a while
    assert made.outcomes("portable", *PHASES[:-3]) == {"created as nvidia.com/gpu"}
    assert all("(gpu-portable/all)" in each for each in made.outcomes("wrong", *PHASES))
    for phase in PHASES:
        assert made.count(phase) > 20, phase


def _the_api_server_is_slow_or_cut_off(replicas: Replicas, proxy: FaultyProxy, made: Creations) -> None:
    made.phase = "slow start"
    proxy.mode = "slow"
    replicas.roll()
    go_on_in(made, "slow start")
    go_on_in(made, "slow")
    proxy.mode = "pass"
    made.phase = "closed"
    for _ in range(3):
        proxy.cut()
        go_on_in(made, "closed")
    proxy.mode = "silent"
    go_on_in(made, "silent", 100)
    proxy.cut()
    proxy.mode = "pass"


def _the_api_server_is_away(replicas: Replicas, proxy: FaultyProxy, made: Creations) -> None:
    """Running replicas still answer. A starting replica gets no review before it has read the cluster."""
    proxy.mode = "away"
    proxy.cut()
    go_on_in(made, "away", 100)
    made.phase = "away at start"
    started = replicas.start()
    until(lambda: "cluster" in started.unready(), "it says that it does not see the cluster")
    go_on_in(made, "away at start")
    assert started.unready()
    proxy.mode = "pass"
    until(lambda: not started.unready(), "it is ready")
    replicas.end(replicas.running[0])
    go_on_in(made, "back")


def _the_past_is_compacted(replicas: Replicas, proxy: FaultyProxy, made: Creations) -> None:
    """The API server refuses to watch from a compacted revision, with 410. The replica lists the objects again, and so
    gets the change.
    """
    made.phase = "compacted"
    server = replicas.server
    assert not any(map(_refused_watches, replicas.running))
    proxy.mode = "away"
    proxy.cut()
    _set_resource(server, "amd.com/gpu")
    go_on_in(made, "compacted")
    _compact(server)
    proxy.mode = "pass"
    until(lambda: "created" in made.outcomes("portable", "compacted"), "`gpu` means another resource")
    until(lambda: all(map(_refused_watches, replicas.running)), "each replica was refused a watch")
    refused = [line for one in replicas.running for line in _refused_watches(one)]
    assert {line["code"] for line in refused} == {410}
    assert "ConfigMap" in {line["kind"] for line in refused}
    sys.stdout.write(f"{len(refused)} watches were refused with 410: {refused[0]['error']}\n")
    _set_resource(server, "nvidia.com/gpu")
    go_on_in(made, "compacted")


def _compact(server: ApiServer) -> None:
    with httpx.Client(base_url=server.etcd) as store:
        key = base64.b64encode(b"/").decode()
        revision = store.post("/v3/kv/range", json={"key": key}).json()["header"]["revision"]
        store.post("/v3/kv/compaction", json={"revision": revision, "physical": True}).raise_for_status()


def _refused_watches(replica: Replica) -> list[dict[str, Any]]:
    """Return the lines about watches that were refused because their revision is too old."""
    lines = [json.loads(line) for line in replica.log.read_text().splitlines()]
    return [line for line in lines if line["message"] == "watch too old"]


def _nobody_takes_the_log(replicas: Replicas, made: Creations) -> None:
    """Log to a full file system, and then to a pipe without a reader. Lines are lost, and no answer is late."""
    made.phase = "full log"
    replicas.stderr = os.open("/dev/full", os.O_WRONLY)
    replicas.roll()
    go_on_in(made, "full log", 200)
    dropped = [_metric(one.probes, "claimgate_log_lines_dropped_total") for one in replicas.running]
    assert all(dropped), dropped
    sys.stdout.write(f"lines of the log that were dropped: {dropped}\n")
    made.phase = "unread log"
    os.close(replicas.stderr)
    reads, replicas.stderr = os.pipe()
    _fill(replicas.stderr)
    replicas.roll()
    go_on_in(made, "unread log", 100)
    for descriptor in (reads, replicas.stderr):
        os.close(descriptor)


def _fill(pipe: int) -> None:
    os.set_blocking(pipe, False)
    with suppress(BlockingIOError):
        while True:
            os.write(pipe, b"x" * 4096)
    with suppress(BlockingIOError):
        while True:
            os.write(pipe, b"x")
    os.set_blocking(pipe, True)


def _set_resource(server: ApiServer, name: str) -> None:
    patch = f'{{"data":{{"resource":"{name}"}}}}'
    server.kubectl("patch", "configmap", "gpu-portable", "--namespace", NAMESPACE, "-p", patch)


def _metric(port: int, name: str) -> float:
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def _megabytes(replicas: Replicas) -> list[int]:
    def resident(pid: int) -> int:
        (line,) = [each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmRSS:")]
        return int(line.split()[1]) // 1024

    return [resident(one.process.pid) for one in replicas.running]
