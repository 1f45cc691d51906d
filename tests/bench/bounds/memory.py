"""The memory of the server's process and of all its descendants, as the kernel counts it in /proc.

RSS counts a page of forked processes once for each process, and PSS splits it. The sum of PSS is the memory of a
container.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

PAGE = os.sysconf("SC_PAGE_SIZE")
MB = 1_000_000
_LOOKS = 4


@dataclass(frozen=True)
class Sample:
    at: float
    main_rss: int
    rss: int
    pss: int
    processes: int


def family(pid: int) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        with suppress(OSError):  # a process that has just ended has no children
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return found


def look(pid: int) -> Sample:
    """Return the memory of a process and its descendants. If a process starts or ends meanwhile, its pages count twice
    or not at all, so the measurement is repeated. After several repetitions, the last value counts.
    """
    for _ in range(_LOOKS):
        pids = family(pid)
        rss = [_rss(one) for one in pids]
        sample = Sample(time.monotonic(), rss[0], sum(rss), sum(map(_pss, pids)), len(pids))
        if family(pid) == pids:
            break
    return sample


def _rss(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


@dataclass
class Sampler:
    """Measures memory repeatedly in a separate thread, and keeps each sample with the name of the current step."""

    pid: int
    period_s: float = 0.25
    doing: str = "start"
    samples: list[tuple[str, Sample]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self.period_s):
            sample = look(self.pid)
            if sample.rss:
                self.samples.append((self.doing, sample))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def peak(self, doing: str | None = None) -> tuple[str, Sample]:
        """Return the sample with the most memory, of all steps or of one step, with the step."""
        chosen = [one for one in self.samples if doing in (None, one[0])] or [(doing or "", look(self.pid))]
        return max(chosen, key=lambda one: max(one[1].pss, one[1].main_rss))
