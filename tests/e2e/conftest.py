"""One API server with the webhook registered, which all end-to-end tests of a session share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import PATIENCE_S, ApiServer
from webhook.cli import run_command_line

CRDS = sorted((Path(__file__).parents[1] / "data" / "crds").glob("*.yaml"))
NAMESPACE = "claimgate-system"


@dataclass(frozen=True, slots=True)
class Cluster:
    server: ApiServer
    port: int
    certificates: Path
    log: Path

    def lines(self, message: str) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in found if line["message"] == message]

    def asked_until(self, name: str) -> set[tuple[str, str]]:
        """Wait for the review of an object in the log, which may come after the answer. Return the namespaces and names
        of all reviews.
        """
        for _ in range(100):
            asked = {(line["namespace"], line["name"]) for line in self.lines("review")}
            if name in {each for _, each in asked}:
                return asked
            time.sleep(0.1)
        raise AssertionError(f"no review of `{name}` was logged in ten seconds")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a cluster that is set up as by a newcomer: CRDs, certificate, serve, Service, webhook-config and caBundle."""
    if reason := apiserver.missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("cluster")
    with apiserver.running(folder) as server:
        for crd in CRDS:
            server.kubectl("create", "-f", str(crd))
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        with registered_webhook(server, folder) as made:
            _wait_until_called(made)
            yield made


@contextmanager
def registered_webhook(server: ApiServer, folder: Path, *policies: str) -> Iterator[Cluster]:
    """Run `claimgate serve` and register its webhook. `policies` are flags of serve and webhook-config."""
    server.kubectl("create", "namespace", NAMESPACE)
    certificates, log = folder / "webhook", folder / "webhook.log"
    claimgate("certs", "issue", "--dir", str(certificates), "--service", f"{NAMESPACE}/claimgate")
    with log.open("wb") as stream:
        process = subprocess.Popen([*_serve(server, certificates), *policies], stderr=stream)
    try:
        cluster = Cluster(server, _port(process, log), certificates, log)
        _register(cluster, policies)
        yield cluster
    finally:
        process.terminate()
        process.wait(30)


def claimgate(*arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "webhook", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def environment_as_installed(folder: Path) -> Mapping[str, str]:
    """Return an environment with a folder for compiled modules, which an installation has."""
    others = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**others, "PYTHONPYCACHEPREFIX": str(folder)}


def first_line(environment: Mapping[str, str], *arguments: str) -> tuple[str, int]:
    """Return the first line without its sign, and the exit code. The answer is read as JSON, because a terminal may
    wrap the line.
    """
    command = [sys.executable, "-m", "webhook", *arguments, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout, done.stderr
    [told] = json.loads(done.stdout)
    return f"{told['object']} {told['headline']}", done.returncode


def _serve(server: ApiServer, certificates: Path) -> list[str]:
    files = ["--tls-cert", str(certificates / "tls.crt"), "--tls-key", str(certificates / "tls.key")]
    live = ["--kubeconfig", str(server.kubeconfig), "--drain", "0", "--reload", "0.2"]
    return [sys.executable, "-m", "webhook", "serve", "--host", "127.0.0.1", "--port", "0", *files, *live]


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        for line in log.read_text().splitlines():
            if '"message": "ready"' in line or '"message": "listening' in line:
                return int(json.loads(line)["port"])
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    raise TimeoutError(log.read_text())


@pytest.fixture
def audit_and_create(cluster, tmp_path, capsys):
    """Return a function. For an object, the function returns whether `audit` finds a rule, and kubectl's answer to a
    dry run of the creation.
    """

    def audit_and_create(obj: dict[str, Any], rule: str) -> tuple[bool, subprocess.CompletedProcess[str]]:
        file = tmp_path / "w.yaml"
        file.write_text(yaml.safe_dump(obj))
        created = cluster.server.kubectl("create", "--dry-run=server", "-f", str(file), code=None)
        run_command_line(["audit", str(file), "--rule", rule, "-o", "json"])
        return bool(json.loads(capsys.readouterr().out)["findings"]), created

    return audit_and_create


def _register(cluster: Cluster, policies: tuple[str, ...]) -> None:
    """Apply the output of webhook-config. The Service has the type ExternalName, because the API server would use
    HTTP/2 for a loopback URL.
    """
    service = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": cluster.port}]}
    metadata = {"name": "claimgate", "namespace": NAMESPACE}
    cluster.server.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service})
    enforced = ["--failure-policy", "Fail", "--timeout", "10", "--any-pod"]
    printed = claimgate("webhook-config", "--service", f"{NAMESPACE}/claimgate:{cluster.port}", *enforced, *policies)
    cluster.server.kubectl("create", "-f", "-", given=printed)
    place = ["--dir", str(cluster.certificates), "--kubeconfig", str(cluster.server.kubeconfig)]
    claimgate("certs", "inject", "claimgate", *place)


def _wait_until_called(cluster: Cluster) -> None:
    """Wait until the API server calls the webhooks, a moment after it stored their configurations. The Pod has a
    device, because mutating webhooks are called only for devices.
    """
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"gpu": "1"}}}]},
    }
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        cluster.server.kubectl("create", "--dry-run=server", "-f", "-", given=yaml.safe_dump(pod))
        if {line["phase"] for line in cluster.lines("review")} == {"mutate", "validate"}:
            return
        time.sleep(0.2)
    raise TimeoutError(cluster.log.read_text())
