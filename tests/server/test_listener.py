"""The listening process over real sockets: hostile clients, limits, keep-alive, draining, addresses."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.asgi import Running, review_of
from tests.server.serving import Pki, Server, listening
from webhook.errors import ConfigurationError
from webhook.server.client_clock import ConnectionTimeouts
from webhook.server.http_exchange import MAX_HEADER_BYTES
from webhook.server.listener import bind
from webhook.settings.serving import ServerSettings

HURRIED = ConnectionTimeouts(first_byte_s=0.3, headers_s=0.3, body_s=0.3)
HEAD = b"POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
BODY = json.dumps(review_of()).encode()


def converse(server: Server, *said: bytes, pause_s: float = 0.0) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        try:
            for piece in said:
                connection.sendall(piece)
                time.sleep(pause_s)
        except OSError:
            pass
        heard = b""
        try:
            while piece := connection.recv(65536):
                heard += piece
        except OSError:
            pass
        return heard


SLOW = {
    "nothing at all": (),
    "half a request line": (b"POST /val",),
    "half the headers": (HEAD,),
    "half a body": (HEAD + b"content-length: 100\r\n\r\n{",),
    "a body that never starts": (HEAD + b"content-length: 100\r\n\r\n",),
}


@pytest.mark.parametrize("said", SLOW.values(), ids=SLOW.keys())
def test_slow_clients_are_closed(said: tuple[bytes, ...]) -> None:
    with listening(Running(), timeouts=HURRIED) as server:
        assert converse(server, *said) == b""
        assert httpx.post(f"{server.address}/validate", json=review_of()).status_code == 200


def test_a_client_that_drips_headers_is_closed_too() -> None:
    with listening(Running(), timeouts=HURRIED) as server:
        converse(server, HEAD, *[b"x-a: b\r\n"] * 12, pause_s=0.1)
        assert server.listener.connections == []


def test_an_idle_connection_stays_and_is_used_again() -> None:
    with listening(Running(), timeouts=HURRIED) as server, httpx.Client() as client:
        for _ in range(2):
            assert client.post(f"{server.address}/validate", json=review_of()).status_code == 200
            time.sleep(0.9)
        assert len(server.listener.connections) == 1


def test_a_connection_that_is_idle_for_long_is_closed_and_not_counted_as_a_fault() -> None:
    assert ConnectionTimeouts().idle_s > 90  # an API server reuses a connection that was idle for 90 s
    with listening(Running(), timeouts=ConnectionTimeouts(idle_s=0.3)) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            client.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY)
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
            assert client.recv(65536) == b""  # the connection ends without a reset
        assert not server.running.counters.connections_aborted


def test_headers_without_end_are_refused() -> None:
    with listening(Running()) as server:
        heard = converse(server, HEAD, *[b"x-long: " + b"a" * 1000 + b"\r\n"] * (MAX_HEADER_BYTES // 500))
        assert heard.startswith(b"HTTP/1.1 431 ")
        assert json.loads(heard.partition(b"\r\n\r\n")[2])["code"] == 431


def test_the_end_of_a_body_is_not_a_header_of_the_next_request() -> None:
    long = BODY + b" " * (MAX_HEADER_BYTES + 1000)
    answered = HEAD.replace(b"json", b"text") + b"content-length: %d\r\n\r\n" % len(long) + long
    second = HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
    with listening(Running(), timeouts=ConnectionTimeouts(idle_s=0.3)) as server:
        heard = converse(server, answered[:150], answered[150:] + second[:60], second[60:], pause_s=0.2)
        assert re.findall(rb"HTTP/1\.1 (\d+)", heard) == [b"415", b"200"]


def test_a_body_that_is_nearly_all_framing_is_refused_once() -> None:
    with listening(Running()) as server:
        heard = converse(server, HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 60_000)
        assert heard.count(b"HTTP/1.1 400 ") == heard.count(b"HTTP/1.1 ") == 1


def test_bytes_that_are_not_http_are_answered_with_a_status() -> None:
    with listening(Running()) as server:
        heard = converse(server, b"\x16\x03\x01 hello\r\n\r\n")
        assert heard.startswith(b"HTTP/1.1 400 ")
        assert json.loads(heard.partition(b"\r\n\r\n")[2])["reason"] == "BadRequest"


def test_a_body_above_the_limit_is_answered_while_the_client_still_writes(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    settings = ServerSettings(max_body_bytes=200_000)
    with listening(Running(settings=settings), pki.files) as server, httpx.Client(verify=pki.trust()) as client:
        headers = {"content-type": "application/json"}
        for size in (200_001, 790_000):
            answer = client.post(f"{server.address}/validate", content=b" " * size, headers=headers)
            assert (answer.status_code, answer.json()["reason"]) == (413, "RequestEntityTooLarge")
        assert client.post(f"{server.address}/validate", json=review_of()).status_code == 200


def test_a_body_of_exactly_the_limit_is_accepted() -> None:
    settings = ServerSettings(max_body_bytes=len(BODY))
    with listening(Running(settings=settings)) as server:
        headers = {"content-type": "application/json"}
        assert httpx.post(f"{server.address}/validate", content=BODY, headers=headers).status_code == 200


def test_after_sigterm_the_server_is_not_ready_and_still_answers() -> None:
    with listening(Running(), drain=1.0) as server, httpx.Client() as client:
        assert client.get(f"{server.address}/readyz").status_code == 200
        server.listener.handle_exit(signal.SIGTERM, None)
        assert client.get(f"{server.address}/readyz").status_code == 503
        answer = client.post(f"{server.address}/validate", json=review_of())
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        assert not server.listener.should_exit
        time.sleep(1.4)
        assert server.listener.should_exit


@pytest.mark.parametrize(
    "signals", [[signal.SIGINT], [signal.SIGTERM, signal.SIGTERM]], ids=["SIGINT", "a second SIGTERM"]
)
def test_stopping_at_once(signals: list[signal.Signals]) -> None:
    with listening(Running(), drain=60.0) as server:
        for number in signals:
            server.listener.handle_exit(number, None)
        assert server.listener.should_exit


def test_an_idle_client_does_not_delay_the_stop(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server, httpx.Client(verify=pki.trust()) as client:
        assert client.post(f"{server.address}/validate", json=review_of()).status_code == 200
        server.listener.handle_exit(signal.SIGINT, None)
        while server.listener.connections:  # without the stop, this loop ends only by the timeout of the suite
            time.sleep(0.05)


def test_an_address_that_is_in_use_or_invalid_is_refused() -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"cannot listen on 127\.0\.0\.1:{port}: address already in use$"):
            bind("127.0.0.1", port)
    with pytest.raises(ConfigurationError, match=r"cannot listen on 192\.0\.2\.1:0: cannot assign requested address$"):
        bind("192.0.2.1", 0)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
@pytest.mark.parametrize("client", ["127.0.0.1", "::1"])
def test_an_ipv6_socket_accepts_ipv4_and_ipv6(client: str) -> None:
    with bind("::", 0) as both:
        socket.create_connection((client, both.getsockname()[1])).close()


@pytest.mark.parametrize("code", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_on_a_node_without_ipv6_the_server_listens_on_ipv4(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    created = socket.create_server

    def without_ipv6(address: tuple[str, int], *, family: int, **options: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(code, os.strerror(code))
        return created(address, family=family, **options)

    monkeypatch.setattr(socket, "create_server", without_ipv6)
    with bind("::", 0) as alone:
        socket.create_connection(("127.0.0.1", alone.getsockname()[1])).close()
    with pytest.raises(ConfigurationError, match=r"cannot listen on \[::1\]:0: "):
        bind("::1", 0)
