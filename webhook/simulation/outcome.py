"""Runs one job through both phases of admission as if it were created now, and returns the answer with the obstacles,
by aspect.

Policies are evaluated as at admission. The answer follows from the problems. Each problem, or its rule, has the moment
at which the object fails (rules/problem.py). If a rule could not be evaluated, or a problem depends on a condition, the
answer is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from webhook.admission.exceptions import is_ignored_by_configuration
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.cluster.recording import RecordingCluster
from webhook.evaluation.review_options import ReviewOptions
from webhook.facts.namespace_quota.resource_quotas import may_run_elsewhere
from webhook.policy.policy_set import PolicySet
from webhook.report.finding import Finding, Result, Subject, findings_of_object, subject_of_request
from webhook.report.rule import RulesOfPolicies
from webhook.report.writer import LeftOut, left_out_by_configuration
from webhook.rules.decisions import Decision, ValidationAction
from webhook.rules.problem import Moment, Problem
from webhook.simulation.asked import JobRequest, read_job_request, subject_of_job
from webhook.simulation.aspects import ASPECTS, Aspect, OpenQuestion, aspect_of
from webhook.simulation.open_questions import OF_OTHER_CLUSTER, open_questions
from webhook.yamltext.source_line import Locate, Place

Answer: TypeAlias = Literal["refused", "never", "fails", "unknown", "waits", "nothing-found", "can-start"]
ANSWERS: Final[Mapping[Answer, str]] = {
    "refused": "would be refused",
    "never": "never starts unless the job or the cluster changes",
    "fails": "starts, and then fails",
    "unknown": "may start; the answer depends on something unknown",
    "waits": "waits for other jobs",
    "nothing-found": "nothing found that stops it",
    "can-start": "can start",
}
"""The sentence of each answer about a job, the worst first."""
STARTS: Final[Mapping[Answer, bool | None]] = {
    "refused": False,
    "never": False,
    "fails": False,
    "unknown": None,
    "waits": True,
    "nothing-found": None,
    "can-start": True,
}
_BY_MOMENT: Final[Mapping[Moment, Answer]] = {
    "create": "refused",
    "controller": "never",
    "pending": "never",
    "start": "fails",
    "waiting": "never",
}
"""The answer for a broken rule, by its moment. Other moments do not affect the start."""
WAITS: Final = ("kueue-not-now/waiting-for-quota", "kueue-not-now/queue-order", "kueue-not-now/pod-group-incomplete")
"""Rules about a wait that ends by itself, when other jobs finish or the rest of a group arrives."""
_PREREQUISITES: Final = "pod-prerequisites/"
_REFUSED_PODS: Final = (_PREREQUISITES, "namespace-quota/", "kai/fraction")
"""Rules that API servers or webhooks enforce when a pod is created, so a Pod without a controller is refused."""
_WHEN: Final = {"CREATE": "when it is created", "UPDATE": "when it is changed", "DELETE": "when it is deleted"}
Moments: TypeAlias = Callable[[str], Moment | None]
"""Returns the moment at which an object that breaks a rule fails, by the rule's id; None for an unknown rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """The answer for one job.

    Args:
        about, place: the job and its place.
        operation: the operation of its request.
        answer: the answer in a word.
        against: the obstacles, by aspect.
        besides: other findings, which do not prevent the start.
        unknown: the rules about the start that were not evaluated.
        questions: open questions on which the start depends.
        request: the demands of the job, and its queue.
        looked_at: the view that recorded the look-ups.
        left_out: what the configuration and annotations left out.
        excepted: the findings with an exception.
    """

    about: Subject
    place: Place
    operation: str
    answer: Answer
    against: Mapping[Aspect, tuple[Finding, ...]]
    besides: tuple[Finding, ...]
    unknown: tuple[Finding, ...]
    questions: tuple[OpenQuestion, ...]
    request: JobRequest
    looked_at: RecordingCluster
    left_out: LeftOut = field(default_factory=LeftOut)
    excepted: tuple[Finding, ...] = ()

    @property
    def can_start(self) -> bool | None:
        """Return whether the job can start; None if unknown."""
        return None if self.answer == "waits" and self.questions else STARTS[self.answer]

    @property
    def headline(self) -> str:
        """Return the answer as a sentence about the job. If the job waits or may start, add the open questions."""
        answer = ANSWERS[self.answer]
        if self.answer == "refused":
            return f"{answer} {_WHEN.get(self.operation, _WHEN['CREATE'])}"
        pods = [each.pods for each in self.request.pod_sets]
        if self.answer == "unknown" and pods and not any(each != 0 for each in pods):
            return "asks for no pod"
        if self.answer == "waits" and not self._waits_for_jobs:
            answer = "waits"
        if self.answer in ("waits", "nothing-found"):
            return "; ".join((answer, *(each.sentence for each in self.questions)))
        return answer

    @property
    def _waits_for_jobs(self) -> bool:
        return any(finding.rule.id in WAITS for listed in self.against.values() for finding in listed)

    def unknowns_about(self, aspect: Aspect) -> tuple[str, ...]:
        """Return the reasons why rules about an aspect were not evaluated."""
        return tuple(
            unknown
            for unknown, _ in missing_things_with_rules(
                each for each in self.unknown if aspect_of(each.rule.id) == aspect
            )
        )

    def questions_about(self, aspect: Aspect) -> tuple[OpenQuestion, ...]:
        """Return the open questions about an aspect."""
        return tuple(each for each in self.questions if aspect in each.aspects)


def failure_moment_of_rule(policies: PolicySet, rule_id: str) -> Moment | None:
    """Return the moment at which an object that breaks a rule fails; None for a rule that does not exist."""
    rules = (
        rule
        for policy in policies.policies
        for rule in (policy.catalogue.get(rule_id), *policy.named)
        if rule is not None and rule.id == rule_id
    )
    return next((rule.fails for rule in rules), None)


def simulation(
    findings: Iterable[Finding],
    when: Moments,
    *,
    about: Subject,
    place: Place,
    operation: str,
    request: JobRequest,
    questions: tuple[OpenQuestion, ...],
    looked_at: RecordingCluster,
) -> Simulation:
    """Return the answer that follows from findings about a job.

    Args:
        findings: the findings of both phases of admission. Findings with the result PASS may be left out.
        when: returns the moment of a rule.
        about: the job.
        place: the place of the job.
        operation: the operation of its request.
        request: the demands of the job.
        questions: open questions on which the start depends.
        looked_at: the view that recorded the look-ups.
    """
    obstacles: dict[Aspect, list[Finding]] = {}
    other_findings: list[Finding] = []
    unknown: list[Finding] = []
    answers: set[Answer] = set()
    for finding in findings:
        answer = _answer(finding, when)
        if answer == "unknown" and finding.result is not Result.WARN:
            unknown.append(finding)
        elif answer is not None:
            obstacles.setdefault(aspect_of(finding.rule.id), []).append(finding)
        elif finding.result in (Result.FAIL, Result.WARN):
            other_findings.append(finding)
        answers.update(() if answer is None else (answer,))
    for question in questions:
        answers.add("waits" if question.is_wait else "nothing-found" if question.is_about_nodes_alone else "unknown")
    return Simulation(
        about=about,
        place=place,
        operation=operation,
        answer=next((each for each in ANSWERS if each in answers), "can-start"),
        against={aspect: tuple(obstacles[aspect]) for aspect in ASPECTS if aspect in obstacles},
        besides=tuple(other_findings),
        unknown=tuple(unknown),
        questions=questions,
        request=request,
        looked_at=looked_at,
    )


def _answer(finding: Finding, when: Moments) -> Answer | None:
    """Return the answer for one finding; None if the finding does not affect the start."""
    moment = _moment(finding.problem, finding.rule.id, when)
    if finding.result is Result.PASS or finding.exception_reason:
        return None
    if finding.denies:
        return "refused"
    if finding.result is Result.WARN:
        answer = _BY_MOMENT.get(moment)
        if moment == "controller" and finding.subject.kind == "Pod" and finding.rule.id.startswith(_REFUSED_PODS):
            return "refused"
        if answer is not None and finding.problem is not None and finding.problem.is_conditional:
            return "unknown"
        return "waits" if finding.rule.id in WAITS else answer
    return "unknown" if moment in _BY_MOMENT or finding.is_undecided else None


def _moment(problem: Problem | None, rule_id: str, when: Moments) -> Moment:
    """Return the moment at which an object with a problem fails: of the problem, or otherwise of its rule."""
    of_problem = problem.fails if problem is not None else None
    return (when(rule_id) or "") if of_problem is None else of_problem


def missing_things_with_rules(unknown: Iterable[Finding]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each missing object, or other reason, with the rules that were not evaluated because of it."""
    rules: dict[str, dict[str, None]] = {}
    for finding in unknown:
        for text in map(str, finding.missing) if finding.missing else (_reason_without_missing_object(finding),):
            rules.setdefault(text, {})[finding.rule.id] = None
    yield from ((text, tuple(ids)) for text, ids in rules.items())


