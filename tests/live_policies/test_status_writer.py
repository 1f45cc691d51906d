"""Status is written with as few writes as possible, and replicas do not overwrite each other again and again."""

from __future__ import annotations

from typing import Any

from tests.live_policies.stored import of, policy
from webhook.apimachinery.attributes import JSON
from webhook.cluster.connection import ServerRefused
from webhook.live_policies.conditions import create_condition
from webhook.live_policies.objects import StoredPolicy
from webhook.live_policies.status_writer import AGAIN_S, MOST_WRITES, StatusWriter

GOOD = (
    {
        **create_condition("Compiled", holds=True, reason="Compiled", message="every expression compiles"),
        "observedGeneration": 1,
    },
)
BAD = ({**create_condition("Compiled", holds=False, reason="Invalid", message="1 error"), "observedGeneration": 1},)


class ApiServer:
    def __init__(self, *values: dict[str, Any]) -> None:
        self.objects = {value["metadata"]["name"]: value for value in values}
        self.writes: list[tuple[str, str]] = []
        self.refuses: ServerRefused | None = None

    def apply(self, path: str, body: JSON, manager: str, read_s: float) -> JSON:
        if self.refuses is not None:
            raise self.refuses
        assert read_s > 0
        self.writes.append((manager, path))
        stored = self.objects[body["metadata"]["name"]]
        assert body["metadata"]["uid"] == stored["metadata"]["uid"]
        stored["status"] = body["status"]
        return stored

    def stored(self) -> tuple[StoredPolicy, ...]:
        return of(*self.objects.values())


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def writer(server: ApiServer, clock: Clock, wait: float = 0.0) -> StatusWriter:
    return StatusWriter(server, "claimgate", clock=clock, spread=lambda: wait)


def look(one: StatusWriter, server: ApiServer, wanted: Any = GOOD) -> None:
    one.write((stored, wanted, None) for stored in server.stored())


def test_two_replicas_write_once() -> None:
    server, clock = ApiServer(policy("p")), Clock()
    first, second = writer(server, clock), writer(server, clock, wait=2)
    for clock.seconds in range(10):
        look(first, server)
        look(second, server)
    path = "/apis/claimgate.dev/v1alpha1/validatingpolicies/p/status"
    assert server.writes == [("claimgate", path)]


def test_two_replicas_that_disagree_write_less_and_less() -> None:
    server, clock = ApiServer(policy("p")), Clock()
    one, other = writer(server, clock), writer(server, clock)
    for clock.seconds in range(3600):
        look(one, server, GOOD)
        look(other, server, BAD)
    assert len(server.writes) <= 2 * 10, (
        "each replica waits 10, 20, 40 … seconds after a write, so it writes at most ten times an hour"
    )
    assert AGAIN_S[0] * 2**8 < 3600


def test_the_time_of_the_last_change_is_kept() -> None:
    server, clock = ApiServer(policy("p")), Clock()
    one = writer(server, clock)
    look(one, server)
    server.objects["p"]["status"]["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    clock.seconds = 100
    reworded = ({**GOOD[0], "message": "all compile"},)
    look(one, server, reworded)
    (kept,) = server.objects["p"]["status"]["conditions"]
    assert (kept["message"], kept["lastTransitionTime"]) == ("all compile", "2026-01-01T00:00:00Z")
    clock.seconds = 200
    look(one, server, BAD)
    assert server.objects["p"]["status"]["conditions"][0]["lastTransitionTime"] != "2026-01-01T00:00:00Z"


def test_one_poll_writes_a_bounded_number_of_statuses() -> None:
    server, clock = ApiServer(*(policy(f"p{number}") for number in range(MOST_WRITES + 5))), Clock()
    one = writer(server, clock)
    look(one, server)
    assert len(server.writes) == MOST_WRITES
    look(one, server)
    assert len(server.writes) == MOST_WRITES + 5


def test_a_refused_status_write_is_retried_later() -> None:
    server, clock = ApiServer(policy("p")), Clock()
    one = writer(server, clock)
    server.refuses = ServerRefused(403, "validatingpolicies/status is forbidden")
    look(one, server)
    assert one.error == "validatingpolicies/status is forbidden"
    server.refuses = None
    look(one, server)
    assert not server.writes
    clock.seconds = AGAIN_S[0]
    look(one, server)
    assert server.writes
    assert one.error == ""


def test_a_deleted_object_is_not_an_error() -> None:
    server, clock = ApiServer(policy("p")), Clock()
    one = writer(server, clock)
    server.refuses = ServerRefused(404, "not found")
    look(one, server)
    assert one.error == ""
