"""Audits one part of the input, and returns its findings and messages.

Each object is reviewed as if a user submitted it. A part needs no results of other parts, so several processes can
audit parts. The results are joined in the order of the input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct, field, structs

from webhook import assembly
from webhook.admission import fixtures
from webhook.admission.exceptions import is_ignored_by_configuration
from webhook.admission.kind_names import KindMistake, kind_mistake
from webhook.admission.phases import LocalAnswerer, PhaseName, PhasesOutcome, run_phases
from webhook.apimachinery.attributes import JSON, POD, Attributes, GroupVersionKind, Phase
from webhook.cluster import Cluster
from webhook.cluster.file_tree import is_assertion
from webhook.cluster.lookup import namespace_and_name
from webhook.commands.progress import Interrupts
from webhook.commands.repeated_keys import RepeatedKeys, finding_without_policy
from webhook.deadline import Deadline
from webhook.errors import CallError, InputProblem
from webhook.evaluation.review_options import ReviewOptions
from webhook.facts.pods.unread_pods import unread_parts
from webhook.input import document_stream, documents
from webhook.input.document_stream import SourcePart
from webhook.policy.param_rules import ParamRuleChecker
from webhook.policy.policy_set import PolicySet
from webhook.report.commented import CommentedFindings
from webhook.report.counts import ObjectCounts
from webhook.report.filters import Filters
from webhook.report.finding import Finding, Result, Subject, findings_of_object, subject_of_request
from webhook.report.formats import FINDINGS_AND_PASSES, RequiredContents, writers_of_findings
from webhook.report.queued_jobs import Demand, QueueKey
from webhook.report.rule import Rules, RulesOfPolicies
from webhook.report.writer import SkippedDocument
from webhook.rules.catalogue import RULES_OF_FILES, UNKNOWN_KIND
from webhook.rules.decisions import Decision
from webhook.rules.problem import Problem
from webhook.text.terminal import one_line
from webhook.workloads.table import Table
from webhook.yamltext import templates
from webhook.yamltext.source_line import Place

if TYPE_CHECKING:
    from webhook.commands.git_changes import GitChanges


Reviewed: TypeAlias = Literal["create", "stored"]
_PHASES: Final[dict[Reviewed, PhaseName]] = {"create": "auto", "stored": "validate"}
"""Created objects are mutated, then validated. Stored objects are only validated."""
_LONGEST_NAME: Final = 120
_UNKNOWN_FIELD: Final = "manifest-shape/unknown-field"
_NO_LIST: Final = "`items` has objects, but kubectl reads them only with `apiVersion: v1` and `kind: List`"
_PATCH: Final = "a patch of a kustomization, which is only a part of an object"


class PartResult(Struct):
    """The result of a part. Messages and counts are complete only after all findings were read.

    Attributes:
        entries: the number of audited objects.
        unchanged: the number of objects that do not differ from the revision of --changed-since.
        skipped: documents that are not objects.
        unasked: the number of objects without a policy and without findings, by kind.
        pods_not_read: the number of objects with unread pods, by kind. These objects are not reported as passes.
        warnings: lines about mistakes that are not findings.
        notes: lines that a run prints once, each with the first place.
        exceptions: the used exceptions, with the number of uses.
        ignored: the number of objects that the configuration ignores.
        hidden: the number of findings that the configuration hides.
        demands: the demands of jobs by queue, if a report draws queues.
        not_compared: files that could not be compared with a revision, with the reasons.
        differing: objects that files define differently, with the files.
        recorded: objects of recorded reviews.
        params: objects of the part that are params of policies and set levels of rules.
        texts: the findings as lines of each format, if a worker process wrote them. Then `findings` is empty, and
            `counts` has the numbers.
    """

    findings: Sequence[Finding] = ()
    entries: int = 0
    unchanged: int = 0
    ignored: int = 0
    hidden: int = 0
    files: int = 0
    size_bytes: int = 0
    skipped: list[SkippedDocument] = field(default_factory=list)
    unasked: Counter[str] = field(default_factory=Counter)
    pods_not_read: Counter[str] = field(default_factory=Counter)
    problems: list[InputProblem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: Mapping[str, str] = field(default_factory=dict)
    templates: Sequence[templates.ChartTemplate] = ()
    exceptions: Counter[str] = field(default_factory=Counter)
    params: Sequence[str] = ()
    demands: dict[QueueKey, Demand] = field(default_factory=dict)
    not_compared: Mapping[str, str] = field(default_factory=dict)
    differing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    recorded: frozenset[str] = frozenset()
    texts: Mapping[str, str] = field(default_factory=dict)
    counts: ObjectCounts = field(default_factory=ObjectCounts)


class FindingLineEncoder(Struct, frozen=True):
    """Writes findings as lines in the worker process. The main process only copies the text.

    Args:
        formats: the formats of the report, which write each finding alone.
        filters: selects the reported findings. Has no baseline, because a baseline needs all findings of a run.
        shown: results that get rows in addition to findings.
    """

    formats: tuple[str, ...]
    filters: Filters
    shown: frozenset[Result] = frozenset()

    def encode(self, result: PartResult) -> None:
        """Replace the findings of a part by their lines and counts."""
        reported = [each for each in result.findings if self.filters.allows_finding(each)]
        result.hidden = sum(
            self.filters.is_hidden_by_configuration(each)
            for each in result.findings
            if not self.filters.allows_finding(each)
        )
        for each in reported:
            result.counts.add_finding(each)
        writers = writers_of_findings(self.shown)
        written = {name: writers[name]() for name in self.formats}
        result.texts = {
            name: "".join(text for each in reported for text in writer.entry(each)) for name, writer in written.items()
        }
        result.findings = ()


class PartOptions(Struct, frozen=True, kw_only=True):
    """How objects are reviewed, and what is reported about them.

    Attributes:
        address: the address of the pages of rules.
        contents: the data that reports need.
        encoder: writes the findings in the worker process; None if the main process writes them.
    """

    reviewed: Reviewed
    details: ReviewOptions
    address: str = ""
    contents: RequiredContents = FINDINGS_AND_PASSES
    encoder: FindingLineEncoder | None = None


class PartAudit:
    """Audits parts with the same policies and the same view of the cluster."""

    def __init__(
        self, assembled: assembly.ReviewAssembly, options: PartOptions, changes: GitChanges | None = None
    ) -> None:
        """`changes` has the objects that changed; None means all objects."""
        self.rules: Rules = RulesOfPolicies(assembled.policies, options.address, RULES_OF_FILES.values())
        self._table = assembled.table
        self._row = assembled.table.row
        self._policies = assembled.policies
        self._files = assembled.files
        self._submissions = fixtures.Submissions(
            assembled.files, assembled.table.row, fills_defaults=assembled.fills_defaults
        )
        self._audit = ObjectAudit(assembled.policies, options.reviewed, options.details)
        self._changes = changes
        self._contents = options.contents
        self._encoder = options.encoder

    def audit_part(self, part: SourcePart) -> PartResult:
        """Audit one part. The result has all findings, or their lines if there is an encoder."""
        result = PartResult()
        result.findings = tuple(self.findings(part, result))
        if self._encoder is not None:
            self._encoder.encode(result)
        return result

    def findings(self, part: SourcePart, result: PartResult, stop: Interrupts | None = None) -> Iterator[Finding]:
        """Yield the findings of a part and fill `result`, until `stop` is set."""
        by_kustomize = self._files.is_read_by_kustomize(part.source)
        inputs = document_stream.read_documents_of_part(
            part,
            by_kustomize=by_kustomize,
            refuses_repeats=by_kustomize and not self._files.is_patch(part.source),
        )
        result.size_bytes = part.part.size_bytes
        keys = RepeatedKeys(inputs, self._is_object, self.rules)
        self._add_messages(inputs, keys, result)
        root = part.file.root
        reason = self._files.reason_not_applied(part.source, root) if root else ""
        for each in inputs.documents:
            if stop is not None and stop.is_set:
                break
            yield from self._findings_of_document(each, keys, result, root, reason)
        result.skipped[:0] = map(_skipped_document_of_problem, inputs.others)
        if self._changes is not None:
            result.not_compared = self._changes.pop_files_not_compared()
        result.differing, result.recorded = self._files.pop_new_differences()

    def _add_messages(self, inputs: documents.InputDocuments, keys: RepeatedKeys, result: PartResult) -> None:
        result.files = inputs.files
        result.templates = inputs.templates
        checker = ParamRuleChecker(
            self._policies.policies, self._policies.registry, own_namespace=self._policies.own_namespace
        )
        params = [each for each in inputs.documents if checker.is_param(each.value)]
        result.problems += (*inputs.problems, *assembly.check_rule_names_in_params(checker, params))
        result.params = [_short_name(each.value) for each in params]
        result.warnings += map(str, keys.elsewhere)
        noted = {
            note: str(each.place())
            for each in reversed(inputs.documents)
            if (note := fixtures.note_on_v1beta1_review(each.value))
        }
        result.notes = noted

    def _findings_of_document(
        self, each: documents.InputDocument, keys: RepeatedKeys, result: PartResult, root: str, not_applied: str
    ) -> Iterator[Finding]:
        """Evaluate an object once and yield its findings.

        `root` is the folder that a user named; "" if the user named the file. `not_applied` says why the object is
        never applied; "" if it may be applied. An object that is never applied is skipped, but its repeated keys are
        reported.
        """
        if self._changes is not None and not self._changes.is_changed(each):
            result.unchanged += 1
            return
        if self._files.is_patch(each.source):
            result.skipped.append(SkippedDocument(place=each.place(), why=_PATCH, is_half=False, is_unapplied=True))
            return
        try:
            sent = self._submissions.of(each, root)
        except CallError as error:
            # the text after the semicolon is about reviews, not about files
            why, is_half = error.message.partition(";")[0], _has_part_of_object(each.value)
            if _is_list_without_kind(each.value):
                why, is_half = _NO_LIST, True
            result.skipped.append(SkippedDocument(place=each.place(), why=why, is_half=is_half))
            return
        attributes = sent.attributes
        if not_applied:
            result.skipped.append(
                SkippedDocument(place=each.place(), why=not_applied, is_half=False, is_unapplied=True)
            )
            if is_assertion(each.source):
                yield from keys.findings(each, subject_of_request(attributes))
            return
        result.entries += 1
        outcome = self._audit.run_policies_on_object(attributes, sent.cluster)
        decisions = decisions_of(outcome)
        mistake = None if attributes.is_of_tests else kind_mistake(each.value, self._table)
        if self._contents.queues:
            from webhook.commands.job_demands import add_demand

            add_demand(result.demands, attributes, outcome, sent.cluster, self._policies)
        is_ignored = not decisions and is_ignored_by_configuration(
            attributes, self._policies.configuration, sent.cluster
        )
        result.ignored += is_ignored
        inside = fixtures.object_path(each.value)
        finding_subject = subject_of_request(attributes)
        if decisions and has_unread_pods(attributes, self._table):
            result.pods_not_read[qualified_kind(attributes.kind)] += 1
            finding_subject = structs.replace(finding_subject, has_unread_pods=True)
        findings = (
            *keys.findings(each, finding_subject),
            *_findings_of_kind(mistake, each, finding_subject, self.rules),
            *findings_of_object(
                decisions,
                finding_subject,
                each.locator(inside),
                self.rules,
                each.line_finder(inside),
                with_passes=self._contents.passes and not finding_subject.has_unread_pods,
            ),
        )
        if not findings:  # most objects
            if not decisions and not is_ignored:
                result.unasked[qualified_kind(attributes.kind)] += 1
            return
        commented = CommentedFindings(self._policies.configuration, each.document.ignore_comments)
        if keys.has_several_objects(each):
            findings = tuple(finding for finding in findings if not _is_of_other_object(finding))
        commented_findings = tuple(commented.apply(findings))
        result.warnings += commented.warnings
        result.exceptions.update(finding.exception_reason for finding in commented_findings if finding.exception_reason)
        yield from commented_findings

    def _is_object(self, value: JSON) -> bool:
        try:
            fixtures.attributes_of_fixture(value, self._row)
        except CallError:
            return False
        return True


def _findings_of_kind(
    mistake: KindMistake | None, each: documents.InputDocument, subject: Subject, rules: Rules
) -> Iterator[Finding]:
    if mistake is not None:
        problem = Problem(code=UNKNOWN_KIND.id, path=mistake.field, message=mistake.message, fix=mistake.fix)
        yield finding_without_policy(rules, problem, subject, each.place((mistake.field,)))


def _is_of_other_object(finding: Finding) -> bool:
    """Return whether a finding is about an unknown field at the top. The field belongs to an object above it."""
    return finding.rule.id == _UNKNOWN_FIELD and "." not in finding.path


def _short_name(obj: JSON) -> str:
    """Return kind, namespace and name on one line of at most 120 characters."""
    name = "/".join(filter(None, namespace_and_name(obj)))
    return one_line(f"{obj['kind']} {name}")[:_LONGEST_NAME]


def _skipped_document_of_problem(problem: InputProblem) -> SkippedDocument:
    place = Place(file=problem.file, line=problem.line, column=problem.column)
    return SkippedDocument(place=place, why=f"not a Kubernetes manifest: {problem.message}", is_half=False)


def _is_list_without_kind(value: JSON) -> bool:
    items = value.get("items") if isinstance(value, dict) and not {"apiVersion", "kind"} <= value.keys() else None
    return isinstance(items, list) and bool(items) and all(map(_is_object_with_name, items))


def _is_object_with_name(value: JSON) -> bool:
    return isinstance(value, dict) and {"apiVersion", "kind", "metadata"} <= value.keys()


def _has_part_of_object(value: JSON) -> bool:
    """Return whether a document looks like a part of an object, such as a kind without apiVersion."""
    return isinstance(value, dict) and ("kind" in value or ("apiVersion" in value and "metadata" in value))


class ObjectAudit(Struct, frozen=True):
    """Reviews objects with the same policies and options."""

    policies: PolicySet
    reviewed: Reviewed
    details: ReviewOptions

    def run_policies_on_object(self, attributes: Attributes, cluster: Cluster) -> PhasesOutcome:
        """Return the result of the policies for an object."""
        if self.reviewed == "stored":
            attributes = without_scheduled_node(attributes)
        answerer = LocalAnswerer(policies=self.policies, cluster=cluster, options=self.details)
        return run_phases(attributes, _PHASES[self.reviewed], answerer)


def decisions_of(outcome: PhasesOutcome) -> Sequence[tuple[Phase, Decision]]:
    """Return all decisions on an object, empty if no policy applies."""
    return (*outcome.decisions, *outcome.further)


def has_unread_pods(attributes: Attributes, table: Table) -> bool:
    """Return whether an object has pods that are not read. A lack of findings then does not mean a lack of mistakes."""
    kind = attributes.kind
    if kind == POD:
        return False
    return table.row(kind.group, kind.kind) is not None and bool(unread_parts(attributes.object, table, Deadline()))


def without_scheduled_node(attributes: Attributes) -> Attributes:
    """Return a stored Pod without spec.nodeName. The scheduler wrote the field, and rules are for users who set it."""
    spec = attributes.object.get("spec") if isinstance(attributes.object, dict) else None
    if attributes.kind != POD or not isinstance(spec, dict) or "nodeName" not in spec:
        return attributes
    other_fields = {name: value for name, value in spec.items() if name != "nodeName"}
    return replace(attributes, object={**attributes.object, "spec": other_fields})


def qualified_kind(kind: GroupVersionKind) -> str:
    """Return the kind with its API group as kubectl writes it: `Pod`, `Workflow.argoproj.io`."""
    return f"{kind.kind}.{kind.group}" if kind.group else kind.kind
