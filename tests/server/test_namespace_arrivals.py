"""Reviews wait a moment for a namespace that the watch has not delivered yet, and do not delay others."""

from __future__ import annotations

import asyncio
import io
import queue
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cluster.server import ApiServer, event, page, resources
from tests.literals import PODS, policies, request, validating
from tests.server.asgi import Running, review_of
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import NAMESPACE, Attributes, Phase
from webhook.cluster.connection import connect_to_cluster
from webhook.cluster.interest import interest_in_fields
from webhook.cluster.watch import WatchCluster
from webhook.deadline import Deadline
from webhook.logs.structured import Log
from webhook.rules.decisions import Verdict
from webhook.server import slow_reviews
from webhook.server.request_body import FREE_BYTES
from webhook.server.slow_reviews import NamespaceArrivals

NAMESPACES = "/api/v1/namespaces"
MATCH = {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["free"]}]}}
DENIES = policies(validating("false", failurePolicy="Ignore", matchConstraints={"resourceRules": [PODS], **MATCH}))
"""Denies Pods except in namespaces of the team `free`. An unknown namespace lets them pass."""


def namespace(name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}, "resourceVersion": "11"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


class Live:
    def __init__(self, folder: Path) -> None:
        self.server = ApiServer()
        self.server.answers["/api/v1"] = resources(("namespaces", "Namespace", False))
        self.server.answers[NAMESPACES] = page(namespace("old"))
        self.events: queue.Queue[Any] = queue.Queue()
        self.server.watches[NAMESPACES] = self.events
        self.link = connect_to_cluster(self.server.kubeconfig(folder))
        self.view = WatchCluster(
            self.link, [interest_in_fields(NAMESPACE, "metadata.labels")], Log(stream=io.StringIO())
        )
        self.view.start()
        assert self.view.wait_until_synced(10)
        self.running = Running(self.review, view=lambda: self.view)

    def review(self, attributes: Attributes, phase: Phase, deadline: Deadline) -> Verdict:
        return answer_request(attributes, DENIES, self.view, phase=phase, deadline=deadline)

    def create(self, name: str, **labels: str) -> None:
        self.events.put(event("ADDED", namespace(name, **labels)))

    def close(self) -> None:
        self.view.close()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    made = Live(tmp_path)
    yield made
    made.close()


def body(name: str, size: int = 0) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": name, "annotations": {"a": "x" * size}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}
    review = review_of(namespace=name)
    # the last field, because an API server writes the object last
    review["request"]["object"] = review["request"].pop("object") and pod
    return review


async def allowed(client: httpx.AsyncClient, name: str, size: int = 0) -> bool:
    answer = await client.post("/validate", json=body(name, size))
    return bool(answer.json()["response"]["allowed"])


def client_of(running: Running) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=running.app_with_clock), base_url="https://test")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reviews wait up to 60 s for a namespace. On a busy machine, the event of the watch takes longer than the
    default of 0.2 s.
    """
    monkeypatch.setattr(slow_reviews, "WAIT_S", 60)


@pytest.mark.usefixtures("patient")
def test_the_first_pod_of_each_of_a_thousand_namespaces_is_answered_rightly(live: Live) -> None:
    async def create() -> list[bool]:
        answers = []
        async with client_of(live.running) as client:
            for first in range(0, 1000, 50):
                names = [f"new-{number}" for number in range(first, first + 50)]
                asked = [asyncio.create_task(allowed(client, name)) for name in names]
                await asyncio.sleep(0)
                for number, name in enumerate(names):
                    live.create(name, **({"team": "free"} if number % 2 else {}))
                answers += await asyncio.gather(*asked)
        return answers

    assert asyncio.run(create()) == [False, True] * 500


@pytest.mark.usefixtures("patient")
def test_a_large_body_waits_too(live: Live) -> None:
    async def create() -> bool:
        async with client_of(live.running) as client:
            asked = asyncio.create_task(allowed(client, "new", FREE_BYTES))
            await asyncio.sleep(0)
            live.create("new")
            return await asked

    assert asyncio.run(create()) is False


def test_a_waiting_request_delays_no_others_and_gets_the_failure_policy(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_reviews, "WAIT_S", 2)

    async def ask() -> tuple[bool, bool, bool]:
        async with client_of(live.running) as client:
            assert not await allowed(client, "old")
            waiting = asyncio.create_task(allowed(client, "never"))
            await asyncio.sleep(0)
            other = await allowed(client, "old")
            return waiting.done(), other, await waiting

    assert asyncio.run(ask()) == (False, False, True)


def test_only_reviews_in_a_namespace_that_may_still_arrive_wait(live: Live) -> None:
    arrivals = NamespaceArrivals(lambda: live.view)
    created = request(namespace("new"))
    assert not arrivals.is_awaited(replace(created, namespace="new"))
    assert not arrivals.is_awaited(request(body("old")["request"]["object"]))
    assert arrivals.is_awaited(request(body("new")["request"]["object"]))
    unwatched = NamespaceArrivals(lambda: WatchCluster(live.link, [], Log(stream=io.StringIO())))
    assert not unwatched.is_awaited(request(body("new")["request"]["object"]))
