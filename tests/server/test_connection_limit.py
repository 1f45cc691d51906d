"""Who makes room for a newcomer, and whose buffers are too much."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.asgi import Running, review_of
from tests.server.serving import Pki, listening
from webhook.server.connection_limit import MAX_READ_BYTES, ConnectionLimit
from webhook.server.connections import BoundedConnection
from webhook.server.counters import Counters


class Loop:
    now = 0.0

    def time(self) -> float:
        return self.now


class Connection(BoundedConnection):
    """A connection without a socket, which notes that it was aborted."""

    def __init__(self, loop: Loop) -> None:
        self.loop: Any = loop
        self.transport: Any = None
        self.aborted = self.unread = False

    def abort(self) -> None:
        self.aborted = True

    def has_unread(self) -> bool:
        return self.unread


class Port:
    """A port with a limit, and a clock that goes on by one with everything that happens."""

    def __init__(self, most: int) -> None:
        self.loop, self.counters = Loop(), Counters()
        self.limit = ConnectionLimit(most, "reviews", self.counters)
        self.all: list[Connection] = []

    def open(
        self, waits_for: Any = "first_byte_s", *, is_proven: bool = False, read: int = 0, address: str = "192.0.2.1"
    ) -> Connection:
        self.loop.now += 1
        made = Connection(self.loop)
        self.limit.admit(made, address)
        made.transport = object()
        made.waits_for = waits_for
        if is_proven:
            self.limit.mark_first_request_answered(made)
        made._record_largest_read(read)
        self.all.append(made)
        return made

    @property
    def aborted(self) -> list[int]:
        return [index for index, one in enumerate(self.all) if one.aborted]


SPARED = {
    "the unproven one that came first": ([("headers_s", False), ("first_byte_s", False), ("idle_s", True)] * 2, 0),
    "no unproven one that is being answered": ([("", False), ("body_s", False), ("idle_s", True)] * 2, 1),
    "the longest idle while unproven ones are few": ([("body_s", False), *[("idle_s", True)] * 5], 1),
    "an unproven one before those in use": ([*[("", True)] * 5, ("body_s", False)], 5),
    "the oldest in use": ([("", True)] * 6, 0),
    "the oldest that is answered for the first time": ([("", False)] * 6, 0),
}


@pytest.mark.parametrize(("states", "index"), SPARED.values(), ids=SPARED.keys())
def test_who_makes_room(states: list[tuple[str, bool]], index: int) -> None:
    port = Port(len(states))
    for waits_for, is_proven in states:
        port.open(waits_for, is_proven=is_proven)
    assert port.aborted == []
    port.open()
    assert (port.aborted, len(port.limit)) == ([index], len(states))
    assert port.counters.connections_aborted == {("limit",): 1}
    assert port.counters.connections == {("reviews",): len(states)}


def test_the_address_that_has_most_connections_makes_room() -> None:
    port = Port(4)
    port.open("idle_s", is_proven=True, address="192.0.2.9")
    for _ in range(3):
        port.open("", is_proven=True)
    for index in (1, 2):
        port.open("", is_proven=True)
        assert port.aborted == list(range(1, index + 1))


def test_who_stops_in_the_middle_of_a_request_goes_before_idle_ones() -> None:
    port = Port(3)
    port.open("idle_s", is_proven=True)
    port.open("body_s", is_proven=True).since = port.loop.now
    port.open("idle_s", is_proven=True)
    port.open()
    assert port.aborted == [1]


def test_an_idle_connection_is_spared_for_which_a_request_has_arrived() -> None:
    port = Port(3)
    port.open("idle_s", is_proven=True).unread = True
    port.open("idle_s", is_proven=True)
    port.open("idle_s", is_proven=True, read=MAX_READ_BYTES + 1).unread = True
    port.open()
    assert port.aborted == [1]
    port.limit.abort_connections_with_large_buffers(port.loop.now)
    assert port.aborted == [1]


def test_large_buffers_are_shed_by_the_address_that_has_most() -> None:
    port = Port(100)
    port.open("idle_s", is_proven=True, read=MAX_READ_BYTES // 4, address="192.0.2.9")
    for _ in range(5):
        port.open("idle_s", is_proven=True, read=MAX_READ_BYTES // 4)
    port.limit.abort_connections_with_large_buffers(port.loop.now)
    assert port.aborted == [1, 2]


@pytest.mark.parametrize("reader", ["192.0.2.1", "192.0.2.2"])
def test_what_came_at_one_moment_is_shed_before_the_next_look(reader: str) -> None:
    """32 MiB stay; of the address that has most, whoever reads now goes, or else another."""
    port = Port(100)
    for _ in range(40):
        port.open("", read=1 << 20)
    assert port.aborted == [*range(32, 40)]
    port.open("", read=1 << 20, address=reader)
    assert len(port.aborted) == 9
    assert (40 in port.aborted) == (reader == "192.0.2.1")


def test_what_is_gone_or_was_never_counted_changes_nothing() -> None:
    port = Port(2)
    one = port.open(read=100)
    for _ in range(2):
        port.limit.forget(one)
    port.limit.mark_first_request_answered(one)
    port.limit.add_read_bytes(one, 100)
    port.limit.abort_least_needed_connection()
    assert (len(port.limit), port.limit.read_bytes, port.aborted) == (0, 0, [])


def test_large_buffers_are_shed_idle_ones_first_then_slow_ones() -> None:
    part = MAX_READ_BYTES // 4 + 1
    port = Port(100)
    port.open("body_s", read=part)
    port.open("idle_s", is_proven=True, read=10)
    port.open("", read=part)
    port.open("idle_s", is_proven=True, read=part)
    port.limit.abort_connections_with_large_buffers(port.loop.now)
    assert port.aborted == []
    young = port.open("body_s", read=part)
    port.limit.abort_connections_with_large_buffers(port.loop.now)
    assert port.aborted == [3]
    port.open("body_s", read=part)
    port.limit.abort_connections_with_large_buffers(port.loop.now)
    assert port.aborted == [0, 3]
    port.open("body_s", read=part)
    young.pause_clock()
    port.limit.abort_connections_with_large_buffers(port.loop.now + 0.5)
    assert port.aborted == [0, 3, 5]
    assert port.limit.read_bytes == 10 + 3 * part
    assert port.counters.connections_aborted == {("buffers",): 3}


def test_shedding_ends_where_only_clients_are_left_that_wait_for_us() -> None:
    port = Port(100)
    for _ in range(5):
        port.open("", read=MAX_READ_BYTES)
    port.limit.abort_connections_with_large_buffers(port.loop.now + 100)
    assert port.aborted == []


def test_idle_connections_cannot_lock_anybody_out(tmp_path: Path) -> None:
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
