"""One process forks all workers until policies change. Then a new process forks the next workers."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from tests.server.test_fork_server import answer, eventually, is_running
from webhook.server import worker_lane
from webhook.server.fork_server import Worker
from webhook.server.worker_lane import WorkerStarter

MB = 1 << 20


def start(starter: WorkerStarter) -> Worker:
    return starter.start_worker(time.monotonic() + 20, arrived_at=time.monotonic())


def parents(versions: Iterator[object], between: Callable[[int], None] = lambda pid: None) -> list[int]:
    """Return the process id of the parent of each worker. A worker starts for each version of the policies."""

    async def run() -> list[int]:
        starter = WorkerStarter(lambda _channel: b"%d" % os.getppid(), MB, lambda: version)
        found = []
        for version in versions:  # noqa: B007 - `starter` reads it
            found.append(int(answer(start(starter))))
            between(found[-1])
            await asyncio.sleep(0.01)  # let the loop do its pending work
        return found

    return asyncio.run(run())


def test_one_process_forks_all_workers_while_the_version_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(worker_lane, "LIVES_S", 60.0)
    assert len(set(parents(iter([(1, "a"), (1, "a"), (1, "a")])))) == 1


def test_each_change_gets_a_new_process():
    assert len(set(parents(iter([1, 2, 1])))) == 3


def test_each_worker_gets_a_new_process_while_a_change_is_under_way():
    assert len(set(parents(iter([None, None, 1])))) == 3


def test_a_process_is_replaced_after_some_seconds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(worker_lane, "LIVES_S", 0.0)
    assert len(set(parents(iter([1, 1])))) == 2


def test_a_killed_process_is_replaced():
    def kill(pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    assert len(set(parents(iter([1, 1]), kill))) == 2


def test_a_worker_has_the_state_of_the_arrival_of_its_review():
    state = ["before"]

    async def run() -> list[bytes]:
        starter = WorkerStarter(lambda _channel: state[0].encode(), MB, lambda: tuple(state))
        first = start(starter)
        state[0] = "after"
        second = start(starter)
        return [answer(first), answer(second)]

    assert asyncio.run(run()) == [b"before", b"after"]


def test_waiting_reviews_start_from_one_fork_while_the_state_changes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(worker_lane, "LIVES_S", 60.0)
    state = [0]

    async def run() -> list[bytes]:
        came, found = time.monotonic(), []
        starter = WorkerStarter(lambda _channel: b"%d" % state[0], MB, lambda: tuple(state))
        for _ in range(3):
            state[0] += 1
            found.append(answer(starter.start_worker(time.monotonic() + 20, came)))
        return [*found, answer(start(starter))]

    assert asyncio.run(run()) == [b"1", b"1", b"1", b"3"]


def test_an_unused_process_ends_by_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(worker_lane, "LIVES_S", 0.5)

    async def run() -> None:
        starter = WorkerStarter(lambda _channel: b"%d" % os.getppid(), MB, lambda: 1)
        parent = int(answer(start(starter)))
        assert await eventually(lambda: not is_running(parent))

    asyncio.run(run())
