"""Which programs start the processes of a training, and what their options take: launchers.yaml, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from webhook import yamlfile
from webhook.attributes import JSON

FILE = Path(__file__).with_name("launchers.yaml")
_COUNTS = {"flags": 0, "values": 1, "pairs": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherRow:
    """One row of launchers.yaml."""

    name: str
    verb: str
    counts: Mapping[str, int]
    prefixes: tuple[tuple[str, int], ...]
    meanings: Mapping[str, str]

    def count_values_of_option(self, option: str) -> int | None:
        """Return how many values an option takes; None for one that is not known."""
        count = self.counts.get(option)
        if count is None:
            return next((each for prefix, each in self.prefixes if option.startswith(prefix)), None)
        return count

    def meaning(self, option: str) -> str:
        """Return what an option means: `processes`, `nodes`, `node-rank`, `rendezvous`, `address`, `ranks`, `hosts` or
        "".
        """
        return self.meanings.get(option, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherCatalogue:
    """All of launchers.yaml; launchers by the names of their programs and of their modules."""

    programs: Mapping[str, LauncherRow]
    modules: Mapping[str, LauncherRow]
    wrappers: frozenset[str]
    others: frozenset[str]


@cache
def read_launcher_catalogue() -> LauncherCatalogue:
    """Return the shipped catalogue, which is read on first use."""
    (document,) = yamlfile.read(FILE)
    rows = [(row, _launcher_of_row(row)) for row in document.value["launchers"]]
    return LauncherCatalogue(
        programs={name: launcher for row, launcher in rows for name in row["programs"]},
        modules={name: launcher for row, launcher in rows for name in row["modules"]},
        wrappers=frozenset(document.value["wrappers"]),
        others=frozenset(document.value["others"]),
    )


def _launcher_of_row(row: JSON) -> LauncherRow:
    takes = [(option, count) for key, count in _COUNTS.items() for option in row.get(key, ())]
    return LauncherRow(
        name=row["name"],
        verb=row.get("verb", ""),
        counts={option: count for option, count in takes if not option.endswith("*")},
        prefixes=tuple((option[:-1], count) for option, count in takes if option.endswith("*")),
        meanings={option: meaning for meaning, options in row["means"].items() for option in options},
    )
