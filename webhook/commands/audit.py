"""`claimgate audit`: reviews every object of files, stdin or a cluster, and reports findings with their lines.

The report lists the findings, then the totals. Ctrl-C ends the audit early.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from webhook import assembly
from webhook.commands import live_options, options, output, ray_audit, report_options
from webhook.commands.audit_files import FilesAudit, assemble_policies_and_files, create_process_auditor
from webhook.commands.audit_index import KFCTL, AuditIndex, Indexer
from webhook.commands.audit_part import FindingLineEncoder, PartAudit, PartOptions, PartResult, Reviewed
from webhook.commands.audit_totals import AuditTotals
from webhook.commands.progress import EXIT_CODE, Interrupts, Progress
from webhook.evaluation.review_options import ReviewOptions
from webhook.input.document_stream import DocumentStream
from webhook.policy.policy_set import PolicySet
from webhook.report import baseline, formats
from webhook.report.copies import CopiedFolders, RenderedText, RenderedTexts
from webhook.report.filters import Filters
from webhook.report.finding import Finding, Result
from webhook.report.queued_jobs import Demands, QueueTrees
from webhook.report.rule import Rules
from webhook.report.writer import RunDescription, Writer
from webhook.settings.shared import ReviewSettings

if TYPE_CHECKING:
    from webhook.commands.publishing import ReportPublisher


@options.add_flags_of_verb(ReviewSettings, "audit")
def command(
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Folders, files or - for stdin: YAML, JSON or NDJSON.", show_default=False),
    ] = None,
    *,
    command_line: typer.Context = None,  # type: ignore[assignment] # Typer passes a context, demo.py does not
    filename: options.FilesByOption = None,
    live: live_options.Live = False,
    kubeconfig: live_options.Kubeconfig = None,
    kube_context: live_options.KubeContext = None,
    namespace: live_options.Namespaces = None,
    selector: live_options.Selector = "",
    shard: live_options.ShardOf = "",
    publish: live_options.Publish = None,
    fails_only: live_options.FailsOnly = False,
    chosen: options.ReportOutputs = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB", help="Skip files and folders with this name or path, such as 'charts/*'; repeatable."
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="In folders, read only files with this name or path; repeatable."),
    ] = None,
    is_rendered: Annotated[
        bool,
        typer.Option(
            "--render",
            help="Render charts and kustomizations with the installed helm and kubectl, without a network.",
        ),
    ] = False,
    render_remote: Annotated[
        bool,
        typer.Option("--render-remote", help="Like --render, but kustomizations may download remote resources."),
    ] = False,
    changed_since: Annotated[
        str,
        typer.Option(metavar="REF", help="Audit only objects that differ from this git revision."),
    ] = "",
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Also list what the summary only counts, such as kinds without a policy."),
    ] = False,
    as_: Annotated[
        Reviewed | None,
        typer.Option(
            "--as",
            help=(
                "create: mutate and validate, as for new objects. stored: only validate, as for a dump of a "
                "cluster. [default: create, with --live stored]"
            ),
            show_default=False,
        ),
    ] = None,
    min_severity: report_options.MinSeverity = None,
    fail_on: report_options.FailOnText = "",
    show: report_options.Show = "",
    baseline: report_options.Baseline = None,
    write_baseline: report_options.WriteBaseline = None,
    statistics: report_options.Statistics = False,
    require_input: report_options.RequireInput = False,
    jobs: ray_audit.Jobs = None,
    ray: ray_audit.RayAddress = "",
    settings: ReviewSettings,
) -> int:
    """Report every finding about the objects of folders, files, stdin or a live cluster.

    Files are reviewed as if their objects were created now. Objects of a cluster are reviewed as they are stored.
    Policies look up other objects in --context and in files that are applied together, or with --live in the cluster.

    Exits with 1 if there is a finding, unless --fail-on says otherwise. Exits with 2 if a policy or a named input
    cannot be read. After Ctrl-C, the report has the objects that were already audited.
    """
    named = options.named_files(path, filename)
    flags = live_options.LiveFlags(
        live=live,
        kubeconfig=kubeconfig,
        kube_context=kube_context,
        namespaces=namespace,
        selector=selector,
        shard=shard,
        publish=publish,
        fails_only=fails_only,
    )
    flags.check_flag_combinations(named, settings)
    rendered: dict[str, RenderedText] = {}
    copied = CopiedFolders(named)
    report = AuditReport(
        chosen,
        write_baseline,
        report_options.parse_shown(show),
        rendered=None if flags.is_live else rendered,
        copied=copied,
        is_verbose=verbose,
        statistics=statistics,
    )
    report_flags = report_options.ReportFlags(min_severity=min_severity, baseline=baseline)

    def totals_of(policies: PolicySet) -> AuditTotals:
        options.print_policy_notes(settings, policies)
        filters = report_options.report_filters(report_flags, settings, policies)
        failing = report_options.parse_fail_on(fail_on, settings.configuration.value.report.fail_on)
        return AuditTotals(
            filters,
            settings.configuration,
            fail_on=failing,
            requires_input=require_input,
            is_whole=settings.context_is_whole,
        )

    def describe(revision: str = "") -> RunDescription:
        policies = assembly.describe_policy_sets_in_use(settings)
        return output.describe_run(
            command_line, policies=policies, revision=revision, docs_address=settings.docs_address
        )

    if flags.is_live:
        run = describe()
        assembled = assembly.assemble_policies_and_context(settings)
        details, scope = _review_options(assembled, is_stored=as_ != "create"), flags.scope()
        totals = totals_of(assembled.policies)
        with live_options.open_live_cluster(
            assembled.policies, kubeconfig, kube_context, of_audits=details.advice
        ) as cluster:
            from webhook.commands.audit_live import LiveAudit

            live_audit = LiveAudit(
                assembled,
                cluster,
                scope,
                reviewed=as_ or "stored",
                details=details,
                address=settings.docs_address,
                contents=flags.contents_with_published(report.required_contents),
            )
            return report.audit_and_report(live_audit, totals, run, flags.publisher(cluster, live_audit.read))
    ray_audit.refuse_other_options(
        ray, named=named, render=is_rendered, render_remote=render_remote, changed_since=changed_since
    )
    run = describe(_checked_out_commit(named) if report.required_contents.revision else "")
    changes = None
    if changed_since:
        from webhook.commands.git_changes import GitChanges

        changes = GitChanges(changed_since, named)
    listing = ray_audit.listing_function_for(ray)
    with (
        closing(
            DocumentStream(
                named, exclude or (), include or (), listing=listing, patterns=assembly.ignore_patterns_finder(settings)
            )
        ) as stream,
        ray_audit.connect_to_ray_if_given(ray if stream.sources else "", jobs) as workers,
    ):
        problems = stream.problems
        if is_rendered or render_remote:
            from webhook.commands.rendering import replace_by_rendered_objects

            result = replace_by_rendered_objects(stream, named, settings.kubernetes_version, with_remote=render_remote)
            problems += result.problems
            rendered |= result.texts
        index = (
            ray_audit.create_ray_indexer(workers, stream) if workers else lambda each: each.index_parts(stream.parts())
        )

        def index_with_copies(indexer: Indexer) -> AuditIndex:
            looked_up = index(indexer)
            for file in looked_up.files_of_kind(KFCTL):
                copied.add_output_of_kfctl(file)
            copied.add_distributions(looked_up.files)
            copied.add_project_files(stream.project_files)
            return looked_up

        assembled = assemble_policies_and_files(settings, stream, index_with_copies)
        totals = totals_of(assembled.policies)
        part_options = PartOptions(
            reviewed=as_ or "create",
            details=_review_options(assembled, is_stored=as_ == "stored"),
            address=settings.docs_address,
            contents=report.required_contents,
            encoder=report.encoder(report_options.report_filters(report_flags, settings, assembled.policies)),
        )
        audit = PartAudit(assembled, part_options, changes)
        results = (
            ray_audit.create_ray_auditor(workers, assembled, part_options, stream)
            if workers
            else create_process_auditor(audit, stream, jobs or 1)
        )
        totals.add_problems(problems)
        return report.audit_and_report(
            FilesAudit(audit, assembled, stream, named, settings=settings, results=results), totals, run
        )


def _checked_out_commit(named: Sequence[str]) -> str:
    from webhook.commands.git_changes import checked_out_commit

    return checked_out_commit(named)


def _review_options(assembled: assembly.ReviewAssembly, *, is_stored: bool) -> ReviewOptions:
    """The review does not select rules or add links, because the report does both."""
    return replace(assembled.options, is_stored=is_stored, sees_all_namespaces=True, rules=(), skip=(), docs_address="")


class AuditSource(Protocol):
    """The source of an audit: files, or a cluster."""

    @property
    def rules(self) -> Rules:
        """Return the rules of the audit."""
        ...

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all input; 0 if unknown."""
        ...

    def parts_with_findings(self, stop: Interrupts) -> Iterator[tuple[PartResult, Iterable[Finding]]]:
        """Yield each part with its findings. The caller must read the findings before the next part."""
        ...

    def queue_trees(self, demands: Demands) -> Sequence[QueueTrees]:
        """Return the queues with the demands of the jobs. Call this once, after the last part."""
        ...

    def finish(self, totals: AuditTotals, *, is_interrupted: bool) -> None:
        """Report notes that are known only after the last part."""
        ...


