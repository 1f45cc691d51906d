"""Pages are loaded when they are needed, and wait for their turn like reviews."""

from __future__ import annotations

import asyncio

import pytest

from webhook.server.application import LazyPages
from webhook.server.probes import create_probes
from webhook.server.request_body import Receive, Scope
from webhook.server.review_endpoint import AsgiApp, Send
from webhook.server.scheduler import ROUND_S, Scheduler
from webhook.server.server_parts import Readiness
from webhook.server.usage import page_tenant


async def page(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200})


async def nothing() -> Scope:
    return {}


async def call(pages: LazyPages, path: str) -> list[Scope]:
    sent: list[Scope] = []

    async def send(message: Scope) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "client": ("192.0.2.1", 1)}
    await pages(scope, nothing, send)
    return sent


def test_pages_that_could_not_be_loaded_are_loaded_by_the_next_call():
    attempts = 0

    def create() -> AsgiApp:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise OSError("no thread to be had")
        return page

    async def scenario() -> None:
        pages = LazyPages(create, Scheduler(), {})
        with pytest.raises(OSError, match="no thread"):
            await call(pages, "/version")
        assert len(await call(pages, "/version")) == 1
        assert len(await call(pages, "/version")) == 1

    asyncio.run(scenario())
    assert attempts == 2


def test_a_probe_does_not_wait_for_the_pages():
    def create() -> AsgiApp:
        raise AssertionError("a probe created the pages")

    async def scenario() -> None:
        pages = LazyPages(create, Scheduler(), create_probes(Readiness()))
        for path in ("/healthz", "/readyz"):
            head, body = await call(pages, path)
            assert (head["status"], body["body"]) == (200, b"ok")

    asyncio.run(scenario())


def test_a_page_waits_for_its_turn():
    async def scenario() -> None:
        scheduler = Scheduler()
        pages = LazyPages(lambda: page, scheduler, {})
        await pages.load()
        waiting = asyncio.create_task(call(pages, "/docs"))
        scheduler.worked(page_tenant("/docs", "192.0.2.1"), 2 * ROUND_S)
        await asyncio.sleep(0)
        assert not waiting.done()
        assert len(await waiting) == 1

    asyncio.run(scenario())
