"""The time after which a server cuts a client that stops.

The client reads bytes below TLS until the end of the TCP connection. A TLS goodbye is not the end: a server that waits
for the close of the client keeps the connection and its buffers.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from dataclasses import dataclass

from tests.bench.bounds.calls import GET_HEALTH, connect
from tests.bench.bounds.connections import HEAD
from tests.bench.bounds.report import Report
from tests.bench.bounds.server import Address

CAP_S, SLACK_S = 25.0, 2.0
BODY = HEAD + b"Content-Length: 100000\r\n\r\n"
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


@dataclass
class Slow:
    """A slow client: what it sends first and each second, and within how many seconds the server must cut it off. None
    means never.
    """

    name: str
    bound_s: float | None
    sent: bytes = b""
    each_second: bytes = b""
    speaks_tls: bool = True
    cut_s: float | None = None

    def run(self, address: Address) -> None:
        made = socket.create_connection(("127.0.0.1", address.port), CAP_S)
        if self.speaks_tls:
            made.close()
            made = connect(address.port, address.trust(), CAP_S)
        started = time.monotonic()
        with made, socket.socket(fileno=os.dup(made.fileno())) as below:
            if self.sent:
                made.sendall(self.sent)
            below.settimeout(0.1)
            self._watch(made, below, started)

    def _watch(self, made: socket.socket, below: socket.socket, started: float) -> None:
        next_s = 1.0
        while (elapsed := time.monotonic() - started) < CAP_S:
            try:
                if not below.recv(65536):
                    break
            except TimeoutError:
                pass
            except OSError:
                break
            if self.each_second and elapsed >= next_s:
                next_s += 1
                with contextlib.suppress(OSError):  # reading shows whether the connection is still open
                    made.send(self.each_second)
        else:
            return
        self.cut_s = elapsed

    def missed(self) -> list[str]:
        if self.bound_s is None:
            return [] if self.cut_s is None else [f"cut after {self.cut_s:.1f} s"]
        is_late = self.cut_s is None or self.cut_s > self.bound_s + SLACK_S
        return [f"not cut within {self.bound_s + SLACK_S:g} s"] if is_late else []


def measure(address: Address, report: Report) -> None:
    report.section("cut times", "seconds until the TCP connection of a client that does not go on has ended")
    clients = [
        Slow("no TLS handshake", 10, speaks_tls=False),
        Slow("half a ClientHello", 10, HELLO, speaks_tls=False),
        Slow("a ClientHello, a byte a second", 10, HELLO, b"\x00", speaks_tls=False),
        Slow("no first byte", 5),
        Slow("half a request line", 5, b"POST /val"),
        Slow("headers, a byte a second", 5, HEAD + b"X-A: ", b"a"),
        Slow("half a body", 10, BODY + b'{"a":"' + b"x" * 5_000),
        Slow("a body, a byte a second", 10, BODY, b"x"),
        Slow("an answer, then silence (API servers do so)", None, GET_HEALTH),
    ]
    threads = [threading.Thread(target=client.run, args=(address,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        bound = "may stay" if client.bound_s is None else f"target {client.bound_s + SLACK_S:g}"
        text = f"not within {CAP_S:g}" if client.cut_s is None else f"{client.cut_s:.1f}"
        report.row(client.name, f"{text:>14}  {bound:<10}", client.missed())
