"""The first message about a fault names its cause: in the log, in /readyz?verbose or from `webhook-config --check`.

Each fault affects a running or a starting replica. tests/e2e/test_faulty_installs.py has faults of installations.
`CLAIMGATE_FIRST_LOOKS=DIR` keeps all output, so a reader can try to name the fault from it.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from certs.issue import authority, serving
from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE
from tests.e2e.endpoints import endpoints
from tests.e2e.installation import has_bundles
from tests.e2e.proxies import FaultyProxy
from tests.e2e.replicas import Replica, Replicas, apply, certificates, rendered, service, until

pytestmark = pytest.mark.e2e

RUNTIMES = Path(__file__).parents[1] / "data" / "crds" / "trainer.kubeflow.org_clustertrainingruntimes.yaml"
KEPT = os.environ.get("CLAIMGATE_FIRST_LOOKS", "")


@dataclass(slots=True)
class Scene:
    server: ApiServer
    replicas: Replicas
    proxy: FaultyProxy
    replica: Replica
    begun: int = 0

    def lines(self) -> list[dict[str, Any]]:
        """Return the log lines since the fault, without the lines of reviews."""
        written = [json.loads(line) for line in self.text().splitlines() if line.startswith("{")]
        return [line for line in written if line["message"] != "review"]

    def starts_again(self) -> None:
        self.replica = self.replicas.start()
        self.begun = 0

    def log(self) -> str:
        return "\n".join(json.dumps(line) for line in self.lines() if line["level"] in ("warning", "error"))

    def first(self) -> str:
        return next(iter(self.log().splitlines()), "")

    def whole_log(self) -> str:
        return "\n".join(json.dumps(line) for line in self.lines())

    def text(self) -> str:
        """Return all output since the fault, including lines that are not log lines."""
        return "\n".join(self.replica.log.read_text().splitlines()[self.begun :])

    def readyz(self) -> str:
        with suppress(httpx.TransportError):
            if self.replica.listens():
                return httpx.get(f"http://127.0.0.1:{self.replica.probes}/readyz?verbose", timeout=5).text
        return ""

    def check(self) -> str:
        ready = [one for one in self.replicas.running if not one.unready()]
        self.server.apply(endpoints(*("a", "b")[: len(ready)]))
        command = [sys.executable, "-m", "webhook", "webhook-config", "--check"]
        done = subprocess.run(
            [*command, f"--kubeconfig={self.server.kubeconfig}"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout + done.stderr


def _away(scene: Scene) -> None:
    scene.proxy.refuse()


def _silent(scene: Scene) -> None:
    scene.proxy.mode = "silent"
    scene.starts_again()


def _no_role(scene: Scene) -> None:
    scene.server.kubectl("delete", "clusterrolebinding", "claimgate")
    scene.proxy.cut()


def _no_token(scene: Scene) -> None:
    """Create the ServiceAccount again. The API server refuses tokens of the old ServiceAccount with 401."""
    scene.server.kubectl("delete", "serviceaccount", "claimgate", "--namespace", NAMESPACE)
    scene.server.kubectl("create", "serviceaccount", "claimgate", "--namespace", NAMESPACE)
    scene.proxy.cut()


def _wrong_authority(scene: Scene) -> None:
    """Let a replica trust another authority than the authority of the API server."""
    scene.replicas.trusted = authority("another", now=datetime.now(UTC)).certificate
    scene.starts_again()
    scene.replicas.trusted = b""


def _serving_certificate(scene: Scene, now: datetime) -> None:
    """Store a certificate with the dates that a machine with a wrong clock would write."""
    signer = authority("claimgate", now=now)
    pair = serving(signer, [f"claimgate.{NAMESPACE}.svc"], now=now)
    data = {"tls.crt": pair.certificate, "tls.key": pair.key}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    patch = json.dumps({"data": encoded})
    scene.server.kubectl("patch", "secret", "claimgate-certificates", "--namespace", NAMESPACE, "-p", patch)
    scene.starts_again()


def _clock_behind(scene: Scene) -> None:
    _serving_certificate(scene, datetime.now(UTC) + timedelta(days=2))


def _expired(scene: Scene) -> None:
    _serving_certificate(scene, datetime.now(UTC) - timedelta(days=400))


def _definition_appears(scene: Scene) -> None:
    scene.server.kubectl("create", "-f", str(RUNTIMES))


def _definition_goes(scene: Scene) -> None:
    scene.server.kubectl("delete", "-f", str(RUNTIMES))


def _full_disk(scene: Scene) -> None:
    """Log to a full file system. The log then has no line about the fault."""
    scene.replicas.stderr = os.open("/dev/full", os.O_WRONLY)
    scene.starts_again()
    scene.replicas.stderr = None


def _typo_in_param(scene: Scene) -> None:
    patch = json.dumps({"data": {"resources": "nvidia.com/gpu"}})
    scene.server.kubectl("patch", "configmap", "gpu-portable", "--namespace", NAMESPACE, "-p", patch)


def _unknown_flag(scene: Scene) -> None:
    deployment = scene.server.get("deployment", "claimgate", NAMESPACE)
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    patch = [{"op": "add", "path": "/spec/template/spec/containers/0/args", "value": [*arguments, "--max-bodi=1"]}]
    where = ("deployment", "claimgate", "--namespace", NAMESPACE, "--type=json")
    scene.server.kubectl("patch", *where, "-p", json.dumps(patch))
    scene.starts_again()


ANSWERED = '"reviews": "still answered, from what was read '
NOT_READY = '"reviews": "none are sent to a replica that is not ready'
TOKEN_FIX = f'"fix": "check that the ServiceAccount exists: `kubectl -n {NAMESPACE} get serviceaccount claimgate`'
FAULTS: dict[str, tuple[Callable[[Scene], None], str, tuple[str, ...]]] = {
    # what is broken; where an operator looks; the expected text about the cause, and about the effect on reviews
    "the API server is away": (_away, "first", ("does not answer: connection refused", ANSWERED)),
    "the API server is silent": (_silent, "first", ("does not answer: timed out", NOT_READY)),
    "no role": (_no_role, "first", ("is forbidden", '"reviews": "still answered, from what was read of these kinds')),
    "a token that is not valid": (_no_token, "first", ("refuses the token of claimgate", TOKEN_FIX, ANSWERED)),
    "another authority": (_wrong_authority, "first", ("does not trust", NOT_READY)),
    "a certificate of tomorrow": (_clock_behind, "first", ("it is not valid before", NOT_READY)),
    "an expired certificate": (_expired, "first", ("it expired at", NOT_READY)),
    "a CustomResourceDefinition appears": (
        _definition_appears,
        "whole_log",
        ('"kind is installed now"', '"reviews": "answered; these policies now read objects of the kind"'),
    ),
    "a CustomResourceDefinition is deleted": (
        _definition_goes,
        "first",
        ('"kind is no longer installed"', '"reviews": "answered; a check that needs such an object says'),
    ),
    "a full disk": (_full_disk, "readyz", ("no space left on device", "[i]reviews: they are answered here")),
    "a misspelt key of a param": (
        _typo_in_param,
        "first",
        ("unknown key `resources` of ConfigMap `gpu-portable`", '"reviews": "answered'),
    ),
    "an unknown flag": (
        _unknown_flag,
        "text",
        ('"the server does not start", "error": "no such option: --max-bodi', NOT_READY),
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("first-look")) as running:
        yield running


@pytest.fixture
def scene(server: ApiServer, tmp_path: Path) -> Iterator[Scene]:
    """Install with `kubectl apply -k deploy/base`, and wait for two ready replicas."""
    url = httpx.URL(server.url)
    proxy = FaultyProxy(url.host, int(url.port or 443))
    with service(server, tmp_path) as replicas:
        replicas.address = f"https://127.0.0.1:{proxy.port}"
        base = rendered(server, "base", replicas.port)
        apply(server, base)
        try:
            with certificates(server, tmp_path):
                until(lambda: has_bundles(server), "both configurations have the bundle")
            replicas.roll()
            replica = replicas.running[0]
            yield Scene(server, replicas, proxy, replica, len(replica.log.read_text().splitlines()))
        finally:
            proxy.mode = "pass"
            proxy.close()
            kept = [one for one in base if one["kind"] != "Namespace"]
            server.kubectl("delete", "--ignore-not-found", "-f", "-", given=yaml.safe_dump_all(kept))
            server.kubectl("delete", "endpointslice", "claimgate", "--ignore-not-found", "-n", NAMESPACE)
            server.kubectl("delete", "secret", "claimgate-certificates", "--ignore-not-found", "-n", NAMESPACE)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_an_operator_sees_first_is_the_cause(fault: str, scene: Scene) -> None:
    provoke, where, words = FAULTS[fault]
    provoke(scene)
    seen = getattr(scene, where)
    try:
        until(lambda: all(each in seen() for each in words), f"{where} says {words}", 90)
    finally:
        if KEPT:
            _keep(scene, Path(KEPT) / str(list(FAULTS).index(fault)))


def _keep(scene: Scene, folder: Path) -> None:
    """Write what an operator would look at, without the name of the fault."""
    folder.mkdir(parents=True, exist_ok=True)
    until(lambda: scene.replica.process.poll() is not None or scene.replica.listens(), "it listens or has ended")
    for name in ("log", "readyz", "check"):
        (folder / name).write_text(getattr(scene, name)())
    (folder / "all-of-log").write_text(scene.text())
