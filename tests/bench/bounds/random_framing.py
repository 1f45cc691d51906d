"""Two attacks below a review, on memory and on answers. The bytes differ in each run, so no cache can recognize
them.
"""

from __future__ import annotations

import random
import time
from collections import Counter

from tests.bench.bounds.calls import HEAD, connect
from tests.bench.bounds.counting import counted
from tests.bench.bounds.server import Address

MB = 1 << 20
WRONG = (
    b"POST /validate HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
    HEAD + b"Host: b\r\nContent-Length: 2\r\n\r\n{}",
    HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"\x00\x01\x02\r\n\r\n",
)


def malformed(address: Address, index: int, end: float) -> Counter[str]:
    """Send some complete requests and then an invalid request in one write, on each connection."""
    counts: Counter[str] = Counter()
    chance, trust = random.Random(f"{time.time_ns()} {index}"), address.trust()
    while time.monotonic() < end:
        with counted(counts, "made"), connect(address.port, trust, 2) as tls:
            before = b"GET /healthz?%d HTTP/1.1\r\nHost: a\r\n\r\n" % chance.randrange(1 << 30) * chance.randrange(8)
            tls.sendall(before + chance.choice(WRONG))
            while tls.recv(65536):
                counts["answered"] += 1
    return counts


def everything_held(address: Address, index: int, end: float) -> Counter[str]:
    """Fill the memory and the queue for large bodies: send bodies of any size that stop in the middle."""
    counts: Counter[str] = Counter()
    chance, trust = random.Random(f"{time.time_ns()} {index}"), address.trust()
    while time.monotonic() < end:
        size = chance.choice((60_000, chance.randrange(100_000, MB), chance.randrange(MB, 19 * MB)))
        with counted(counts, "made"), connect(address.port, trust, 2) as tls:
            tls.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % size)
            tls.sendall(b'{"a":"' + b"x" * int(size * chance.uniform(0.3, 0.99)))
            time.sleep(chance.uniform(0.1, 1.0))
            counts["held"] += 1
    return counts