def _reason_without_missing_object(finding: Finding) -> str:
    """Return the reason why a rule was not evaluated, if no object is missing."""
    message = " ".join(finding.message.split())
    return message.partition("not evaluated: ")[2] or message


def _is_of_this_cluster(finding: Finding) -> bool:
    """Return whether a finding is about nodes or objects of this cluster that the pods of a job need."""
    is_of_pods = finding.rule.id.startswith(_PREREQUISITES) or aspect_of(finding.rule.id) in OF_OTHER_CLUSTER
    return is_of_pods and not finding.denies and not finding.rule.id.startswith("kueue-")


def _findings_of_questions(
    questions: Iterable[OpenQuestion], subject: Subject, locate: Locate, policies: PolicySet, when: Moments
) -> Iterator[Finding]:
    """Yield a warning for each problem of a question that affects the answer, as a finding of the problem's rule."""
    rules = RulesOfPolicies(policies)
    for problem in (each.problem for each in questions if each.problem is not None):
        if _moment(problem, problem.code, when) in _BY_MOMENT:
            warning = Decision(
                policy=rules[problem.code].policy,
                rule=problem.code,
                binding="",
                evaluation="deny",
                actions=(ValidationAction.WARN,),
                problems=(problem,),
            )
            yield from findings_of_object(((Phase.VALIDATE, warning),), subject, locate, rules)


