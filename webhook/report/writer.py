"""The interface of an output format: begin, one call for each entry, end. Each call returns text that is ready.

A format that begins with its sums keeps the needed parts of entries until the end. Other formats keep nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.errors import InputProblem
from webhook.manifests.configuration import FileConfiguration, lowering_settings
from webhook.manifests.policy_exceptions import is_description_of_object
from webhook.report.commented import OF_COMMENT
from webhook.report.counts import FINDINGS, ObjectCounts
from webhook.report.finding import Finding, Result
from webhook.report.queued_jobs import QueueTrees
from webhook.report.rule import Rules
from webhook.report.screen import Screen, ScreenAwareWriter
from webhook.text.wording import counted
from webhook.yamltext.source_line import Place

Entry_contra = TypeVar("Entry_contra", contravariant=True)
_MOST_PARAMS: Final = 5
"""A summary names at most this number of audited params."""


class SkippedDocument(Struct, frozen=True, kw_only=True):
    """A document without a Kubernetes object, or with an object that is never applied. The document is counted, not
    evaluated.

    Attributes:
        is_half: the document has parts of an object, and may be meant as an object.
        is_unapplied: the document is a patch, or an object of an archive or of a test's expected output.
    """

    place: Place
    why: str
    is_half: bool = True
    is_unapplied: bool = False


def skipped_in_words(skipped: Sequence[SkippedDocument]) -> str:
    """Return a text such as `2 documents without a Kubernetes object, 1 object that is not applied`; "" for none."""
    unapplied = sum(each.is_unapplied for each in skipped)
    counts = (
        (len(skipped) - unapplied, "document without a Kubernetes object", "documents without a Kubernetes object"),
        (unapplied, "patch or object that is not applied", "patches and objects that are not applied"),
    )
    return ", ".join(counted(count, one, more) for count, one, more in counts if count)


class LeftOut(Struct, frozen=True, kw_only=True):
    """The numbers of findings and objects that configuration, annotations and comments removed from a report.

    Settings with effects that cannot be counted are only named.

    Attributes:
        files: files that `.claimgateignore` lists.
        objects: objects that `ignore` of the configuration names.
        excepted: findings with an exception of the configuration.
        annotated: findings with an exception in an annotation of the object.
        commented: findings with an exception in a comment of the file.
        granted: findings with an exception in a PolicyException.
        unreported: findings that `report` of the configuration hides.
        settings: names of settings of the configuration.
        params: audited params with levels of rules, such as `ConfigMap claimgate-system/gpu-limits`.
    """

    files: int = 0
    objects: int = 0
    excepted: int = 0
    annotated: int = 0
    commented: int = 0
    granted: int = 0
    unreported: int = 0
    settings: tuple[str, ...] = ()
    params: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != LeftOut()

    def __str__(self) -> str:
        """Return a text such as `left out: 2 files by .claimgateignore, 1 finding by exceptions`."""
        counts = (
            (self.files, "file", "by .claimgateignore"),
            (self.objects, "object", "by ignore"),
            (self.excepted, "finding", "by exceptions"),
            (self.annotated, "finding", "by annotations"),
            (self.commented, "finding", "by comments"),
            (self.granted, "finding", "by PolicyExceptions"),
            (self.unreported, "finding", "by report"),
        )
        text = (
            ", ".join(f"{counted(count, noun)} {participle}" for count, noun, participle in counts if count)
            or "nothing counted"
        )
        others = [f"{', '.join(self.settings)} of claimgate.yaml"] if self.settings else []
        named, further = self.params[:_MOST_PARAMS], len(self.params) - _MOST_PARAMS
        named += (counted(further, "other"),) if further > 0 else ()
        others += [f"{', '.join(named)} of the audited files"] if named else []
        more = f"; {' and '.join(others)} may leave out more" if others else ""
        return f"left out: {text}{more}"

    def as_json(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "objects": self.objects,
            "excepted": self.excepted,
            "annotated": self.annotated,
            "commented": self.commented,
            "granted": self.granted,
            "unreported": self.unreported,
            "settings": list(self.settings),
            "params": list(self.params),
        }


def left_out_by_configuration(
    value: FileConfiguration,
    exceptions: Mapping[str, int],
    *,
    objects: int,
    files: int = 0,
    unreported: int = 0,
    params: tuple[str, ...] = (),
) -> LeftOut:
    """Return the numbers for a configuration. `exceptions` are the used exceptions with their counts."""
    named = {each.description for each in value.exceptions}
    of_file = sum(count for description, count in exceptions.items() if description in named)
    of_comments = sum(count for description, count in exceptions.items() if description.startswith(OF_COMMENT))
    granted = sum(
        count
        for description, count in exceptions.items()
        if description not in named and is_description_of_object(description)
    )
    return LeftOut(
        files=files,
        objects=objects,
        excepted=of_file,
        annotated=sum(exceptions.values()) - of_file - of_comments - granted,
        commented=of_comments,
        granted=granted,
        unreported=unreported,
        settings=lowering_settings(value),
        params=params,
    )


class RunDescription(Struct, frozen=True, kw_only=True):
    """How a report was made. Unknown values are "".

    Attributes:
        time: the beginning, in RFC 3339 with the zone Z.
        policies: the names of the sets of policies.
        revision: the checked-out commit of the named files.
        docs_address: the address of the documentation.
    """

    time: str = ""
    command: str = ""
    policies: str = ""
    revision: str = ""
    docs_address: str = ""

    @property
    def time_in_words(self) -> str:
        """Return a text such as `2026-11-29 03:14 UTC`."""
        return f"{self.time[:16].replace('T', ' ')} UTC"


class Totals(Struct, frozen=True, kw_only=True):
    """The totals of a run, which are known at its end.

    Attributes:
        entries: the number of audited objects, answered reviews, or cases.
        failures: the number of denied reviews or failed cases.
        results: the number of cases for each result.
        counts: the results of objects, and reasons why rules were not evaluated.
        unreadable: problems of input that could not be read. An unreadable suite is an entry instead.
        templates: the number of files that are manifests only after rendering.
        not_read: the number of files and folders that are links out of the named folder or no regular files.
        unasked: the number of objects without a policy and without findings, by kind.
        pods_not_read: the number of objects with unread pods, by kind.
        is_verbose: whether to list what is otherwise only counted.
        is_whole: whether the files have all objects of the cluster, so a missing object does not exist.
        configured: what configuration and annotations left out.
        left_out: the number of cases that the user did not choose.
        coverage: with --verbose, whether a case tries each rule and match condition.
        queues: the queues of the cluster with the demands of jobs, if the format draws queues.
    """

    entries: int = 0
    failures: int = 0
    results: Mapping[Result, int] = field(default_factory=lambda: dict.fromkeys(Result, 0))
    counts: ObjectCounts = field(default_factory=ObjectCounts)
    files: int = 0
    skipped: tuple[SkippedDocument, ...] = ()
    unreadable: tuple[InputProblem, ...] = ()
    templates: int = 0
    not_read: int = 0
    unasked: Mapping[str, int] = field(default_factory=dict)
    pods_not_read: Mapping[str, int] = field(default_factory=dict)
    is_verbose: bool = False
    is_whole: bool = False
    configured: LeftOut = field(default_factory=LeftOut)
    left_out: int = 0
    coverage: Mapping[str, bool] = field(default_factory=dict)
    queues: tuple[QueueTrees, ...] = ()
    run: RunDescription = field(default_factory=RunDescription)

    @property
    def unread_objects(self) -> int:
        """Return the number of unread objects without findings: no policy is about them, or their pods are not read."""
        unread_pods = sum(self.pods_not_read.values()) - self.counts.unread_with_findings
        return unread_pods + sum(self.unasked.values())

    @property
    def without_findings(self) -> int:
        """Return the number of objects without findings that were read and not left out."""
        return self.entries - self.counts.with_findings - self.unread_objects - self.configured.objects

    @property
    def objects_in_words(self) -> str:
        """Return a text such as `8 without findings, 3 with findings (2 fail, 1 warn), 1 not read`.

        If there are fewer findings than objects with findings, the text says why: a repeated mistake is one finding.
        """
        by_result = {each: self.counts.results[each] for each in Result if each in FINDINGS}
        parts = ", ".join(f"{count} {each}" for each, count in by_result.items() if count)
        if parts and sum(by_result.values()) < self.counts.with_findings:
            parts += "; a repeated mistake counts once"
        text = f"{self.without_findings} without findings, {self.counts.with_findings} with findings"
        unread = f", {self.unread_objects} not read" if self.unread_objects else ""
        left_out = f", {self.configured.objects} left out" if self.configured.objects else ""
        return f"{text}{f' ({parts})' if parts else ''}{left_out}{unread}"

    @property
    def files_not_read_in_words(self) -> str:
        """Return a text such as `2 templates, 1 document without a Kubernetes object, 1 link, hidden or other file`,
        or "".
        """
        templates = counted(self.templates, "template") if self.templates else ""
        links = "link, hidden or other file", "links, hidden and other files"
        others = counted(self.not_read, *links) if self.not_read else ""
        return ", ".join(filter(None, (templates, skipped_in_words(self.skipped), others)))

    def objects_as_json(self) -> dict[str, int]:
        return {
            "objects": self.entries,
            "withoutFindings": self.without_findings,
            "withFindings": self.counts.with_findings,
            "notRead": self.unread_objects,
            "leftOut": self.configured.objects,
            "notEvaluatedInFull": self.counts.incomplete,
        }


class Writer(Protocol[Entry_contra]):
    """Writes one report: one call of `begin`, one of `entry` for each entry, one of `end`.

    An entry is a Finding of audit, an Answer of replay or a CaseResult of test.
    """

    def begin(self, rules: Rules) -> Iterable[str]:
        """Return the text before the first entry. `rules` has the rules of the run, or is empty."""
        ...

    def entry(self, entry: Entry_contra) -> Iterable[str]:
        """Return the text that can be written after this entry."""
        ...

    def end(self, totals: Totals) -> Iterable[str]:
        """Return the remaining text."""
        ...


class HasFindings(Protocol):
    """An entry that can be converted to findings."""

    def findings(self, rules: Rules) -> Iterable[Finding]: ...


class RowFilter:
    """Gives findings with some results to another writer. Other findings are only in the totals."""

    def __init__(self, writer: Writer[Finding], rows: frozenset[Result]) -> None:
        self._writer = writer
        self._rows = rows

    def use_screen(self, screen: Screen) -> None:
        if isinstance(self._writer, ScreenAwareWriter):
            self._writer.use_screen(screen)

    def begin(self, rules: Rules) -> Iterable[str]:
        return self._writer.begin(rules)

    def entry(self, entry: Finding) -> Iterable[str]:
        return self._writer.entry(entry) if entry.result in self._rows else ()

    def end(self, totals: Totals) -> Iterable[str]:
        return self._writer.end(totals)


class FindingsAdapter:
    """Writes answers or case results in a format for findings, limited to some results."""

    def __init__(self, writer: Writer[Finding], rows: frozenset[Result]) -> None:
        self._writer = RowFilter(writer, rows)
        self._rules: Rules = {}
        self._found = ObjectCounts()

    def begin(self, rules: Rules) -> Iterator[str]:
        """Keep the rules, which findings need."""
        self._rules = rules
        yield from self._writer.begin(rules)

    def entry(self, entry: HasFindings) -> Iterator[str]:
        for finding in entry.findings(self._rules):
            self._found.add_finding(finding)
            yield from self._writer.entry(finding)

    def end(self, totals: Totals) -> Iterator[str]:
        yield from self._writer.end(replace(totals, counts=self._found))
