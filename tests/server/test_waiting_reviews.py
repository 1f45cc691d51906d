"""A review that waits for a worker keeps its bytes in memory, and not the decoded object."""

from __future__ import annotations

import asyncio
import gc
import json

import httpx
import pytest

from tests.server.asgi import Running, review_of
from webhook.apimachinery.attributes import JSON, Attributes, Phase
from webhook.deadline import Deadline
from webhook.errors import InlineBudgetSpent
from webhook.rules.decisions import Verdict
from webhook.server.scheduler import InlineTimeSlice
from webhook.server.worker_lane import WorkerLane

POD: JSON = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits"}, "spec": {"containers": [{}]}}


def kept() -> int:
    """Return how many copies of POD are in memory, without POD itself."""
    return sum(type(one) is dict and one == POD and one is not POD for one in gc.get_objects())


def overrun(attributes: Attributes, _phase: Phase, deadline: Deadline) -> Verdict:
    assert attributes.object == POD
    if isinstance(deadline, InlineTimeSlice):
        raise InlineBudgetSpent
    return Verdict(allowed=True)


def test_a_review_that_waits_for_a_worker_keeps_no_decoded_object(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    run = WorkerLane.run

    async def looking(lane: WorkerLane, *given: object) -> bytes:
        await asyncio.sleep(0)
        gc.collect()
        seen.append(kept())
        return await run(lane, *given)  # type: ignore[arg-type]

    async def scenario() -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=Running(overrun).app_with_clock), base_url="https://test"
        ) as client:
            sent = json.dumps(review_of(object=POD))
            return await client.post("/validate", content=sent, headers={"content-type": "application/json"})

    monkeypatch.setattr(WorkerLane, "run", looking)
    answer = asyncio.run(scenario())
    assert answer.json()["response"]["allowed"]
    assert seen == [0]
