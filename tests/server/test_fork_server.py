"""The process that forks workers: the state of its workers, and when each process ends."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from webhook.server.child_process import HEAD
from webhook.server.fork_server import ForkServer, Worker

MB = 1 << 20
held = "as it was"


def answer(worker: Worker) -> bytes:
    """Return the answer of a worker, or b"" if the worker ends without an answer."""
    came = b""
    while select.select([worker.channel], [], [], 20)[0] and (chunk := worker.channel.recv(1 << 16)):
        came += chunk
    worker.end()
    return came[HEAD.size :]


def numbers(_channel: socket.socket) -> bytes:
    """Return the process ids of the worker and of its parent."""
    return f"{os.getpid()} {os.getppid()}".encode()


def tell_and_sleep(channel: socket.socket) -> bytes:
    channel.sendall(numbers(channel))
    time.sleep(60)
    return b""


def told(worker: Worker) -> list[int]:
    assert select.select([worker.channel], [], [], 20)[0]
    return list(map(int, worker.channel.recv(100).split()))


def soon() -> float:
    return time.monotonic() + 20


def is_running(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def has_ended(pid: int) -> bool:
    """Return whether the process ends within ten seconds. The parent of a worker also removes it from the process
    table.
    """
    end = time.monotonic() + 10
    while time.monotonic() < end and is_running(pid):
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)
    return not is_running(pid)


async def eventually(is_true: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while time.monotonic() < end and not is_true():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.01)
    return is_true()


def test_workers_hold_what_the_server_had_at_the_fork(monkeypatch: pytest.MonkeyPatch):
    forks = ForkServer(lambda _channel: held.encode(), MB)
    monkeypatch.setitem(globals(), "held", "changed")
    workers = [forks.start_worker(soon()) for _ in range(3)]
    assert [answer(worker) for worker in workers] == [b"as it was"] * 3


def test_workers_have_one_parent_which_is_not_the_server():
    forks = ForkServer(numbers, MB)
    workers = [list(map(int, answer(forks.start_worker(soon())).split())) for _ in range(2)]
    assert len({pid for pid, _ in workers}) == 2
    assert len({parent for _, parent in workers} - {os.getpid()}) == 1


def test_a_worker_is_killed_and_leaves_nothing():
    forks = ForkServer(tell_and_sleep, MB)
    worker = forks.start_worker(soon())
    pid, parent = told(worker)
    worker.end()
    assert has_ended(pid)
    assert is_running(parent)


def test_a_worker_ends_itself_after_its_deadline():
    forks = ForkServer(tell_and_sleep, MB)
    worker = forks.start_worker(time.monotonic() - 0.5)
    pid, _ = told(worker)
    assert has_ended(pid)
    worker.end()


def test_an_exception_in_a_worker_ends_only_this_worker():
    def fail(_channel: socket.socket) -> bytes:
        raise ValueError

    forks = ForkServer(fail, MB)
    assert [answer(forks.start_worker(soon())) for _ in range(2)] == [b"", b""]


def test_a_retired_fork_server_ends_after_its_last_worker():
    async def run() -> None:
        forks = ForkServer(tell_and_sleep, MB)
        workers = [forks.start_worker(soon()) for _ in range(2)]
        pids = [told(worker) for worker in workers]
        parent = pids[0][1]
        forks.retire()
        workers[0].end()
        assert await eventually(lambda: not is_running(pids[0][0]))
        assert is_running(parent)
        assert is_running(pids[1][0])
        workers[1].end()
        assert await eventually(lambda: not is_running(parent))
        assert not is_running(pids[1][0])

    asyncio.run(run())


def test_a_fork_server_without_workers_ends_at_once():
    async def run() -> None:
        forks = ForkServer(numbers, MB)
        parent = int(answer(forks.start_worker(soon())).split()[1])
        assert is_running(parent)
        forks.retire()
        assert await eventually(lambda: not is_running(parent))

    asyncio.run(run())


def test_an_unused_fork_server_ends_with_its_workers():
    forks = ForkServer(tell_and_sleep, MB)
    worker = forks.start_worker(soon())
    pid, parent = told(worker)
    worker.channel.close()
    del forks, worker
    assert has_ended(parent)
    assert not is_running(pid)


def test_a_killed_process_is_reported():
    forks = ForkServer(tell_and_sleep, MB)
    worker = forks.start_worker(soon())
    pid, parent = told(worker)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    with pytest.raises(OSError, match=r".+"):
        forks.start_worker(soon())
    worker.end()
    os.kill(pid, signal.SIGKILL)
