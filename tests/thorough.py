"""How many of many cases run: every n-th in `make test`, and all in `make fuzz`."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

THOROUGH = os.environ.get("CLAIMGATE_TESTS") == "all"

Case = TypeVar("Case")


def some(cases: Iterable[Case], every: int) -> Iterator[Case]:
    """Yield every n-th case, and all cases in a thorough run. The same cases are chosen each time."""
    return islice(cases, 0, None, 1 if THOROUGH else every)