class ObjectPlace(Struct, frozen=True):
    """The place of a job, and of each of its fields."""

    place: Place
    locate: Locate


def simulate_job(
    attributes: Attributes, located: ObjectPlace, cluster: RecordingCluster, policies: PolicySet, options: ReviewOptions
) -> Simulation:
    """Run one job through both phases, and return the result.

    Args:
        attributes: the attributes of the request that creates the job.
        located: the place of the job.
        cluster: the other objects of the cluster.
        policies: the policies of the review.
        options: the options of the review, which reads all namespaces.
    """
    when = partial(failure_moment_of_rule, policies)
    answerer = LocalAnswerer(policies=policies, cluster=cluster, options=replace(options, sees_all_namespaces=True))
    outcome = run_phases(attributes, "auto", answerer)
    job = subject_of_request(attributes)
    decisions = (*outcome.decisions, *outcome.further)
    findings = findings_of_object(decisions, job, located.locate, RulesOfPolicies(policies))
    obj = outcome.patched_object if outcome.verdict.allowed else attributes.object
    subject = subject_of_job(attributes, obj, cluster, policies)
    if isinstance(subject.object, dict) and may_run_elsewhere(subject):
        findings = tuple(each for each in findings if not _is_of_this_cluster(each))
    questions = open_questions(subject, cluster, {each.rule.id for each in findings})
    further = tuple(_findings_of_questions(questions, job, located.locate, policies, when))
    reported = {each.problem for each in further}
    made_simulation = simulation(
        (*findings, *further),
        when,
        about=job,
        place=located.place,
        operation=attributes.operation,
        request=read_job_request(subject),
        questions=tuple(each for each in questions if each.problem is None or each.problem not in reported),
        looked_at=cluster,
    )
    configuration = policies.configuration
    excepted = tuple(each for each in findings if each.exception_reason)
    left_out = left_out_by_configuration(
        configuration,
        Counter(each.exception_reason for each in excepted),
        objects=int(is_ignored_by_configuration(attributes, configuration, cluster)),
    )
    return replace(made_simulation, left_out=left_out, excepted=excepted)
