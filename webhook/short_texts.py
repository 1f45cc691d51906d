"""What a function says of short texts, kept for the next time: the same few names and amounts come with every object.

A user may send thousands of texts of a hundred kilobytes each, and a cache of them would fill the memory. So only short
ones are kept; of longer ones the function is asked each time. Knows nothing of what the texts are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar, cast

LONGEST_KEPT: Final = 320
"""Characters of all texts of one call: a name with its domain has 317 at most, most images have fewer than 150."""

Function = TypeVar("Function", bound=Callable[..., Any])


def kept_for_short_texts(most: int, longest: int = LONGEST_KEPT) -> Callable[[Function], Function]:
    """Keep the latest answers, so many at most, of a function whose arguments are texts, given by position."""

    def decorate(function: Function) -> Function:
        kept = lru_cache(most)(function)

        @wraps(function)
        def called(*texts: str) -> Any:
            return kept(*texts) if sum(map(len, texts)) <= longest else function(*texts)

        return cast("Function", called)

    return decorate
