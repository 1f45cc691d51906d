"""The server disconnects slow clients in time, but never a client that waits for the server."""

from __future__ import annotations

import contextlib
import gc
import json
import re
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest

from tests.server.asgi import Running, review_of
from tests.server.serving import Pki, Server, listening
from webhook.rules.decisions import Verdict
from webhook.server.client_clock import ClientClock, ConnectionTimeouts
from webhook.server.http_connection import HttpConnection
from webhook.server.http_exchange import MAX_HEADERS, MAX_LATE_BYTES
from webhook.settings.serving import ServerSettings

HEAD = b"POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
BODY = json.dumps(review_of()).encode()
SMALL = HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
HURRIED = ConnectionTimeouts(
    handshake_s=0.3, first_byte_s=0.3, headers_s=0.3, body_s=0.6, held_s=0.3, answer_s=0.3, goodbye_s=0.3
)


def until(claim: object, *, within_s: float = 10) -> None:
    end = time.monotonic() + within_s
    while not claim():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


def connect(server: Server, pki: Pki) -> ssl.SSLSocket:
    raw = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    return pki.trust().wrap_socket(raw, server_hostname="localhost", suppress_ragged_eofs=True)


def answer(client: ssl.SSLSocket) -> bytes:
    heard = b""
    while not heard.endswith(b"}"):
        piece = client.recv(65536)
        assert piece
        heard += piece
    return heard


SLOW = {
    "the first byte": ((), "first_byte"),
    "the headers": ((HEAD,), "headers"),
    "the body": ((HEAD + b"content-length: 100\r\n\r\n{",), "body"),
    "a large body": ((HEAD + b"content-length: 1000000\r\n\r\n{",), "body"),
}


@pytest.mark.parametrize(("said", "reason"), SLOW.values(), ids=SLOW.keys())
def test_a_client_that_never_closes_tls_is_disconnected(said: tuple[bytes, ...], reason: str, tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files, timeouts=HURRIED) as server:
        client = connect(server, pki)
        for piece in said:
            client.sendall(piece)
        until(lambda: server.running.counters.connections_aborted[reason,] == 1)
        until(lambda: not server.listener.connections)
        assert server.running.counters.connections["reviews",] == 0
        client.close()


def test_a_refusal_reaches_the_client_and_the_connection_ends_without_its_goodbye(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files, timeouts=HURRIED) as server:
        client = connect(server, pki)
        client.sendall(HEAD + b"x: " + b"a" * 300_000)
        heard = b""
        while piece := client.recv(65536):
            heard += piece
        assert heard.startswith(b"HTTP/1.1 431 ")
        until(lambda: not server.listener.connections)
        client.close()


def test_too_many_headers_are_refused(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files, timeouts=HURRIED) as server:
        for count, code in ((150, b"HTTP/1.1 200 "), (MAX_HEADERS + 1, b"HTTP/1.1 400 ")):
            headers = b"".join(b"x-%d: a\r\n" % number for number in range(count))
            client = connect(server, pki)
            client.sendall(SMALL.replace(b"\r\n\r\n", b"\r\n" + headers + b"\r\n", 1))
            assert answer(client).startswith(code)
            client.close()


@pytest.mark.parametrize(("size", "code"), [(4000, b"200"), (5000, b"400")], ids=["long", "too long"])
def test_a_too_long_url_is_refused(tmp_path: Path, size: int, code: bytes) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files, timeouts=HURRIED) as server:
        client = connect(server, pki)
        client.sendall(SMALL.replace(b"/validate", b"/validate?" + b"a" * size, 1))
        assert answer(client).startswith(b"HTTP/1.1 " + code)
        client.close()


