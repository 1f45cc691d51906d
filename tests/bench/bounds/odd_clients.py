"""Clients that use HTTP and TLS in unusual but allowed ways. Names and sizes differ from run to run."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable

from tests.bench.bounds import near_bounds
from tests.bench.bounds.calls import HEAD, Prepared, connect, uid
from tests.bench.bounds.counting import Many, counted
from tests.bench.bounds.reviews import pod, review
from tests.bench.bounds.server import Address

Step = Callable[[ssl.SSLSocket, random.Random, int], None]
THREADS = 12


def _endless(step: Step, threads: int = THREADS, timeout_s: float = 3.0) -> Many:
    """Return an attack that repeats a step on connections. After the server ends a connection, the attack opens
    another.
    """

    def run(address: Address, index: int, end: float) -> Counter[str]:
        counts: Counter[str] = Counter()

        def one(number: int) -> None:
            chance, trust = random.Random(f"{time.time_ns()} {index} {number}"), address.trust()
            while time.monotonic() < end:
                with counted(counts, "made"), connect(address.port, trust, timeout_s) as tls:
                    while time.monotonic() < end:
                        step(tls, chance, number)
                        counts["steps"] += 1

        working = [threading.Thread(target=one, args=(number,)) for number in range(threads)]
        for thread in working:
            thread.start()
        for thread in working:
            thread.join()
        return counts

    return run


def _read(tls: ssl.SSLSocket) -> bytes:
    heard = tls.recv(262_144)
    if not heard or b"connection: close" in heard:
        raise ConnectionError
    return heard


def _half_closed(tls: ssl.SSLSocket, chance: random.Random, number: int) -> None:
    tls.sendall(Prepared("/validate", near_bounds.all_of_them(chance.randrange(1 << 30)), "1s").with_uid(uid(number)))
    if chance.random() < 0.5:
        socket.socket.shutdown(tls, socket.SHUT_WR)
    else:
        tls.unwrap()
    _read(tls)
    raise ConnectionError


def _discarded(tls: ssl.SSLSocket, chance: random.Random, _number: int) -> None:
    size = chance.randrange(30 << 20, 79 << 20)
    tls.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % size)
    for _ in range(size >> 20):
        tls.sendall(b" " * (1 << 20))
    _read(tls)


def _below_free(tls: ssl.SSLSocket, chance: random.Random, _number: int) -> None:
    tls.sendall(HEAD + b"Content-Length: 65536\r\n\r\n" + b'{"a":"' + b"x" * chance.randrange(60_000, 65_000))
    for _ in range(10):
        time.sleep(chance.uniform(0.1, 0.5))
        tls.sendall(b"y")


def _headers(tls: ssl.SSLSocket, chance: random.Random, _number: int) -> None:
    body = review(pod())
    odd = (
        b"Expect: 100-continue\r\n",
        b"X-%d: %s\r\n" % (chance.randrange(99), b"a" * chance.randrange(9_000)),
        b"Accept-Encoding: gzip\r\n" * chance.randrange(90),
        b"Connection: keep-alive, x, TE\r\nUpgrade: h2c\r\n",
        b"Content-Type: application/json; q=%s\r\n" % (b";" * chance.randrange(3_000)),
    )
    tls.sendall(HEAD + b"".join(chance.choices(odd, k=3)) + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    _read(tls)


def _long_names(tls: ssl.SSLSocket, chance: random.Random, number: int) -> None:
    name = f"{chance.randrange(1 << 40)}" + "n" * chance.randrange(30_000, 60_000)
    made = review(pod(), namespace=name, userInfo={"username": "u" + name[:100]})
    tls.sendall(Prepared("/validate", made, "1s").with_uid(uid(number)))
    _read(tls)


def _dry_runs(tls: ssl.SSLSocket, chance: random.Random, number: int) -> None:
    user = {"username": f"user-{chance.randrange(10**6)}"}
    made = review(pod(), dryRun=True, namespace=f"attackers-{chance.randrange(9)}", userInfo=user)
    tls.sendall(Prepared(chance.choice(("/validate", "/mutate")), made, "1s").with_uid(uid(number)))
    _read(tls)


def _pages(tls: ssl.SSLSocket, chance: random.Random, _number: int) -> None:
    path = chance.choice(("metrics", "docs", "openapi.json", "readyz?verbose", f"x{chance.randrange(10**9)}"))
    method = chance.choice(("GET", "HEAD", "OPTIONS", "PATCH", f"X{chance.randrange(9)}"))
    tls.sendall(f"{method} /{path} HTTP/1.1\r\nHost: a{chance.randrange(99)}\r\n\r\n".encode())
    _read(tls)


def _pipelined(tls: ssl.SSLSocket, chance: random.Random, number: int) -> None:
    bodies = [near_bounds.all_of_them(chance.randrange(1 << 30)) for _ in range(6)]
    tls.sendall(b"".join(Prepared("/validate", body, "1s").with_uid(uid(number)) for body in bodies))
    _read(tls)


def key_updates(address: Address, _index: int, end: float) -> Counter[str]:
    """Change the TLS keys again and again, and ask the server to change its keys too."""
    counts: Counter[str] = Counter()
    command = ["openssl", "s_client", "-tls1_3", "-connect", f"127.0.0.1:{address.port}", "-CAfile", address.ca]
    while time.monotonic() < end:
        counts["made"] += 1
        with (
            contextlib.suppress(OSError),
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as client,
        ):
            assert client.stdin is not None
            while time.monotonic() < end and client.poll() is None:
                client.stdin.write(b"K\n")
                client.stdin.flush()
                counts["updates"] += 1
                time.sleep(0.0005)
            client.kill()
    return counts


CLIENTS: dict[str, Many] = {
    "odd: half-closed connections": _endless(_half_closed),
    "odd: bodies of 30 to 79 MB thrown away": _endless(_discarded, 6, 10.0),
    "odd: 400 bodies of 60 KB that never end": _endless(_below_free, 100),
    "odd: headers": _endless(_headers),
    "odd: namespaces of 60 KB, all different": _endless(_long_names),
    "odd: dry runs, a new user each": _endless(_dry_runs),
    "odd: pages and methods": _endless(_pages),
    "odd: six heavy reviews in one write": _endless(_pipelined),
    "odd: TLS key updates": key_updates,
}
