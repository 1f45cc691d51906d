"""Many clients at once: service accounts, requests for a page, handshakes, refusals, and all of these together.

Each run draws new names, sizes and expressions.
"""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable

from tests.bench import traffic
from tests.bench.bounds import compiled, near_bounds
from tests.bench.bounds.attackers import ATTACKERS
from tests.bench.bounds.calls import UID, Connection, Prepared, connect, uid
from tests.bench.bounds.connections import Behaviour, held_bodies, idle
from tests.bench.bounds.counting import Many, counted
from tests.bench.bounds.pods import POD_LISTS
from tests.bench.bounds.report import VICTIMS_P99_MS
from tests.bench.bounds.reviews import count_for, review
from tests.bench.bounds.server import Address
from tests.bench.bounds.victims import Question, allowed

ACCOUNTS, SELECTORS_S = 500, 90.0
CLAIMS = 500
"""Claims of each attacker. A claim has one to ten selectors, so four attackers send at least 10,000 selectors."""
LARGE = 200_000
HELLOS = 900


def _threads(count: int, work: Callable[[random.Random, Counter[str]], None]) -> Counter[str]:
    """Run the work in threads and return their counts. Each thread has its own random numbers."""
    counts: Counter[str] = Counter()
    chances = [random.Random(f"{time.time_ns()} {number}") for number in range(count)]
    running = [threading.Thread(target=work, args=(chance, counts)) for chance in chances]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return counts


def _account(chance: random.Random) -> dict[str, object]:
    name = f"system:serviceaccount:attackers:{chance.randrange(1 << 20) % ACCOUNTS}"
    groups = ["system:serviceaccounts", "system:serviceaccounts:attackers"]
    return {"username": name, "groups": groups}


def large_pod(chance: random.Random) -> bytes:
    """Return the review of a Pod of 200 KB, which no event loop should evaluate."""
    made = POD_LISTS["containers"](count_for(POD_LISTS["containers"], int(LARGE * chance.uniform(0.9, 1.1))))
    return review(made, namespace="attackers", userInfo=_account(chance))


def _small_pod(chance: random.Random) -> bytes:
    sent = traffic.pod(chance.randrange(1 << 30))
    sent = {**sent, "metadata": {**sent["metadata"], "namespace": "attackers"}}
    return review(sent, userInfo=_account(chance))


def accounts(connections: int, make: Callable[[random.Random], bytes]) -> Many:
    """Return an attack by service accounts of one namespace, over this number of connections. Each review has a
    different account.
    """

    def run(address: Address, index: int, end: float) -> Counter[str]:
        def one(chance: random.Random, counts: Counter[str]) -> None:
            to = Connection(address.port, address.trust(), 12)
            while time.monotonic() < end:
                sent = uid(chance.randrange(1 << 32))
                with counted(counts, "sent"):
                    to.ask(Prepared("/validate", make(chance), "10s").with_uid(sent))
            to.close()

        return _threads(connections // ATTACKERS, one)

    return run


def random_selectors(address: Address, index: int, end: float) -> Counter[str]:
    """Send 10,000 random selectors and patterns as one user."""
    counts: Counter[str] = Counter()
    to, first = Connection(address.port, address.trust(), 12), time.time_ns() + (index << 40)
    for number in range(first, first + CLAIMS):
        if time.monotonic() > end:
            break
        body = compiled.random_selectors(number)
        with counted(counts, "claims"):
            to.ask(Prepared("/validate", body, "10s").with_uid(uid(number)))
            counts["selectors"] += body.count(b'{"cel":')
    to.close()
    return counts


def pages(address: Address, _index: int, end: float) -> Counter[str]:
    """Request the documentation without end, on 200 connections of each attacker."""

    def one(_chance: random.Random, counts: Counter[str]) -> None:
        trust = address.trust()
        while time.monotonic() < end:
            with counted(counts, "made"), connect(address.port, trust, 5) as tls:
                while time.monotonic() < end:
                    tls.sendall(b"GET /docs HTTP/1.1\r\nHost: a\r\n\r\n")
                    if not tls.recv(262_144):
                        break
                    counts["asked"] += 1

    return _threads(200, one)


def hellos(address: Address, _index: int, end: float) -> Counter[str]:
    """Send hundreds of first messages of TLS at the same moment, again and again."""
    counts: Counter[str] = Counter()
    hello = _client_hello(address)
    while time.monotonic() < end:
        opened = [made for _ in range(HELLOS // ATTACKERS) if (made := _opened(address))]
        for one in opened:
            with counted(counts, "sent"):
                one.sendall(hello)
        time.sleep(0.3)
        for one in opened:
            one.close()
    return counts


def _opened(address: Address) -> socket.socket | None:
    try:
        return socket.create_connection(("127.0.0.1", address.port), 2)
    except OSError:  # a refusal is also an answer
        return None


def _client_hello(address: Address) -> bytes:
    out = ssl.MemoryBIO()
    made = address.trust().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        made.do_handshake()
    return out.read()


def refusals(address: Address, _index: int, end: float) -> Counter[str]:
    """Send bodies that are not reviews. Each may cause a line in the log."""

    def one(chance: random.Random, counts: Counter[str]) -> None:
        to = Connection(address.port, address.trust(), 5)
        while time.monotonic() < end:
            text = "".join(chance.choices("abc{}[]:,'", k=chance.randrange(1, 200))).encode()
            with counted(counts, "sent"):
                to.ask(Prepared("/validate", b"no review " + text, "1s").with_uid(UID))
        to.close()

    return _threads(10, one)


def together(address: Address, index: int, end: float) -> Counter[str]:
    """Run one of four attacks in each process: idle connections, unfinished bodies, work for workers, and selectors."""
    return (idle, held_bodies, accounts(ATTACKERS * 12, large_pod), _near)[index % ATTACKERS](address, index, end)


def _near(address: Address, _index: int, end: float) -> Counter[str]:
    def one(chance: random.Random, counts: Counter[str]) -> None:
        to = Connection(address.port, address.trust(), 5)
        while time.monotonic() < end:
            number = chance.randrange(1 << 30)
            make = compiled.random_selectors if number % 2 else near_bounds.all_of_them
            with counted(counts, "sent"):
                to.ask(Prepared("/validate", make(number), "2s").with_uid(uid(number)))
        to.close()

    return _threads(12, one)


def honest() -> Question:
    """Return the question of a user who sends few reviews, about a Pod of 200 KB."""
    made = POD_LISTS["containers"](count_for(POD_LISTS["containers"], LARGE))
    return Question(
        "200 KB Pod", "/validate", review(made, namespace="honest", userInfo={"username": "hanna"}), allowed
    )


CROWDS = (
    Behaviour(f"{ACCOUNTS} service accounts, small Pods", accounts(100, _small_pod), 6.0, VICTIMS_P99_MS),
    Behaviour(f"{ACCOUNTS} service accounts, 200 KB Pods", accounts(12, large_pod), 10.0, VICTIMS_P99_MS),
    Behaviour("10,000 random selectors and patterns", random_selectors, SELECTORS_S, VICTIMS_P99_MS),
    Behaviour("800 connections that ask for /docs", pages, 5.0),
    Behaviour(f"{HELLOS} first messages of TLS at once", hellos, 5.0),
    Behaviour("refused bodies without end", refusals, 5.0),
    Behaviour("all bounds used at the same time", together, 15.0),
)
LARGE_LANE, SELECTORS = CROWDS[1].name, CROWDS[2].name
