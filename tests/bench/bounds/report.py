"""Tables and targets: what is printed, and whether all targets were met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from tests.bench.bounds.waiting import Took

VICTIMS_P99_MS, HEALTH_MS, FRESH_MS, MEMORY_MB, GROWTH = 50, 200, 1000, 300, 5.0
LONGER = 4
"""A row that misses only a percentile is measured again for this many times as long. In a short row, the start of the
attack alone decides the p99: four victims ask at the same time, and one wait of all four is more than 1 % of 300 answers.
"""
DIRECT_P99_MS = 150
"""The target for victims while attackers connect directly, without the API server (docs/scheduling.md)."""


def percentile(values: Sequence[float], share: float) -> float:
    """Return the percentile, or 0 if there are no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def counted(counts: Counter[str], most: int = 3) -> str:
    """Return the most frequent names with their counts, such as `12 allowed, 3 denied`."""
    shown = [f"{number} {what}" for what, number in counts.most_common(most)]
    return ", ".join(shown + (["…"] if len(counts) > most else [])) or "none"


class Missed(str):
    """A missed target.

    Attributes:
        is_waiting: whether only the wait for a processor caused the miss. Then measure again on a quiet machine.
        is_percentile: whether few answers decided, so that a longer row is more certain.
    """

    __slots__ = ("is_percentile", "is_waiting")

    def __new__(cls, text: str, *, is_waiting: bool, is_percentile: bool = False) -> Self:
        made = super().__new__(cls, text)
        made.is_waiting, made.is_percentile = is_waiting, is_percentile
        return made


def late(what: str, times: Sequence[Took], share: float, most_ms: float) -> list[str]:
    """Return a missed target if a percentile of the times is too high. Its text also has the value without waiting for
    a processor.
    """
    took_ms = percentile([took.answer_s for took in times], share) * 1000
    work_ms = percentile([took.work_s for took in times], share) * 1000
    if took_ms < most_ms:
        return []
    loop_ms = percentile([took.loop_s for took in times], share) * 1000
    text = f"{what} {took_ms:.0f} ms, {work_ms:.0f} ms without waiting for a processor, the loop ran {loop_ms:.0f} ms"
    return [Missed(text, is_waiting=work_ms < most_ms, is_percentile=share < 1)]


@dataclass
class Report:
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    targets: int = 0
    title: str = ""

    def section(self, title: str, *about: str) -> None:
        self.title = title
        print(f"\n== {title}", *about, sep="\n", flush=True)

    def line(self, text: str) -> None:
        print(text, flush=True)

    def row(self, name: str, text: str, missed: Sequence[str]) -> None:
        self.targets += 1
        self.failures += [(self.title, name, one) for one in missed]
        print(f"{name:<46.46} {text} {'FAIL ' + '; '.join(missed) if missed else 'PASS'}", flush=True)

    def measured_row(self, name: str, seconds: float, measure: Callable[[float], tuple[str, list[str]]]) -> None:
        """Print a row, measured for `seconds`. `measure` returns its text and its missed targets. If only a percentile
        is missed, the row is measured again for LONGER times as long, and the second row counts.
        """
        text, missed = measure(seconds)
        if missed and all(getattr(one, "is_percentile", False) for one in missed):
            self.line(f"{name:<46.46} {text} AGAIN {'; '.join(missed)}")
            text, missed = measure(LONGER * seconds)
        self.row(name, text, missed)

    def summary(self) -> int:
        """Print the missed targets, and return the exit code. Targets that were missed only by waiting for a processor
        are printed separately.
        """
        waited = [one for one in self.failures if getattr(one[2], "is_waiting", False)]
        faults = [one for one in self.failures if one not in waited]
        print(f"\n== summary\n{self.targets} rows, {len(self.failures)} targets missed", end="")
        print(f", {len(waited)} of them by waiting for a processor" if waited else "")
        for verdict, missed in (("FAIL", faults), ("BUSY", waited)):
            for title, name, text in missed:
                print(f"{verdict} {title:<12.12} {name:<46.46} {text}")
        print("PASS" if not self.failures else "")
        return 1 if self.failures else 0