def test_the_server_does_not_read_more_of_a_refused_client(tmp_path: Path) -> None:
    pki, begun, go_on = Pki(tmp_path), threading.Event(), threading.Event()

    def waiting(*_: object) -> Verdict:
        begun.set()
        go_on.wait(10)
        return Verdict(allowed=True)

    with listening(Running(waiting), pki.files) as server:
        client = connect(server, pki)
        client.sendall(SMALL * 3)
        assert begun.wait(10)
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.sendall(b"a" * (20 << 20))
        go_on.set()
        until(lambda: not server.listener.connections)
        client.close()


def test_a_stalled_handshake_is_ended_and_noted(tmp_path: Path) -> None:
    with listening(Running(), Pki(tmp_path).files, timeouts=HURRIED) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            until(lambda: server.running.counters.connections["reviews",] == 1)
            assert client.recv(1) == b""
        until(lambda: server.running.counters.handshakes_failed["timeout",] == 1)
        until(lambda: server.running.counters.connections["reviews",] == 0)
        (line,) = server.running.lines()
        assert (line["message"], line["reason"]) == ("TLS handshake failed", "timeout")
        assert line["peer"].startswith("127.0.0.1:")


def test_a_client_that_does_not_read_its_answer_is_disconnected(tmp_path: Path) -> None:
    patch = ({"op": "add", "path": "/x", "value": "x" * 20_000_000},)  # more than the buffers of the system can hold
    running, pki = Running(lambda *_: Verdict(allowed=True, patch=patch)), Pki(tmp_path)
    with listening(running, pki.files, timeouts=HURRIED) as server:
        client = connect(server, pki)
        client.sendall(SMALL.replace(b"/validate", b"/mutate"))
        until(lambda: running.counters.connections_aborted["answer",] == 1)
        client.close()


