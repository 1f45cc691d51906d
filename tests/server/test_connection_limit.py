"""Which connection the server closes to accept a new one, or when the buffers are too large."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.asgi import Running, review_of
from tests.server.serving import Pki, listening
from webhook.server.connection_limit import MAX_HELD_BYTES, ConnectionLimit
from webhook.server.counters import Counters
from webhook.server.http_connection import HttpConnection


class Loop:
    now = 0.0

    def time(self) -> float:
        return self.now


class Connection(HttpConnection):
    def __init__(self, loop: Loop, address: str) -> None:
        self.loop: Any = loop
        self.address = address
        self.held_bytes = 0
        self.aborted = self.unread = False

    def abort(self) -> None:
        self.aborted = True

    def has_unread(self) -> bool:
        return self.unread


class Port:
    def __init__(self, most: int) -> None:
        self.loop, self.counters = Loop(), Counters()
        self.limit = ConnectionLimit(most, "reviews", self.counters)
        self.all: list[Connection] = []

    def open(
        self, state: Any = "first_byte", *, is_proven: bool = False, held: int = 0, address: str = "192.0.2.1"
    ) -> Connection:
        self.loop.now += 1
        made = Connection(self.loop, address)
        self.limit.admit(made)
        made.enter(state)
        if is_proven:
            self.limit.mark_answered(made)
        made.held_bytes = held
        self.limit.change_held_bytes(made, held)
        self.all.append(made)
        return made

    @property
    def aborted(self) -> list[int]:
        return [index for index, one in enumerate(self.all) if one.aborted]


SPARED = {
    "the oldest unproven connection": ([("headers", False), ("first_byte", False), ("idle", True)] * 2, 0),
    "no unproven connection that is being answered": ([("serving", False), ("body", False), ("idle", True)] * 2, 1),
    "the longest idle connection while few are unproven": ([("body", False), *[("idle", True)] * 5], 1),
    "an unproven connection before connections in use": ([*[("serving", True)] * 5, ("body", False)], 5),
    "the oldest connection in use": ([("serving", True)] * 6, 0),
    "the oldest connection with a first answer": ([("serving", False)] * 6, 0),
}


@pytest.mark.parametrize(("states", "index"), SPARED.values(), ids=SPARED.keys())
def test_the_connection_to_close_is_chosen_by_state(states: list[tuple[str, bool]], index: int) -> None:
    port = Port(len(states))
    for state, is_proven in states:
        port.open(state, is_proven=is_proven)
    assert port.aborted == []
    port.open()
    assert (port.aborted, len(port.limit)) == ([index], len(states))
    assert port.counters.connections_aborted == {("limit",): 1}
    assert port.counters.connections == {("reviews",): len(states)}


def test_the_address_with_the_most_connections_loses_a_connection() -> None:
    port = Port(4)
    port.open("idle", is_proven=True, address="192.0.2.9")
    for _ in range(3):
        port.open("serving", is_proven=True)
    for index in (1, 2):
        port.open("serving", is_proven=True)
        assert port.aborted == list(range(1, index + 1))


def test_a_stalled_request_is_closed_before_idle_connections() -> None:
    port = Port(3)
    port.open("idle", is_proven=True)
    port.open("body", is_proven=True).since = port.loop.now
    port.open("idle", is_proven=True)
    port.open()
    assert port.aborted == [1]


def test_an_idle_connection_with_an_arrived_request_is_spared() -> None:
    port = Port(2)
    port.open("idle", is_proven=True).unread = True
    port.open("idle", is_proven=True)
    port.open()
    assert port.aborted == [1]


def test_the_address_with_the_most_bytes_loses_a_connection() -> None:
    port = Port(100)
    port.open("body", held=MAX_HELD_BYTES // 4, address="192.0.2.9")
    for _ in range(5):
        port.open("body", held=MAX_HELD_BYTES // 4)
    port.limit.abort_slow_holders(port.loop.now + 10)
    assert port.aborted == [1, 2]


@pytest.mark.parametrize("reader", ["192.0.2.1", "192.0.2.2"])
def test_simultaneous_bytes_are_shed_before_the_next_check(reader: str) -> None:
    """Up to 32 MiB stay buffered. Above, the server closes a connection of the address with the most bytes. It prefers
    the connection that just received bytes.
    """
    port = Port(100)
    for _ in range(40):
        port.open("serving", held=1 << 20)
    assert port.aborted == [*range(32, 40)]
    port.open("serving", held=1 << 20, address=reader)
    assert len(port.aborted) == 9
    assert (40 in port.aborted) == (reader == "192.0.2.1")


def test_closed_or_unknown_connections_change_no_count() -> None:
    port = Port(2)
    one = port.open(held=100)
    for _ in range(2):
        port.limit.forget(one)
    port.limit.mark_answered(one)
    port.limit.change_held_bytes(one, 100)
    port.limit.abort_least_needed_connection()
    assert (len(port.limit), port.limit.held_bytes, port.aborted) == (0, 0, [])


def test_the_longest_waiting_reader_is_closed_to_free_bytes() -> None:
    part = MAX_HELD_BYTES // 4 + 1
    port = Port(100)
    port.open("body", held=part)
    port.open("idle", is_proven=True)
    port.open("serving", held=part)
    port.open("headers", held=part)
    port.limit.abort_slow_holders(port.loop.now + 10)
    assert port.aborted == []
    young = port.open("body", held=part)
    port.limit.abort_slow_holders(port.loop.now)
    assert port.aborted == [0]
    young.pause_clock()
    port.open("body", held=part)
    port.limit.abort_slow_holders(port.loop.now + 0.5)
    assert port.aborted == [0, 3]
    assert port.limit.held_bytes == 3 * part
    assert port.counters.connections_aborted == {("buffers",): 2}


def test_connections_that_wait_for_the_server_are_not_closed() -> None:
    port = Port(100)
    for _ in range(5):
        port.open("serving", held=MAX_HELD_BYTES)
    port.limit.abort_slow_holders(port.loop.now + 100)
    assert port.aborted == []


def test_idle_connections_do_not_keep_others_out(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files, max_connections=4) as server:
        trust = pki.trust()
        idle = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(3)]
        idle += [
            trust.wrap_socket(one, server_hostname="localhost")
            for one in [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(3)]
        ]
        with httpx.Client(verify=trust) as client:
            for _ in range(3):
                assert client.post(f"{server.address}/validate", json=review_of()).status_code == 200
        assert server.running.counters.connections_aborted["limit",] >= 3
        end = time.monotonic() + 5
        while server.running.counters.connections["reviews",] > 4:
            assert time.monotonic() < end
        for one in idle:
            one.close()


def test_the_port_of_the_probes_answers_no_reviews_and_asks_for_no_certificate(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    with listening(Running(), pki.files, probe_port=0) as server:
        address = f"http://127.0.0.1:{server.probe_port}"
        assert server.probe_port != server.port
        for path in ("/healthz", "/readyz", "/version", "/metrics"):
            assert httpx.get(f"{address}{path}").status_code == 200
        for path in ("/validate", "/mutate"):
            assert httpx.post(f"{address}{path}", json=review_of()).status_code == 404
        assert 'claimgate_connections{port="probes"}' in httpx.get(f"{address}/metrics").text
        assert httpx.post(f"{server.address}/validate", json=review_of(), verify=pki.trust()).status_code == 200
