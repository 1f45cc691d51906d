"""Reports a mistake in copies of an object once: one finding, with the places of the copies in other files.

Each overlay of kustomize repeats the objects of its base, and `bundle/` or `dist/` those of `config/`. All places of a
finding are known only at the end, so findings are kept until then, in a file if there are many (spool).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from webhook.report.counts import FINDINGS
from webhook.report.finding import Copy, Finding, Result
from webhook.report.rule import Rules
from webhook.report.screen import Screen, ScreenAwareWriter
from webhook.report.spool import Spool
from webhook.report.writer import Totals, Writer

_MOST_REMEMBERED: Final = 100_000
"""How many findings and copies are remembered; every later finding is reported on its own."""


Affixes: TypeAlias = Sequence[str]
"""The prefixes and suffixes that an overlay gives to names, the longest first."""


class CopiesWriter:
    """Passes findings on to a writer at the end, those about copies as one finding, and counts them as one."""

    def __init__(self, writer: Writer[Finding], affixes: Mapping[str, Affixes]) -> None:
        """Args: the format; what overlays add to the names of their base, by the folder that is rendered."""
        self._writer = writer
        self._affixes = affixes
        self._kept: Spool[Finding] = Spool()
        self._numbers: dict[tuple[bytes, int], int] = {}
        self._copies: dict[int, list[Copy]] = {}
        self._repeated: Counter[Result] = Counter()
        self._remembered = 0
        self._next_number = 0
        self._file = ""
        self._in_file: Counter[bytes] = Counter()

    def use_screen(self, screen: Screen) -> None:
        """Use this screen, if the format depends on one."""
        if isinstance(self._writer, ScreenAwareWriter):
            self._writer.use_screen(screen)

    def begin(self, rules: Rules) -> Iterable[str]:
        """Return the text before the first entry."""
        return self._writer.begin(rules)

    def entry(self, entry: Finding) -> Iterable[str]:
        """Keep a finding, or its place if it is about a copy. The findings of a file come in a row."""
        first = self._number_of_first(entry)
        if first is None:
            self._kept.append(entry)
            self._next_number += 1
            return ()
        self._copies.setdefault(first, []).append(Copy(entry.place, entry.subject))
        if not entry.is_advice:
            self._repeated[entry.result] += 1
        return ()

    def end(self, totals: Totals) -> Iterator[str]:
        """Yield the text of all entries, and the remaining text."""
        for number, finding in enumerate(self._kept):
            copies = self._copies.get(number)
            yield from self._writer.entry(replace(finding, also_in=tuple(copies)) if copies else finding)
        counts = replace(totals.counts, results=totals.counts.results - self._repeated)
        yield from self._writer.end(replace(totals, counts=counts))

    def _number_of_first(self, finding: Finding) -> int | None:
        """Return the number of the finding of an earlier file that says the same; None if this is the first.

        The second finding of a file is only equal to the second of another: in one file all are reported.
        """
        if finding.result not in FINDINGS or not finding.subject.name or self._remembered >= _MOST_REMEMBERED:
            return None
        self._remembered += 1
        if finding.place.file != self._file:
            self._file = finding.place.file
            self._in_file.clear()
        mistake = _digest_of_mistake(finding, self._affixes.get(finding.place.file, ()))
        self._in_file[mistake] += 1
        key = mistake, self._in_file[mistake]
        if key in self._numbers:
            return self._numbers[key]
        self._numbers[key] = self._next_number
        return None


def _digest_of_mistake(finding: Finding, affixes: Affixes) -> bytes:
    """Return a digest of everything by which a reader knows a mistake, without the file and the namespace.

    The line is part of the digest, so that objects which only have the same name differ. What an overlay adds to names
    is left out everywhere, because a message or a line may have the name of another object.
    """
    about, decision = finding.subject, finding.decision
    parts = (
        str(finding.result),
        "advice" if finding.is_advice else "",
        finding.rule.id,
        decision.policy,
        decision.param,
        about.api_version,
        about.kind,
        about.name,
        finding.path,
        finding.message,
        finding.line.text if finding.line else "",
    )
    text = "\0".join(parts)
    for affix in affixes:
        text = text.replace(affix, "")
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
