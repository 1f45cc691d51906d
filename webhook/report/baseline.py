"""Reads and writes a baseline: a file with fingerprints of known findings, which a report leaves out.

A fingerprint has no line and no message. An object that moves in its file, or a new wording, makes no new finding. A
baseline has no errors, and no documents that could not be decoded.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from webhook.errors import InputError, InputProblem
from webhook.report.finding import Finding, Result
from webhook.report.rule import Rules
from webhook.report.writer import Totals
from webhook.yamltext.input_files import read_whole

_SHORT = 32
"""The hexadecimal digits of a fingerprint. With 128 bits, no two findings of a repository have the same fingerprint."""


class Fingerprints:
    """Makes the fingerprints of one run. Repeated findings at one place are numbered, so all fingerprints differ."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def next_fingerprint(self, finding: Finding) -> str:
        subject = finding.subject
        parts = (finding.rule.id, finding.place.file, subject.api_version, subject.kind, str(subject), finding.path)
        text = "\0".join(parts)
        self._seen[text] += 1
        return hashlib.sha256(f"{text}\0{self._seen[text]}".encode()).hexdigest()[:_SHORT]


VERSION: Final = 1
KNOWN: Final = frozenset((Result.FAIL, Result.WARN))
"""The results that a baseline may contain."""


class BaselineWriter:
    """Writes the baseline of a run: one JSON document with a line for each finding, in the order of the report."""

    def __init__(self) -> None:
        self._fingerprints = Fingerprints()
        self._is_first = True

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield f'{{"version": {VERSION}, "findings": ['

    def entry(self, entry: Finding) -> Iterator[str]:
        """Yield the line of a finding. Passes and undecided results are left out."""
        if entry.result in KNOWN and not entry.is_advice:
            record = {
                "fingerprint": self._fingerprints.next_fingerprint(entry),
                "rule": entry.rule.id,
                "object": str(entry.subject),
                "file": entry.place.file,
                "path": entry.path,
            }
            yield f"{'' if self._is_first else ','}\n{json.dumps(record)}"
            self._is_first = False

    def end(self, _totals: Totals) -> Iterator[str]:
        yield "\n]}\n"


def read_baseline(file: Path) -> Mapping[str, str]:
    """Return the fingerprints of a baseline, with a description of each finding.

    Raises:
        InputError: the file cannot be read, or is not a baseline.
    """
    try:
        value = json.loads(read_whole(file))
        findings = {VERSION: value["findings"]}[value["version"]]
        return {each["fingerprint"]: f"{each['rule']} of {each['object']} in {each['file']}" for each in findings}
    except OSError as error:
        raise InputError(InputProblem(message=(error.strerror or str(error)).lower(), file=str(file))) from None
    except (ValueError, KeyError, TypeError, RecursionError):  # RecursionError: nested too deeply
        message = "this file is not a baseline: write one with `claimgate audit … --write-baseline FILE`"
        raise InputError(InputProblem(message=message, file=str(file))) from None
