"""Reads questions of the page from JSON and checks them, and makes the JSON of answers.

Texts are not escaped, because the page shows them as text and never as markup.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from msgspec import to_builtins

from webhook.admission import fixtures
from webhook.admission.fixtures import SubmittedObject
from webhook.admission.phases import PhasesOutcome
from webhook.apimachinery.attributes import JSON, Attributes, Operation
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.errors import CallError, ClaimgateError, InputError, InputProblem, PolicyError
from webhook.facts.kueue.overview import read_queue_overview
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.input import documents
from webhook.playground.measured_engine import MeasuredEvaluation
from webhook.policy.policy_set import PolicySet
from webhook.report.finding import Finding, findings_of_object, subject_of_request
from webhook.report.queue_drawings import queue_svg, queue_text
from webhook.report.records import json_on_one_line
from webhook.report.rule import RulesOfPolicies
from webhook.schema import decode_object
from webhook.workloads.table import Table
from webhook.yamltext import yamlfile
from webhook.yamltext.jsontext import decode_any_json

MOST_BYTES: Final = 4 << 20
"""The maximum size of a question. API servers accept objects of at most 3 MiB, and policies are small."""
PhaseChoice: TypeAlias = Literal["auto", "mutate", "validate"]
_PHASES: Final[tuple[PhaseChoice, ...]] = ("auto", "mutate", "validate")
_TEXTS: Final = ("object", "cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Two texts in YAML or JSON, and their roles.

    Args:
        object: the objects, requests or AdmissionReviews to review.
        cluster: policies with their bindings and params, and other objects of the cluster. Without a policy, the
            policies of the command line or the shipped policies are evaluated.
        phase: the phase to run.
        is_whole: whether objects that are not in `cluster` do not exist.
    """

    object: str = ""
    cluster: str = ""
    phase: PhaseChoice = "auto"
    is_whole: bool = False


def read_question(body: bytes) -> Question:
    """Return the question in the body of a request.

    Raises:
        CallError: 400, the body is not a question.
    """
    try:
        value = decode_any_json(body, Deadline())
    except ValueError:
        raise _bad_question_error("the body is not JSON") from None
    if not isinstance(value, dict):
        raise _bad_question_error("the body must be an object")
    return question_of_mapping(value)


def question_of_mapping(value: Mapping[str, Any]) -> Question:
    """Return the question in a mapping, such as a sample or a shared file.

    Raises:
        CallError: 400, a field has another type.
    """
    texts = {name: value.get(name) or "" for name in _TEXTS}
    wrong = [name for name, text in texts.items() if not isinstance(text, str)]
    if wrong:
        raise _bad_question_error(f"`{wrong[0]}` must be a string")
    phase = next((each for each in _PHASES if each == (value.get("phase") or "auto")), None)
    is_whole = value.get("isWhole") or False
    if phase is None:
        raise _bad_question_error(f"`phase` must be one of {', '.join(_PHASES)}")
    if not isinstance(is_whole, bool):
        raise _bad_question_error("`isWhole` must be true or false")
    return Question(**texts, phase=phase, is_whole=is_whole)


def _bad_question_error(text: str) -> CallError:
    return CallError(400, "BadRequest", text)


WEBHOOK: Final = "validate.claimgate.dev"
"""The name of the webhook in deploy/base, for the output of kubectl."""
_DONE: Final = {Operation.CREATE: "created", Operation.UPDATE: "configured", Operation.DELETE: "deleted"}


def input_errors_as_json(error: ClaimgateError) -> list[dict[str, Any]]:
    """Return the problems of an error, each with its text and line."""
    problems = error.problems if isinstance(error, InputError | PolicyError) else (InputProblem(message=str(error)),)
    return [
        {
            "text": each.file,
            "line": each.line,
            "column": each.column,
            "message": f"{each.path}: {each.message}" if each.path else each.message,
            "hint": each.excerpt.strip(),
        }
        for each in problems
    ]


