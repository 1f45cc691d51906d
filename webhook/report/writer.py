"""What an output format is: begin, one entry after the other, end. Each call gives the text that is ready by then.

A format that can be written piece by piece holds nothing; one that begins with its sums holds what it needs of each
entry. Knows no format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from webhook.errors import Problem
from webhook.report.finding import Finding, Place, Result
from webhook.report.rule import Rules

Entry_contra = TypeVar("Entry_contra", contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedDocument:
    """A document that is not a Kubernetes object: counted, never evaluated.

    is_half: it has a part of what an object has, so that it was perhaps meant to be one.
    """

    place: Place
    why: str
    is_half: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What is known in the end.

    entries: objects that were audited, reviews that were answered, or cases of suites. failures: reviews that were
    denied, or cases that failed. results: how many findings an audit made, or cases a test has, of each kind, every
    kind named. unreadable: what could not be read; a suite that could not is an entry instead. templates: files that
    are no manifests before they are rendered. unasked: objects that no policy is about, by their kind. is_verbose:
    whether a person wants everything named that is only counted otherwise. left_out: cases that somebody did not ask
    for. coverage: of the rules of suites, whether a case breaks them, where a person wants to know.
    """

    entries: int = 0
    failures: int = 0
    results: Mapping[Result, int] = field(default_factory=lambda: dict.fromkeys(Result, 0))
    files: int = 0
    skipped: tuple[SkippedDocument, ...] = ()
    unreadable: tuple[Problem, ...] = ()
    templates: int = 0
    unasked: Mapping[str, int] = field(default_factory=dict)
    is_verbose: bool = False
    left_out: int = 0
    coverage: Mapping[str, bool] = field(default_factory=dict)


class Writer(Protocol[Entry_contra]):
    """One report while it is written: one `begin`, an `entry` for each entry, one `end`.

    An entry is a Finding of audit, an Answer of replay or a CaseResult of test.
    """

    def begin(self, rules: Rules) -> Iterable[str]:
        """What stands before the first entry; `rules` are those of the run, and empty where nobody knows them."""
        ...

    def entry(self, entry: Entry_contra) -> Iterable[str]:
        """What can be written once this entry is known."""
        ...

    def end(self, totals: Totals) -> Iterable[str]:
        """Everything that is left."""
        ...


class HasFindings(Protocol):
    """An entry that can be told as findings."""

    def findings(self, rules: Rules) -> Iterable[Finding]:
        """Its findings."""
        ...


class ThroughFindings:
    """Writes answers or case results in a format that knows findings only."""

    def __init__(self, writer: Writer[Finding]) -> None:
        self._writer = writer
        self._rules: Rules = {}
        self._results: Counter[Result] = Counter()

    def begin(self, rules: Rules) -> Iterator[str]:
        """Keep the rules, which findings need."""
        self._rules = rules
        yield from self._writer.begin(rules)

    def entry(self, entry: HasFindings) -> Iterator[str]:
        """Write each finding of the entry."""
        for finding in entry.findings(self._rules):
            self._results[finding.result] += 1
            yield from self._writer.entry(finding)

    def end(self, totals: Totals) -> Iterator[str]:
        """End with the sums of the findings."""
        results = {result: self._results[result] for result in Result}
        yield from self._writer.end(replace(totals, results=results))
