"""`claimgate simulate`: says whether a job can ever start in a cluster or among files, and if not, why."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer
from msgspec import structs

from webhook import assembly
from webhook.admission import fixtures
from webhook.apimachinery.attributes import Attributes
from webhook.apimachinery.paths import get
from webhook.cluster import Cluster
from webhook.cluster.known_kinds import CLUSTER_SCOPED
from webhook.cluster.layered import LayeredCluster
from webhook.cluster.recording import RecordingCluster
from webhook.commands import options, output
from webhook.commands.live_options import KubeContext, open_live_cluster
from webhook.commands.options import complete_output
from webhook.errors import CallError, ConfigurationError, InputError, InputProblem
from webhook.facts.pods.unread_pods import looks_like_pods, makes_no_pods
from webhook.input import documents
from webhook.report.records import indented_json
from webhook.report.screen import screen_of
from webhook.settings.shared import ReviewSettings
from webhook.simulation import text
from webhook.simulation.open_questions import LOOKUPS
from webhook.simulation.outcome import ObjectPlace, Simulation, simulate_job
from webhook.text import terminal
from webhook.workloads.podsets import group_kind
from webhook.workloads.table import Table

if TYPE_CHECKING:
    from webhook.commands.audit_live import LiveCluster
    from webhook.policy.policy_set import PolicySet

    OpenLiveCluster: TypeAlias = Callable[[PolicySet], AbstractContextManager[LiveCluster]]

FORMATS: Final = ("text", "json")
Outputs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT[=FILE]",
        help="text or json; repeatable.",
        autocompletion=complete_output(*FORMATS),
    ),
]
_TEMPLATES: Final = frozenset(
    (
        *("PodTemplate", "TrainingRuntime", "ClusterTrainingRuntime", "JobTemplate", "SandboxTemplate", "Pool"),
        *("LLMInferenceServiceConfig", "ServingRuntime", "ClusterServingRuntime", "ServerConfig"),
        *("WorkflowTemplate", "ClusterWorkflowTemplate", "Task", "Pipeline"),
    )
)
"""Objects of these kinds start no pods."""


@options.add_flags_of_verb(ReviewSettings, "simulate")
def command(
    file: Annotated[
        str, typer.Argument(metavar="FILE", show_default=False, help="A job in YAML or JSON, or - for stdin.")
    ] = "",
    *,
    filename: Annotated[
        str, typer.Option("--filename", "-f", metavar="FILE", help="FILE as an option, as kubectl -f.")
    ] = "",
    live: Annotated[bool, typer.Option("--live", help="Look up objects in the cluster of kubectl.")] = False,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Look up objects in the cluster of this kubeconfig.")
    ] = None,
    kube_context: KubeContext = None,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", metavar="NAME", help="Namespace of a job that names none. [default: default]"
        ),
    ] = "",
    chosen: Outputs = None,
    settings: ReviewSettings,
) -> int:
    """Say whether a job can ever start, and if not, why.

    Reviews the job as if it were created now, and compares it with queues, quota, claims, nodes and volumes. Reads
    these objects from FILE, and from --context or the cluster (--live). Creates and changes nothing.

    Exit codes. If FILE has several jobs, the worst answer counts:

    - 0: nothing prevents the start, or the job waits for other jobs

    - 1: a job is refused, never starts, or starts and then fails

    - 2: a job or a policy cannot be read

    - 3: the answer depends on something unknown
    """
    if bool(file) == bool(filename):
        raise ConfigurationError("simulate: name one file, as FILE or -f FILE (see `claimgate simulate --help`)")
    file = file or filename
    outputs = output.parse_outputs(chosen, FORMATS)
    is_live = live or kubeconfig is not None or kube_context is not None
    if is_live and settings.names_given_by_flags & {"context", "context_is_whole"}:
        raise ConfigurationError("simulate: --live has the whole cluster; leave out --context and --context-is-whole")
    inputs = documents.read_documents([file])
    if problems := (*inputs.problems, *documents.problem_of_nothing_read([file], inputs, "job")):
        raise InputError(*problems)
    open_live = partial(open_live_cluster, kubeconfig=kubeconfig, kube_context=kube_context, others=LOOKUPS)
    answers = list(_simulations(inputs, settings, namespace, open_live if is_live else None))
    if not answers:
        message = "no job found: no object of this file makes pods; name the file of a job, such as a TrainJob"
        raise InputError(InputProblem(message=message, file=file))
    screen = screen_of(sys.stdout)
    texts = {
        "text": lambda: "\n".join(text.text(each, screen) for each in answers),
        "json": lambda: indented_json([text.simulation_as_json(each) for each in answers]) + "\n",
    }
    output.write_to_outputs(outputs, texts)
    return _exit_code_of_answers(answers)


def _simulations(
    inputs: documents.InputDocuments,
    settings: ReviewSettings,
    namespace: str,
    open_live: OpenLiveCluster | None,
) -> Iterator[Simulation]:
    submitted = _documents_in_namespace(inputs.documents, namespace)
    objects = [(each.source, each.value) for each in submitted if isinstance(each.value, dict)]
    assembled = assembly.assemble_policies_and_context(
        settings, objects=objects, is_complete=fixtures.is_complete(inputs)
    )
    options.print_policy_notes(settings, assembled.policies)
    submissions = fixtures.Submissions(
        assembled.files, assembled.table.row, namespace=namespace, fills_defaults=assembled.fills_defaults
    )
    table = assembled.table
    with _cluster_of_simulation(assembled, open_live) as live_view:
        requests, problems = _requests_of_documents(submitted, submissions)
        if not requests:
            raise InputError(*problems)
        sys.stderr.write(
            terminal.lines(f"note: {each.file}:{each.line}: not simulated: {each.message}" for each in problems)
        )
        is_alone = not any(_is_job(sent.attributes, table) for _, sent in requests)
        for each, sent in requests:
            kind = sent.attributes.kind
            is_unknown = table.row(kind.group, kind.kind) is None and not makes_no_pods(kind.group, kind.kind, table)
            is_unknown = is_unknown and (is_alone or looks_like_pods(sent.attributes.object))
            if is_unknown or _is_job(sent.attributes, table):
                cluster = sent.cluster
                if live_view is not None:
                    cluster = LayeredCluster(assembled.files.cluster_view_of_file(each.source), live_view)
                located = ObjectPlace(each.place(), each.locator(fixtures.object_path(each.value)))
                yield simulate_job(
                    sent.attributes, located, RecordingCluster(cluster), assembled.policies, assembled.options
                )
    terminal.print_to_stderr(f"note: {each}" for each in fixtures.notes_on_context(assembled.files, settings))


def _documents_in_namespace(
    inputs: Sequence[documents.InputDocument], namespace: str
) -> Sequence[documents.InputDocument]:
    """Return the documents as kubectl creates them: an object without a namespace gets `namespace`.

    Without --namespace, objects get `default` if this is the only namespace in the file. Otherwise the job may belong
    to another namespace.
    """
    named = [get(each.value, ("metadata", "namespace")) for each in inputs]
    is_default = all(each in (None, fixtures.DEFAULT_NAMESPACE) for each in named) and any(named)
    chosen = namespace or (fixtures.DEFAULT_NAMESPACE if is_default else "")
    if not chosen:
        return inputs
    return [
        structs.replace(each, value=fixtures.object_in_namespace(each.value, chosen))
        if group_kind(each.value) not in CLUSTER_SCOPED
        else each
        for each in inputs
    ]


@contextmanager
def _cluster_of_simulation(
    assembled: assembly.ReviewAssembly, open_live: OpenLiveCluster | None
) -> Iterator[Cluster | None]:
    """Yield the live cluster with a view of the objects that policies look up; None if only files are used."""
    if open_live is None:
        yield None
        return
    with open_live(assembled.policies) as live:
        yield live.view


def _requests_of_documents(
    inputs: Iterable[documents.InputDocument], submissions: fixtures.Submissions
) -> tuple[list[tuple[documents.InputDocument, fixtures.SubmittedObject]], list[InputProblem]]:
    """Return the objects to simulate, and a problem for each other document: a document without a Kubernetes object,
    or a review of a request that starts no pods.
    """
    requests, problems = [], []
    for each in inputs:
        try:
            sent = submissions.of(each)
            message = _why_nothing_starts(sent.attributes)
        except CallError as error:
            message = error.message
        if message:
            problems.append(InputProblem(message=message, file=each.source, line=each.place().line))
        else:
            requests.append((each, sent))
    return requests, problems


def _why_nothing_starts(attributes: Attributes) -> str:
    """Return why a request cannot start pods; "" for a request that creates or changes an object."""
    if attributes.sub_resource:
        return f"a request for the subresource {attributes.sub_resource} starts no pods"
    return "" if attributes.operation in ("CREATE", "UPDATE") else f"a {attributes.operation} starts no pods"


def _is_job(attributes: Attributes, table: Table) -> bool:
    kind = attributes.kind
    return kind.kind not in _TEMPLATES and table.row(kind.group, kind.kind) is not None


def _exit_code_of_answers(answers: list[Simulation]) -> int:
    if any(each.can_start is False for each in answers):
        return 1
    return 3 if any(each.answer == "unknown" for each in answers) else 0
