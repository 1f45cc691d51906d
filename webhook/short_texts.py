"""What a function says of short texts, kept for the next time: the same few names and amounts come with every object.

A user may send thousands of texts of a hundred kilobytes each. So only short ones are kept, as many as fit into some
bytes; of longer ones the function is asked each time. Knows nothing of what the texts are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from sys import getsizeof
from typing import Any, Final, TypeVar, cast

from webhook.user_cache import TwoGenerationCache

LONGEST_KEPT: Final = 320
"""Characters of all texts of one call: a name with its domain has 317 at most, most images have fewer than 150."""
_VALUE: Final = 300
"""Bytes of an answer beside the texts that may be in it."""
_MISSING: Final = object()

Function = TypeVar("Function", bound=Callable[..., Any])


def cache_for_short_texts(most_bytes: int) -> Callable[[Function], Function]:
    """Return a decorator that keeps a function's answers, up to so many bytes; its arguments are texts, by position."""

    def decorate(function: Function) -> Function:
        kept: TwoGenerationCache[tuple[str, ...], Any] = TwoGenerationCache(most_bytes)

        @wraps(function)
        def called(*texts: str) -> Any:
            answer = kept.newer.get(texts, _MISSING)  # as nearly always: without a call, dozens a review
            if answer is not _MISSING:
                return answer
            if sum(map(len, texts)) > LONGEST_KEPT:
                return function(*texts)
            answer = kept.get(texts, _MISSING)
            if answer is _MISSING:
                answer = function(*texts)
                kept.put(texts, answer, 2 * sum(map(getsizeof, texts)) + _VALUE)
            return answer

        return cast("Function", called)

    return decorate
