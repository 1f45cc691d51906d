"""`claimgate serve` as a process: output, reload, end, and mistakes that prevent the start."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from certs.keep import Days, issue
from certs.store import Folder
from tests.cluster.server import ApiServer, page, resources
from tests.server.asgi import review_of
from webhook.cli import run_command_line
from webhook.cluster.freshness import NOT_ANSWERED

BASE = [
    sys.executable,
    "-m",
    "webhook",
    "serve",
    "--host",
    "127.0.0.1",
    "--port",
    "0",
    "--drain",
    "0",
    "--reload",
    "0.1",
]
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: no-{word}}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}}]
  validations: [{{expression: "{expression}", message: no {word} here}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: no-{word}}}
spec: {{policyName: no-{word}, validationActions: [Deny]}}
"""


def policy(word: str, expression: str = "false") -> str:
    return POLICY.format(word=word, expression=expression)


@dataclass(frozen=True)
class Served:
    process: subprocess.Popen[bytes]
    log: Path
    folder: Path

    def lines(self, message: str) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in found if line["message"] == message]

    def wait(self, message: str, count: int = 1) -> dict[str, Any]:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if len(found := self.lines(message)) >= count:
                return found[count - 1]
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        raise TimeoutError(self.log.read_text())

    def client(self, port: int = 0) -> httpx.Client:
        trust = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        return httpx.Client(verify=trust, base_url=f"https://localhost:{port or self.wait('ready')['port']}")


@contextmanager
def served(folder: Path, *flags: str, **environment: str) -> Iterator[Served]:
    if not (folder / "tls.crt").exists():
        issue(Folder(folder), ["localhost"], now=datetime.now(UTC), days=Days())
    log = folder / "log"
    command = [*BASE, "--tls-cert", str(folder / "tls.crt"), "--tls-key", str(folder / "tls.key"), *flags]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stderr=stream, env={**os.environ, **environment})
    try:
        yield Served(process, log, folder)
    finally:
        process.terminate()
        process.wait(20)


def test_serve_serves_the_shipped_policies_and_stops_cleanly(tmp_path: Path) -> None:
    with served(tmp_path) as server, server.client() as client:
        ready = server.wait("ready")
        assert {"claims-exactly-one", "gpu-portable", "trainjob-num-proc-per-node"} <= set(ready["policies"])
        both = {"name": "c", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"resourceClaims": [both]}}
        response = client.post("/validate?timeout=10s", json=review_of(object=pod)).json()["response"]
        assert (response["allowed"], response["status"]["code"]) == (False, 422)
        assert client.get("/version").json()["engine"] == "compiled"
        assert "gpu-portable" in {row["name"] for row in client.get("/debug/policies").json()}
        server.process.terminate()
        assert server.process.wait(20) == 0
    messages = [line["message"] for line in map(json.loads, server.log.read_text().splitlines())]
    assert sorted(messages) == ["listening", "ready", "review", "stopped", "stopping"]


def test_serve_listens_while_the_api_server_is_away_and_says_why_it_is_not_ready(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(policy("pods"))
    away = ApiServer()
    kubeconfig, port = away.kubeconfig(tmp_path), away.server_port
    away.shutdown()
    away.server_close()
    with served(tmp_path, "--only", str(tmp_path / "one.yaml"), "--kubeconfig", str(kubeconfig)) as server:
        early = server.wait("not ready")
        assert early["reason"] == f"cluster: the API server at 127.0.0.1:{port} does not answer: connection refused"
        assert early["reviews"] == NOT_ANSWERED
        with server.client(early["port"]) as client:
            refused = client.post("/validate", json=review_of())
            assert (refused.status_code, refused.json()["reason"]) == (503, "ServiceUnavailable")
            assert "cannot judge requests yet: the API server at 127" in refused.json()["message"]
            assert client.get("/readyz").text.startswith("[-]cluster failed: the API server at 127.0.0.1:")
            back = ApiServer(port)
            back.answers |= {"/api/v1": resources(("namespaces", "Namespace", False)), "/api/v1/namespaces": page()}
            server.wait("ready")
            assert client.post("/validate", json=review_of()).status_code == 200
        server.process.terminate()
        assert server.wait("stopping")["signal"] == "SIGTERM"
        server.process.wait(20)
        back.shutdown()
        back.server_close()
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    outage = ["API server does not answer", "API server answers again"]
    assert [line["message"] for line in lines if line["message"].startswith("API server")] == outage


def test_policies_are_reloaded_and_broken_ones_keep_the_last_valid_set(tmp_path: Path) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "policy.yaml").write_text(policy("pods"))
    with served(tmp_path, "--only", str(policies)) as server, server.client() as client:

        def said() -> str:
            response = client.post("/validate", json=review_of()).json()["response"]
            return str(response.get("status", {}).get("message", ""))

        server.wait("ready")
        assert said() == "no pods here (policy no-pods)"
        (policies / "policy.yaml").write_text(policy("cats"))
        server.wait("reloaded")
        assert said() == "no cats here (policy no-cats)"
        (policies / "policy.yaml").write_text("kind: [")
        error = server.wait("reload failed")
        assert (error["what"], "policy.yaml" in error["error"]) == ("policies", True)
        assert said() == "no cats here (policy no-cats)"
        verbose = client.get("/readyz?verbose")
        assert (verbose.status_code, "[!]policies: " in verbose.text) == (200, True)
        assert 'claimgate_reloads_total{outcome="failure",what="policies"} 1.0' in client.get("/metrics").text
        (policies / "policy.yaml").write_text(policy("dogs", "true"))
        server.wait("reloaded", 2)
        assert said() == ""
        assert "[!]" not in client.get("/readyz?verbose").text


