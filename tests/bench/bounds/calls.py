"""One keep-alive TLS connection that sends reviews and reads answers. Plain sockets and bytes cost little.

It supports only the parts of HTTP/1.1 that the server uses. An answer is an AdmissionReview for the uid that was sent,
or the Status for a body without a review.
"""

from __future__ import annotations

import json
import select
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import perf_counter

UID = b"@@@@@@@@-0000-4000-8000-000000000000"
"""The placeholder for the uid in prepared bodies, as long as a uid"""


@dataclass(frozen=True)
class Answer:
    code: int
    body: bytes
    elapsed_s: float

    def review(self, uid: bytes) -> dict | None:
        """Return the response of the AdmissionReview; None if the answer is not a review for the uid."""
        try:
            sent = json.loads(self.body)
            response = sent["response"]
            right = sent["kind"] == "AdmissionReview" and sent["apiVersion"] == "admission.k8s.io/v1"
            right = right and response["uid"] == uid.decode() and isinstance(response["allowed"], bool)
        except (ValueError, KeyError, TypeError):
            return None
        return response if right and self.code == 200 else None

    def is_refusal(self) -> bool:
        """Return whether the answer is a Status with a reason, and code 4xx or 503. The code is 503 if time ran out
        before a uid was known.
        """
        try:
            sent = json.loads(self.body)
            return (400 <= self.code < 500 or self.code == 503) and sent["kind"] == "Status" and bool(sent["message"])
        except (ValueError, KeyError, TypeError):
            return False


class Prepared:
    """A POST request with a body that is built once. Only the uid is filled in for each request."""

    def __init__(self, path: str, body: bytes, timeout: str) -> None:
        self._parts = body.split(UID)
        head = f"POST {path}?timeout={timeout} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-apiserver-admission\r\n"
        head += (
            f"Content-Length: {len(body)}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n\r\n"
        )
        self._head = head.encode()

    def with_uid(self, uid: bytes) -> bytes:
        return self._head + uid.join(self._parts)


def uid(number: int) -> bytes:
    return b"%08x" % (number & 0xFFFFFFFF) + UID[8:]


HEAD = b"POST /validate?timeout=10s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
GET_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
GET_METRICS = GET_HEALTH.replace(b"healthz", b"metrics")


_END = len(b"\r\n\r\n")
_AT_ONCE = 64 * 1024
"""The bytes that fit into the buffers of both sides. Sending them does not block."""


class Connection:
    """A connection that is opened for the first request, and again after an error. Without `trust`, it does not use
    TLS.
    """

    def __init__(self, port: int, trust: ssl.SSLContext | None, timeout_s: float) -> None:
        self._port, self._trust, self._timeout_s = port, trust, timeout_s
        self._socket: socket.socket | None = None

    def ask(self, request: bytes) -> Answer:
        """Send a request and return its answer. As with Go's client, an early answer ends the sending and the
        connection.

        Raises:
            OSError: no answer; the connection is closed.
        """
        started = perf_counter()
        try:
            connected = self._connected()
            heard, is_sent = _send(connected, request, self._timeout_s)
            code, body = self._read(connected, heard)
            if not is_sent:
                self.close()
        except (OSError, ValueError) as error:
            self.close()
            raise error if isinstance(error, OSError) else OSError(f"no HTTP: {error}") from error
        return Answer(code, body, perf_counter() - started)

    def close_if_ended(self) -> None:
        """Close the connection if the server ended it. Go's client also checks this before each request."""
        if self._socket is None:
            return
        self._socket.setblocking(False)
        try:
            self._socket.recv(1)  # the end of the connection, or an unexpected answer
        except (BlockingIOError, ssl.SSLWantReadError):
            self._socket.settimeout(self._timeout_s)
            return
        except OSError:
            pass  # an error also means that the connection has ended
        self.close()

    def _connected(self) -> socket.socket:
        if self._socket is None:
            make = connect_plain if self._trust is None else partial(connect, trust=self._trust)
            self._socket = make(self._port, timeout_s=self._timeout_s)
        return self._socket

    def _read(self, connected: socket.socket, heard: bytes) -> tuple[int, bytes]:
        start = heard.find(b"\r\n\r\n") + _END if b"\r\n\r\n" in heard else 0
        while start < _END:
            heard += _more(connected)
            start = heard.find(b"\r\n\r\n") + _END
        head, body = heard[:start].lower(), heard[start:]
        if b"transfer-encoding: chunked" in head:
            body = _chunks(connected, body)
        else:
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            while len(body) < length:
                body += _more(connected)
        if b"connection: close" in head:
            self.close()
        return int(head[9:12]), body

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _send(connected: socket.socket, request: bytes, timeout_s: float) -> tuple[bytes, bool]:
    """Send until an answer begins. Return the received bytes, and whether everything was sent.

    A client that first sends a whole large body would read an early answer late.
    """
    if len(request) <= _AT_ONCE:
        connected.sendall(request)
        return b"", True
    left, heard = memoryview(request), b""
    connected.setblocking(False)
    while left and not heard:
        readable, writable, _ = select.select([connected], [connected], [], timeout_s)
        if not readable and not writable:
            raise TimeoutError("nothing could be sent")
        if readable:
            with suppress(ssl.SSLWantReadError):  # the record was a session ticket, not an answer
                heard = _more(connected)
        if writable and not heard:
            with suppress(ssl.SSLWantWriteError):
                left = left[connected.send(left[:_AT_ONCE]) :]
    connected.settimeout(timeout_s)
    return heard, not left


def _more(connected: socket.socket) -> bytes:
    if piece := connected.recv(262144):
        return piece
    raise ConnectionError("closed before the answer was whole")


def _chunks(connected: socket.socket, heard: bytes) -> bytes:
    """Return a body that was sent in chunks. Go's servers send bodies of more than 2 KB in chunks."""
    body = b""
    while True:
        while b"\r\n" not in heard:
            heard += _more(connected)
        size, _, heard = heard.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        while len(heard) < length + 2:
            heard += _more(connected)
        if not length:
            return body
        body, heard = body + heard[:length], heard[length + 2 :]


_SOURCE = ["127.0.0.1"]


def come_from(address: str) -> None:
    """Make all later connections from this loopback address, because an API server has its own address."""
    _SOURCE[0] = address


def connect_plain(port: int, timeout_s: float) -> socket.socket:
    """Return a connection to the loopback address, without TLS.

    Raises:
        OSError: the connection was refused, or not made in time.
    """
    plain = socket.create_connection(("127.0.0.1", port), timeout_s, (_SOURCE[0], 0))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return plain


def connect(port: int, trust: ssl.SSLContext, timeout_s: float) -> ssl.SSLSocket:
    """Return a TLS connection to the loopback address.

    Raises:
        OSError: the connection was refused, reset, or not made in time.
    """
    plain = connect_plain(port, timeout_s)
    try:
        return trust.wrap_socket(plain, server_hostname="localhost")
    except OSError:
        plain.close()
        raise
