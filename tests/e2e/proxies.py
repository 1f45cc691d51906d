"""A proxy in front of an API server that simulates faults of a network."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Literal, TypeAlias

Mode: TypeAlias = Literal["pass", "away", "silent", "slow"]
SLOW_S = 0.3


class FaultyProxy:
    """Passes bytes between clients and a server, as its `mode` says.

    Attributes:
        pass: at once.
        away: new connections end at once.
        silent: bytes are dropped.
        slow: each piece is late.
    """

    def __init__(self, host: str, port: int) -> None:
        self.mode: Mode = "pass"
        self._to = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def refuse(self) -> None:
        """End all open connections, and refuse new ones for good, like a host without an API server."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(5)
        self._listening.close()
        self.cut()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(5)
        self._listening.close()
        self.cut()
        for one in self._threads:
            one.join(5)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self.mode == "away":
                    client.close()
                    continue
                upstream = socket.create_connection(self._to)
                for source, target in ((client, upstream), (upstream, client)):
                    self._open.add(source)
                    self._threads.append(threading.Thread(target=self._carry, args=(source, target), daemon=True))
                    self._threads[-1].start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self.mode == "slow":
                    time.sleep(SLOW_S)
                if self.mode != "silent":
                    target.sendall(data)
        self._open.discard(source)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
        source.close()