class AuditReport:
    """Writes the report of an audit to the chosen outputs, and on request a baseline."""

    def __init__(
        self,
        chosen: Sequence[str] | None,
        write_baseline: Path | None,
        shown: frozenset[Result] = frozenset(),
        *,
        rendered: RenderedTexts | None,
        copied: CopiedFolders,
        is_verbose: bool,
        statistics: bool = False,
    ) -> None:
        """Args:
        shown: results that get rows in addition to findings.
        rendered: texts of rendered folders; None for a cluster.
        copied: the folders with copies of other projects.
        statistics: whether reports count rules instead of listing findings.
        """
        self._shown = shown
        self._writers: Mapping[str, Callable[[], Writer[Finding]]] = (
            formats.writers_of_statistics() if statistics else formats.writers_of_findings(shown, rendered, copied)
        )
        self._outputs = output.parse_outputs(chosen, self._writers)
        self._writes_baseline = write_baseline is not None
        self._is_verbose = is_verbose
        if write_baseline is not None:
            self._writers = {**self._writers, "baseline": baseline.BaselineWriter}
            self._outputs = (*self._outputs, output.Output("baseline", str(write_baseline)))

    @property
    def required_contents(self) -> formats.RequiredContents:
        """Return the data that the outputs need."""
        return formats.contents_required_by_formats({each.format for each in self._outputs}, self._shown)

    def encoder(self, filters: Filters) -> FindingLineEncoder | None:
        """Return the encoder for worker processes; None if the main process needs the findings itself."""
        names = {each.format for each in self._outputs}
        is_possible = names <= formats.LINE_FORMATS and not filters.baseline
        return FindingLineEncoder(tuple(sorted(names)), filters, self._shown) if is_possible else None

    def audit_and_report(
        self,
        audited: AuditSource,
        totals: AuditTotals,
        run: RunDescription,
        publisher: ReportPublisher | None = None,
    ) -> int:
        """Audit, report, publish, and return the exit code."""
        waits = sys.stdout.isatty() and sys.stderr.isatty()  # the bar and the report must not mix
        report_of_run = output.Report(self._outputs, self._writers, audited.rules, waits=waits)
        with Interrupts() as interrupts, report_of_run as report:
            with Progress(audited.size_bytes, "objects") as bar:
                for result, findings in audited.parts_with_findings(interrupts):
                    for finding in totals.filter_and_count_findings(findings):
                        report.write_entry(finding)
                        if publisher is not None:
                            publisher.add_finding(finding)
                    report.add_texts(result.texts)
                    totals.add_part(result)
                    bar.advance(result.size_bytes, result.entries)
                    if interrupts.is_set:
                        break
            audited.finish(totals, is_interrupted=interrupts.is_set)
            if publisher is not None:
                totals.add_problems(publisher.finish_and_remove_stale_reports(is_interrupted=interrupts.is_set))
                sys.stderr.write(f"note: {publisher.summary}\n")
            if interrupts.is_set:
                sys.stderr.write(f"error: interrupted after {totals.entries} objects; the report has only these\n")
            queues = audited.queue_trees(totals.demands) if self.required_contents.queues else ()
            report.end(totals.totals(is_verbose=self._is_verbose, queues=queues, run=run))
        code = totals.exit_code()
        if interrupts.is_set:
            return EXIT_CODE
        return 0 if self._writes_baseline and code in (1, 3) else code
