"""How much of the server's memory a child process keeps, and how much memory the child may use."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable

import pytest

from webhook.server import child_process
from webhook.server.operating_system import resident_bytes

MB = 1 << 20
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is resident")


def test_a_child_releases_memory_that_is_free_in_the_server() -> None:
    blocks = [bytes(100_000) for _ in range(1000)]
    last = bytes(100_000)  # this allocation is above the texts on the heap, so the server cannot free the memory below
    del blocks
    theirs = int(answered(lambda: b"%d" % resident_bytes(), 64 * MB))
    assert resident_bytes() - theirs > 50 * MB
    assert len(last) == 100_000


def test_a_child_may_use_a_bounded_amount_of_memory() -> None:
    assert answered(lambda: b"%d" % len(bytes(20 * MB)), 64 * MB) == b"%d" % (20 * MB)
    assert answered(lambda: b"%d" % len(bytes(80 * MB)), 64 * MB) == b""


def test_a_memory_error_that_does_not_change_the_answer_is_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    class Failing:
        def __del__(self) -> None:
            raise MemoryError

    def fail() -> bytes:
        Failing()
        return b"done"

    assert answered(fail, 64 * MB) == b"done"
    assert capfd.readouterr().err == ""


def answered(work: Callable[[], bytes], memory_bytes: int) -> bytes:
    """Return the answer of a child process, or b"" if the process ends without an answer."""
    child = child_process.start(work, time.monotonic() + 20, memory_bytes)
    came = b""
    with child.channel:
        while select.select([child.channel], [], [], 20)[0] and (chunk := child.channel.recv(1 << 16)):
            came += chunk
    while not child.try_reap():
        time.sleep(0.01)
    return came[child_process.HEAD.size :]
