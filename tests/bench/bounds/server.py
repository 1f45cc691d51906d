"""The server under measurement: `claimgate serve` in a separate process, with certificates, policies and a context."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from certs.keep import Days, issue
from certs.store import CA, SERVING, SERVING_KEY, Folder

ROOT = Path(__file__).parents[3]
START_S = 60
UVLOOP = ".uvloop"
"""A file of long callbacks with this end of its name is about uvloop."""
_PROBE_PORT = re.compile(r"--(?:probe|probes|health|metrics|management)[a-z-]*port\b")


@dataclass(frozen=True)
class Address:
    """What processes need to reach the server: its ports, its process id, and the trusted authority."""

    port: int
    health_port: int
    ca: str
    pid: int = 0

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca)

    def health_trust(self) -> ssl.SSLContext | None:
        """Return None if probes have a separate port with plain HTTP, as for a kubelet."""
        return self.trust() if self.health_port == self.port else None


class Server:
    """One process `claimgate serve`, which can be started again if an attack blocks it."""

    def __init__(
        self,
        folder: Path,
        policies: Sequence[Path],
        context: Sequence[Path],
        *flags: str,
        tree: Path = ROOT,
        stalls: Path | None = None,
        tables: Path | None = None,
    ) -> None:
        self._folder, self._tree, self._stalls = folder, tree, stalls
        issue(Folder(folder), ["localhost", "127.0.0.1"], now=datetime.now(UTC), days=Days())
        self._command = [
            *(_recorded(stalls) if stalls else _counted(tables) if tables else _program(tree)),
            "serve",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
        ]
        self._command += ["--tls-cert", str(folder / SERVING), "--tls-key", str(folder / SERVING_KEY), *flags]
        said = _help(tree)
        flag = "--only" if "--only " in said else "--policies"  # in older checkouts it replaces all
        self._command += [word for path in policies for word in (flag, str(path))]
        self._command += [word for path in context for word in ("--context", str(path))]
        if found := _PROBE_PORT.search(said):
            self._command += [found.group(), "0"]
        self.starts = 0
        self.start()

    def start(self) -> None:
        """Start the server, and wait until the log has its address."""
        self.starts += 1
        log = self._folder / f"server-{self.starts}.log"
        with log.open("wb") as stream:
            self._process = subprocess.Popen(self._command, stderr=stream, cwd=self._tree)
        self.log = log
        self.address = self._ready(log)

    def _ready(self, log: Path) -> Address:
        end = time.monotonic() + START_S
        while time.monotonic() < end and self._process.poll() is None:
            for line in log.read_bytes().splitlines(keepends=True):
                is_whole = line.startswith(b"{") and line.endswith(b"}\n")  # other lines may belong to a traceback
                fields = json.loads(line) if is_whole else {}
                if fields.get("message", fields.get("msg")) == "ready":
                    ports = [value for name, value in fields.items() if name != "port" and name.endswith("port")]
                    port, ca = fields["port"], str(self._folder / CA)
                    return Address(port, ports[0] if ports else port, ca, self._process.pid)
            time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"the server did not start:\n{log.read_text()[-4000:]}")

    def mark(self, row: str) -> None:
        if self._stalls:
            with self._stalls.open("a") as lines:
                lines.write(f"== {row}\n")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def restart(self) -> None:
        self.stop(patience_s=0)
        self.start()

    def stop(self, patience_s: float = 8) -> None:
        """Send SIGTERM, and SIGKILL if the server does not stop in time."""
        if patience_s and self.is_alive:
            self._process.terminate()
            try:
                self._process.wait(patience_s)
            except subprocess.TimeoutExpired:
                print(f"the server did not stop within {patience_s} s of SIGTERM and was killed")
        if self.is_alive:
            self._process.kill()
        self._process.wait()


@contextmanager
def serving(
    folder: Path,
    policies: Sequence[Path],
    context: Sequence[Path],
    *flags: str,
    tree: Path = ROOT,
    stalls: Path | None = None,
    tables: Path | None = None,
) -> Iterator[Server]:
    folder.mkdir(parents=True, exist_ok=True)
    server = Server(folder, policies, context, *flags, tree=tree, stalls=stalls, tables=tables)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _program(tree: Path) -> list[str]:
    """Return the command of a checkout. It runs in the environment of the checkout, if any, or of the caller."""
    installed = tree / ".venv" / "bin" / "claimgate"
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "webhook"]


def _recorded(stalls: Path) -> list[str]:
    loop = "uvloop" if stalls.suffix == UVLOOP else "asyncio"
    return [sys.executable, "-m", "tests.bench.bounds.loop_recorder", loop, str(stalls.resolve())]


def _counted(tables: Path) -> list[str]:
    return [sys.executable, "-m", "tests.bench.bounds.table_recorder", str(tables.resolve())]


def _help(tree: Path) -> str:
    command = [*_program(tree), "serve", "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=tree, env=os.environ).stdout
