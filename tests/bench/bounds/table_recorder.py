"""Records the tables of a server: `python -m tests.bench.bounds.table_recorder FILE serve …` serves and records.

Each half minute, a line of JSON has the sums of all caches of user input, the entries of each table (tests/census.py),
the objects of the garbage collector, and the state of the allocator. With CLAIMGATE_BENCH_TRACE=FRAMES, each fifth
sample also names the lines that allocated most memory since the first sample.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import threading
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import IO

from tests import census

EVERY_S, WALK_EVERY, TRACE_EVERY = 30.0, 10, 10
_MOST = 400


class _Allocated(ctypes.Structure):
    """The C struct `mallinfo2` of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *(
                "arena",
                "ordblks",
                "smblks",
                "hblks",
                "hblkhd",
                "usmblks",
                "fsmblks",
                "uordblks",
                "fordblks",
                "keepcost",
            ),
        )
    ]


_ASK = ctypes.CDLL(None).mallinfo2
_ASK.restype = _Allocated


def allocated() -> dict[str, int]:
    found = _ASK()
    return {name: getattr(found, name) for name in ("arena", "hblkhd", "uordblks", "fordblks", "keepcost")}


class Recorder:
    def __init__(self, lines: IO[str]) -> None:
        self._lines = lines
        self._first: tracemalloc.Snapshot | None = None

    def run(self) -> None:
        """Write a line every half minute, without end."""
        number = 0
        while True:
            time.sleep(EVERY_S)
            self._lines.write(json.dumps(self._look(number)) + "\n")
            number += 1

    def _look(self, number: int) -> dict[str, object]:
        from webhook.text.caches import bytes_of_all_caches

        followed = gc.get_objects()
        found: dict[str, object] = {
            "at": time.time(),
            "cache_bytes": bytes_of_all_caches(),
            "followed": len(followed),
            "kinds": Counter(type(each).__qualname__ for each in followed).most_common(25),
            "frozen": gc.get_freeze_count(),
            "counts": gc.get_count(),
            "collections": [each["collections"] for each in gc.get_stats()],
            "collected": [each["collected"] for each in gc.get_stats()],
            "allocated": allocated(),
            "blocks": sys.getallocatedblocks(),
        }
        del followed
        if number % WALK_EVERY == 0:
            self._walk_in_child()
        if tracemalloc.is_tracing() and number % TRACE_EVERY == 0:
            found["traced"] = self._trace()
        return found

    def _walk_in_child(self) -> None:
        """Count all tables in a forked process, because the count itself needs megabytes."""
        starts = list(census.roots(("tests",)))  # a forked process has no frames of other threads
        if (child := os.fork()) == 0:
            walked = census.take(starts)
            entries, objects = walked.entries.most_common(_MOST), walked.objects.most_common(_MOST)
            self._lines.write(json.dumps({"at": time.time(), "entries": entries, "objects": objects}) + "\n")
            os._exit(0)
        os.waitpid(child, 0)

    def _trace(self) -> list[str]:
        now = tracemalloc.take_snapshot().filter_traces(
            [tracemalloc.Filter(inclusive=False, filename_pattern=__file__)]
        )
        if self._first is None:
            self._first = now
            return []
        return [str(each) for each in now.compare_to(self._first, "lineno")[:40]]


def main() -> None:
    file = sys.argv.pop(1)
    if frames := os.environ.get("CLAIMGATE_BENCH_TRACE"):
        tracemalloc.start(int(frames))
    recorder = Recorder(Path(file).open("a", buffering=1))  # noqa: SIM115 - as long as the process
    threading.Thread(target=recorder.run, daemon=True).start()
    from webhook.__main__ import main as claimgate

    claimgate()


if __name__ == "__main__":
    main()
