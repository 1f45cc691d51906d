"""The memory of large bodies: what the server keeps, the answer from the beginning of a body, and what a fork frees."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from webhook.server.request_body import BEGINNING_BYTES, LONG_BEGINNING_BYTES, LargeBody

MB = 1 << 20


def test_a_large_body_has_the_received_bytes() -> None:
    body = LargeBody(10, [b"abc"])
    body.append(b"def")
    assert (len(body), b"".join(body.pieces()), list(body.beginnings())) == (6, b"abcdef", [b"abcdef", b"abcdef"])


def test_a_large_body_keeps_no_more_than_its_capacity() -> None:
    body = LargeBody(4, [b"abc"])
    body.append(b"def")
    body.append(b"g")
    assert (len(body), b"".join(body.pieces())) == (4, b"abcd")


def test_a_large_body_without_bytes_is_empty() -> None:
    assert b"".join(LargeBody(0).pieces()) == b""


def test_the_beginnings_of_a_large_body_are_bounded() -> None:
    body = LargeBody(5 * MB, [b"a" * (5 * MB)])
    assert list(map(len, body.beginnings())) == [BEGINNING_BYTES, LONG_BEGINNING_BYTES]


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is mapped")
def test_a_forked_child_does_not_keep_the_memory_of_a_body() -> None:
    def mapped() -> bytes:
        return b"%d" % Path("/proc/self/maps").read_bytes().count(b"/dev/zero")

    body = LargeBody(MB, [b"body"])
    assert (mapped(), _forked(mapped)) == (b"1", b"0")
    assert b"".join(body.pieces()) == b"body"


def test_a_large_body_is_read_in_pieces() -> None:
    body = LargeBody(5 * BEGINNING_BYTES, [b"a" * BEGINNING_BYTES, b"b"])
    assert list(body.pieces()) == [b"a" * BEGINNING_BYTES, b"b"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux what is resident")
def test_all_memory_of_a_large_body_is_released() -> None:
    before = _resident()
    body = LargeBody(64 * MB, [b"x" * MB] * 64)
    assert _resident() - before > 60 * MB
    body.close()
    assert _resident() - before < 8 * MB


def _forked(work: Callable[[], bytes]) -> bytes:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover - runs in a child process
        os.write(write, work())
        os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read()


def _resident() -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) * 1024
