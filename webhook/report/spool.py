"""Keeps what a format needs as a whole: in memory while it is little, else in a temporary file without a name.

So the memory of a report does not grow with its findings.
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import IO, Final, Generic, TypeVar

from webhook.report.finding import Finding, Result, Subject

Value = TypeVar("Value")
_BATCH: Final = 200
"""How many values are written together, so that what they share is written once."""
_IN_MEMORY: Final = 8 << 20
"""Bytes that are kept in memory."""


class Spool(Generic[Value]):
    """Values in the order in which they were added; they can be read several times."""

    def __init__(self) -> None:
        self._batch: list[Value] = []
        self._file: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - it lives as long as this does
        self._end = 0
        weakref.finalize(self, self._file.close)

    def append(self, value: Value) -> None:
        """Add a value, which must not change any more."""
        self._batch.append(value)
        if len(self._batch) == _BATCH:
            self._file.seek(self._end)
            pickle.dump(self._batch, self._file)
            self._end = self._file.tell()
            self._batch = []

    def __iter__(self) -> Iterator[Value]:
        """Yield the values; two readers do not disturb each other."""
        place = 0
        while place < self._end:
            self._file.seek(place)
            batch = pickle.load(self._file)  # noqa: S301 - nobody but this process has the file
            place = self._file.tell()
            yield from batch
        yield from self._batch


def object_of(finding: Finding) -> tuple[str, Subject]:
    """Return the file and the object of a finding; findings of one object come in a row."""
    return finding.place.file, finding.subject


class SpokenFindings(Spool[Finding]):
    """The findings of a run that are not passes."""

    def append(self, value: Finding) -> None:
        """Add a finding unless it is a pass."""
        if value.result is not Result.PASS:
            super().append(value)
