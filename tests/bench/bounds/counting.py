"""Counts of the results of an attacker's connections."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator

from tests.bench.bounds.server import Address

Many = Callable[[Address, int, float], Counter[str]]
"""The work of one process, from the server's address, its number and the end time. Returns counts."""


@contextlib.contextmanager
def counted(counts: Counter[str], what: str) -> Iterator[None]:
    """Count what the block does under this name. Also count if the server ends the connection, or does not answer."""
    counts[what] += 1
    try:
        yield
    except TimeoutError:
        counts["no answer"] += 1
    except OSError:
        counts["cut or refused"] += 1
        time.sleep(0.01)
