"""A baseline file: fingerprints of known findings, so that a report shows only the others.

Lines may move and sentences may be written anew: fingerprint.py says what counts. Errors and what could not be decided
are no findings that anybody accepts, so they are in no baseline.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from webhook.errors import InputError, Problem
from webhook.input_files import read_whole
from webhook.report.finding import Finding, Result
from webhook.report.fingerprint import Fingerprints
from webhook.report.rule import Rules
from webhook.report.writer import Totals

VERSION: Final = 1
KNOWN: Final = frozenset((Result.FAIL, Result.WARN))
"""The results that a baseline may contain."""


class BaselineWriter:
    """Writes the baseline of a run: one JSON document, a line for each finding, in the order of the report."""

    def __init__(self) -> None:
        self._fingerprints = Fingerprints()
        self._is_first = True

    def begin(self, _rules: Rules) -> Iterator[str]:
        """Yield the beginning of the document."""
        yield f'{{"version": {VERSION}, "findings": ['

    def entry(self, entry: Finding) -> Iterator[str]:
        """Yield the line of one finding; passes and undecided results are left out."""
        if entry.result in KNOWN and not entry.is_advice:
            about = {
                "fingerprint": self._fingerprints.next_fingerprint(entry),
                "rule": entry.rule.id,
                "object": str(entry.subject),
                "file": entry.place.file,
                "path": entry.path,
            }
            yield f"{'' if self._is_first else ','}\n{json.dumps(about)}"
            self._is_first = False

    def end(self, _totals: Totals) -> Iterator[str]:
        """Yield the end of the document."""
        yield "\n]}\n"


def read_baseline(file: Path) -> Mapping[str, str]:
    """Return the fingerprints of a baseline, with a description of each finding.

    Raises:
        InputError: the file cannot be read, or is no baseline.
    """
    try:
        value = json.loads(read_whole(file))
        listed = {VERSION: value["findings"]}[value["version"]]
        return {each["fingerprint"]: f"{each['rule']} of {each['object']} in {each['file']}" for each in listed}
    except OSError as error:
        raise InputError(Problem(message=(error.strerror or str(error)).lower(), file=str(file))) from None
    except (ValueError, KeyError, TypeError):
        told = "this file is not a baseline: write one with `claimgate audit … --write-baseline FILE`"
        raise InputError(Problem(message=told, file=str(file))) from None
