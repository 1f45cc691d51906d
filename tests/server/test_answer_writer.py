"""An answer is one write, and nothing of one that has no body, or is not finished, is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.server.asgi import Running
from tests.server.serving import Pki, listening
from tests.server.test_slow_clients import HEAD, SMALL, answer, connect
from webhook.server.answer_writer import MOST_JOINED, AnswerWriter


class Transport(asyncio.Transport):
    """A transport that remembers what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


def test_an_answer_comes_in_one_record(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server:
        client = connect(server, pki)
        for _ in range(3):
            client.sendall(SMALL)
            head, _, body = client.recv(65536).partition(b"\r\n\r\n")  # never more than one record
            assert head.startswith(b"HTTP/1.1 200 OK")
            assert body.endswith(b"}")
        client.close()


def test_requests_that_follow_one_another_are_answered_in_their_order(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server:
        client = connect(server, pki)
        client.sendall(SMALL + HEAD.replace(b"POST", b"HEAD") + b"\r\n" + SMALL)
        heard = b""
        while heard.count(b"HTTP/1.1 ") < 3 or not heard.endswith(b"}"):
            heard += client.recv(65536)
        assert heard.startswith(b"HTTP/1.1 200")
        assert heard.count(b"HTTP/1.1 405") == heard.count(b"}HTTP/1.1 405") == 1
        client.close()


def test_a_client_that_asks_first_may_go_on_at_once(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server:
        client = connect(server, pki)
        head, _, body = SMALL.partition(b"\r\n\r\n")
        client.sendall(head + b"\r\nexpect: 100-continue\r\n\r\n")
        assert client.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        assert answer(client).startswith(b"HTTP/1.1 200 OK")
        client.close()


def test_an_answer_without_a_body_is_not_kept(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files) as server, httpx.Client(verify=pki.trust()) as client:
        for _ in range(2):
            assert client.head(f"{server.address}/validate").status_code == 405


@pytest.mark.parametrize(("size", "writes"), [(1, 1), (MOST_JOINED, 1), (MOST_JOINED + 1, 2)])
def test_a_large_body_is_not_copied_and_nothing_changes_its_order(size: int, writes: int) -> None:
    transport = Transport()
    answers = AnswerWriter(transport)
    for _ in range(2):
        for piece in (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * size, b"more"):
            answers.write(piece)
        answers.end_answer()
    assert b"".join(transport.written) == (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * size + b"more") * 2
    assert len(transport.written) == 2 * (writes + 1)


def test_an_answer_that_is_given_up_is_written_as_far_as_it_went() -> None:
    transport = Transport()
    answers = AnswerWriter(transport)
    answers.write(b"HTTP/1.1 200 OK\r\n\r\n")
    assert not answers.is_closing()
    answers.close()
    assert (transport.written, answers.is_closing()) == ([b"HTTP/1.1 200 OK\r\n\r\n"], True)
