"""One request and its answer: the bytes on the connection, their pieces, and wrong calls of an application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.asgi import Running
from tests.server.serving import Pki, listening
from tests.server.test_slow_clients import HEAD, SMALL, answer, connect
from webhook.server.http_exchange import PATHS, PIECE_BYTES, Exchange, Receive, Send
from webhook.server.usage import PAGES


class Wire:
    may_stay_open = True

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.events: list[str] = []

    def write(self, data: bytes | memoryview) -> None:
        self.written.append(bytes(data))

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def abort(self) -> None:
        self.events.append("abort")

    def update_reading(self) -> None:
        self.events.append("read on")

    def end_answer(self, _exchange: Exchange) -> None:
        self.events.append("answered")

    def record_application_error(self, error: Exception) -> None:
        self.events.append(f"{type(error).__name__}: {error}")


Steps = Callable[[Receive, Send], Coroutine[Any, Any, None]]


def exchange(steps: Steps, method: str = "POST", *, keeps_alive: bool = True, asks_first: bool = False) -> Wire:
    """Run an application for a request with the body `abc`, and return the connection."""
    wire = Wire()

    async def scenario() -> None:
        one = Exchange(
            wire, {"method": method}, [(b"date", b"today")], keeps_alive=keeps_alive, expects_continue=asks_first
        )
        one.add_body(b"a")
        one.add_body(b"bc")
        one.end_body()
        await one.run(lambda _scope, receive, send: steps(receive, send))

    asyncio.run(scenario())
    return wire


def begin(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def body(whole: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": whole}


def says(*messages: dict[str, Any]) -> Steps:
    async def steps(_receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)

    return steps


LENGTH = (b"Content-Length", b"2")
HEAD_OF_2 = b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 2\r\n\r\n"
WRITTEN = {
    "head and body are one write": (says(begin(LENGTH), body(b"ab")), "POST", [HEAD_OF_2 + b"ab"]),
    "HEAD has no body": (says(begin(LENGTH), body(b"ab")), "HEAD", [HEAD_OF_2]),
    "an application that closes": (
        says(begin(LENGTH, (b"connection", b"close")), body(b"ab")),
        "POST",
        [HEAD_OF_2[:-2] + b"connection: close\r\n\r\nab"],
    ),
}


@pytest.mark.parametrize(("steps", "method", "written"), WRITTEN.values(), ids=WRITTEN.keys())
def test_an_answer_is_written_as_these_bytes(steps: Steps, method: str, written: list[bytes]) -> None:
    wire = exchange(steps, method)
    assert (wire.written, wire.events) == (written, ["answered"])


def test_a_large_answer_is_written_in_pieces() -> None:
    size = 3 * PIECE_BYTES
    wire = exchange(says(begin((b"content-length", b"%d" % size)), body(b"a" * size)))
    assert len(wire.written) == 4
    assert b"".join(wire.written).endswith(b"\r\n\r\n" + b"a" * size)


async def _silent(_receive: Receive, _send: Send) -> None:
    pass


async def _failing(_receive: Receive, _send: Send) -> None:
    raise ValueError("ours")


WRONG: dict[str, tuple[Steps, list[str], bytes]] = {
    "no answer": (_silent, ["answered"], b"HTTP/1.1 500 "),
    "an error": (_failing, ["ValueError: ours", "answered"], b"HTTP/1.1 500 "),
    "half an answer": (says(begin(LENGTH)), ["abort"], b""),
    "a header with a line break": (
        says(begin((b"location", b"a\r\nx: y"))),
        ["RuntimeError: a header has a control character", "abort"],
        b"",
    ),
}


@pytest.mark.parametrize(("steps", "events", "written"), WRONG.values(), ids=WRONG.keys())
def test_wrong_calls_of_an_application_end_the_exchange(steps: Steps, events: list[str], written: bytes) -> None:
    wire = exchange(steps)
    assert wire.events == events
    assert b"".join(wire.written)[: len(written) or None] == written


def test_an_application_receives_the_body_and_then_the_end() -> None:
    heard: list[dict[str, Any]] = []

    async def steps(receive: Receive, send: Send) -> None:
        heard.append(dict(await receive()))
        await send(begin(LENGTH))
        await send(body(b"ab"))
        heard.append(dict(await receive()))

    wire = exchange(steps, asks_first=True)
    assert heard == [{"type": "http.request", "body": b"abc", "more_body": False}, {"type": "http.disconnect"}]
    assert wire.written[0] == b"HTTP/1.1 100 Continue\r\n\r\n"


# ---- over a real socket


def test_an_answer_comes_in_one_record(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server:
        client = connect(server, pki)
        for _ in range(3):
            client.sendall(SMALL)
            # one call reads the answer, because it fits in one TLS record
            head, _, body = client.recv(65536).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK")
            assert body.endswith(b"}")
        client.close()


def test_requests_on_one_connection_are_answered_in_their_order(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server:
        client = connect(server, pki)
        for said, code in ((SMALL, b"200"), (HEAD.replace(b"POST", b"HEAD") + b"\r\n", b"405"), (SMALL, b"200")):
            client.sendall(said)
            assert client.recv(65536).startswith(b"HTTP/1.1 " + code)
        client.close()


def test_a_client_that_expects_100_continue_receives_it_at_once(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server:
        client = connect(server, pki)
        head, _, body = SMALL.partition(b"\r\n\r\n")
        client.sendall(head + b"\r\nexpect: 100-continue\r\n\r\n")
        assert client.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        assert answer(client).startswith(b"HTTP/1.1 200 OK")
        client.close()


def test_an_answer_without_a_body_is_not_stored(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server, httpx.Client(verify=pki.trust()) as client:
        for _ in range(2):
            assert client.head(f"{server.address}/validate").status_code == 405


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_each_answer_is_one_body_with_its_length(method: str) -> None:
    """http_exchange.py writes no other answers. An answer in pieces or without a length needs new code there."""
    with listening(Running()) as server, httpx.Client() as client:
        for path in (*PAGES, *PATHS, "/unknown", "/docs/"):
            heard = client.request(method, f"{server.address}{path}")
            length = int(heard.headers["content-length"])
            assert method == "HEAD" or length == len(heard.content), path
