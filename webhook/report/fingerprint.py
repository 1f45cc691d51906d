"""Fingerprints that identify the same finding in different runs.

Neither line nor message counts: an object that moves within its file, or a sentence that is written anew, is no new
finding.
"""

from __future__ import annotations

import hashlib
from collections import Counter

from webhook.report.finding import Finding

_SHORT = 32
"""How many hexadecimal digits a fingerprint has: 128 bits, enough for all findings of a repository to differ."""


class Fingerprints:
    """The fingerprints of one run; findings that repeat at one place are numbered, so that all differ."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def next_fingerprint(self, finding: Finding) -> str:
        """Return the fingerprint of the next finding, in hexadecimal digits."""
        about = finding.subject
        parts = (finding.rule.id, finding.place.file, about.api_version, about.kind, str(about), finding.path)
        text = "\0".join(parts)
        self._seen[text] += 1
        return hashlib.sha256(f"{text}\0{self._seen[text]}".encode()).hexdigest()[:_SHORT]
