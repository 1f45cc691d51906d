"""Values that are built from files and built again when the files change, such as the policies of a running server.

The last value serves while the next value is built, and is replaced as a whole. If files cannot be used, the last good
value stays in service, and `error` says why.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

from webhook.errors import ClaimgateError

Value = TypeVar("Value")


class ReloadableValue(Generic[Value]):
    """A value and its files. Any thread may read `current`; one thread reloads.

    Attributes:
        current: the last value that could be made.
        error: why the current files cannot be used, or "".
        reloads: how often a new value was made.
    """

    def __init__(
        self,
        make: Callable[[], Value],
        mark: Callable[[], Hashable],
        prepare: Callable[[Value], None] = lambda value: None,  # noqa: ARG005 - most values need nothing
    ) -> None:
        """Build the first value.

        Args:
            make: reads the files.
            mark: returns the state of the files without reading them.
            prepare: called with a value before it replaces another, so that no caller waits.

        Raises:
            ClaimgateError: the first value cannot be made.
        """
        self._make = make
        self._mark = mark
        self._prepare = prepare
        self._served = self._taken = self._seen = mark()
        self.current = make()
        self.error = ""
        self.reloads = 0

    def poll(self) -> bool:
        """Build a new value after two polls have seen the same change, so half-written files are not tried.

        Returns:
            Whether a new value was tried, or an error is new or gone.
        """
        try:
            mark = self._mark()
        except Exception as error:  # noqa: BLE001 - as below
            before, self.error = self.error, _text(error)
            return self.error != before  # a missing folder is logged once
        try:
            return self._rebuild_if_changed(mark)
        except Exception as error:  # noqa: BLE001 - the watch must outlive any file; /readyz shows the text
            self.error = _text(error)
            return True

    def _rebuild_if_changed(self, mark: Hashable) -> bool:
        quiet, self._seen = mark == self._seen, mark
        if self.error and mark == self._served:  # the folder was missing or broken, and is back unchanged
            self._taken, self.error = mark, ""
            return True
        if mark == self._taken or not quiet:
            return False
        self._taken = mark
        value = self._make()
        self._prepare(value)
        self.current, self._served = value, mark
        self.error = ""
        self.reloads += 1
        return True


def _text(error: Exception) -> str:
    if isinstance(error, ClaimgateError):
        return str(error)
    return f"claimgate failed on these files ({type(error).__name__})"


async def watch(
    reloaded: ReloadableValue[Value], period_s: float, tell: Callable[[ReloadableValue[Value]], None]
) -> None:
    """Poll for ever in a thread; call `tell` on the event loop after each attempt."""
    while True:
        await asyncio.sleep(period_s)
        if await asyncio.to_thread(_poll_and_free, reloaded):
            tell(reloaded)


def _poll_and_free(reloaded: ReloadableValue[Value]) -> bool:
    # only a collection (2 to 6 ms) frees replaced policies, and without this call twenty sets would wait for one
    tried = reloaded.poll()
    if tried:
        gc.collect()
    return tried


def create_file_state_function(files: Callable[[], Iterable[Path]]) -> Callable[[], Hashable]:
    """Return a function that gives modification time, size and inode of all files, behind links.

    A ConfigMap volume swaps one link to a new folder: names stay, inodes change. A file that does not exist or is
    forbidden is left out: an error about it comes from the code that reads it.
    """

    def mark() -> Hashable:
        states = []
        for path in files():
            try:
                state = path.stat()
            except OSError:
                continue
            states.append((str(path), state.st_mtime_ns, state.st_size, state.st_ino))
        return tuple(states)

    return mark
