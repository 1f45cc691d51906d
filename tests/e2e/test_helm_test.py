"""`helm test` on a real API server. This file acts as the kubelet of its Pod.

The command of the Pod runs on this machine, with the stored Secret in place of the mount. A replaced
socket.create_connection resolves the name of the Service.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certs.issue import authority
from tests.deploy.helm import helm, tool
from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.charts import chart
from tests.e2e.installation import has_bundles
from tests.e2e.replicas import certificates, service, until

pytestmark = pytest.mark.e2e

NAMESPACE, POD = "gates", "claimgate-test"
MOUNTED = "/etc/claimgate/authority"
RESOLVE = f"""
import os, socket
connect = socket.create_connection
def resolve(address, *more, **named):
    assert address == ("claimgate.{NAMESPACE}.svc", 443), address
    return connect(("127.0.0.1", int(os.environ["SERVICE_PORT"])), *more, **named)
socket.create_connection = resolve
"""
"""Python that sends connections for the Service to a port of the loopback."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    tool("helm")
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("helm-test")) as running:
        yield running


def test_helm_test_succeeds_while_a_replica_answers_with_the_stored_authority(
    server: ApiServer, tmp_path: Path
) -> None:
    with service(server, tmp_path, NAMESPACE) as replicas:
        release = ("claimgate", str(chart(tmp_path / "chart", replicas.port)), "--create-namespace")
        told = _helm(server, "install", *release)
        assert f"helm test claimgate -n {NAMESPACE} --logs" in told
        with certificates(server, tmp_path, NAMESPACE):
            until(lambda: has_bundles(server), "both configurations have the bundle")
        replicas.roll()
        log = _tested(server, tmp_path / "succeeds", replicas.port)
        assert "readyz check passed" in log
        assert "NotFound" in server.kubectl("get", "pod", POD, "-n", NAMESPACE, code=1).stderr, "the Pod is deleted"
        stored = server.get("secret", "claimgate-certificates", NAMESPACE)["data"]["ca.crt"]
        _set_authority(server, base64.b64encode(authority("other", now=datetime.now(UTC)).certificate).decode())
        log = _tested(server, tmp_path / "other", replicas.port, code=1)
        assert "certificate verify failed" in log
        _set_authority(server, stored)
        for one in list(replicas.running):
            replicas.end(one)
        _tested(server, tmp_path / "down", replicas.port, code=1)
        phase = server.get("pod", POD, NAMESPACE)["status"]["phase"]
        assert phase == "Failed", "the failed Pod stays, so that its log can be read"


def _set_authority(server: ApiServer, content: str) -> None:
    patch = json.dumps({"data": {"ca.crt": content}})
    server.kubectl("patch", "secret", "claimgate-certificates", "-n", NAMESPACE, "-p", patch)


def _tested(server: ApiServer, folder: Path, port: int, code: int = 0) -> str:
    """Run the command of the test's Pod, and return its log."""
    folder.mkdir()
    with _kubelet(server, folder, port):
        _helm(server, "test", "claimgate", "--timeout=120s", code=code)
    return (folder / "log").read_text()


@contextmanager
def _kubelet(server: ApiServer, folder: Path, port: int) -> Iterator[None]:
    old = _uid(server)

    def run() -> None:
        until(lambda: _uid(server) not in ("", old), "helm creates the Pod", 60)
        one = server.get("pod", POD, NAMESPACE)
        (container,) = one["spec"]["containers"]
        (volume,) = one["spec"]["volumes"]
        data = server.get("secret", volume["secret"]["secretName"], NAMESPACE)["data"]
        for item in volume["secret"]["items"]:
            (folder / item["path"]).write_bytes(base64.b64decode(data[item["key"]]))
        (folder / "sitecustomize.py").write_text(RESOLVE)
        arguments = [each.replace(MOUNTED, str(folder)) for each in container["args"]]
        environment = {**os.environ, "PYTHONPATH": str(folder), "SERVICE_PORT": str(port)}
        with (folder / "log").open("wb") as log:
            command = [sys.executable, *container["command"][1:], *arguments]
            ended = subprocess.run(command, stdout=log, stderr=log, env=environment, timeout=60, check=False).returncode
        _report_end(server, container, ended)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join(90)


def _uid(server: ApiServer) -> str:
    return server.kubectl("get", "pod", POD, "-n", NAMESPACE, "-o", "jsonpath={.metadata.uid}", code=None).stdout


def _report_end(server: ApiServer, container: dict[str, Any], code: int) -> None:
    state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
    one = {"name": container["name"], "image": container["image"], "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{**one, "state": state}]}
    where = ("pod", POD, "-n", NAMESPACE, "--subresource=status", "--type=merge")
    server.kubectl("patch", *where, "-p", json.dumps({"status": status}))


def _helm(server: ApiServer, *arguments: str, code: int = 0) -> str:
    place = ("--namespace", NAMESPACE, "--kubeconfig", str(server.kubeconfig))
    return helm(*arguments, *place, code=code).stdout
