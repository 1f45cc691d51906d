"""A server of this process that listens on a free port of the loopback address while a test needs it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from certs.issue import authority, serving
from tests.server.asgi import Running
from webhook.server.client_clock import ConnectionTimeouts
from webhook.server.listener import Listener
from webhook.server.tls import Certificates, TlsFiles


@dataclass(frozen=True)
class Pki:
    folder: Path

    def __post_init__(self) -> None:
        self.renew()

    def renew(self, *names: str) -> None:
        now = datetime.now(UTC)
        ca = authority("test", now=now)
        pair = serving(ca, names or ["localhost", "127.0.0.1"], now=now)
        contents = {"ca.crt": ca.certificate, "ca.key": ca.key, "tls.key": pair.key, "tls.crt": pair.certificate}
        for name, content in contents.items():
            (self.folder / name).write_bytes(content)

    @property
    def files(self) -> TlsFiles:
        return TlsFiles(certificate=self.folder / "tls.crt", key=self.folder / "tls.key")

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.folder / "ca.crt"))


@dataclass(frozen=True)
class Server:
    listener: Listener
    port: int
    running: Running
    certificates: Certificates | None
    probe_port: int | None = None

    @property
    def address(self) -> str:
        return f"{'https' if self.certificates else 'http'}://localhost:{self.port}"


def reloaded(server: Server) -> bool:
    """Return whether the second poll loads new certificates. The server reloads only after two polls saw the change."""
    assert server.certificates is not None
    return [server.certificates.poll() for _ in range(2)][1]


@contextmanager
def listening(
    running: Running, files: TlsFiles | None = None, *, timeouts: ConnectionTimeouts | None = None, **place: Any
) -> Iterator[Server]:
    """Serve in a thread until the block ends. Then wait until the server has stopped."""
    started = threading.Event()
    ports: list[int | None] = []
    certificates = Certificates(files) if files else None

    def on_start(_host: str, port: int, probe_port: int | None) -> None:
        ports.extend((port, probe_port))
        started.set()

    listener = Listener(
        running.app,
        replace(running.parts, settings=replace(running.settings, host="127.0.0.1", port=0, **place)),
        tls=certificates,
        probes=running.probes,
        on_start=on_start,
        timeouts=timeouts or ConnectionTimeouts(),
    )
    thread = threading.Thread(target=listener.listen, daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        port, probe_port = ports
        assert port is not None
        yield Server(listener, port, running, certificates, probe_port)
    finally:
        listener.should_exit = True
        thread.join(15)
        assert not thread.is_alive()
