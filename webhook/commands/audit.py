"""`claimgate audit`: every object of files, stdin or a cluster through the same core, as findings with their lines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Annotated

import typer

from webhook import assembly
from webhook.commands import live_options, options, ray_audit, report_head, report_options
from webhook.commands.audit_files import FilesAudit, assemble_policies_and_files, create_process_auditor
from webhook.commands.audit_part import PartAudit, PartOptions
from webhook.commands.audit_report import AuditReport
from webhook.commands.audit_totals import AuditTotals
from webhook.commands.audited_objects import Reviewed
from webhook.evaluation.review_options import ReviewOptions
from webhook.input.document_stream import DocumentStream
from webhook.policy.policy_set import PolicySet
from webhook.report.copies import RenderedText
from webhook.report.writer import RunDescription
from webhook.settings.shared import ReviewSettings


@options.add_flags_of_door(ReviewSettings, "audit")
def command(
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Folders, files or - for stdin: YAML, JSON or NDJSON.", show_default=False),
    ] = None,
    *,
    command_line: typer.Context = None,  # type: ignore[assignment] # Typer passes it, the demonstration does not
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
        typer.Option(metavar="GLOB", help="Read only files of folders with this name or path; repeatable."),
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
        typer.Option("--render-remote", help="As --render, and let kustomizations fetch remote resources."),
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

    Exits with 1 if there is a finding, and with 2 if a policy or a named input cannot be read. --fail-on changes this.
    After Ctrl-C the report has the objects that were audited.
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
    report = AuditReport(
        chosen,
        write_baseline,
        report_options.parse_shown(show),
        rendered=None if flags.is_live else rendered,
        is_verbose=verbose,
        statistics=statistics,
    )
    given = report_options.ReportFlags(min_severity=min_severity, baseline=baseline)

    def totals_of(policies: PolicySet) -> AuditTotals:
        options.print_policy_notes(settings, policies)
        filters = report_options.report_filters(given, settings, policies)
        failing = report_options.parse_fail_on(fail_on, settings.configuration.value.report.fail_on)
        return AuditTotals(filters, settings.configuration, fail_on=failing, requires_input=require_input)

    def describe(revision: str = "") -> RunDescription:
        policies = assembly.describe_policy_sets_in_use(settings)
        return report_head.describe_run(
            command_line, policies=policies, revision=revision, docs_address=settings.docs_address
        )

    if flags.is_live:
        about = describe()
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
            return report.audit_and_report(live_audit, totals, about, flags.publisher(cluster, live_audit.read))
    ray_audit.refuse_other_options(
        ray, named=named, render=is_rendered, render_remote=render_remote, changed_since=changed_since
    )
    about = describe(_checked_out_commit(named) if report.required_contents.revision else "")
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
        assembled = assemble_policies_and_files(settings, stream, index)
        totals = totals_of(assembled.policies)
        how = PartOptions(
            reviewed=as_ or "create",
            details=_review_options(assembled, is_stored=as_ == "stored"),
            address=settings.docs_address,
            contents=report.required_contents,
            encoder=report.encoder(report_options.report_filters(given, settings, assembled.policies)),
        )
        audit = PartAudit(assembled, how, changes)
        results = (
            ray_audit.create_ray_auditor(workers, assembled, how, stream)
            if workers
            else create_process_auditor(audit, stream, jobs or 1)
        )
        totals.add_problems(problems)
        return report.audit_and_report(
            FilesAudit(audit, assembled, stream, named, settings=settings, results=results), totals, about
        )


def _checked_out_commit(named: Sequence[str]) -> str:
    """Return the commit that the work tree of the named files has checked out, "" where it is not known."""
    from webhook.commands.git_changes import checked_out_commit

    return checked_out_commit(named)


def _review_options(assembled: assembly.ReviewAssembly, *, is_stored: bool) -> ReviewOptions:
    """Return the options of an audit, which an administrator reads; its report filters findings, and has links."""
    return replace(assembled.options, is_stored=is_stored, sees_all_namespaces=True, rules=(), skip=(), docs_address="")