def review_of_object_as_json(
    document: documents.InputDocument,
    submitted: SubmittedObject,
    outcome: PhasesOutcome,
    policies: PolicySet,
    evaluations: Sequence[MeasuredEvaluation],
) -> dict[str, Any]:
    """Return all data about one object for the page."""
    attributes, verdict = submitted.attributes, outcome.verdict
    findings = findings_of_object(
        outcome.decisions,
        subject_of_request(attributes),
        document.locator(fixtures.object_path(document.value)),
        RulesOfPolicies(policies),
    )
    owners = _policies_by_expression(
        policies, {each.policy for _, each in outcome.explanations if not each.is_not_registered}
    )
    before, after = attributes.object, outcome.patched_object
    is_changed = verdict.allowed and bool(verdict.patch)
    patched = replace(attributes, object=after) if is_changed else attributes
    return {
        "object": str(subject_of_request(attributes)),
        "operation": str(attributes.operation),
        "allowed": verdict.allowed,
        "kubectl": kubectl_output(attributes, outcome),
        "status": to_builtins(verdict.status) if verdict.status and not verdict.allowed else None,
        "warnings": list(verdict.warnings),
        "patch": [json_on_one_line(each) for each in verdict.patch],
        "before": yamlfile.dump(before) if is_changed else "",
        "after": yamlfile.dump(after) if is_changed else "",
        "findings": [_finding_as_json(each) for each in findings if str(each.result) != "pass"],
        "explanations": [{"phase": str(phase), **to_builtins(each)} for phase, each in outcome.explanations],
        "evaluations": [{**asdict(each), "policies": owners.get(each.source.strip(), ())} for each in evaluations],
        "podSets": list_pod_sets_with_devices(patched, submitted.cluster, policies.table),
    }


def _policies_by_expression(policies: PolicySet, policy_names: Container[str]) -> Mapping[str, Sequence[str]]:
    owners: dict[str, dict[str, None]] = {}
    for policy in policies.policies:
        for expression in policy.expressions() if policy.name in policy_names else ():
            owners.setdefault(expression.source.strip(), {})[policy.name] = None
    return {source: list(names) for source, names in owners.items()}


def kubectl_output(attributes: Attributes, outcome: PhasesOutcome) -> list[str]:
    """Return the output of `kubectl apply`: warnings, and the error or the result.

    Source: k8s.io/apiserver v0.36 pkg/admission/plugin/webhook/errors/statuserror.go, k8s.io/kubectl pkg/cmd/util
    helpers.go (StandardErrorMessage).
    """
    verdict = outcome.verdict
    lines = [f"Warning: {text}" for text in verdict.warnings]
    if not verdict.allowed and verdict.status is not None:
        denial = f'admission webhook "{WEBHOOK}" denied the request: {verdict.status.message}'
        return [*lines, f"Error from server ({verdict.status.reason}): {denial}"]
    kind, group = attributes.kind.kind.lower(), attributes.kind.group
    named = f"{kind}.{group}" if group else kind
    return [*lines, f"{named}/{attributes.name or '…'} {_DONE.get(attributes.operation, 'done')}"]


def _finding_as_json(finding: Finding) -> dict[str, Any]:
    message, fix = finding.message_and_fix()
    return {
        "result": "advice" if finding.decision.is_advice else str(finding.result),
        "rule": finding.rule.id,
        "policy": finding.decision.policy,
        "path": finding.path,
        "line": finding.place.line,
        "message": f"{message} ({finding.exception_reason})" if finding.exception_reason else message,
        "fix": fix,
        "severity": finding.decision.severity or finding.rule.severity,
        "docs": finding.rule.docs if finding.rule.docs.startswith("https://") else "",
    }


def list_pod_sets_with_devices(attributes: Attributes, cluster: Cluster, table: Table) -> list[dict[str, Any]]:
    """Return name, path, number of pods, and devices of one pod and of all pods, for each pod set of an object."""
    view = ClusterView(cluster, attributes.namespace, Deadline())
    obj = decode_object(attributes.object, attributes.kind, view.deadline).value
    if not isinstance(obj, dict):
        return []
    subject = Subject(object=obj, old_object=attributes.old_object, attributes=attributes, cluster=view, table=table)
    devices = {each["path"]: each for each in subject.fact("gpu")["podSets"]}
    return [
        {
            "name": each["name"],
            "path": each["path"],
            "pods": each["pods"],
            "devices": devices.get(each["path"], {}).get("devices", 0),
            "total": devices.get(each["path"], {}).get("total"),
        }
        for each in subject.fact("podSets")
    ]


def describe_queues(objects: Iterable[JSON]) -> dict[str, str] | None:
    """Return the queues of Kueue as a picture and as text; None if the cluster has no queues."""
    overview = read_queue_overview(ClusterView(FilesCluster(objects, is_whole=True), ""))
    return {"svg": queue_svg(overview), "text": queue_text(overview)} if overview.rows else None