def test_only_the_first_of_many_requests_in_one_write_is_answered(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server:
        client = connect(server, pki)
        client.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n" * 1000)
        heard = b""
        try:
            while piece := client.recv(65536):
                heard += piece
        except OSError:
            pass
        assert heard.count(b"HTTP/1.1 ") == 1
        assert b"connection: close" in heard
        until(lambda: not server.listener.connections)
        client.close()


def test_connections_that_end_early_leave_nothing_for_the_garbage_collector(tmp_path: Path) -> None:
    running, pki = Running(lambda *_: (time.sleep(0.1), Verdict(allowed=True))[1]), Pki(tmp_path)
    with listening(running, pki.files, timeouts=HURRIED) as server:
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                with socket.create_connection(("127.0.0.1", server.port)) as plain:
                    plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
                with connect(server, pki) as client:
                    client.sendall(SMALL * 3)
                with connect(server, pki) as client:
                    client.sendall(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
                    assert client.recv(65536).startswith(b"HTTP/1.1 200")
            until(lambda: running.counters.connections["reviews",] == 0)
            until(lambda: not [each for each in gc.get_objects() if isinstance(each, HttpConnection)])
        finally:
            gc.enable()


@pytest.mark.parametrize(("size", "code"), [(1, b"400"), (1000, b"200")], ids=["a byte each", "a kilobyte each"])
def test_a_body_in_too_many_small_chunks_is_refused(tmp_path: Path, size: int, code: bytes) -> None:
    pki = Pki(tmp_path)
    body = BODY + b" " * 3000 * size
    chunks = b"".join(
        b"%x\r\n%b\r\n" % (len(body[at : at + size]), body[at : at + size]) for at in range(0, len(body), size)
    )
    with listening(Running(), pki.files) as server:
        client = connect(server, pki)
        client.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        assert answer(client).startswith(b"HTTP/1.1 " + code)
        client.close()


def test_a_client_that_writes_everything_first_gets_the_early_answer(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    head = HEAD.replace(b"application/json", b"text/plain") + b"content-length: %d\r\n\r\n" % (12 << 20)
    with listening(Running(), pki.files) as server:
        client = connect(server, pki)
        client.sendall(head)
        for _ in range(12):
            client.sendall(b"a" * (1 << 20))
        assert answer(client).startswith(b"HTTP/1.1 415")
        client.close()


@pytest.mark.slow
def test_the_rest_of_an_answered_review_is_read_slowly(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    head = HEAD.replace(b"application/json", b"text/plain") + b"content-length: %d\r\n\r\n" % (12 << 20)
    with listening(Running(), pki.files) as server:
        client = connect(server, pki)
        until(lambda: server.listener.connections)
        server.listener.connections[0]._port.answered_bodies.record_read(1 << 40, time.monotonic())
        client.sendall(head + b"a" * (1 << 20))
        assert answer(client).startswith(b"HTTP/1.1 415")
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.sendall(b"a" * (11 << 20))
        client.close()


def test_a_body_that_is_far_too_long_is_answered_and_not_read_whole(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    head = HEAD + b"content-length: %d\r\n\r\n" % (200 << 20)
    with listening(Running(), pki.files) as server:
        client = connect(server, pki)
        sent = 0
        client.sendall(head)
        with contextlib.suppress(OSError):  # the server may close the connection during the write
            while sent < 200 << 20:
                client.sendall(b" " * (1 << 16))
                sent += 1 << 16
        assert MAX_LATE_BYTES < sent < 2 * MAX_LATE_BYTES
        client.close()


CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
AROUND = {
    "a trailer without end": (HEAD + CHUNKED + b"0\r\nx: ", b"a" * 100_000, b"400"),
    "an extension without end": (HEAD + CHUNKED + b"1;", b"a" * 100_000, b"400"),
    "a body that goes on after its answer": (
        HEAD.replace(b"/validate", b"/healthz") + CHUNKED,
        b"40000\r\n" + b"a" * 0x40000 + b"\r\n",
        b"405",
    ),
}


@pytest.mark.parametrize(("head", "piece", "code"), AROUND.values(), ids=AROUND.keys())
def test_an_unread_body_ends_the_connection(tmp_path: Path, head: bytes, piece: bytes, code: bytes) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server:
        client = connect(server, pki)
        client.sendall(head)
        with contextlib.suppress(OSError):  # the server may close the connection during the write
            for _ in range(20):
                client.sendall(piece)
                time.sleep(0.01)
        until(lambda: not server.listener.connections, within_s=3)
        with contextlib.suppress(OSError):
            assert client.recv(65536).startswith(b"HTTP/1.1 " + code)
        client.close()


def test_waiting_large_bodies_are_not_charged_for_the_wait(tmp_path: Path) -> None:
    """The first bodies use the whole budget until their connections end. So the next body waits for longer than
    `body_s`.
    """
    pki = Pki(tmp_path)
    size = 200_000
    timeouts = ConnectionTimeouts(body_s=1.0, held_s=0.9, held_bytes_per_s=1e9)
    settings = ServerSettings(max_body_bytes=size, max_inflight_body_bytes=size)
    with listening(Running(settings=settings), pki.files, timeouts=timeouts) as server:
        holders = [connect(server, pki) for _ in range(2)]
        for holder in holders:
            holder.sendall(HEAD + b"content-length: %d\r\n\r\n{" % size)
        until(lambda: server.running.app.bodies.waiting_call_count == 1)
        client = connect(server, pki)
        client.sendall(HEAD + b"content-length: %d\r\n\r\n" % size + BODY + b" " * (size - len(BODY)))
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        assert server.running.counters.connections_aborted["body",] == 2
        until(lambda: server.running.app.bodies.reserved == 0)
        for one in (*holders, client):
            one.close()


def test_a_connection_is_usable_after_a_refusal_by_the_queue(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    size = 200_000
    settings = ServerSettings(max_body_bytes=size, max_inflight_body_bytes=size)
    with listening(Running(settings=settings), pki.files) as server:
        holder, client = connect(server, pki), connect(server, pki)
        holder.sendall(HEAD + b"content-length: %d\r\n\r\n{" % size)
        until(lambda: server.running.app.bodies.reserved == size)
        late = HEAD.replace(b"/validate", b"/validate?timeout=300ms") + b"content-length: %d\r\n\r\n" % size
        client.sendall(late + b" " * size)
        assert (heard := answer(client)).startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 1\r\n" in heard
        client.sendall(SMALL)
        assert answer(client).startswith(b"HTTP/1.1 200 ")
        holder.close()
        client.close()


@pytest.mark.parametrize("name", ["p", "p" * 600_000], ids=["a Pod", "a name of 600 KB before the object"])
def test_a_body_that_stops_is_answered_by_the_head_that_arrived(tmp_path: Path, name: str) -> None:
    pki = Pki(tmp_path)
    late = HEAD.replace(b"/validate", b"/validate?timeout=300ms") + b"content-length: 2000000\r\n\r\n"
    review = review_of(name=name)
    del review["request"]["object"]
    beginning = json.dumps(review).encode()[:-2] + b', "object": {'
    with listening(Running(), pki.files) as server, connect(server, pki) as client:
        client.sendall(late + beginning)
        heard = answer(client)
        assert heard.startswith(b"HTTP/1.1 200 ")
        assert re.search(rb"not evaluated: the request was not read whole within 0[.][23]\d* s", heard)
        assert server.running.counters.lanes == {("unread",): 1}


def test_an_idle_connection_is_not_a_fault(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files, timeouts=HURRIED) as server:
        client = connect(server, pki)
        for pause_s in (0.7, 0.0):
            client.sendall(SMALL)
            assert answer(client).startswith(b"HTTP/1.1 200 ")
            time.sleep(pause_s)
        client.close()


class Loop:
    now = 100.0

    def time(self) -> float:
        return self.now


def clock(**state: object) -> ClientClock:
    made = ClientClock()
    made.loop = Loop()  # type: ignore[assignment]
    for name, value in state.items():
        setattr(made, name, value)
    return made


LATE = {
    "on time": ({"state": "body", "since": 95.0}, False),
    "late": ({"state": "body", "since": 89.0}, True),
    "the server works": ({"state": "serving", "since": 0.0}, False),
    "the server makes the client wait": ({"state": "body", "since": 0.0, "_paused_at": 1.0}, False),
    "it holds memory, and sends nothing": ({"state": "body", "since": 97.0, "_large_body_bytes": 0}, True),
    "it holds memory, and sends fast enough": ({"state": "body", "since": 97.0, "_large_body_bytes": 2**23}, False),
    "it holds memory, has sent nearly everything, and is late": (
        {"state": "body", "since": 89.0, "_large_body_bytes": 2**30},
        True,
    ),
    "idle too long": ({"state": "idle", "since": -21.0}, True),
}


@pytest.mark.parametrize(("state", "is_late"), LATE.values(), ids=LATE.keys())
def test_a_connection_is_late_in_these_states(state: dict[str, object], is_late: bool) -> None:
    assert clock(**state).is_late(ConnectionTimeouts(), 100.0) == is_late


def test_the_time_for_which_a_client_waits_for_the_server_does_not_count() -> None:
    one = clock(state="body", since=95.0)
    one.pause_clock()
    one.loop.now = 1000.0  # type: ignore[attr-defined]
    one.resume_clock()
    assert one.since == 995.0
    one.require_large_body_pace()
    one.count_large_body(2**22)
    assert (one.is_late(ConnectionTimeouts(), 1002.9), one.is_late(ConnectionTimeouts(), 1003.1)) == (False, True)


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", b"200"),
        (b"GET /healthz HTTP/1.0\r\n\r\n", b"200"),
        (b"GET /healthz HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n", b"400"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n", b"200"),
        (HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n", b"400"),
    ],
    ids=["an ordinary request", "HTTP/1.0 without a host", "no host", "two hosts", "chunked", "compressed"],
)
def test_requests_in_valid_http_are_accepted(request_bytes: bytes, code: bytes, tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server, connect(server, pki) as client:
        client.sendall(request_bytes)
        assert client.recv(65536).split(b" ")[1] == code
