"""Counts the decisions of one or two sets of policies about one part of an audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

from webhook import assembly
from webhook.admission.audit_event import EventWithoutRequest, namespace_of_audit_event, request_of_audit_event
from webhook.admission.exceptions import is_ignored_by_configuration
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.apimachinery.attributes import JSON, Attributes, Phase
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.errors import InputProblem
from webhook.input.log_lines import LogPart
from webhook.manifests.configuration import EMPTY, FileConfiguration
from webhook.report.finding import Finding, Result, findings_of_object, subject_of_request
from webhook.report.rule import Rules, RulesOfPolicies
from webhook.report.writer import LeftOut, left_out_by_configuration
from webhook.rules.decisions import Decision
from webhook.yamltext.source_line import Place

MOST_NAMES: Final = 10_000
"""At most this many namespaces and users are counted by name. Further names are counted together, to bound memory."""
OTHERS: Final = "(others)"
MOST_BROKEN_LINES: Final = 20
"""At most this many broken lines of a log are reported with their places. Further lines are only counted."""
_NOTHING: Final[Mapping[str, JSON]] = {}
Side: TypeAlias = str
"""The name of a set of policies: `policies`, or `against` for the set of --against."""


@dataclass(slots=True)
class RuleCount:
    """The counts of one rule, and an example: the first denied request, else the first with a warning, else the first
    that was not decided.
    """

    denied: int = 0
    warned: int = 0
    undecided: int = 0
    example: str = ""
    message: str = ""

    def add(self, other: RuleCount) -> None:
        """Add the counts of a later request or part."""
        if other._rank() > self._rank():
            self.example, self.message = other.example, other.message
        self.denied += other.denied
        self.warned += other.warned
        self.undecided += other.undecided

    def _rank(self) -> int:
        return 3 if self.denied else 2 if self.warned else 1 if self.undecided else 0


@dataclass(slots=True)
class PolicySetCounts:
    """The counts of one set of policies.

    Attributes:
        undecided: the number of requests for which a rule that may deny was not evaluated.
        has_open_rule: whether a rule was not evaluated.
        exceptions: used exceptions of the configuration and of annotations, with the number of uses.
        ignored: the number of requests that the configuration ignores.
    """

    denied: int = 0
    warned: int = 0
    undecided: int = 0
    has_open_rule: bool = False
    exceptions: Counter[str] = field(default_factory=Counter)
    ignored: int = 0
    configuration: FileConfiguration = EMPTY
    rules: dict[str, RuleCount] = field(default_factory=dict)
    namespaces: Counter[str] = field(default_factory=Counter)
    users: Counter[str] = field(default_factory=Counter)

    @property
    def left_out(self) -> LeftOut:
        """Return what the configuration and annotations left out."""
        return left_out_by_configuration(self.configuration, self.exceptions, objects=self.ignored)

    def add(self, other: PolicySetCounts) -> None:
        self.denied += other.denied
        self.warned += other.warned
        self.undecided += other.undecided
        self.has_open_rule |= other.has_open_rule
        self.ignored += other.ignored
        for name, count in other.rules.items():
            self.rules.setdefault(name, RuleCount()).add(count)
        for own_counts, other_counts in (
            (self.namespaces, other.namespaces),
            (self.users, other.users),
            (self.exceptions, other.exceptions),
        ):
            for name, number in other_counts.items():
                own_counts[name if name in own_counts or len(own_counts) < MOST_NAMES else OTHERS] += number


@dataclass(slots=True)
class PartCounts:
    """All counts of a part.

    Attributes:
        skipped: the number of events without a request, by reason.
        broken: the number of lines that are not events.
        broken_lines: the problems of the first broken lines.
        changed: requests that only one of the two sets denies, by `newly denied: RULE` and `no longer denied: RULE`.
    """

    events: int = 0
    requests: int = 0
    reads: int = 0
    read_bytes: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[InputProblem] = field(default_factory=list)
    broken: int = 0
    broken_lines: list[InputProblem] = field(default_factory=list)
    sides: dict[Side, PolicySetCounts] = field(default_factory=dict)
    changed: dict[str, RuleCount] = field(default_factory=dict)

    def add(self, other: PartCounts) -> None:
        self.events += other.events
        self.requests += other.requests
        self.reads += other.reads
        self.skipped += other.skipped
        self.problems += other.problems
        self.broken += other.broken
        self.broken_lines += other.broken_lines[: MOST_BROKEN_LINES - len(self.broken_lines)]
        for side, counts in other.sides.items():
            self.sides.setdefault(side, PolicySetCounts()).add(counts)
        for name, count in other.changed.items():
            self.changed.setdefault(name, RuleCount()).add(count)


def with_namespaces_before(parts: Iterable[LogPart]) -> Iterator[tuple[LogPart, Mapping[str, JSON]]]:
    """Yield each part of a log with the Namespaces that earlier parts changed, as they were before this part."""
    namespaces: dict[str, JSON] = {}
    for part in parts:
        yield part, dict(namespaces)
        for line in part.lines:
            note_namespace(line, namespaces)


def note_namespace(line: bytes, namespaces: dict[str, JSON]) -> None:
    """Store the Namespace that a line changes. If the line lacks the whole object, the Namespace becomes unknown."""
    changed = namespace_of_audit_event(line)
    if changed is None:
        return
    name, namespace = changed
    if namespace is None:
        namespaces.pop(name, None)
    elif name in namespaces or len(namespaces) < MOST_NAMES:
        metadata = {key: value for key, value in namespace["metadata"].items() if key != "managedFields"}
        namespaces[name] = {**namespace, "metadata": metadata}


class PartBacktester:
    """Evaluates each set of policies on each request."""

    def __init__(self, sets: Mapping[Side, assembly.ReviewAssembly]) -> None:
        self._namespaces: dict[str, JSON] = {}
        self._sets = {
            side: (
                each.policies,
                ClusterWithAssumedNamespaces(each.files.cluster_view_of_file(), self._namespaces),
                RulesOfPolicies(each.policies),
                each.options,
            )
            for side, each in sets.items()
        }

    def count_part(self, part: LogPart, namespaces: Mapping[str, JSON] = _NOTHING) -> PartCounts:
        """Return the counts of a part. `namespaces` has Namespaces as they were before this part."""
        self._namespaces.clear()
        self._namespaces.update(namespaces)
        sides = {side: PolicySetCounts(configuration=each[0].configuration) for side, each in self._sets.items()}
        counts = PartCounts(sides=sides, read_bytes=part.read_bytes)
        if part.problem is not None:
            counts.problems.append(part.problem)
        for number, line in enumerate(part.lines, part.first):
            if line.strip():
                self._count_line(line, Place(file=part.file, line=number), counts)
                note_namespace(line, self._namespaces)
        return counts

    def count_part_after_others(self, part: tuple[LogPart, Mapping[str, JSON]]) -> PartCounts:
        """Return the counts of one item of `with_namespaces_before`."""
        return self.count_part(*part)

    def _count_line(self, line: bytes, place: Place, counts: PartCounts) -> None:
        counts.events += 1
        try:
            attributes = request_of_audit_event(line)
        except EventWithoutRequest as event:
            if event.is_read:
                counts.reads += 1
            else:
                counts.skipped[str(event)] += 1
            return
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            counts.broken += 1
            if counts.broken <= MOST_BROKEN_LINES:
                message = f"not an audit event: {_reason_of_error(error)}"
                counts.broken_lines.append(InputProblem(message=message, file=place.file, line=place.line))
            return
        counts.requests += 1
        denied = {side: self._evaluate_and_count(side, attributes, place, counts.sides[side]) for side in self._sets}
        if len(denied) > 1:
            _count_differing_denials(denied, f"{place} {subject_of_request(attributes)}", counts.changed)

    def _evaluate_and_count(
        self, side: Side, attributes: Attributes, place: Place, counts: PolicySetCounts
    ) -> Mapping[str, Finding]:
        """Evaluate one set of policies, count the results, and return the denying findings by rule."""
        policies, cluster, rules, options = self._sets[side]
        outcome = run_phases(attributes, "auto", LocalAnswerer(policies=policies, cluster=cluster, options=options))
        findings = _findings_of_decisions(attributes, (*outcome.decisions, *outcome.further), place, rules)
        counts.exceptions.update(each.exception_reason for each in findings if each.exception_reason)
        counts.ignored += not outcome.decisions and is_ignored_by_configuration(
            attributes, policies.configuration, cluster
        )
        fails = {each.rule.id: each for each in findings if each.denies}
        warns = {each.rule.id: each for each in findings if each.result is Result.WARN and not each.is_advice}
        undecided = {each.rule.id: each for each in findings if each.is_undecided}
        for field_, spoken in (("denied", fails), ("warned", warns), ("undecided", undecided)):
            for name, each in spoken.items():
                rule_count = RuleCount(**{field_: 1}, example=f"{place} {each.subject}", message=each.message)
                counts.rules.setdefault(name, RuleCount()).add(rule_count)
        counts.denied += bool(fails)
        counts.warned += bool(warns)
        counts.undecided += bool(undecided)
        counts.has_open_rule |= any(each.is_open for each in findings)
        if fails or warns:
            counts.namespaces[attributes.namespace or "(cluster)"] += 1
            counts.users[attributes.user_info.username or "(unknown)"] += 1
        return fails


def _findings_of_decisions(
    attributes: Attributes, decisions: Sequence[tuple[Phase, Decision]], place: Place, rules: Rules
) -> Sequence[Finding]:
    return findings_of_object(
        decisions, subject_of_request(attributes), lambda _path, _words: place, rules, with_passes=False
    )


def _count_differing_denials(
    denied: Mapping[Side, Mapping[str, Finding]], where: str, changed: dict[str, RuleCount]
) -> None:
    """A request that only one of the two sets denies is counted under the rules that deny it."""
    old, new = denied["policies"], denied["against"]
    if bool(old) == bool(new):
        return
    word = "newly denied" if new else "no longer denied"
    for name, each in (new or old).items():
        rule_count = RuleCount(denied=1, example=where, message=each.message)
        changed.setdefault(f"{word}: {name}", RuleCount()).add(rule_count)


def _reason_of_error(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too many levels deep"
    text = str(error).removeprefix("JSON is malformed: ")
    return text[:1].lower() + text[1:]
