"""A real API server on this machine: etcd, kube-apiserver and kubectl, as envtest starts them.

The binaries come from KUBEBUILDER_ASSETS or /usr/local/kubebuilder/bin. Without them, `missing()` returns the reason.
All programs listen on the loopback address, and write into one folder. `python -m tests.e2e.apiserver [FLAG…]` prints a
kubeconfig, and runs until interrupted.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

from certs.issue import Pair, authority, serving

BINARIES = ("etcd", "kube-apiserver", "kubectl")
PATIENCE_S = 240
"""Seconds that a test waits for something. A busy machine is ten times slower than an idle one."""


def assets() -> Path:
    return Path(os.environ.get("KUBEBUILDER_ASSETS") or "/usr/local/kubebuilder/bin")


def missing() -> str:
    absent = [name for name in BINARIES if not os.access(assets() / name, os.X_OK)]
    if absent:
        return f"no {', '.join(absent)} in {assets()}: set KUBEBUILDER_ASSETS to run the e2e tests"
    return ""


def without_controllers() -> str:
    if reason := missing():
        return reason
    if not os.access(assets() / "kube-controller-manager", os.X_OK):
        return f"no kube-controller-manager in {assets()}: namespaces cannot end without one"
    return ""


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A running API server, and the access of a cluster administrator. `etcd` is the URL of its store."""

    url: str
    folder: Path
    etcd: str = ""

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def kubectl(self, *arguments: str, given: str = "", code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run kubectl. `code` is the expected exit code, and None accepts any exit code."""
        command = [assets() / "kubectl", "--kubeconfig", self.kubeconfig, *arguments]
        environment = {**os.environ, "HOME": str(self.folder)}
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=PATIENCE_S, env=environment, check=False
        )
        assert code in (None, done.returncode), f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done

    def apply(self, *objects: Any, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        return self.kubectl("create", "-f", "-", given=yaml.safe_dump_all(objects), code=code)

    def get(self, kind: str, name: str, namespace: str = "default") -> Any:
        return yaml.safe_load(self.kubectl("get", kind, name, "-n", namespace, "-o", "yaml").stdout)


@contextmanager
def running(folder: Path, *flags: str, has_only_ipv6: bool = False) -> Iterator[ApiServer]:
    """Run an API server until the block ends.

    Args:
        folder: the folder for all files. It must be empty, and its path short.
        flags: more flags of kube-apiserver, such as `--runtime-config=api/all=true`.
        has_only_ipv6: whether the server listens on `::1` alone, and Services have IPv6 addresses.
    """
    etcd_port, peer_port, port = free_ports(3)
    flags = (*_IPV6, *flags) if has_only_ipv6 else flags
    host = "[::1]" if has_only_ipv6 else "127.0.0.1"
    server = ApiServer(f"https://{host}:{port}", folder, f"http://127.0.0.1:{etcd_port}")
    token = secrets.token_hex(16)
    _write_credentials(server, token)
    with (
        running_program(folder / "etcd.log", _etcd(folder, etcd_port, peer_port)),
        running_program(folder / "apiserver.log", [*_apiserver(folder, etcd_port, port), *flags]) as process,
    ):
        _wait(server, token, process)
        yield server


@contextmanager
def controllers(server: ApiServer, names: str = "namespace-controller,garbage-collector-controller") -> Iterator[None]:
    """Run the controllers that delete the objects of deleted namespaces and of deleted owners."""
    command = [
        str(assets() / "kube-controller-manager"),
        f"--kubeconfig={server.kubeconfig}",
        f"--cert-dir={server.folder}",
        f"--controllers={names}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_ports(1)[0]}",
    ]
    with running_program(server.folder / "controllers.log", command):
        yield


def _etcd(folder: Path, port: int, peer: int) -> list[str]:
    here, there = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return [
        str(assets() / "etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={here}",
        f"--advertise-client-urls={here}",
        f"--listen-peer-urls={there}",
        f"--initial-advertise-peer-urls={there}",
        f"--initial-cluster=default={there}",
        "--unsafe-no-fsync",
    ]


def _apiserver(folder: Path, etcd: int, port: int) -> list[str]:
    return [
        str(assets() / "kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        f"--tls-cert-file={folder / 'apiserver.crt'}",
        f"--tls-private-key-file={folder / 'apiserver.key'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        f"--service-account-key-file={folder / 'apiserver.crt'}",
        f"--service-account-signing-key-file={folder / 'apiserver.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        # there is no controller manager, so create the default ServiceAccounts, which Pods need
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
    ]


_IPV6 = ("--bind-address=::1", "--advertise-address=::1", "--service-cluster-ip-range=fd00:10::/112")


def _write_credentials(server: ApiServer, token: str) -> None:
    folder, now = server.folder, datetime.now(UTC)
    ca = authority("e2e", now=now)
    pair: Pair = serving(ca, ["127.0.0.1", "::1", "localhost", "10.0.0.1"], now=now)
    (folder / "ca.crt").write_bytes(ca.certificate)
    (folder / "apiserver.crt").write_bytes(pair.certificate)
    (folder / "apiserver.key").write_bytes(pair.key)
    (folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')
    cluster = {"server": server.url, "certificate-authority": str(folder / "ca.crt")}
    server.kubeconfig.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "e2e", "cluster": cluster}],
                "users": [{"name": "admin", "user": {"token": token}}],
                "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "admin"}}],
                "current-context": "e2e",
            }
        )
    )


def _wait(server: ApiServer, token: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for readiness and the default namespace."""
    end = time.monotonic() + PATIENCE_S
    headers = {"authorization": f"Bearer {token}"}
    with httpx.Client(verify=trust(server), headers=headers, base_url=server.url) as client:
        while time.monotonic() < end:
            assert process.poll() is None, (server.folder / "apiserver.log").read_text()[-2000:]
            with suppress(httpx.TransportError):
                if client.get("/readyz").is_success and client.get("/api/v1/namespaces/default").is_success:
                    return
            time.sleep(0.1)
    raise TimeoutError(f"the API server was not ready: {(server.folder / 'apiserver.log').read_text()[-2000:]}")


def trust(server: ApiServer) -> Any:
    """Return the TLS settings of a client that trusts only this server."""
    import ssl

    return ssl.create_default_context(cafile=str(server.folder / "ca.crt"))


@contextmanager
def running_program(
    log: Path, command: Sequence[str], environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the block ends, and write its output to a log. `environment` is added to the environment of
    this process.
    """
    # a proxy of this machine must not receive the calls for Services of the cluster
    inherited = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    with (
        log.open("wb") as stream,
        subprocess.Popen(command, stdout=stream, stderr=stream, env={**inherited, **(environment or {})}) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def main() -> None:
    """Print how to reach a server, and keep it until a signal."""
    if reason := missing():
        raise SystemExit(reason)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with tempfile.TemporaryDirectory(prefix="apiserver-") as folder, running(Path(folder), *sys.argv[1:]) as server:
        print(f"export KUBECONFIG={server.kubeconfig}", flush=True)
        stopped.wait()


if __name__ == "__main__":
    main()
