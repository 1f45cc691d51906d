"""Endless parts of a request outside of its headers and body, and TLS records with hardly any data."""

from __future__ import annotations

import socket
import ssl
import time
from collections import Counter

from tests.bench.bounds.calls import HEAD, connect
from tests.bench.bounds.counting import Many, counted
from tests.bench.bounds.server import Address

CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
BODY = b'{"a":"' + b"x" * 60_000 + b'"}'


def without_end(head: bytes, piece: bytes) -> Many:
    """Return an attack that sends one head, and then the same piece without end, on each connection."""

    def run(address: Address, _index: int, end: float) -> Counter[str]:
        counts: Counter[str] = Counter()
        trust = address.trust()
        while time.monotonic() < end:
            with counted(counts, "made"), connect(address.port, trust, 2) as tls:
                tls.sendall(head)
                while time.monotonic() < end:
                    tls.sendall(piece)
                    counts["sent"] += 1
        return counts

    return run


trailers = without_end(CHUNKED + b"0\r\nX-A: ", b"a" * 262_144)
extensions = without_end(CHUNKED + b"1;x=", b"a" * 262_144)
after_the_answer = without_end(
    b"POST /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"%x\r\n%s\r\n" % (65_536, b"b" * 65_536),
)
long_urls = without_end(b"", b"GET /healthz?" + b"a=b&" * 12_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
long_media_types = without_end(
    b"", b"POST /validate HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Type: " + b"\xff" * 60_000 + b"\r\n\r\n{}"
)


def tiny_records(address: Address, _index: int, end: float) -> Counter[str]:
    """Send bodies of 60 KB with one byte in each TLS record."""
    counts: Counter[str] = Counter()
    trust = address.trust()
    while time.monotonic() < end:
        with counted(counts, "made"), socket.create_connection(("127.0.0.1", address.port), 3) as plain:
            came, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = trust.wrap_bio(came, sent, server_hostname="localhost")
            _shake_hands(tls, came, sent, plain)
            while time.monotonic() < end:
                tls.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY))
                for byte in BODY:
                    tls.write(bytes((byte,)))
                plain.sendall(sent.read())
                counts["sent"] += 1
                came.write(plain.recv(65_536))
    return counts


def _shake_hands(tls: ssl.SSLObject, came: ssl.MemoryBIO, sent: ssl.MemoryBIO, plain: socket.socket) -> None:
    while True:
        try:
            return tls.do_handshake()
        except ssl.SSLWantReadError:
            plain.sendall(sent.read())
            came.write(plain.recv(65_536))
