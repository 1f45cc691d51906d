"""A report for people: one line per finding as compilers print theirs, then the sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from webhook import terminal
from webhook.report.finding import Finding, Report, Result

_UNKNOWN = "not evaluated: "


def write(report: Report) -> str:
    """`file:line: result: message (Kind namespace/name, policy name)`, passes left out, and a summary line.

    What is missing is said once, where it is missed first: a folder without its cluster misses the same few objects
    hundreds of times. The other formats have every line.
    """
    return terminal.lines(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    spoken = [finding for finding in report.findings if finding.result is not Result.PASS]
    missed = _missed(spoken)
    said: set[str] = set()
    for finding in spoken:
        lacking = _lacking(finding)
        if all(len(missed[text]) == 1 for text in lacking):
            yield _line(finding)
            continue
        yield from (_together(text, missed[text]) for text in lacking if text not in said)
        said.update(lacking)
    for foreign in report.foreign:
        yield f"{foreign.place}: not audited: {foreign.why}"
    if spoken or report.foreign:
        yield ""
    yield _summary(report)


def _missed(spoken: Sequence[Finding]) -> Mapping[str, Sequence[Finding]]:
    """Who misses what, in the order of the report."""
    found: dict[str, list[Finding]] = {}
    for finding in spoken:
        for text in _lacking(finding):
            found.setdefault(text, []).append(finding)
    return found


def _lacking(finding: Finding) -> Sequence[str]:
    """What a skipped finding misses, each in a text of its own: `DeviceClass x not found`."""
    _, marker, rest = finding.message.partition(_UNKNOWN)
    if finding.result is not Result.SKIP or not marker:
        return ()
    parts = rest.split(", ")
    return parts if all(part.endswith(" not found") for part in parts) else (rest,)


def _together(text: str, missing: Sequence[Finding]) -> str:
    first = missing[0]
    policies = dict.fromkeys(finding.decision.policy for finding in missing)
    names = f"{'policy' if len(policies) == 1 else 'policies'} {', '.join(policies)}"
    times = f"{len(missing)} times, first for {first.subject}" if len(missing) > 1 else str(first.subject)
    return f"{first.place}: {first.result}: {_UNKNOWN}{' '.join(text.split())} ({times}, {names})"


def _line(finding: Finding) -> str:
    message = " ".join(finding.message.split()) or "no message"
    return f"{finding.place}: {finding.result}: {message} ({finding.subject}, policy {finding.decision.policy})"


def _summary(report: Report) -> str:
    counts = ", ".join(f"{count} {result}" for result, count in report.summary.items())
    text = f"{_many(report.objects, 'object')} in {_many(report.files, 'file')}: {counts}"
    if report.foreign:
        text += f"; {_many(len(report.foreign), 'document')} without a Kubernetes object"
    if report.unreadable:
        text += f"; {_many(len({problem.file for problem in report.unreadable}), 'file')} not read in full"
    return text


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
