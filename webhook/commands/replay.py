"""`claimgate replay`: shows what the webhook answers to recorded reviews or plain objects."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from webhook import assembly
from webhook.admission import fixtures, respond
from webhook.admission.exceptions import is_ignored_by_configuration
from webhook.admission.kind_names import kind_mistake
from webhook.admission.phases import LocalAnswerer, PhaseName, PhasesOutcome, ReviewAnswerer, run_phases
from webhook.apimachinery.attributes import JSON, Attributes, Phase
from webhook.apimachinery.paths import get
from webhook.cluster.recording import RecordingCluster
from webhook.commands import options, output, report_options
from webhook.errors import CallError, ConfigurationError, InputError, InputProblem
from webhook.input import documents
from webhook.manifests.configuration import FailOn
from webhook.policy.param_rules import ParamRuleChecker
from webhook.policy.policy_set import PolicySet
from webhook.report import formats
from webhook.report.finding import subject_of_request
from webhook.report.results import Answer
from webhook.report.rule import Rules, RulesOfPolicies
from webhook.report.writer import LeftOut, RunDescription, Totals, left_out_by_configuration
from webhook.settings.setting import declared_settings
from webhook.settings.shared import ReviewSettings
from webhook.suites.golden import Recorder
from webhook.text import terminal
from webhook.text.wording import counted
from webhook.workloads import table


@options.add_flags_of_verb(ReviewSettings, "replay")
def command(
    fixture: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIXTURE",
            show_default=False,
            help=(
                "Files, folders or - for stdin: AdmissionReviews, requests, plain objects (as CREATE), or lists of "
                "these, in YAML, JSON or NDJSON."
            ),
        ),
    ] = None,
    *,
    command_line: typer.Context = None,  # type: ignore[assignment] # Typer passes a context, demo.py does not
    filename: options.FilesByOption = None,
    phase: Annotated[
        PhaseName, typer.Option(help="The phase to run; auto runs mutate, then validate on the changed object.")
    ] = "auto",
    chosen: options.ReportOutputs = None,
    fail_on: report_options.FailOnText = "",
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show for each policy the outcome, the reason, the time and the cost."),
    ] = False,
    server: Annotated[
        str, typer.Option(metavar="URL", help="Ask the running webhook at this https address instead.")
    ] = "",
    ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --server: the certificates of trusted authorities."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=(
                "Write a golden folder for each review, for `claimgate test DIR`: the review, the objects that "
                "policies looked up, and the answer. Values of Secrets and of environment variables are left out."
            ),
        ),
    ] = None,
    settings: ReviewSettings,
) -> int:
    """Show what the webhook would answer to recorded reviews or plain objects.

    Policies look up other objects in --context, in the same file, and in files that are applied together. With
    --context-is-whole, a missing object does not exist.

    Exits with 1 if a request is denied, unless --fail-on says otherwise. Exits with 2 if an input or a policy cannot be
    read, or a server does not answer.
    """
    named = options.named_files(fixture, filename)
    if not named:
        raise ConfigurationError("replay: no file is named; add FIXTURE or -f FILE (see `claimgate replay --help`)")
    failing = report_options.parse_fail_on(fail_on, "deny")
    writers = formats.writers_of_answers()
    outputs = output.parse_outputs(chosen, writers)
    if server:
        _refuse_options_of_server(settings, explains=explain)
    if record and server:
        raise ConfigurationError(
            "--record: a server does not return the objects that policies looked up: leave out --server"
        )
    if ca and not server:
        raise ConfigurationError("--ca: is only used with --server; add --server or leave out --ca")
    policies = f"those of {server}" if server else assembly.describe_policy_sets_in_use(settings)
    run = output.describe_run(command_line, policies=policies, docs_address=settings.docs_address)
    inputs = documents.read_documents(named)
    local = partial(_local_backend, settings, inputs, explains=explain, records=record is not None)
    with _server_backend(server, ca, settings) if server else local() as backend:
        replay = Replay(inputs, phase, backend, record)
        with output.Report(outputs, writers, backend.rules) as report:
            for answer in replay.answers():
                report.write_entry(answer)
            report.end(replay.totals(run))
    terminal.print_to_stderr(replay.notes())
    return replay.exit_code(failing, documents.problem_of_nothing_read(named, inputs, "review"))


def _refuse_options_of_server(settings: ReviewSettings, *, explains: bool) -> None:
    """A server has its own options about policies, objects and answers."""
    names = settings.names_given_by_flags - {"workloads"}
    flags = [each.flag for each in declared_settings(ReviewSettings) if each.name in names]
    if wrong := [*flags, *["--explain"] * explains]:
        message = f"the server has its own objects, policies and settings; leave out {', '.join(wrong)}"
        raise ConfigurationError(f"--server: {message}")


class ReplayBackend(Struct, frozen=True):
    """Answers the reviews of a replay, in this process or from a server. The rules of a server are unknown.

    Attributes:
        request_of_document: returns the request for a document, and the object that answers the request.
        problems: mistakes in inputs that are params.
        context_notes: returns the notes about the context after the last answer.
    """

    request_of_document: Callable[[documents.InputDocument], tuple[Attributes, ReviewAnswerer]]
    table: table.Table
    rules: Rules
    problems: tuple[InputProblem, ...] = ()
    context_notes: Callable[[], Iterable[str]] = tuple
    policies: PolicySet | None = None


@contextmanager
def _local_backend(
    settings: ReviewSettings,
    inputs: documents.InputDocuments,
    *,
    explains: bool,
    records: bool,
) -> Iterator[ReplayBackend]:
    assembled = assembly.assemble_policies_and_context(
        settings, objects=objects_after_replay(inputs), is_complete=fixtures.is_complete(inputs)
    )
    options.print_policy_notes(settings, assembled.policies)
    if explains:
        assembled.policies.compile_ahead_of_requests()  # the measured times of policies must not include compiling
    submissions = fixtures.Submissions(assembled.files, assembled.table.row, fills_defaults=assembled.fills_defaults)

    def request_of_document(document: documents.InputDocument) -> tuple[Attributes, ReviewAnswerer]:
        each = submissions.of(document)
        return each.attributes, LocalAnswerer(
            policies=assembled.policies,
            cluster=RecordingCluster(each.cluster) if records else each.cluster,
            options=assembled.options,
            explains=explains,
        )

    checker = ParamRuleChecker(
        assembled.policies.policies, assembled.policies.registry, own_namespace=assembled.policies.own_namespace
    )
    problems = assembly.check_rule_names_in_params(checker, inputs.documents)
    context_notes = partial(fixtures.notes_on_context, assembled.files, settings)
    rules = RulesOfPolicies(assembled.policies, settings.docs_address)
    yield ReplayBackend(request_of_document, assembled.table, rules, problems, context_notes, assembled.policies)


def objects_after_replay(inputs: documents.InputDocuments) -> Iterator[tuple[str, JSON]]:
    """Yield the file and the object of each review, as a cluster would store the object after all reviews.

    An object without a namespace gets the namespace of its request. webhook/cluster/layered.py hides a review's own
    change from the review.
    """
    for each in inputs.documents:
        obj = get(each.value, fixtures.object_path(each.value))
        if isinstance(obj, dict):
            yield each.source, fixtures.object_in_request_namespace(obj, each.value)


@contextmanager
def _server_backend(server: str, ca: Path | None, settings: ReviewSettings) -> Iterator[ReplayBackend]:
    from webhook.commands.remote import RemoteWebhook

    with closing(RemoteWebhook.connect(server, ca)) as remote:
        workloads = table.load_table(settings.workloads)
        yield ReplayBackend(
            lambda each: (fixtures.attributes_of_fixture(each.value, workloads.row), remote), workloads, {}
        )


class Replay:
    """One replay. Call `answers` first, then the other methods."""

    def __init__(
        self, inputs: documents.InputDocuments, phase: PhaseName, backend: ReplayBackend, record: Path | None = None
    ) -> None:
        self._inputs = inputs
        self._phase: PhaseName = phase
        self._backend = backend
        self._recorder = Recorder(record, backend.policies) if record and backend.policies else None
        self._answered = self._denied = 0
        self._is_open = self._is_undecided = self._is_warned = False
        self._unreadable = [*inputs.problems, *backend.problems]
        self._notes: dict[str, str] = {}
        self._ignored = 0
        self._exceptions = Counter[str]()

    def answers(self) -> Iterator[Answer]:
        """Yield the answer to each review. A review without an answer counts as unreadable input."""
        for each in self._inputs.documents:
            try:
                attributes, answerer = self._backend.request_of_document(each)
            except CallError as error:
                self._unreadable.append(_problem_of_document(each, error.message))
                continue
            if note := fixtures.note_on_v1beta1_review(each.value):
                self._notes.setdefault(note, f"note: {_problem_of_document(each, note)}")
            if mistake := kind_mistake(get(each.value, fixtures.object_path(each.value)), self._backend.table):
                place = each.place((*fixtures.object_path(each.value), mistake.field))
                message = f"{place}: {mistake.field}: {mistake.text}"
                self._notes.setdefault(message, f"warning: {message}")
            try:
                outcome = run_phases(attributes, self._phase, answerer)
            except CallError as error:
                message = f"the server answered HTTP {error.code}: {error.message}"
                self._unreadable.append(_problem_of_document(each, message))
                continue
            answer = _answer_for_report(each, attributes, self._phase, outcome)
            self._record(attributes, answerer, outcome)
            self._count_left_out(attributes, answerer, outcome)
            self._answered += 1
            self._denied += not answer.verdict.allowed
            self._is_warned |= bool(answer.verdict.warnings)
            self._is_open |= answer.is_open
            self._is_undecided |= answer.is_undecided
            yield answer

    def _record(self, attributes: Attributes, answerer: ReviewAnswerer, outcome: PhasesOutcome) -> None:
        """Write the golden folder of one review, if recording is on."""
        if (
            self._recorder is None
            or not isinstance(answerer, LocalAnswerer)
            or not isinstance(answerer.cluster, RecordingCluster)
        ):
            return
        if note := self._recorder.write(self._answered, attributes, answerer.cluster, self._phase, outcome):
            self._notes[note] = f"note: {note}"

    def _count_left_out(self, attributes: Attributes, answerer: ReviewAnswerer, outcome: PhasesOutcome) -> None:
        """Count the exceptions of configuration and annotations in one review. A server does not report these."""
        if not isinstance(answerer, LocalAnswerer):
            return
        self._ignored += is_ignored_by_configuration(attributes, answerer.policies.configuration, answerer.cluster)
        for _, each in outcome.decisions:
            if each.exception:
                self._exceptions[each.exception] += max(1, len(each.problems))

    def notes(self) -> Iterator[str]:
        """Yield each note once, with the first review of the note."""
        yield from (f"warning: {each}" for each in self._inputs.repeated)
        if others := self._inputs.others:
            one = "file cannot be read and does not look like a Kubernetes manifest"
            more = "files cannot be read and do not look like Kubernetes manifests"
            yield f"note: {counted(len({each.file for each in others}), one, more)}, first {others[0]}"
        yield from self._notes.values()
        yield from (f"note: {each}" for each in self._backend.context_notes())

    def totals(self, run: RunDescription) -> Totals:
        policies = self._backend.policies
        left_out = (
            left_out_by_configuration(policies.configuration, self._exceptions, objects=self._ignored)
            if policies
            else LeftOut()
        )
        return Totals(
            configured=left_out,
            entries=self._answered,
            failures=self._denied,
            files=self._inputs.files,
            unreadable=tuple(self._unreadable),
            run=run,
        )

    def exit_code(self, failing: frozenset[FailOn], nothing: tuple[InputProblem, ...]) -> int:
        """Return the exit code of the results, as `exit_code_of_results`.

        Raises:
            InputError: an input could not be read, or there was no input.
        """
        if problems := (*self._unreadable, *nothing):
            raise InputError(*problems)
        return report_options.exit_code_of_results(
            failing,
            denied=self._denied > 0,
            warned=self._is_warned,
            undecided=self._is_undecided,
            has_open_rule=self._is_open,
        )


def _problem_of_document(document: documents.InputDocument, message: str) -> InputProblem:
    place = document.place()
    return InputProblem(message=message, file=place.file, line=place.line, column=place.column)


def _answer_for_report(
    document: documents.InputDocument, attributes: Attributes, phase: PhaseName, outcome: PhasesOutcome
) -> Answer:
    shown_as = Phase.VALIDATE if phase == "validate" else Phase.MUTATE  # only a response of this phase has a patch
    body = respond.encode_response(attributes.uid, outcome.verdict, shown_as, attributes.operation)
    return Answer(
        place=document.place(),
        index=document.index,
        subject=subject_of_request(attributes),
        operation=str(attributes.operation),
        phase=phase,
        verdict=outcome.verdict,
        decisions=outcome.decisions,
        patched_object=outcome.patched_object,
        explanations=outcome.explanations,
        further=outcome.further,
        response=json.loads(body),
        locate=document.locator(fixtures.object_path(document.value)),
    )
