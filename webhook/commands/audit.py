"""`claimgate audit`: every object of folders, files or stdin through the same core, as findings with their lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import typer

from webhook import assembly, documents
from webhook.admission import fixtures
from webhook.admission.phases import Local, run
from webhook.attributes import JSON
from webhook.commands import options, output
from webhook.errors import CallError, InputError
from webhook.report import formats
from webhook.report.finding import Finding, Result, findings, subject
from webhook.report.rule import Rules, rules
from webhook.report.writer import SkippedDocument, Totals
from webhook.settings.shared import Settings


@options.takes(Settings, "policies", "context", "workloads", "cel_engine", "kubernetes_version")
def command(
    path: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Folders, files or - for stdin: YAML, JSON or NDJSON.")
    ],
    *,
    chosen: options.ReportOutputs = None,
    unbound: options.Unbound = False,
    settings: Settings,
) -> int:
    """Report every finding about the objects of folders, files or stdin.

    Each object is reviewed as if it were created now; the audited objects, and those of --context, are what the
    cluster holds. Exits with 0 when nothing was found, 1 when something was, 2 when an input or a policy cannot be
    read, and 3 when nothing was found but a policy could not decide.
    """
    writers = formats.of_findings()
    outputs = output.parse(chosen, writers)
    inputs = documents.read(path)
    assembled = assembly.assemble(settings, context=_objects(inputs), unbound=unbound)
    options.warn_of_unbound(assembled.policies)
    audit = _Audit(inputs, assembled)
    with output.Report(outputs, writers, audit.rules) as report:
        for finding in audit.findings():
            report.entry(finding)
        report.end(audit.totals())
    if problems := (*inputs.problems, *documents.nothing(path, inputs, "object")):
        raise InputError(*problems)
    return _exit_code(audit.totals())


def _objects(inputs: documents.Inputs) -> Iterator[JSON]:
    """The audited objects that a cluster could hold: what is not a review and has a kind."""
    for each in inputs.documents:
        if isinstance(each.value, dict) and "kind" in each.value and not fixtures.is_call(each.value):
            yield each.value


class _Audit:
    """One audit: its findings one after the other, and then what they add up to."""

    def __init__(self, inputs: documents.Inputs, assembled: assembly.Assembly) -> None:
        self.rules: Rules = rules(assembled.policies)
        self._inputs = inputs
        self._row = assembled.table.row
        self._door = Local(policies=assembled.policies, cluster=assembled.cluster)
        self._results: Counter[Result] = Counter()
        self._skipped: list[SkippedDocument] = []

    def findings(self) -> Iterator[Finding]:
        """The findings of each object, once."""
        for each in self._inputs.documents:
            try:
                attributes = fixtures.attributes(each.value, self._row)
            except CallError as error:
                # what follows the semicolon tells a webhook's owner what to send, which nobody audits for
                self._skipped.append(SkippedDocument(place=each.place(), why=error.message.partition(";")[0]))
                continue
            decisions = run(attributes, "auto", self._door).decisions
            locate = each.locator(fixtures.object_path(each.value))
            made = findings(decisions, subject(attributes), locate, self.rules)
            self._results.update(finding.result for finding in made)
            yield from made

    def totals(self) -> Totals:
        """What the findings so far add up to."""
        return Totals(
            entries=len(self._inputs.documents) - len(self._skipped),
            results={result: self._results[result] for result in Result},
            files=self._inputs.files,
            skipped=tuple(self._skipped),
            unreadable=self._inputs.problems,
        )


def _exit_code(totals: Totals) -> int:
    if totals.results[Result.FAIL] or totals.results[Result.WARN]:
        return 1
    return 3 if totals.results[Result.ERROR] or totals.results[Result.SKIP] else 0
