"""A worker receives a job of any size completely, or not at all."""

from __future__ import annotations

import asyncio
import socket

import pytest

from webhook.server.request_body import LargeBody
from webhook.server.worker_lane import Job, receive

MB = 1 << 20


def sent(job: Job) -> tuple[bytes, bytes]:

    async def run() -> tuple[bytes, bytes]:
        ours, its = socket.socketpair()
        ours.setblocking(False)
        with ours, its:
            reading = asyncio.create_task(asyncio.to_thread(receive, its))
            await job.send(ours)
            return await reading

    return asyncio.run(run())


@pytest.mark.parametrize("size", [0, 1, MB])
def test_a_body_in_memory_arrives_whole(size: int):
    assert sent(Job(b"asked", b"x" * size)) == (b"asked", b"x" * size)


def test_a_large_body_arrives_whole():
    body = bytes(range(256)) * (20 * MB // 256)
    assert sent(Job(b"", LargeBody(len(body), [body]))) == (b"", body)


def test_an_incomplete_worker_job_is_not_a_job():
    ours, its = socket.socketpair()
    with its:
        ours.sendall(b"\0\0\0\5\0\0\0\5askedbod")
        ours.close()
        with pytest.raises(EOFError):
            receive(its)


def test_a_worker_that_has_ended_is_noticed():
    async def run() -> None:
        ours, its = socket.socketpair()
        ours.setblocking(False)
        its.close()
        with ours:
            await Job(b"", b"x" * MB).send(ours)

    with pytest.raises(ConnectionError):
        asyncio.run(run())
