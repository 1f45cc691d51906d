"""`claimgate audit`: every object of folders, files or stdin through the same core, as findings with their lines."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal, TypeAlias

import typer

from webhook import assembly, charts, documents, terminal
from webhook.admission import fixtures
from webhook.admission.kind_names import kind_mistake
from webhook.admission.phases import Local, PhaseName, run
from webhook.attributes import JSON, GroupVersionKind
from webhook.commands import audited_objects, options, output, submitted
from webhook.commands.repeated_keys import RULE, RepeatedKeys
from webhook.errors import CallError, Problem
from webhook.evaluation.review_options import ReviewOptions
from webhook.report import formats
from webhook.report.finding import Finding, Place, Result, findings, subject
from webhook.report.rule import Rules, rules
from webhook.report.writer import SkippedDocument, Totals
from webhook.settings.shared import Settings

_UNREADABLE = 2
_PATCH: Final = "a patch of a kustomization, which is only a part of an object"
Reviewed: TypeAlias = Literal["create", "stored"]
_PHASES: Final[dict[Reviewed, PhaseName]] = {"create": "auto", "stored": "validate"}
"""What is created passes mutation first; what is stored did so when it was written, or never."""


@options.takes(
    Settings,
    *("config", "policies", "only", "context", "context_is_whole", "workloads", "cel_engine", "kubernetes_version"),
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
    settings: Settings,
) -> int:
    """Report every finding about the objects of folders, files or stdin.

    Each object is reviewed as if it were created now, or with --as stored as it is, without a mutation. The cluster
    holds the objects of --context, of its own file, and of the files that one kustomization, chart or folder has with
    it; names and namespaces are as kustomizations set them. What several of these files define differently is unknown.
    That an object does not exist is said only with --context-is-whole. Exits with 0 when nothing was found, 1 when
    something was, 2 when an input or a policy cannot be read, and 3 when nothing was found but a policy that may deny
    could not decide.
    """
    writers = formats.of_findings()
    outputs = output.parse(chosen, writers)
    inputs = documents.read(path, exclude or ())
    assembled = assembly.assemble(
        settings,
        objects=audited_objects.objects(inputs),
        is_complete=submitted.is_complete(inputs),
        unbound=unbound,
    )
    options.warn_of_unbound(assembled.policies)
    # before the report, so that findings are what a terminal shows last
    wrong_params = assembly.param_problems(assembled.policies, inputs)
    problems = (*inputs.problems, *wrong_params, *documents.nothing(path, inputs, "object"))
    details = ReviewOptions(advice=advice, is_stored=as_ == "stored")
    audit = _Audit(inputs, assembled, reviewed=as_, is_verbose=verbose, details=details)
    sys.stderr.write(terminal.lines(_told(inputs, assembled, problems, audit.keys.elsewhere)))
    with output.Report(outputs, writers, audit.rules) as report:
        for finding in audit.findings():
            report.entry(finding)
        sys.stderr.write(terminal.lines(f"note: {each}" for each in submitted.notes(assembled.files, settings)))
        report.end(audit.totals())
    return _UNREADABLE if problems else audit.exit_code()


def _told(
    inputs: documents.Inputs, assembled: assembly.Assembly, problems: Sequence[Problem], repeated: Sequence[Problem]
) -> Iterator[str]:
    """What is said of files, of keys that stand twice outside objects, and of objects whose kinds nobody has."""
    yield from (f"error: {problem}" for problem in problems)
    yield from (f"warning: {problem}" for problem in repeated)
    if template := charts.summary(inputs.templates):
        yield f"note: {template}"
    notes = {note: each.place() for each in reversed(inputs.documents) if (note := fixtures.note(each.value))}
    yield from (f"note: {place}: {note}" for note, place in notes.items())
    for each in inputs.documents:
        if mistake := kind_mistake(each.value, assembled.table):
            yield f"warning: {each.place(('kind',))}: kind: {mistake}"


class _Audit:
    """One audit: its findings one after the other, and then what they add up to."""

    def __init__(
        self,
        inputs: documents.Inputs,
        assembled: assembly.Assembly,
        *,
        reviewed: Reviewed,
        is_verbose: bool,
        details: ReviewOptions,
    ) -> None:
        self.rules: Rules = {**rules(assembled.policies), RULE.id: RULE}
        self._inputs = inputs
        self._row = assembled.table.row
        self._policies = assembled.policies
        self._files = assembled.files
        self._submissions = submitted.Submissions(assembled.files, assembled.table.row)
        self.keys = RepeatedKeys(inputs, self._is_object)
        self._reviewed: Reviewed = reviewed
        self._results: Counter[Result] = Counter()
        self._is_undecided = False
        self._skipped = [_not_a_manifest(each) for each in inputs.others]
        self._unasked: Counter[str] = Counter()
        self._is_verbose = is_verbose
        self._details = details

    def findings(self) -> Iterator[Finding]:
        """The findings of each object, once."""
        for each in self._inputs.documents:
            if self._files.is_patch(each.source):
                self._skipped.append(SkippedDocument(place=each.place(), why=_PATCH, is_half=False))
                continue
            try:
                sent = self._submissions.of(each)
            except CallError as error:
                # what follows the semicolon tells a webhook's owner what to send, which nobody audits for
                why, is_half = error.message.partition(";")[0], _is_half(each.value)
                self._skipped.append(SkippedDocument(place=each.place(), why=why, is_half=is_half))
                continue
            attributes = sent.attributes
            if self._reviewed == "stored":
                attributes = audited_objects.as_submitted(attributes)
            door = Local(policies=self._policies, cluster=sent.cluster, options=self._details)
            outcome = run(attributes, _PHASES[self._reviewed], door)
            decisions = (*outcome.decisions, *outcome.further)
            if not decisions:
                self._unasked[_qualified(attributes.kind)] += 1
            locate = each.locator(fixtures.object_path(each.value))
            made = (
                *self.keys.findings(each, attributes),
                *findings(decisions, subject(attributes), locate, self.rules),
            )
            self._results.update(finding.result for finding in made if not finding.is_advice)
            self._is_undecided |= any(each.is_undecided for each in made)
            yield from made

    def _is_object(self, value: JSON) -> bool:
        """Whether a document is one that is audited."""
        try:
            fixtures.attributes(value, self._row)
        except CallError:
            return False
        return True

    def exit_code(self) -> int:
        """Weigh the findings so far: something was found, undecided, clean."""
        if self._results[Result.FAIL] or self._results[Result.WARN]:
            return 1
        return 3 if self._is_undecided else 0

    def totals(self) -> Totals:
        """What the findings so far add up to."""
        return Totals(
            entries=len(self._inputs.documents) + len(self._inputs.others) - len(self._skipped),
            results={result: self._results[result] for result in Result},
            files=self._inputs.files,
            skipped=tuple(self._skipped),
            unreadable=self._inputs.problems,
            templates=len(self._inputs.templates),
            unasked=dict(sorted(self._unasked.items())),
            is_verbose=self._is_verbose,
        )


def _not_a_manifest(problem: Problem) -> SkippedDocument:
    """A file of a folder that cannot be read and does not look like a manifest."""
    place = Place(file=problem.file, line=problem.line, column=problem.column)
    return SkippedDocument(place=place, why=f"not a Kubernetes manifest: {problem.message}", is_half=False)


def _is_half(value: JSON) -> bool:
    """Whether a document that is no object has a part of one: values of a chart and kustomizations have none."""
    return isinstance(value, dict) and ("kind" in value or ("apiVersion" in value and "metadata" in value))


def _qualified(kind: GroupVersionKind) -> str:
    """`Pod`, `Workflow.argoproj.io`."""
    return f"{kind.kind}.{kind.group}" if kind.group else kind.kind
