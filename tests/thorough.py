"""How many of many cases the tests run: every n-th case in `make test`, and all cases in `make fuzz`."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

THOROUGH = os.environ.get("CLAIMGATE_TESTS") == "all"

Case = TypeVar("Case")


def some(cases: Iterable[Case], every: int) -> Iterator[Case]:
    """Every n-th case, always the same cases; all cases in `make fuzz`."""
    return islice(cases, 0, None, 1 if THOROUGH else every)
