"""Three admission controllers on this machine, each with the same sixteen policies, over TLS.

Gatekeeper and Kyverno keep their policies in a real API server (tests/e2e/apiserver.py). They run outside of the
cluster with their flags for development, and otherwise with defaults. claimgate reads files.
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from certs.keep import Days, issue
from certs.store import CA, SERVING, SERVING_KEY, Folder
from tests import quick_yaml
from tests.bench.bounds.calls import Connection, Prepared, uid
from tests.bench.bounds.server import Address, serving
from tests.bench.peers import build, policies
from tests.bench.traffic import review
from tests.e2e.apiserver import ApiServer, free_ports, running_program

START_S = 240


@dataclass(frozen=True)
class Named(Address):
    """The address of a controller, and the name in its certificate if that is not localhost."""

    def trust(self) -> ssl.SSLContext:
        made = super().trust()
        made.check_hostname = False
        return made


@dataclass(frozen=True)
class Engine:
    name: str
    address: Address
    path: str


@contextmanager
def claimgate(folder: Path, _server: ApiServer) -> Iterator[Engine]:
    folder.mkdir()
    written = folder / "policies.json"
    written.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": policies.claimgate()}))
    with serving(folder / "server", [written], []) as server:
        yield Engine("claimgate", server.address, "/validate")


@contextmanager
def gatekeeper(folder: Path, server: ApiServer) -> Iterator[Engine]:
    made = build.built(build.GATEKEEPER)
    issue(Folder(folder), ["localhost", "127.0.0.1"], now=datetime.now(UTC), days=Days())
    for ours, its in ((SERVING, "tls.crt"), (SERVING_KEY, "tls.key")):
        (folder / its).write_bytes((folder / ours).read_bytes())
    server.apply(*(_namespace(name) for name in ("gatekeeper-system", *policies.NAMESPACES)))
    _define(server, [*(made.sources / "charts" / "gatekeeper" / "crds").glob("*.yaml")])
    server.apply(*policies.constraint_templates())
    port, health = free_ports(2)
    command = [
        *(
            str(made.program),
            f"--kubeconfig={server.kubeconfig}",
            "--operation=webhook",
            "--operation=generate",
            "--debug-use-fake-pod",
        ),
        *(f"--port={port}", "--host=127.0.0.1", f"--cert-dir={folder}", "--disable-cert-rotation"),
        *(f"--health-addr=127.0.0.1:{health}", "--log-level=ERROR", f"--prometheus-port={free_ports(1)[0]}"),
    ]
    environment = {"POD_NAMESPACE": "gatekeeper-system", "POD_NAME": "gatekeeper"}
    with running_program(folder / "log", command, environment) as process:
        _until(lambda: _made_kinds(server) == policies.COUNT, process, folder)
        server.apply(*policies.constraints())
        engine = Engine("Gatekeeper", Address(port, port, str(folder / CA), process.pid), "/v1/admit")
        _until(lambda: _denies(engine), process, folder)
        yield engine


@contextmanager
def kyverno(folder: Path, server: ApiServer) -> Iterator[Engine]:
    made = build.built(build.KYVERNO)
    folder.mkdir()
    server.apply(*(_namespace(name) for name in ("kyverno", *policies.NAMESPACES)))
    _define(server, [*(made.sources / "config" / "crds").rglob("*.yaml")])
    _kyverno_settings(server)
    server.apply(*policies.validating_policies())
    port = free_ports(1)[0]
    command = [
        *(str(made.program), f"--kubeconfig={server.kubeconfig}", f"--serverIP=127.0.0.1:{port}"),
        *(f"--webhookServerPort={port}", "--webhookServerHost=127.0.0.1", f"--caSecretName={_CA_SECRET}"),
        *(f"--tlsSecretName={_TLS_SECRET}", "--controllerRuntimeMetricsAddress=0", "--disableMetrics"),
        *("--backgroundServiceAccountName=system:serviceaccount:kyverno:background", "--v=0"),
        "--reportsServiceAccountName=system:serviceaccount:kyverno:reports",
    ]
    with running_program(folder / "log", command, _KYVERNO) as process:
        _until(lambda: _webhook_path(server) != "", process, folder)
        ca = folder / "ca.crt"
        secret = server.get("secret", _CA_SECRET, "kyverno")
        ca.write_bytes(base64.b64decode(secret["data"]["tls.crt"]))
        engine = Engine("Kyverno", Named(port, port, str(ca), process.pid), _webhook_path(server))
        _until(lambda: _denies(engine), process, folder)
        yield engine


ENGINES: dict[str, Callable[..., object]] = {"claimgate": claimgate, "gatekeeper": gatekeeper, "kyverno": kyverno}

_KYVERNO = {
    "KYVERNO_NAMESPACE": "kyverno",
    "KYVERNO_SVC": "kyverno-svc",
    "KYVERNO_SERVICEACCOUNT_NAME": "kyverno",
    "KYVERNO_ROLE_NAME": "kyverno",
    "KYVERNO_DEPLOYMENT": "kyverno",
    "KYVERNO_POD_NAME": "kyverno",
    "INIT_CONFIG": "kyverno",
    "METRICS_CONFIG": "kyverno-metrics",
}
_CA_SECRET, _TLS_SECRET = "kyverno-svc.kyverno.svc.kyverno-tls-ca", "kyverno-svc.kyverno.svc.kyverno-tls-pair"


def _namespace(name: str) -> Any:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _kyverno_settings(server: ApiServer) -> None:
    """Return the other objects of Kyverno's chart: settings, and the Deployment that Kyverno looks for."""
    pods = {"metadata": {"labels": {"app": "kyverno"}}, "spec": {"containers": [{"name": "kyverno", "image": "none"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kyverno", "namespace": "kyverno"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "kyverno"}}, "template": pods},
    }
    maps = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kyverno"}, "data": {}}
        for name in ("kyverno", "kyverno-metrics")
    ]
    server.apply(*maps, deployment)


def _define(server: ApiServer, files: list[Path]) -> None:
    """Apply CustomResourceDefinitions and wait until they are served."""
    definitions = [one for file in files for one in quick_yaml.load_all(file.read_text()) if one]
    server.kubectl("create", "-f", "-", given=yaml.safe_dump_all(definitions))
    end = time.monotonic() + START_S
    wait = ("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    while server.kubectl(*wait, code=None).returncode and time.monotonic() < end:
        time.sleep(0.5)  # kubectl fails while a definition has no conditions yet


def _made_kinds(server: ApiServer) -> int:
    listed = server.kubectl("api-resources", "--api-group=constraints.gatekeeper.sh", "-o", "name", code=None)
    return len(listed.stdout.split())


def _webhook_path(server: ApiServer) -> str:
    """Return the path of Kyverno's webhook for Pods, or "" until Kyverno has registered it."""
    listed = server.kubectl("get", "validatingwebhookconfigurations", "-o", "json", code=None)
    for configuration in json.loads(listed.stdout or '{"items":[]}')["items"]:
        for webhook in configuration.get("webhooks", []):
            url = webhook["clientConfig"].get("url", "")
            if "/vpol" in url:
                return "/" + url.partition("://")[2].partition("/")[2]
    return ""


def _denies(engine: Engine) -> bool:
    """Return whether the last policy denies a bad Pod, and all policies allow a good Pod."""
    good = review("plain Pod", 0)
    sent = json.loads(good)
    sent["request"]["object"]["metadata"]["labels"][f"forbidden-{policies.COUNT - 1}"] = "x"
    return _allows(engine, json.dumps(sent).encode()) is False and _allows(engine, good) is True


def _allows(engine: Engine, body: bytes) -> bool | None:
    to = Connection(engine.address.port, engine.address.trust(), 5)
    with suppress(OSError, ValueError, KeyError):
        answer = to.ask(Prepared(engine.path, body, "5s").with_uid(uid(1)))
        return bool(json.loads(answer.body)["response"]["allowed"])
    return None


def _until(ready: Callable[[], bool], process: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + START_S
    while not ready():
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"{folder.name} did not start:\n{(folder / 'log').read_text()[-3000:]}")
        time.sleep(0.5)
