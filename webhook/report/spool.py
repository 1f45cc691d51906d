"""Keeps values until the end of a report, so memory does not grow with its findings.

Up to 8 MiB of values stay in memory. With more values, all move to a temporary file without a name.
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Iterator, Sequence
from io import SEEK_END
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, Generic, TypeVar

from webhook.report.finding import Finding, Subject

Value = TypeVar("Value")
_BATCH: Final = 200
_IN_MEMORY: Final = 8 << 20
"""The most bytes in memory."""


class SpoolFile:
    """A file for the values of one or several spools. A small file is in memory."""

    def __init__(self) -> None:
        self._file: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - it lives as long as this does
        weakref.finalize(self, self._file.close)

    def write(self, values: Sequence[object]) -> int:
        """Append values, and return their place."""
        place = self._file.seek(0, SEEK_END)
        pickle.dump(values, self._file)
        return place

    def read(self, place: int) -> Any:
        """Return the values of a place."""
        self._file.seek(place)
        return pickle.load(self._file)  # noqa: S301 - only this process has the file


class Spool(Generic[Value]):
    """Values in the order in which they were added, for several readings.

    Args:
        file: the file for the values; a new file by default. Several spools may share a file.
        batch: how many values are written together; None for 200. Parts that these values share are written once.
    """

    def __init__(self, file: SpoolFile | None = None, batch: int | None = None) -> None:
        self._file = file or SpoolFile()
        self._most = batch or _BATCH
        self._batch: list[Value] = []
        self._places: list[int] = []

    def append(self, value: Value) -> None:
        """Add a value, which must not change afterwards."""
        self._batch.append(value)
        if len(self._batch) >= self._most:
            self._places.append(self._file.write(self._batch))
            self._batch = []

    def __iter__(self) -> Iterator[Value]:
        """Yield the values. Several readers may iterate at the same time."""
        index = 0
        while index < len(self._places):
            yield from self._file.read(self._places[index])
            index += 1
        yield from self._batch


def file_and_object_of_finding(finding: Finding) -> tuple[str, Subject]:
    """Return the file and the object, by which findings are grouped."""
    return finding.place.file, finding.subject
