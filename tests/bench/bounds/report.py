"""Tables and targets: what is printed, and whether all targets were met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

VICTIMS_P99_MS, HEALTH_MS, FRESH_MS, MEMORY_MB, GROWTH = 50, 200, 1000, 300, 5.0


def percentile(values: Sequence[float], share: float) -> float:
    """Of nothing it is 0."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def counted(counts: Counter[str], most: int = 3) -> str:
    """`12 allowed, 3 denied`."""
    shown = [f"{number} {what}" for what, number in counts.most_common(most)]
    return ", ".join(shown + (["…"] if len(counts) > most else [])) or "none"


@dataclass
class Report:
    """Prints rows as they come, and keeps the targets that were missed."""

    failures: list[str] = field(default_factory=list)
    targets: int = 0

    def section(self, title: str, *about: str) -> None:
        print(f"\n== {title}", *about, sep="\n", flush=True)

    def line(self, text: str) -> None:
        print(text, flush=True)

    def row(self, name: str, text: str, missed: Sequence[str]) -> None:
        """One row of a table, with its verdict and what was missed."""
        self.targets += 1
        self.failures += [f"{name}: {one}" for one in missed]
        print(f"{name:<46.46} {text} {'FAIL ' + '; '.join(missed) if missed else 'PASS'}", flush=True)

    def summary(self) -> int:
        """The exit code."""
        print(f"\n{self.targets} rows, {len(self.failures)} targets missed")
        for failure in self.failures:
            print(f"FAIL {failure}")
        print("PASS" if not self.failures else "")
        return 1 if self.failures else 0
