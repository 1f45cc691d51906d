"""Judged warnings: judged.yaml, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from webhook.yamltext import yamlfile

FILE = Path(__file__).with_name("judged.yaml")


class Judged(NamedTuple):
    """How many warnings of a rule were useful, true but noise, and false or arguable.

    `changed` says how the rule changed later.
    """

    useful: int
    noise: int
    false: int
    changed: str

    @property
    def counts(self) -> tuple[int, int, int]:
        return self[:3]

    @property
    def is_useful(self) -> bool:
        return 2 * self.useful >= sum(self.counts)


class StillTold(NamedTuple):
    """The number of useful warnings of a rule, and the useful warnings that are no longer reported, with reasons."""

    useful: int
    lost: tuple[str, ...]

    @property
    def told(self) -> int:
        return self.useful - len(self.lost)


def first_repositories() -> Mapping[str, StillTold]:
    (document,) = yamlfile.read(FILE.with_name("first_repositories.yaml"))
    return {rule: StillTold(row["useful"], tuple(row.get("lost", ()))) for rule, row in document.value.items()}


def judged() -> Mapping[str, Judged]:
    (document,) = yamlfile.read(FILE)
    return {rule: Judged(*row["judged"], row.get("changed", "")) for rule, row in document.value.items()}
