"""Attacks below the review: connections that are slow, silent, endless, too many, or speak no TLS.

Each behaviour runs in four processes at the same time as the victims. Its connections are only counted, because a
server may cut or refuse them. Victims, probes and memory are judged.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe

from tests.bench.bounds import framing, odd_clients, random_framing
from tests.bench.bounds.attackers import ATTACKERS, NICE
from tests.bench.bounds.calls import GET_HEALTH, HEAD, Prepared, connect, uid
from tests.bench.bounds.counting import Many, counted
from tests.bench.bounds.pods import POD_LISTS
from tests.bench.bounds.report import DIRECT_P99_MS
from tests.bench.bounds.reviews import review
from tests.bench.bounds.server import Address
from tests.bench.bounds.victims import FORK

HELD_BYTES, HELD = 20_000_000, 24
IDLE = 2_000


def endless_handshakes(address: Address, _index: int, end: float) -> Counter[str]:
    """Open TLS connections and close them, one after the other."""
    counts: Counter[str] = Counter()
    trust = address.trust()
    while time.monotonic() < end:
        with counted(counts, "made"):
            connect(address.port, trust, 2).close()
    return counts


def garbage(address: Address, index: int, end: float) -> Counter[str]:
    """Send bytes that are not TLS, or half a ClientHello."""
    counts: Counter[str] = Counter()
    texts = (
        b"GET / HTTP/1.1\r\n\r\n",
        os.urandom(65536),
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"\x16\x03\x01\xff\xff" * 9999,
    )
    while time.monotonic() < end:
        with counted(counts, "sent"), socket.create_connection(("127.0.0.1", address.port), 1) as plain:
            plain.sendall(texts[index % len(texts)])
            plain.settimeout(0.2)
            plain.recv(1000)
    return counts


def half_open(address: Address, _index: int, end: float) -> Counter[str]:
    """Open connections, and never begin TLS."""
    return _hold(250, end, lambda: socket.create_connection(("127.0.0.1", address.port), 2))


def idle(address: Address, _index: int, end: float) -> Counter[str]:
    """Open connections that send one request and then stay open, as the connections of an API server do."""
    trust = address.trust()

    def one() -> socket.socket:
        tls = connect(address.port, trust, 5)
        tls.sendall(GET_HEALTH)
        tls.recv(1000)
        return tls

    return _hold(IDLE // ATTACKERS, end, one)


def slow(address: Address, index: int, end: float) -> Counter[str]:
    """Send one byte of a header or a body each second, on each of many connections."""
    trust, start = address.trust(), (HEAD + b"X-A: ", HEAD + b"Content-Length: 100000\r\n\r\n")[index % 2]

    def one() -> socket.socket:
        tls = connect(address.port, trust, 2)
        tls.sendall(start)
        return tls

    return _hold(100, end, one, trickle=True)


def unread(address: Address, _index: int, end: float) -> Counter[str]:
    """Send reviews with long answers without end, and never read an answer."""
    counts: Counter[str] = Counter()
    request = Prepared("/validate", review(POD_LISTS["undeclared references"](300)), "10s").with_uid(uid(7))
    trust, held = address.trust(), []
    while time.monotonic() < end:
        with counted(counts, "made"):
            tls = connect(address.port, trust, 2)
            held.append(tls)
            tls.settimeout(0.5)
            while time.monotonic() < end:
                tls.sendall(request)
                counts["sent"] += 1
    return counts


def held_bodies(address: Address, index: int, end: float) -> Counter[str]:
    """Send bodies of 20 MB without their last byte. If the server closes a connection, open another."""
    counts: Counter[str] = Counter()
    start = HEAD + b"Content-Length: %d\r\n\r\n" % HELD_BYTES
    body, trust = b'{"a":"' + b"x" * (HELD_BYTES - 7), address.trust()

    def one() -> None:
        while time.monotonic() < end:
            with counted(counts, "made"), connect(address.port, trust, 2) as tls:
                tls.settimeout(max(0.1, end - time.monotonic()))
                tls.sendall(start + body)
                counts["sent whole"] += 1
                tls.recv(1000)

    _together([one] * (HELD // ATTACKERS))
    return counts


def large_headers(address: Address, _index: int, end: float) -> Counter[str]:
    """Send requests with 5,500 headers each. After a refusal, open another connection."""
    counts: Counter[str] = Counter()
    trust, headers = address.trust(), b"".join(b"X-%d: a\r\n" % i for i in range(5_500))
    while time.monotonic() < end:
        with counted(counts, "made"), connect(address.port, trust, 2) as tls:
            while time.monotonic() < end and tls.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + headers + b"\r\n"):
                counts["sent"] += 1
                if b"200" not in tls.recv(2000)[:20]:
                    break
    return counts


def tiny_chunks(address: Address, _index: int, end: float) -> Counter[str]:
    """Send a chunked body without end, one byte in each chunk."""
    counts: Counter[str] = Counter()
    trust, chunks = address.trust(), b"1\r\na\r\n" * 5_000
    while time.monotonic() < end:
        with counted(counts, "made"), connect(address.port, trust, 2) as tls:
            tls.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            while time.monotonic() < end:
                tls.sendall(chunks)
                counts["sent"] += 1
    return counts


@dataclass(frozen=True)
class Behaviour:
    """One attack on connections, a row of the report: what each process does, for how long, and the largest p99 of
    victims in ms.
    """

    name: str
    run: Many
    seconds: float = 3.0
    p99_ms: float = DIRECT_P99_MS


BEHAVIOURS = (
    Behaviour("TLS handshakes without end", endless_handshakes),
    Behaviour("bytes that are no TLS", garbage),
    Behaviour("1,000 connections without a handshake", half_open),
    Behaviour("400 connections, a byte a second", slow, 8.0),
    Behaviour("answers that are not read", unread, 5.0),
    Behaviour("5,500 headers a request", large_headers),
    Behaviour("chunks of one byte", tiny_chunks),
    Behaviour("TLS records of one byte", framing.tiny_records),
    Behaviour("trailers without end", framing.trailers),
    Behaviour("refused behind others, random", random_framing.malformed),
    Behaviour("bodies of any size that stop, random", random_framing.everything_held),
    Behaviour("extensions of a chunk without end", framing.extensions),
    Behaviour("bodies that go on after the answer", framing.after_the_answer),
    Behaviour("URLs of 48 KB", framing.long_urls),
    Behaviour("media types of 60 KB", framing.long_media_types),
    *(Behaviour(name, run, 5.0) for name, run in odd_clients.CLIENTS.items()),
    Behaviour(f"{HELD} bodies of 20 MB held", held_bodies, 15.0),
    Behaviour(f"{IDLE:,} idle TLS connections", idle, 15.0),
)


class Running:
    def __init__(self, address: Address, behaviour: Behaviour) -> None:
        self._running = []
        for index in range(ATTACKERS):
            ours, theirs = FORK.Pipe(duplex=False)
            process = FORK.Process(target=_run, args=(address, behaviour, index, theirs), daemon=True)
            process.start()
            self._running.append((process, ours))

    def counts(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for process, pipe in self._running:
            found += pipe.recv()
            process.join()
        return found


def _run(address: Address, behaviour: Behaviour, index: int, pipe: Pipe) -> None:
    os.nice(NICE)
    pipe.send(behaviour.run(address, index, time.monotonic() + behaviour.seconds))


def _hold(number: int, end: float, make: Callable[[], socket.socket], *, trickle: bool = False) -> Counter[str]:
    counts: Counter[str] = Counter()
    held: list[socket.socket] = []
    while time.monotonic() < end:
        if len(held) < number:
            with counted(counts, "made"):
                held.append(make())
            continue
        time.sleep(1)
        if trickle:
            held = [one for one in held if _sends(one)]
    for one in held:
        one.close()
    return counts


def _sends(tls: socket.socket) -> bool:
    try:
        return tls.send(b"a") == 1
    except OSError:
        return False


def _together(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
