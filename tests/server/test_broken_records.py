"""A TLS record that the client did not encrypt ends the connection. The server drops its requests without an error."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from tests.server.asgi import Running
from tests.server.serving import Pki, listening
from tests.server.test_slow_clients import SMALL, until

BROKEN = b"\x17\x03\x03\x00\x20" + b"\0" * 32
REQUESTS = {"a page": b"GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n", "a review": SMALL}


@pytest.mark.parametrize("request_bytes", REQUESTS.values(), ids=REQUESTS.keys())
def test_a_request_before_a_broken_record_is_not_an_internal_error(tmp_path: Path, request_bytes: bytes) -> None:
    pki, running = Pki(tmp_path), Running()
    with listening(running, pki.files) as server:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = pki.trust().wrap_bio(incoming, outgoing, server_hostname="localhost")
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            is_done = False
            while not is_done:
                with suppress(ssl.SSLWantReadError):
                    tls.do_handshake()
                    is_done = True
                client.sendall(outgoing.read())
                if not is_done:
                    incoming.write(client.recv(65536))
            tls.write(request_bytes)
            client.sendall(outgoing.read() + BROKEN)
            with suppress(ConnectionError):
                while client.recv(65536):
                    pass
        until(lambda: not server.listener.connections)
        until(lambda: not server.listener.server_state.tasks)
    assert running.counters.uncaught == {}
    assert not [line for line in running.lines() if line["message"] == "internal fault"]
