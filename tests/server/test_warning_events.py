"""A warning becomes one Event on the top owner. A task writes it, and no review waits."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cluster.server import ApiServer, AsText
from tests.server.asgi import Running, review_of
from webhook.admission.decode import decode_review_bytes
from webhook.apimachinery.attributes import JSON
from webhook.cluster.connection import ServerRefused, connect_to_cluster
from webhook.errors import LookupFailed
from webhook.logs.structured import Log
from webhook.rules.decisions import Decision, ValidationAction, Verdict
from webhook.rules.problem import Problem
from webhook.server import warning_events
from webhook.server.counters import Counters
from webhook.server.warning_events import (
    AGAIN_S,
    MOST_WAITING,
    WARNED,
    WarningEvents,
    describe_warned_review,
    event_body,
)

PROBLEM = Problem(code="a/b", path="spec.x", message="names hunter2 of namespace other")
WARNED_OF = Decision(
    policy="p",
    binding="b",
    evaluation="deny",
    actions=(ValidationAction.WARN,),
    problems=(PROBLEM,),
    message="names hunter2 of namespace other",
)
ALLOWED = Verdict(allowed=True, decisions=(WARNED_OF,), warnings=("names hunter2 of namespace other",))
METADATA = {"name": "p", "namespace": "n", "uid": "1"}
OWNED = {**METADATA, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "2"}]}
OWNED["ownerReferences"][0]["controller"] = True  # type: ignore[index]


def review(metadata: Mapping[str, JSON] = METADATA, namespace: str = "n", **request: Any) -> dict[str, Any]:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    return review_of(namespace=namespace, object=pod, **request)


def described(verdict: Verdict = ALLOWED, sent: dict[str, Any] | None = None) -> Any:
    return describe_warned_review(decode_review_bytes(json.dumps(sent or review()).encode()), verdict)


def test_an_event_is_about_the_object_or_its_controller() -> None:
    about = {"api_version": "v1", "kind": "Pod", "namespace": "n", "name": "p", "uid": "1"}
    owner = {"api_version": "apps/v1", "kind": "ReplicaSet", "namespace": "n", "name": "r", "uid": "2"}
    assert described() == {"about": about, "rules": [("a/b", "spec.x")]}
    assert described(sent=review(OWNED))["about"] == owner


NOTHING = {
    "a denial": (replace(ALLOWED, allowed=False), None),
    "a dry run": (ALLOWED, review(dryRun=True)),
    "a status": (ALLOWED, review(subResource="status")),
    "a deletion": (ALLOWED, review(operation="DELETE")),
    "no uid yet": (ALLOWED, review({"generateName": "p-"})),
    "an object of no namespace": (ALLOWED, review_of(object={"metadata": METADATA})),
    "an exception": (replace(ALLOWED, decisions=(replace(WARNED_OF, lets_pass=True, exception="e"),)), None),
    "advice": (replace(ALLOWED, decisions=(replace(WARNED_OF, actions=(ValidationAction.ADVICE,)),)), None),
    "an invalid owner": (
        ALLOWED,
        review({"name": "p", "ownerReferences": [{"controller": True, "uid": 7}]}),
    ),
}


@pytest.mark.parametrize(("verdict", "sent"), NOTHING.values(), ids=NOTHING.keys())
def test_these_warnings_get_no_event(verdict: Verdict, sent: dict[str, Any] | None) -> None:
    assert described(verdict, sent) is None


@dataclass
class Cluster:
    """Stored objects by path, the created Events, and the error for each creation, if any."""

    objects: dict[str, JSON] = field(default_factory=dict)
    created: list[JSON] = field(default_factory=list)
    refuses: LookupFailed | None = None

    def get_metadata(self, path: str) -> JSON:
        if path not in self.objects:
            raise ServerRefused(404, "not found")
        return self.objects[path]

    def post(self, _path: str, body: JSON, _read_s: float) -> JSON:
        if self.refuses is not None:
            raise self.refuses
        self.created.append(body)
        return body


class Server:
    def __init__(self, cluster: Cluster) -> None:
        self.now = 0.0
        self.out = io.StringIO()
        self.counters = Counters()
        titles = {"a/b": "The x is wrong"}
        self.events = WarningEvents(
            cluster, lambda rule: titles.get(rule, ""), self.counters, Log(stream=self.out), clock=lambda: self.now
        )

    def write(self, *warned: Any) -> dict[str, int]:
        """Offer warnings, write all waiting Events, and return how often each outcome was counted."""

        async def scenario() -> None:
            for each in warned:
                self.events.offer(each)
            for _ in warned:
                await self.events.write_next()

        before = dict(self.counters.events)
        asyncio.run(scenario())
        counts = {outcome: count - before.get((outcome,), 0) for (outcome,), count in self.counters.events.items()}
        return {outcome: count for outcome, count in counts.items() if count}


def test_the_same_warning_is_logged_once_an_hour() -> None:
    cluster = Cluster()
    server = Server(cluster)
    warned = described()
    assert server.write(warned, warned) == {"written": 1, "repeated": 1}
    server.now = AGAIN_S
    assert server.write(warned) == {"written": 1}
    assert [each["metadata"]["name"] for each in cluster.created] == [cluster.created[0]["metadata"]["name"]] * 2


def test_an_event_names_title_and_field_but_not_the_message() -> None:
    cluster = Cluster()
    Server(cluster).write(described())
    (event,) = cluster.created
    assert event["note"] == "The x is wrong: spec.x (a/b). `claimgate explain a/b` says what to do."
    assert event["regarding"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "n", "name": "p", "uid": "1"}
    assert "hunter2" not in json.dumps(event)
    assert "other" not in json.dumps(event)
    told = event_body(warning_events.ObjectReference("v1", "Pod", "n", "p", "1"), "own-policy", "", "")["note"]
    assert told == "Policy own-policy warns. `kubectl apply --dry-run=server` prints its message."


def test_an_event_quotes_the_key_of_an_object_with_escapes() -> None:
    about = warning_events.ObjectReference("v1", "Pod", "n", "p", "1")
    assert event_body(about, "a/b", 'spec["\u202e\x9b"]', "A title")["note"].startswith(
        r'A title: spec["\u202e\x9b"] (a/b)'
    )


REPLICA_SET = "/apis/apps/v1/namespaces/n/replicasets/r"
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "3", "controller": True}


@pytest.mark.parametrize(
    ("uid", "about"),
    [("2", "Deployment"), ("another", "ReplicaSet")],
    ids=["the owner of the owner", "an owner of the same name"],
)
def test_pods_of_a_deployment_get_one_event(uid: str, about: str) -> None:
    stored = {"metadata": {"uid": uid, "ownerReferences": [DEPLOYMENT]}}
    cluster = Cluster({REPLICA_SET: stored})
    server = Server(cluster)
    assert server.write(described(sent=review(OWNED)), described(sent=review({**OWNED, "uid": "9"}))) == {
        "written": 1,
        "repeated": 1,
    }
    (event,) = cluster.created
    assert event["regarding"]["kind"] == about


def test_only_the_metadata_of_owners_is_read(tmp_path: Path) -> None:
    api_server = ApiServer()
    deep = b'{"metadata": {"uid": "2", "ownerReferences": [' + json.dumps(DEPLOYMENT).encode()
    deep += b'], "managedFields": ' + b"[" * 9000 + b"]" * 9000 + b"}}"
    api_server.answers[REPLICA_SET] = 200, AsText({}, deep)
    cluster = Cluster()
    cluster.get_metadata = connect_to_cluster(api_server.kubeconfig(tmp_path)).get_metadata  # type: ignore[method-assign]
    try:
        assert Server(cluster).write(described(sent=review(OWNED))) == {"written": 1}
    finally:
        api_server.shutdown()
        api_server.server_close()
    (event,) = cluster.created
    assert event["regarding"]["kind"] == "Deployment"
    ((_, _, headers),) = api_server.asked
    assert headers["accept"].startswith("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,")


def test_owners_in_a_circle_are_followed_to_a_bound() -> None:
    circle = {"metadata": {"uid": "2", "ownerReferences": OWNED["ownerReferences"]}}
    cluster = Cluster({REPLICA_SET: circle})
    assert Server(cluster).write(described(sent=review(OWNED))) == {"written": 1}


def test_an_event_that_cannot_be_written_is_reported_once() -> None:
    cluster = Cluster(refuses=ServerRefused(403, "events is forbidden"))
    server = Server(cluster)
    others = [described(sent=review({**METADATA, "uid": str(number)})) for number in range(3)]
    assert server.write(*others[:2]) == {"failed": 2}
    assert server.out.getvalue().count("event cannot be written") == 1
    assert server.events.describe_error() == "events is forbidden"
    cluster.refuses = ServerRefused(409, "already exists")
    assert server.write(described(sent=review({**METADATA, "uid": "8"}))) == {
        "repeated": 1
    }  # another replica has already written the Event
    cluster.refuses = None
    assert server.write(others[2]) == {"written": 1}
    assert server.events.describe_error() == ""


def test_waiting_events_are_bounded() -> None:
    server = Server(Cluster())
    for number in range(MOST_WAITING + 5):
        server.events.offer(described(sent=review({**METADATA, "uid": str(number)})))
    assert server.counters.events == {("dropped",): 5}


def test_a_namespace_with_many_events_does_not_silence_others() -> None:
    """If the queue is full, the namespace with the most Events loses one. The writer takes Events of all namespaces in
    turn.
    """
    cluster = Cluster()
    server = Server(cluster)
    for number in range(2 * MOST_WAITING):
        server.events.offer(described(sent=review({**METADATA, "uid": str(number)})))
    others = [described(sent=review(METADATA, f"other-{number}")) for number in range(3)]
    for warned in others:
        server.events.offer(warned)
    assert server.counters.events == {("dropped",): MOST_WAITING + len(others)}

    async def write() -> None:
        for _ in range(5):
            await server.events.write_next()

    asyncio.run(write())
    written = [each["metadata"]["namespace"] for each in cluster.created]
    assert written == ["n", "other-0", "other-1", "other-2", "n"]


def test_a_dropped_event_is_written_after_a_later_warning() -> None:
    cluster = Cluster()
    server = Server(cluster)
    warned = [described(sent=review({**METADATA, "uid": str(number)})) for number in range(MOST_WAITING + 1)]
    assert server.write(*warned) == {"dropped": 1, "written": MOST_WAITING}
    assert server.write(*warned) == {"repeated": MOST_WAITING, "written": 1}


def test_a_uid_of_another_namespace_does_not_silence_an_event() -> None:
    """Users may write any uid into ownerReferences, so a known uid alone does not make an Event a repetition."""
    server = Server(Cluster())
    assert server.write(described(sent=review(OWNED, "attackers")), described(sent=review(OWNED))) == {"written": 2}


def test_more_namespaces_than_events_may_wait() -> None:
    server = Server(Cluster())
    warned = [described(sent=review(METADATA, f"n-{number}")) for number in range(MOST_WAITING + 3)]
    assert server.write(*warned) == {"dropped": 3, "written": MOST_WAITING}


@pytest.mark.parametrize("size", [1, 200_000], ids=["on the loop", "by a worker"])
def test_a_review_returns_its_warnings_and_does_not_log_them(size: int) -> None:
    offered: list[Any] = []

    class Events(WarningEvents):
        def offer(self, warned: Any) -> None:
            offered.append(warned)

    events = Events(Cluster(), str, Counters(), Log(stream=io.StringIO()))
    running = Running(lambda *_: ALLOWED, events=events)
    running.post("/validate", review({**METADATA, "annotations": {"a": "x" * size}}))
    assert [tuple(each["about"].values()) for each in offered] == [("v1", "Pod", "n", "p", "1")]
    (line,) = running.lines()
    assert WARNED not in line
