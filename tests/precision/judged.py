"""Judged warnings: judged.yaml, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from webhook import yamlfile

FILE = Path(__file__).with_name("judged.yaml")


class Judged(NamedTuple):
    """How many warnings of a rule were useful, true but noise, and false or arguable; `changed`: what is other since."""

    useful: int
    noise: int
    false: int
    changed: str

    @property
    def counts(self) -> tuple[int, int, int]:
        """The three numbers."""
        return self[:3]

    @property
    def is_useful(self) -> bool:
        """Whether half of them or more were useful."""
        return 2 * self.useful >= sum(self.counts)


def judged() -> Mapping[str, Judged]:
    """What was judged, by the id of the rule."""
    (document,) = yamlfile.read(FILE)
    return {rule: Judged(*row["judged"], row.get("changed", "")) for rule, row in document.value.items()}
