"""Counts objects by the results of a run, and collects the reasons why rules were not evaluated.

Findings of one object have the same `Subject` and follow each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field, structs

from webhook.report.finding import Finding, Result, Subject
from webhook.rules.problem import NOT_FOUND, MissingObject
from webhook.text.wording import counted
from webhook.yamltext.source_line import Place

FINDINGS: Final = frozenset((Result.FAIL, Result.WARN, Result.ERROR))
"""The results that count as findings. Passes, exceptions and rules that were not evaluated do not count."""


class NotEvaluated(Struct, kw_only=True):
    """Why rules could not be evaluated.

    Attributes:
        why: the reason on one line.
        missing: the missing object; None for another reason.
        objects: the number of affected objects.
        subject, place: the first affected object and its place.
        rules: the rules and policies that could not be evaluated.
    """

    why: str
    missing: MissingObject | None
    subject: Subject
    place: Place
    objects: int = 0
    rules: dict[str, None] = field(default_factory=dict)
    last: Subject | None = None


class ObjectCounts(Struct):
    """The counts of reported findings.

    Attributes:
        results: the number of findings by result, without advice.
        with_findings: the number of objects with a finding.
        unread_with_findings: the number of objects with a finding and with unread pods.
        incomplete: the number of objects with a rule that could not be evaluated.
        is_open: whether a rule was not evaluated.
        is_undecided: whether a rule that may deny was not evaluated.
        is_denied: whether an object is denied, also by an error.
        not_evaluated: the reasons, in the order of their first objects.
    """

    results: Counter[Result] = field(default_factory=Counter)
    with_findings: int = 0
    unread_with_findings: int = 0
    incomplete: int = 0
    is_open: bool = False
    is_undecided: bool = False
    is_denied: bool = False
    not_evaluated: dict[tuple[str, str], NotEvaluated] = field(default_factory=dict)
    _found: Subject | None = None
    _reported: set[str] = field(default_factory=set)
    _open: Subject | None = None
    _open_reasons: set[tuple[str, str]] = field(default_factory=set)

    def add_finding(self, finding: Finding) -> None:
        """Count a finding. The findings of one object must follow each other."""
        self.is_open |= finding.is_open
        self.is_undecided |= finding.is_undecided
        self.is_denied |= finding.denies and not finding.is_advice
        if not finding.is_advice:
            self.results[finding.result] += 1
            if finding.result in FINDINGS:
                self._add_object_with_finding(finding)
        if finding.result is Result.SKIP and not finding.exception_reason:
            self._add_not_evaluated(finding)

    def add(self, other: ObjectCounts) -> None:
        self.results += other.results
        self.with_findings += other.with_findings
        self.unread_with_findings += other.unread_with_findings
        self.incomplete += other.incomplete
        self.is_open |= other.is_open
        self.is_undecided |= other.is_undecided
        self.is_denied |= other.is_denied
        for key, each in other.not_evaluated.items():
            own_entry = self.not_evaluated.setdefault(key, each)
            if own_entry is not each:
                own_entry.objects += each.objects
                own_entry.rules |= each.rules

    def explain_missing_objects(self, files_with_object: Callable[[str, str, str], Sequence[str]]) -> None:
        """Name the file of each missing object that is in a file, but not among the files that are applied together.

        Such an object is not used: the file may be for another cluster. `files_with_object` returns the files with an
        object of a kind, a namespace and a name.
        """
        for each in self.not_evaluated.values():
            missing = each.missing
            if missing is None or missing.why != NOT_FOUND or not missing.name:
                continue
            if files := files_with_object(missing.kind, missing.namespace, missing.name):
                more = f" and {counted(len(files) - 1, 'other file')}" if files[1:] else ""
                why = f"is only in {files[0]}{more}, not among the files that are applied together with the object"
                each.missing = structs.replace(missing, why=why)
                each.why = _describe_missing(each.missing)

    def _add_object_with_finding(self, finding: Finding) -> None:
        if self._found is not finding.subject:
            self._found = finding.subject
            self._reported.clear()
            self.with_findings += 1
            self.unread_with_findings += finding.subject.has_unread_pods
        message = " ".join(finding.message_and_fix()[0].split())
        self._reported.add(message)
        if self._open is finding.subject and (message, "") in self._open_reasons:
            self._withdraw_reason((message, ""))

    def _withdraw_reason(self, key: tuple[str, str]) -> None:
        """Remove a reason of the last object, because a finding of the object reports the same mistake."""
        self._open_reasons.remove(key)
        self.incomplete -= not self._open_reasons
        self.not_evaluated[key].objects -= 1
        if not self.not_evaluated[key].objects:
            del self.not_evaluated[key]

    def _add_not_evaluated(self, finding: Finding) -> None:
        """Count the reasons why a rule was not evaluated, except a mistake that a finding of the object reports."""
        subject = finding.subject
        for missing in finding.missing or (None,):
            why = " ".join((_describe_missing(missing) if missing else _reason_of_message(finding.message)).split())
            if self._found is subject and why in self._reported:
                continue
            if self._open is not subject:
                self._open = subject
                self._open_reasons.clear()
            key = why, missing.namespace if missing else ""
            self.incomplete += not self._open_reasons
            self._open_reasons.add(key)
            each = self.not_evaluated.get(key)
            if each is None:
                each = NotEvaluated(why=why, missing=missing, subject=subject, place=finding.place)
                self.not_evaluated[key] = each
            each.objects += each.last is not subject
            each.last = subject
            each.rules[finding.rule.id] = None


def _reason_of_message(message: str) -> str:
    return message.partition("not evaluated: ")[2] or message


def _describe_missing(missing: MissingObject) -> str:
    name = f"{missing.namespace}/{missing.name}" if missing.namespace and missing.name else missing.name
    return " ".join(filter(None, (missing.kind, name, missing.why)))
