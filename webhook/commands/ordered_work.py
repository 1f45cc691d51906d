"""Runs a function on many pieces in several processes, and yields the results in order.

Workers are forked at the beginning, so they share the memory of everything that was loaded before.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final, TypeVar

from webhook.errors import ConfigurationError

Piece = TypeVar("Piece")
Result = TypeVar("Result")
_AHEAD: Final = 3
"""The most pieces in memory for each worker: one in work, one that waits, one that is done."""
_work: Callable[[Any], Any] | None = None
"""The function of a worker, inherited by fork."""


def results_in_order(work: Callable[[Piece], Result], pieces: Iterable[Piece], jobs: int) -> Iterator[Result]:
    """Yield the result of each piece, in order.

    Args:
        work: the function. It runs in the workers, so changes of its state are lost.
        pieces: the input, which is read only as fast as workers need it.
        jobs: the number of workers, at least 1.

    Raises:
        ConfigurationError: a worker was killed, usually because memory was used up; or the system cannot fork.
    """
    if not hasattr(os, "fork"):
        raise ConfigurationError("--jobs: this system cannot fork: use --jobs 1, Linux, macOS or WSL")
    global _work  # noqa: PLW0603 - fork is how the workers get it
    _work = work
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_ignore_interrupts)
    waiting: deque[Future[Result]] = deque()
    try:
        for piece in pieces:
            waiting.append(pool.submit(_run_work, piece))
            if len(waiting) >= jobs * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        message = "a worker process was killed, perhaps because memory was used up; use fewer --jobs"
        raise ConfigurationError(f"--jobs: {message}") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _run_work(piece: Any) -> Any:
    assert _work is not None
    return _work(piece)


def _ignore_interrupts() -> None:
    """The main process ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
