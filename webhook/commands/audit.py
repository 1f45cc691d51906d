"""`claimgate audit`: every object of folders, files or stdin through the same core, as findings with their lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Annotated

import typer

from webhook import assembly, submitted
from webhook.commands import options, output, report_options
from webhook.commands.audit_index import index_files
from webhook.commands.audit_part import PartAudit, PartResult, Reviewed
from webhook.commands.audit_totals import AuditTotals
from webhook.commands.git_changes import Changes
from webhook.commands.interrupts import EXIT_CODE, Interrupts
from webhook.commands.ordered_work import results_in_order
from webhook.commands.progress import Progress
from webhook.commands.rendering import render_into_tree
from webhook.document_stream import DocumentStream
from webhook.evaluation.review_options import ReviewOptions
from webhook.report import baseline as baselines
from webhook.report import formats
from webhook.report.finding import Finding
from webhook.settings.reporting import ReportSettings
from webhook.settings.shared import Settings


@options.with_settings(
    ReportSettings,
    *("config", "policies", "only", "context", "context_is_whole", "workloads", "cel_engine", "kubernetes_version"),
    "docs_address",
)
def command(
    path: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Folders, files or - for stdin: YAML, JSON or NDJSON.")
    ],
    *,
    chosen: options.ReportOutputs = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB", help="Leave out files and folders with such a name or path, such as 'charts/*'; repeatable."
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Of folders, read only files with such a name or path; repeatable."),
    ] = None,
    is_rendered: Annotated[
        bool,
        typer.Option(
            "--render",
            help="Audit what charts and kustomizations make, by the installed helm and kubectl kustomize, which may "
            "fetch what they name.",
        ),
    ] = False,
    changed_since: Annotated[
        str,
        typer.Option(metavar="REF", help="Audit only objects that differ from this git revision."),
    ] = "",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name what is only counted otherwise, and kinds without a policy.")
    ] = False,
    unbound: options.Unbound = False,
    advice: options.Advice = False,
    as_: Annotated[
        Reviewed,
        typer.Option(
            "--as",
            help="create: mutated, then validated, as new objects are. stored: validated as they are, as in a dump of "
            "a cluster, so that what was never translated is found.",
        ),
    ] = "create",
    rule: report_options.Rules = None,
    skip: report_options.Skip = None,
    min_severity: report_options.MinSeverity = None,
    fail_on: report_options.Fails = None,
    baseline: report_options.Baseline = None,
    write_baseline: report_options.WriteBaseline = None,
    require_input: report_options.RequireInput = False,
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", metavar="N", min=1, help="Audit in so many processes; the output is the same."),
    ] = 1,
    settings: ReportSettings,
) -> int:
    """Report every finding about the objects of folders, files or stdin.

    Each object is reviewed as if it were created now, or with --as stored as it is, without a mutation. The cluster
    holds the objects of --context, of its own file, and of the files that one kustomization, chart or folder has with
    it; names and namespaces are as kustomizations set them. What several of these files define differently is unknown.
    That an object does not exist is said only with --context-is-whole. Exits with 0 when nothing was found, 1 when
    something was, 2 when an input or a policy cannot be read, and 3 when nothing was found but a policy that may deny
    could not decide; --fail-on changes what ends with 1. What .claimgateignore in a named folder lists, a pattern a
    line, is left out. After Ctrl-C the report has what was audited by then, and the exit code is 130.
    """
    writers = formats.writers_of_findings()
    outputs = output.parse_outputs(chosen, writers)
    given = report_options.Given(rules=rule, skip=skip, min_severity=min_severity, baseline=baseline)
    if write_baseline is not None:
        writers = {**writers, "baseline": baselines.Findings}
        outputs = (*outputs, output.Output("baseline", str(write_baseline)))
    changes = Changes(changed_since, path) if changed_since else None
    with closing(DocumentStream(path, exclude or (), include or ())) as stream:
        problems = (*stream.problems, *(render_into_tree(stream, path) if is_rendered else ()))
        assembled = _assembled(settings, stream, unbound=unbound)
        filters = report_options.report_filters(given, settings, assembled.policies)
        details = ReviewOptions(advice=advice, is_stored=as_ == "stored")
        audit = PartAudit(
            assembled,
            reviewed=as_,
            details=details,
            address=settings.docs_address,
            changes=changes,
        )
        totals = AuditTotals(filters, settings.configuration, fail_on=fail_on, requires_input=require_input)
        totals.add_problems(problems)
        waits = sys.stdout.isatty() and sys.stderr.isatty()  # so that the bar and the report do not mix
        with Interrupts() as interrupts, output.Report(outputs, writers, audit.rules, waits=waits) as report:
            with Progress(stream.size_bytes(), "objects") as bar:
                for result, findings in _parts_with_findings(audit, stream, interrupts, jobs):
                    for finding in totals.reported(findings):
                        report.entry(finding)
                    totals.add(result)
                    assembled.files.tell(result.differing, result.recorded)
                    bar.advance(result.size_bytes, result.entries)
                    if interrupts.is_set:
                        break
            notes = submitted.notes_on_context(assembled.files, settings)
            totals.finish(path, stream, notes, is_interrupted=interrupts.is_set)
            if interrupts.is_set:
                sys.stderr.write(f"error: interrupted after {totals.entries} objects; the report has these alone\n")
            report.end(totals.totals(is_verbose=verbose))
        code = totals.exit_code()
        if interrupts.is_set:
            return EXIT_CODE
        return 0 if write_baseline is not None and code in (1, 3) else code


def _assembled(settings: Settings, stream: DocumentStream, *, unbound: bool) -> assembly.Assembly:
    """The policies, and of the files what policies look up."""
    how, loaded = assembly.load_policies(settings, unbound=unbound)
    looked_up = index_files(stream, loaded.interests(), is_whole=settings.context_is_whole)
    assembled = assembly.with_files(
        settings, how, loaded, objects=looked_up.objects, files=looked_up.files, is_complete=looked_up.is_complete
    )
    options.tell_policies(settings, assembled.policies)
    return assembled


def _parts_with_findings(
    audit: PartAudit, stream: DocumentStream, interrupts: Interrupts, jobs: int
) -> Iterator[tuple[PartResult, Iterable[Finding]]]:
    """Each part of the input with its findings, which have to be read before the next."""
    if jobs > 1:
        yield from ((result, result.findings) for result in results_in_order(audit.audited, stream.parts(), jobs))
        return
    for part in stream.parts():
        result = PartResult()
        yield result, audit.findings(part, result, interrupts)
