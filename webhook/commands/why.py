"""`claimgate why`: says why a job in the cluster does not run, and what would stop it next."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec import Struct

from webhook import assembly
from webhook.admission import fixtures
from webhook.apimachinery.attributes import JSON
from webhook.cluster import Cluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.cluster.naming import group_kind
from webhook.cluster.recording import RecordingCluster
from webhook.commands import options, output
from webhook.commands.live_options import KubeContext, open_live_cluster
from webhook.commands.simulate import FORMATS, Outputs
from webhook.errors import CallError, ConfigurationError
from webhook.report.records import indented_json
from webhook.report.screen import screen_of
from webhook.settings.shared import ReportSettings
from webhook.simulation.open_questions import LOOKUPS
from webhook.simulation.outcome import ObjectPlace, Simulation, simulate_job
from webhook.simulation.why import Why, why_as_json, why_as_text, without_waiting
from webhook.status.explanation import explain
from webhook.status.owned_objects import OwnedObjects, find_named_object, split_object_name
from webhook.status.sources import ClusterReading, FileSource, ObjectSource
from webhook.text import terminal
from webhook.yamltext.source_line import Place

_CLUSTER: Final = "the cluster"
"""The source of an object that is in no file."""
_MADE_BY_QUEUES: Final = frozenset(("Workload", "PodGroup"))
"""Kinds of objects that Kueue and Volcano create for a job. The conditions say whether the job waits for others."""
_WRITTEN_BY_SERVER: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
"""Metadata that an object does not have when it is created."""
_WRITTEN_INTO_JOBS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
"""Labels that the API server gives a Job and its pods (k8s.io/kubernetes v1.36
pkg/registry/batch/job/strategy.go, generateSelector).
"""


class _ReadCluster(Struct, frozen=True):
    """`source` has the object, its owners and its pods. `view` has the objects that rules look up."""

    source: ObjectSource
    view: Cluster


@options.add_settings_flags(
    ReportSettings,
    *(
        "config",
        "no_config",
        "config_from",
        "policies",
        "only",
        "context",
        "context_is_whole",
        "workloads",
        "cel_engine",
        "kubernetes_version",
        "own_namespace",
    ),
)
def command(
    name: Annotated[str, typer.Argument(metavar="KIND/NAME", help="A job in the cluster, such as job/train.")],
    *,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read the cluster of this kubeconfig.")
    ] = None,
    kube_context: KubeContext = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Namespace of the job.")
    ] = "default",
    chosen: Outputs = None,
    settings: ReportSettings,
) -> int:
    """Say why a job in the cluster does not run, and what would stop it next.

    Reads the cluster of kubectl, or the files of --context: the job, the objects that controllers made for it, their
    conditions and events, and the queues of Kueue and Volcano. Creates and changes nothing. Objects that you may not
    read are reported as not known.

    Exit codes:

    - 0: the job starts, runs, is done, or waits for other jobs

    - 1: something must be fixed

    - 2: the object does not exist or cannot be read

    - 3: the answer depends on something unknown
    """
    outputs = output.parse_outputs(chosen, FORMATS)
    split_object_name(name)  # a wrong name must fail before the cluster is read
    if (kubeconfig or kube_context) and settings.context:
        flag = "--kubeconfig" if kubeconfig else "--kube-context"
        raise ConfigurationError(f"why: {flag} reads a cluster, --context reads files: leave one out")
    if "context_is_whole" in settings.names_given_by_flags and not settings.context:
        raise ConfigurationError(
            "why: --context-is-whole is about the files of --context: add --context, or leave out --context-is-whole"
        )
    assembled = assembly.assemble_policies_and_context(settings)
    options.print_policy_notes(settings, assembled.policies)
    with _opened_cluster(assembled, kubeconfig, kube_context, is_live=not settings.context) as cluster:
        answer = _answer(name, namespace, cluster, assembled)
    texts = {
        "text": lambda: why_as_text(answer, screen_of(sys.stdout)),
        "json": lambda: indented_json([why_as_json(answer)]) + "\n",
    }
    output.write_to_outputs(outputs, texts)
    terminal.print_to_stderr(f"note: {each}" for each in fixtures.notes_on_context(assembled.files, settings))
    return answer.exit_code


@contextmanager
def _opened_cluster(
    assembled: assembly.ReviewAssembly, kubeconfig: Path | None, kube_context: str | None, *, is_live: bool
) -> Iterator[_ReadCluster]:
    if not is_live:
        view = assembled.files.cluster_view_of_file()
        yield _ReadCluster(FileSource(view), ClusterWithAssumedNamespaces(view))
        return
    from webhook.status.sources import ServerSource

    with open_live_cluster(assembled.policies, kubeconfig, kube_context, others=LOOKUPS) as live:
        yield _ReadCluster(ServerSource(live.connection), live.view)


def _answer(name: str, namespace: str, cluster: _ReadCluster, assembled: assembly.ReviewAssembly) -> Why:
    reading = ClusterReading(cluster.source)
    root = find_named_object(name, namespace, reading, assembled.table)
    explanation, tree = explain(root, reading)
    source = cluster.view.file_of_object(root) or _CLUSTER
    job = _job_of_tree(tree, assembled)
    is_over = explanation.state in ("running", "done")
    if job is None or is_over:
        return Why(explanation=explanation, next=None, source=source)
    simulated = _simulation(job, source, cluster.view, assembled)
    is_queued = not _MADE_BY_QUEUES.isdisjoint(explanation.made)
    return Why(explanation=explanation, next=without_waiting(simulated) if is_queued else simulated, source=source)


def _job_of_tree(tree: OwnedObjects, assembled: assembly.ReviewAssembly) -> JSON | None:
    """Return the topmost of the object and its owners that is in the workload table, or None."""
    of_table = [each for each in (tree.root, *tree.owners) if assembled.table.row(*group_kind(each)) is not None]
    return of_table[-1] if of_table else None


def _simulation(job: JSON, source: str, view: Cluster, assembled: assembly.ReviewAssembly) -> Simulation:
    """Simulate a job as if it were created now."""
    try:
        attributes = fixtures.attributes_of_fixture(_as_sent(job), assembled.table.row)
    except CallError as error:
        raise ConfigurationError(f"why: {error.message}") from None
    place = Place(file=source)
    located = ObjectPlace(place, lambda _path, _words: place)
    return simulate_job(attributes, located, RecordingCluster(view), assembled.policies, assembled.options)


def _as_sent(stored: JSON) -> JSON:
    """Return a stored object as a user would create it again: without the fields that the API server wrote."""
    metadata = {key: value for key, value in stored["metadata"].items() if key not in _WRITTEN_BY_SERVER}
    sent = {**{key: value for key, value in stored.items() if key != "status"}, "metadata": metadata}
    return _without_generated_selector(sent) if group_kind(sent) == ("batch", "Job") else sent


def _without_generated_selector(job: JSON) -> JSON:
    """Return a Job without the selector and the uid labels, which the API server wrote. With manualSelector, the user
    wrote them.
    """
    spec = job.get("spec")
    if not isinstance(spec, dict) or spec.get("manualSelector"):
        return job
    spec = {key: value for key, value in spec.items() if key != "selector"}
    if isinstance(spec.get("template"), dict):
        spec["template"] = _without_uid_labels(spec["template"])
    return {**_without_uid_labels(job), "spec": spec}


def _without_uid_labels(labelled: JSON) -> JSON:
    metadata = labelled.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("labels"), dict):
        return labelled
    labels = {key: value for key, value in metadata["labels"].items() if key not in _WRITTEN_INTO_JOBS}
    return {**labelled, "metadata": {**metadata, "labels": labels}}
