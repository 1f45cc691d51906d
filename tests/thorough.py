"""How much of a large space of cases the tests walk: every n-th case in `make test`, all of them in `make fuzz`."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

THOROUGH = os.environ.get("CLAIMGATE_TESTS") == "all"

Case = TypeVar("Case")


def some(cases: Iterable[Case], every: int) -> Iterator[Case]:
    """Every n-th of the cases, the same ones each time; all of them where the tests are to be thorough."""
    return islice(cases, 0, None, 1 if THOROUGH else every)
