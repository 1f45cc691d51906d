"""Runs work on many pieces in several processes, and yields the results in order.

Workers are forked when the work begins, so that they share what was loaded before. Pieces are sent to workers, and
results are sent back. At most a few pieces for each worker are on their way, so that memory does not grow with their
number.
"""

from __future__ import annotations

import multiprocessing
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
"""The most pieces for each worker: one in work, one waiting, one done."""
_work: Callable[[Any], Any] | None = None
"""The work of a worker, which inherits it by fork."""


def results_in_order(work: Callable[[Piece], Result], pieces: Iterable[Piece], jobs: int) -> Iterator[Result]:
    """Yield the result of each piece, in order.

    Args:
        work: is called in the workers; changes of its state in the other process are lost.
        pieces: the input of the workers; this process iterates over it when a worker will soon need one.
        jobs: how many workers there are, at least 1.

    Raises:
        ConfigurationError: a worker was killed, mostly because memory was used up.
    """
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
        told = "a worker process was killed, perhaps because memory was used up; use fewer --jobs"
        raise ConfigurationError(f"--jobs: {told}") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _run_work(piece: Any) -> Any:
    assert _work is not None
    return _work(piece)


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C in a worker, because the main process ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
