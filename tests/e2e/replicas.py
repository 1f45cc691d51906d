"""Simulates the kubelet and the proxy of a node, for API servers without Pods.

A replica is a process with the arguments of the stored Deployment, the files of the stored Secret, and a token of its
ServiceAccount, so it has the installed rights. A rollout starts a replica, waits until it is ready, and ends an old
one. A Service sends each new connection to a ready replica. Images, memory limits and read-only file systems are not
simulated.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.e2e.apiserver import PATIENCE_S, ApiServer, free_ports
from tests.e2e.conftest import NAMESPACE

COUNT = 2


@dataclass(eq=False, slots=True)
class Replica:
    """The process of one replica, and its ports once it reports them. Probes call `host`. `is_ending` removes it from
    the Service.
    """

    process: subprocess.Popen[bytes]
    log: Path
    port: int = 0
    probes: int = 0
    host: str = "127.0.0.1"
    is_ending: bool = False

    def listens(self) -> bool:
        for line in self.log.read_text().splitlines() if not self.port else ():
            # previous versions write other messages
            if any(f'"message": "{told}' in line for told in ("ready", "not ready", "listening")):
                found = json.loads(line)
                self.port, self.probes = found["port"], found["probe_port"]
        return self.port > 0

    def unready(self) -> str:
        """Return the text of /readyz?verbose, or "" if the replica is ready."""
        if self.is_ending or self.process.poll() is not None or not self.listens():
            return "no answer"
        with suppress(httpx.TransportError):
            answer = httpx.get(f"http://{self.host}:{self.probes}/readyz?verbose", timeout=2)
            return "" if answer.is_success else answer.text
        return "no answer"


@dataclass(slots=True)
class Replicas:
    """The replicas of the Deployment claimgate, and their Service.

    Attributes:
        address: the address at which replicas call the API server, if not its own.
        trusted: PEM of the authority that replicas trust instead of the API server's.
        stderr: the descriptor for the logs.
        namespace: where claimgate is installed.
        code: the tree of another version to run.
        has_only_ipv6: replicas listen where the Deployment says, and probes call `::1`.
    """

    server: ApiServer
    folder: Path
    port: int
    running: list[Replica] = field(default_factory=list)
    address: str = ""
    trusted: bytes = b""
    stderr: int | None = None
    namespace: str = NAMESPACE
    code: Path | None = None
    has_only_ipv6: bool = False
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def roll(self) -> None:
        """Replace all replicas. Each new replica starts before an old one ends, so the number of replicas never
        falls.
        """
        old = list(self.running)
        for index in range(COUNT):
            self.until_ready(self.start())
            for one in old[index : index + 1]:
                self.end(one)

    def start(self) -> Replica:
        name = f"replica-{next(self._numbers)}"
        folder = self.folder / name
        folder.mkdir()
        self._mount(folder)
        log = folder / "log"
        # without a readable log, the test cannot learn the ports, so the replica gets fixed ports
        port, probes = free_ports(2) if self.stderr is not None else (0, 0)
        command = [*self._command(folder), f"--port={port}", f"--probe-port={probes}"]
        with log.open("wb") as stream:
            stderr = stream if self.stderr is None else self.stderr
            process = subprocess.Popen(command, stderr=stderr, cwd=folder, env=environment_with(self.code))
            replica = Replica(process, log, port, probes, "[::1]" if self.has_only_ipv6 else "127.0.0.1")
        self.running.append(replica)
        return replica

    def _mount(self, folder: Path) -> None:
        data = self.server.get("secret", "claimgate-certificates", self.namespace)["data"]
        for key in ("tls.key", "tls.crt"):
            (folder / key).touch(0o600)
            (folder / key).write_bytes(base64.b64decode(data[key]))

    def mount_anew(self) -> None:
        """Write the files of the stored Secret again, as a kubelet does within a minute."""
        for one in list(self.running):
            self._mount(one.log.parent)

    def shown(self) -> list[str]:
        """Return the certificate that each replica shows now, as PEM."""
        return [ssl.get_server_certificate(("127.0.0.1", one.port)).strip() for one in self.running]

    def kill(self) -> None:
        """Kill a working replica. It leaves the Service when its end is detected, and another replica starts."""
        killed = self.running[0]
        killed.process.kill()
        killed.process.wait(10)
        self.running.remove(killed)
        self.until_ready(self.start())

    def end(self, replica: Replica, number: int = signal.SIGTERM) -> None:
        """Remove a replica from the Service, and stop it."""
        replica.is_ending = True
        self.running.remove(replica)
        replica.process.send_signal(number)
        replica.process.wait(PATIENCE_S)

    def _command(self, folder: Path) -> list[str]:
        deployment = self.server.get("deployment", "claimgate", self.namespace)
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        account = service_account(self.server, "claimgate", folder, self.address, self.namespace)
        if self.trusted:
            config = yaml.safe_load(account.read_text())
            cluster = config["clusters"][0]["cluster"]
            cluster.pop("certificate-authority", None)
            cluster["certificate-authority-data"] = base64.b64encode(self.trusted).decode()
            account.write_text(yaml.safe_dump(config))
        here = {"--live": f"--kubeconfig={account}", "--drain=10": "--drain=1"}
        given = [one for one in container["args"] if not one.startswith("--probe-port=")]
        arguments = [here.get(one, one).replace("/etc/claimgate/tls", str(folder)) for one in given]
        assert not set(here) & set(arguments)
        where = [] if self.has_only_ipv6 else ["--host=127.0.0.1"]
        return [sys.executable, "-m", "webhook", *arguments, *where]

    @staticmethod
    def until_ready(replica: Replica) -> None:
        end = time.monotonic() + PATIENCE_S
        while told := replica.unready():
            assert time.monotonic() < end, f"{told}\n{replica.log.read_text()[-2000:]}"
            time.sleep(0.1)

    def ready(self) -> Iterator[Replica]:
        """Yield the ready replicas. The replica that started first comes last."""
        return (one for one in (*self.running[1:], *self.running[:1]) if not one.unready())


@contextmanager
def service(server: ApiServer, folder: Path, namespace: str = NAMESPACE) -> Iterator[Replicas]:
    """Serve the replicas on a port of the loopback address. The port refuses connections until the first replica is
    ready. Later, connections end at once while no replica is ready.
    """
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        replicas = Replicas(server, folder, listening.getsockname()[1], namespace=namespace)
        stopped = threading.Event()
        threading.Thread(target=_forward, args=(listening, replicas, stopped), daemon=True).start()
        try:
            yield replicas
        finally:
            stopped.set()
            with suppress(OSError):  # the socket does not listen if no replica was ever ready
                listening.shutdown(socket.SHUT_RDWR)
            for one in list(replicas.running):
                replicas.end(one)


def _forward(listening: socket.socket, replicas: Replicas, stopped: threading.Event) -> None:
    while next(replicas.ready(), None) is None:
        if stopped.wait(0.1):
            return
    listening.listen()
    while True:
        try:
            client, _ = listening.accept()
        except OSError:
            return  # the Service no longer listens
        threading.Thread(target=_connect, args=(client, replicas), daemon=True).start()


def _connect(client: socket.socket, replicas: Replicas) -> None:
    with client, suppress(OSError):
        replica = next(replicas.ready(), None)
        if replica is None:
            return
        with socket.create_connection(("127.0.0.1", replica.port)) as upstream:
            back = threading.Thread(target=_pump, args=(upstream, client), daemon=True)
            back.start()
            _pump(client, upstream)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def service_account(server: ApiServer, name: str, folder: Path, address: str = "", namespace: str = NAMESPACE) -> Path:
    """Write a kubeconfig with a token of a ServiceAccount, and return its path. claimgate calls `address`, if given,
    instead of the server.
    """
    token = server.kubectl("create", "token", name, "--namespace", namespace).stdout.strip()
    config: dict[str, Any] = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    config["clusters"][0]["cluster"] |= {"server": address} if address else {}
    path = folder / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def rendered(server: ApiServer, overlay: str, port: int) -> list[Any]:
    """Return the objects that `kubectl apply -k` would apply. Webhooks call the Service on the loopback address.

    `overlay` is a folder of deploy/, or a path.
    """
    folder = Path(__file__).parents[2] / "deploy" / overlay
    objects = [one for one in yaml.safe_load_all(server.kubectl("kustomize", str(folder)).stdout) if one]
    for one in objects:
        for webhook in one.get("webhooks", ()):
            webhook["clientConfig"]["service"]["port"] = port
        if one["kind"] == "Service":
            external = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
            one["spec"] = {**external, "selector": one["spec"]["selector"]}
    return objects


def environment_with(code: Path | None) -> dict[str, str] | None:
    """Return the environment of a process that runs the code of another version, from its tree."""
    return {**os.environ, "PYTHONPATH": str(code)} if code else None


@contextmanager
def certificates(
    server: ApiServer, folder: Path, namespace: str = NAMESPACE, code: Path | None = None
) -> Iterator[None]:
    """Run the process of the Deployment claimgate-certificates, with the rights of its ServiceAccount and a shorter
    interval. `code` is the tree of another version to run.
    """
    deployment = server.get("deployment", "claimgate-certificates", namespace)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    arguments = [one for one in container["args"] if not one.startswith("--every")]
    account = f"--kubeconfig={service_account(server, 'claimgate-certificates', folder, namespace=namespace)}"
    command = [sys.executable, "-m", "webhook", *arguments, "--every=1", account]
    with subprocess.Popen(command, cwd=folder, env=environment_with(code)) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def apply(server: ApiServer, objects: Sequence[Any]) -> None:
    server.kubectl("apply", "-f", "-", given=yaml.safe_dump_all(objects))


def until(holds: Callable[[], object], what: str, seconds: float = PATIENCE_S) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not after {seconds} seconds: {what}"
        time.sleep(0.1)


@contextmanager
def registration(
    server: ApiServer, folder: Path, namespace: str = NAMESPACE, code: Path | None = None
) -> Iterator[None]:
    deployment = server.get("deployment", "claimgate-registration", namespace)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    account = f"--kubeconfig={service_account(server, 'claimgate-registration', folder, namespace=namespace)}"
    command = [sys.executable, "-m", "webhook", *container["args"], account]
    with subprocess.Popen(command, cwd=folder, env=environment_with(code)) as process:
        try:
            yield
        finally:
            process.terminate()
            assert process.wait(PATIENCE_S) == 0


def with_mounted_configuration(one: dict[str, Any]) -> dict[str, Any]:
    """Return the Deployment with a mounted configuration file, as an operator would add it. Return other objects
    unchanged.
    """
    if (one["kind"], one["metadata"]["name"]) != ("Deployment", "claimgate"):
        return one
    spec = one["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    container.setdefault("env", []).append(
        {"name": "CLAIMGATE_CONFIG", "value": "/etc/claimgate/config/claimgate.yaml"}
    )
    container["volumeMounts"].append({"name": "config", "mountPath": "/etc/claimgate/config"})
    spec["volumes"].append({"name": "config", "configMap": {"name": "claimgate-config"}})
    return one
