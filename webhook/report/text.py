"""A report for people: one line per finding as compilers print theirs, then the sums."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.report.finding import Finding, Report, Result


def write(report: Report) -> str:
    """`file:line: result: message (Kind namespace/name, policy name)`, passes left out, and a summary line."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    spoken = [finding for finding in report.findings if finding.result is not Result.PASS]
    yield from map(_line, spoken)
    for foreign in report.foreign:
        yield f"{foreign.place}: not audited: {foreign.why}"
    if spoken or report.foreign:
        yield ""
    yield _summary(report)


def _line(finding: Finding) -> str:
    message = " ".join(finding.message.split()) or "no message"
    return f"{finding.place}: {finding.result}: {message} ({finding.subject}, policy {finding.decision.policy})"


def _summary(report: Report) -> str:
    counts = ", ".join(f"{count} {result}" for result, count in report.summary.items())
    text = f"{_many(report.objects, 'object')} in {_many(report.files, 'file')}: {counts}"
    if report.foreign:
        text += f"; {_many(len(report.foreign), 'document')} without a Kubernetes object"
    if report.unreadable:
        text += f"; {_many(len({problem.file for problem in report.unreadable}), 'file')} unreadable"
    return text


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
