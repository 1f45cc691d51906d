"""A playground without a socket. Real child processes evaluate the questions of the whole application."""

from __future__ import annotations

import asyncio
from functools import cache

import httpx
from msgspec.structs import replace

from tests.literals import OPTIONS
from webhook.cel import compiled_engine
from webhook.commands.ui import files_of_drafted_suite, mistakes_of_policies
from webhook.input import shipped
from webhook.playground.application import Playground, create_application
from webhook.playground.measured_engine import MeasuredEngine
from webhook.playground.worker import Workers
from webhook.policy.load import load_policy_set

HOST = "127.0.0.1:8642"
ORIGIN = f"http://{HOST}"
ASKING = {"Origin": ORIGIN, "Content-Type": "application/json"}


@cache
def shipped_engine():
    """Return the shipped policies with an engine that records evaluations. All tests share them."""
    engine = MeasuredEngine(compiled_engine())
    options = replace(OPTIONS, engine=engine, lazy=True)
    return load_policy_set([shipped.policies_folder()], options), options, engine


def answers(*requests, timeout_s=20.0, memory_bytes=256 << 20):
    """Send all requests at once, and return the answers. A request is (method, path, keyword arguments)."""
    policies, options, engine = shipped_engine()

    async def ask():
        workers = Workers(timeout_s=timeout_s, memory_bytes=memory_bytes)
        app = create_application(
            Playground(
                policies=policies,
                options=options,
                engine=engine,
                workers=workers,
                check=mistakes_of_policies,
                draft=files_of_drafted_suite,
            ),
            frozenset((HOST,)),
        )
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, timeout=120) as client:
            return await asyncio.gather(
                *(client.request(method, path, **arguments) for method, path, arguments in requests)
            )

    return asyncio.run(ask())


def evaluated(question, **bounds):
    (response,) = answers(("POST", "/evaluate", {"json": question, "headers": ASKING}), **bounds)
    return response
