"""`claimgate queues`: shows the queues of Kueue as a tree, with the most that each queue can admit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from webhook.cluster import Cluster
from webhook.cluster.connection import connect_to_cluster
from webhook.cluster.files import FilesCluster
from webhook.cluster.watch import WatchedCluster
from webhook.commands import output
from webhook.commands.live_options import KubeContext
from webhook.commands.options import FilesByOption, complete_output, named_files
from webhook.errors import ConfigurationError, InputError
from webhook.facts.kueue.objects import QUEUES
from webhook.facts.kueue.overview import read_queue_overview
from webhook.facts.queue_overview import QueueOverview
from webhook.facts.view import NAMESPACES, ClusterView
from webhook.input import documents
from webhook.logs.structured import Log
from webhook.report.queue_drawings import queue_json, queue_svg, queue_text
from webhook.text import terminal

FORMATS = ("text", "json", "svg")
Outputs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT[=FILE]",
        help="text, json or svg; repeatable.",
        autocompletion=complete_output(*FORMATS),
    ),
]


def command(
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", show_default=False, help="Folders, files or - for stdin: YAML, JSON or NDJSON."),
    ] = None,
    *,
    filename: FilesByOption = None,
    chosen: Outputs = None,
    live: Annotated[bool, typer.Option("--live", help="Read the queues of the cluster of kubectl.")] = False,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read the queues of the cluster of this kubeconfig.")
    ] = None,
    kube_context: KubeContext = None,
    context_is_whole: Annotated[
        bool,
        typer.Option(
            "--context-is-whole", help="The files have all objects of the cluster: a missing object does not exist."
        ),
    ] = False,
) -> int:
    """Show the queues of Kueue: cohorts, ClusterQueues, LocalQueues.

    For each resource of a flavor, a queue shows its quota, its usage, and the most that it can use if no other job
    runs. A cohort shows the quota that its members share. An obstacle says why a queue admits nothing, for example
    because the queue is stopped. A missing object is an obstacle in a cluster, or with --context-is-whole.

    Exits with 0 if every queue can admit something, 1 if a queue has an obstacle, and 2 if nothing could be read.
    """
    outputs = output.parse_outputs(chosen, FORMATS)
    is_live = live or kubeconfig is not None or kube_context is not None
    named = named_files(path, filename)
    if is_live == bool(named):
        raise ConfigurationError("queues: name either PATH, or --live for a cluster")
    overview = (
        _overview_of_live_cluster(kubeconfig, kube_context)
        if is_live
        else _overview_of_cluster(_cluster_of_files(named, context_is_whole=context_is_whole))
    )
    if not overview.rows:
        terminal.print_to_stderr(["note: there are no queues"])
    output.write_to_outputs(
        outputs,
        {
            "text": lambda: queue_text(overview),
            "json": lambda: queue_json(overview),
            "svg": lambda: queue_svg(overview),
        },
    )
    return int(any(row.obstacles for row in overview.rows))


def _overview_of_cluster(cluster: Cluster) -> QueueOverview:
    view = ClusterView(cluster, "")
    overview = read_queue_overview(view)
    unknown = {str(each): None for each in view.all_missing_objects() if not each.name}
    if unknown:
        raise ConfigurationError("\n".join(f"queues: {each}" for each in unknown))
    return overview


def _overview_of_live_cluster(kubeconfig: Path | None, kube_context: str | None) -> QueueOverview:
    connection = connect_to_cluster(kubeconfig, kube_context)
    watched = WatchedCluster.start(connection, (*QUEUES, NAMESPACES), Log(level="error"))
    try:
        return _overview_of_cluster(watched.cluster)
    finally:
        watched.cluster.close()


def _cluster_of_files(named: list[str], *, context_is_whole: bool) -> FilesCluster:
    """With templates, objects may be missing from the files, because a template may define these objects."""
    inputs = documents.read_documents(named)
    problems = (*inputs.problems, *documents.problem_of_nothing_read(named, inputs, "object"))
    if problems:
        raise InputError(*problems)
    terminal.print_to_stderr(f"warning: {each}" for each in inputs.repeated)
    objects = (each.value for each in inputs.documents)
    return FilesCluster(objects, is_whole=context_is_whole and not inputs.templates)