def test_a_renewed_certificate_is_served_and_a_broken_one_is_not(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.wait("ready")
        kept = (tmp_path / "tls.key").read_bytes()
        (tmp_path / "tls.key").write_bytes((tmp_path / "ca.key").read_bytes())
        assert server.wait("reload failed")["what"] == "certificate"
        with server.client() as client:
            assert "[!]certificate: the key" in client.get("/readyz?verbose").text
        (tmp_path / "tls.key").write_bytes(kept)
        server.wait("reloaded")
        issue(Folder(tmp_path), ["localhost"], now=datetime.now(UTC), days=Days(), replace=True)
        server.wait("reloaded", 2)
        with server.client() as client:
            assert "[!]" not in client.get("/readyz?verbose").text


@pytest.mark.parametrize("is_closed", [True, False], ids=["its reader closed it", "it is not read"])
def test_reviews_and_reloads_continue_if_stderr_is_not_read(tmp_path: Path, is_closed: bool) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "policy.yaml").write_text(policy("pods"))
    issue(Folder(tmp_path), ["localhost"], now=datetime.now(UTC), days=Days())
    files = ["--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key")]
    command = [*BASE, *files, "--only", str(policies)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        port = json.loads(process.stderr.readline())["port"]
        if is_closed:
            process.stderr.close()
        trust = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        with httpx.Client(verify=trust, base_url=f"https://localhost:{port}") as client:
            for word in ("pods", "cats", "dogs"):
                (policies / "policy.yaml").write_text(policy(word))
                end = time.monotonic() + 30
                while word not in client.post("/validate", json=review_of()).text:
                    assert time.monotonic() < end
                    time.sleep(0.01)
                for _ in range(150):  # the buffer of a pipe holds about 230 lines
                    assert client.post("/validate", json=review_of()).status_code == 200
            dropped = "claimgate_log_lines_dropped_total 0.0" not in client.get("/metrics").text
            assert dropped is is_closed
            assert ("[!]log: " in client.get("/readyz?verbose").text) is is_closed
        process.terminate()
        if process.stderr.closed:
            assert process.wait(20) == 0
        else:
            said = [json.loads(line)["message"] for line in process.communicate(timeout=20)[1].splitlines()]
            assert said.count("reloaded") >= 2
            assert said.count("review") > 450


def test_variables_apply_if_flags_are_not_set(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(policy("pods"))
    settings = {"CLAIMGATE_ONLY": str(tmp_path / "one.yaml"), "CLAIMGATE_MAX_BODY_BYTES": "100"}
    with served(tmp_path, **settings) as server, server.client() as client:
        assert server.wait("ready")["policies"] == ["no-pods"]
        message = client.post("/validate", json=review_of()).json()["response"]["status"]["message"]
        assert "the body is larger than 100 bytes" in message


def test_probes_have_a_port_of_their_own_that_asks_for_no_certificate(tmp_path: Path) -> None:
    with served(tmp_path, "--client-ca", str(tmp_path / "ca.crt"), CLAIMGATE_PROBE_PORT="0") as server:
        ready = server.wait("ready")
        assert ready["probe_port"] != ready["port"]
        server.wait("ready")
        assert httpx.get(f"http://127.0.0.1:{ready['probe_port']}/readyz").status_code == 200
        assert server.lines("probes need a separate port") == []
        with server.client() as client, pytest.raises(httpx.TransportError):
            client.get("/healthz")
        assert server.wait("TLS handshake failed")["reason"] == "no_certificate"


def test_probable_mistakes_of_serve_are_warnings(tmp_path: Path) -> None:
    issue(Folder(tmp_path), ["localhost"], now=datetime.now(UTC), days=Days())
    (tmp_path / "open.key").write_bytes((tmp_path / "tls.key").read_bytes())
    (tmp_path / "open.key").chmod(0o644)
    environment = {"CLAIMGATE_CLIENT_NAME": "api, other name"}
    flags = ["--client-ca", str(tmp_path / "ca.crt"), "--tls-key", str(tmp_path / "open.key")]
    with served(tmp_path, *flags, **environment) as server:
        server.wait("ready")
        assert "set --probe-port" in server.wait("probes need a separate port")["fix"]
        assert "open.key` has mode 0644" in server.wait("other users can read the private key")["reason"]
        assert server.lines("listening")[0]["time"] <= server.lines("other users can read the private key")[0]["time"]


def test_a_hangup_drains_too(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup, which ignores SIGHUP
    try:
        with served(tmp_path, "--drain", "1") as server, server.client() as client:
            server.wait("ready")
            assert client.get("/readyz").status_code == 200
            server.process.send_signal(signal.SIGHUP)
            assert until_drained(client)
            assert client.post("/validate", json=review_of()).status_code == 200
            assert server.process.wait(20) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def until_drained(client: httpx.Client) -> bool:
    for _ in range(1000):
        if client.get("/readyz").status_code != 200:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.slow
def test_a_server_under_nohup_ignores_the_hangup(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with served(tmp_path) as server, server.client() as client:
            server.wait("ready")
            for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
                server.process.send_signal(number)
            assert client.get("/readyz").status_code == 200
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_certificate_that_is_not_valid_yet_makes_the_server_not_ready(tmp_path: Path) -> None:
    issue(Folder(tmp_path), ["localhost"], now=datetime.now(UTC) + timedelta(days=1), days=Days())
    with served(tmp_path, "--probe-port", "0") as server:
        line = server.wait("not ready")
        assert line["reason"].startswith("certificate: it is not valid before ")
        answer = httpx.get(f"http://127.0.0.1:{line['probe_port']}/readyz")
        assert (answer.status_code, "[-]certificate failed: it is not valid before " in answer.text) == (503, True)


def test_nothing_slow_is_imported_before_it_is_needed() -> None:
    slow = {"kubernetes", "fastapi", "prometheus_client", "cryptography", "celpy", "httpx", "rich"}
    code = "import sys, webhook.cli, webhook.commands.serve; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert slow & set(done.stdout.split()) == set()


REFUSED = {
    "no certificate": ([], "--tls-cert and --tls-key: are required, because an API server calls"),
    "a certificate that does not exist": (["--tls-cert", "x", "--tls-key", "y"], "`x`, `y`: no such file"),
    "policies that do not exist": (["PAIR", "--only", "nowhere"], "nowhere: no such file or folder"),
    "a broken policy": (["PAIR", "--only", "broken.yaml"], "broken.yaml:2:1: not YAML"),
    "context that does not exist": (["PAIR", "--context", "nowhere"], "nowhere: no such file or folder"),
    "an invalid size": (["PAIR", "--max-body-bytes", "big"], "--max-body-bytes: `big` is not a size"),
    "less memory for bodies than one body may have": (
        ["PAIR", "--max-inflight-body-bytes", "1Mi"],
        "--max-inflight-body-bytes: 1048576 bytes are less than one body of --max-body-bytes (20971520)",
    ),
    "names of clients without their authority": (
        ["PAIR", "--client-name", "api"],
        "name the authority of the clients with",
    ),
    "an invalid level": (["PAIR", "--log-level", "loud"], "--log-level: `loud`"),
    "an invalid port": (["PAIR", "--port", "70000"], "--port"),
    "an address of another machine": (["PAIR", "--host", "192.0.2.1"], "cannot listen on 192.0.2.1:8443"),
    "a kubeconfig that does not exist": (["PAIR", "--kubeconfig", "nowhere"], "name one with --kubeconfig"),
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    issue(Folder(folder), ["localhost"], now=datetime.now(UTC), days=Days())
    return folder


@pytest.mark.parametrize(("flags", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_failed_start_exits_with_2_and_the_reason(
    flags: list[str],
    message: str,
    pair: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.yaml").write_text("kind: [")
    shutil.copytree(pair, tmp_path / "pair")
    given = ["--tls-cert", "pair/tls.crt", "--tls-key", "pair/tls.key"] if flags[:1] == ["PAIR"] else flags
    assert run_command_line(["serve", *given, *flags[1:]] if flags[:1] == ["PAIR"] else ["serve", *given]) == 2
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["message"], line["reviews"]) == ("error", "the server does not start", NOT_ANSWERED)
    assert message in line["error"]


UNKNOWN = "no such option: --max-bodi"
FORMATS = {
    # flags, the environment variable for the format of the log, and the beginning of the line
    "JSON by default": ([], "", '{"time": "'),
    "JSON by a flag": (["--log-format", "json"], "text", '{"time": "'),
    "text by a flag": (["--log-format=text"], "json", f"error: {UNKNOWN}"),
    "text by a variable": ([], "text", f"error: {UNKNOWN}"),
}


@pytest.mark.parametrize(("flags", "variable", "begin"), FORMATS.values(), ids=FORMATS)
def test_an_unknown_option_is_a_line_in_the_format_of_the_log(
    flags: list[str],
    variable: str,
    begin: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CLAIMGATE_LOG_FORMAT", variable)
    assert run_command_line(["serve", *flags, "--max-bodi=1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(begin)
    assert UNKNOWN in line


def test_a_person_at_a_terminal_reads_errors_of_a_start_as_text() -> None:
    reader, terminal = pty.openpty()
    command = [sys.executable, "-m", "webhook", "serve", "--max-bodi=1"]
    assert subprocess.run(command, stderr=terminal, check=False).returncode == 2
    os.close(terminal)
    told = os.read(reader, 1000).decode()
    os.close(reader)
    assert told.startswith(f"error: {UNKNOWN}")
