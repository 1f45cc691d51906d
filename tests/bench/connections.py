"""Sends reviews over loopback TLS with keep-alive, as an API server does, and times the answers.

A connection sends the next review when it has its answer.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import uvloop


@dataclass
class Round:
    times_s: list[float] = field(default_factory=list)
    elapsed_s: float = 0.0

    @property
    def per_second(self) -> float:
        return len(self.times_s) / self.elapsed_s

    def percentile(self, share: float) -> float:
        ordered = sorted(self.times_s)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class _Connection(asyncio.Protocol):
    """A connection that sends the next request when it has an answer. All connections take requests from one
    iterator.
    """

    def __init__(self, requests: Iterator[bytes], measured: Round) -> None:
        self._requests = requests
        self._measured = measured
        self._answer = b""
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send_next()

    def _send_next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self.done.set_result(None)
            self._transport.close()
            return
        self._answer = b""
        self._sent_at = perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, separator, body = self._answer.partition(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]) if separator else 0
        if not separator or len(body) < length:
            return
        self._measured.times_s.append(perf_counter() - self._sent_at)
        if not head.startswith(b"HTTP/1.1 200") or b'"allowed":true' not in body:
            self.done.set_exception(RuntimeError(self._answer.decode()))
            self._transport.close()
        else:
            self._send_next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("closed"))


def request(path: str, body: bytes) -> bytes:
    head = f"POST {path}?timeout=10s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-apiserver-admission\r\n"
    head += f"Content-Length: {len(body)}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Accept-Encoding: gzip\r\n\r\n" + body


def send(port: int, ca: str, requests: Sequence[bytes], connections: int) -> Round:
    """Send requests over this number of connections, and return the measured times. Every answer must allow.

    Raises:
        RuntimeError: an answer does not allow; the message is the answer.
    """
    return uvloop.run(_send(port, ssl.create_default_context(cafile=ca), requests, connections))


async def _send(port: int, tls: ssl.SSLContext, requests: Sequence[bytes], connections: int) -> Round:
    measured, shared, loop = Round(), iter(requests), asyncio.get_running_loop()
    started = perf_counter()
    opened = [
        await loop.create_connection(lambda: _Connection(shared, measured), "localhost", port, ssl=tls)
        for _ in range(connections)
    ]
    await asyncio.gather(*(protocol.done for _, protocol in opened))
    measured.elapsed_s = perf_counter() - started
    return measured
