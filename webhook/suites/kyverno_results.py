"""Finds the results of `kyverno test` for a policy and a resource: pass, fail, error, skip, or none.

Works like kyverno/kyverno 111e07b, cmd/cli/kubectl-kyverno/{commands/test,processor} and pkg/cel/policies. The first
validation that fails or has an error decides the result. validationActions do not matter. A policy that does not match
has no result. Resources are evaluated without the defaults of an API server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from webhook.admission.fixtures import attributes_of_object
from webhook.admission.phases import LocalAnswerer, PhasesOutcome, run_phases
from webhook.apimachinery.attributes import JSON, Attributes, Operation, UserInfo
from webhook.apimachinery.paths import get
from webhook.cluster.files import FilesCluster
from webhook.conversion.cluster_policy import OF_MATCH
from webhook.errors import CallError, InputError, InputProblem
from webhook.policy.load import Options
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision, Explanation
from webhook.suites.expectation import diff_as_yaml
from webhook.text.terminal import one_line

Status: TypeAlias = Literal["pass", "fail", "error", "skip", "excluded", "not found"]
"""A result. A policy that does not match is `excluded`, which counts as passed, or `not found`, which counts as
failed."""

_UNMATCHED: Final = ("not registered", "not matched", "not bound", "no param")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Everything with which one test evaluates a resource.

    Attributes:
        manifests: the native policies.
        policies: the compiled policies.
        cluster: the objects of the test.
        is_native: whether the test names native policies. Otherwise they represent a policy of Kyverno.
        rules: the rule of each native policy, if the policy has rules.
    """

    manifests: Sequence[JSON]
    policies: PolicySet
    cluster: FilesCluster
    is_native: bool
    rules: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceResult:
    """The result of one policy for one resource, with an explanation, and the resource afterwards.

    `rule` is the name of the rule, if the policy has rules.
    """

    rule: str
    status: Status
    message: str
    resource: JSON


def request_for_resource(resource: JSON, operation: Operation, user: UserInfo, options: Options) -> Attributes:
    """Return Kyverno's request for a resource.

    Raises:
        InputError: the resource is not an object.
    """
    try:
        attributes = attributes_of_object(resource, options.table.row, operation=operation)
    except (CallError, ValueError) as error:
        raise InputError(InputProblem(message=str(error))) from None
    written = resource_with_namespace(resource, attributes.namespace if attributes.kind.kind != "Namespace" else "")
    return replace(
        attributes,
        user_info=user,
        object=None if operation is Operation.DELETE else written,
        old_object=written if operation in (Operation.UPDATE, Operation.DELETE) else None,
        is_decoded=True,
    )


def resource_with_namespace(resource: JSON, namespace: str) -> JSON:
    """Return a resource with its namespace, as Kyverno does for a namespaced resource."""
    if not namespace or get(resource, ("metadata", "namespace")):
        return resource
    return {**resource, "metadata": {**(resource.get("metadata") or {}), "namespace": namespace}}


def results_for_resource(attributes: Attributes, evaluation: Evaluation) -> Iterator[ResourceResult]:
    """Yield the results of a policy, or of all native policies that represent it."""
    outcome = _evaluate(attributes, evaluation)
    for manifest in evaluation.manifests:
        if str(manifest["kind"]).endswith("Binding"):
            continue
        status, message = _status_of_policy(manifest, outcome, evaluation)
        changed = outcome.patched_object if outcome.patched_object is not None else attributes.object
        yield ResourceResult(
            rule=evaluation.rules.get(manifest["metadata"]["name"], ""),
            status=status,
            message=message,
            resource=changed,
        )


def _evaluate(attributes: Attributes, evaluation: Evaluation) -> PhasesOutcome:
    answerer = LocalAnswerer(policies=evaluation.policies, cluster=evaluation.cluster, explains=True)
    return run_phases(attributes, "mutate" if evaluation.policies.mutating else "validate", answerer)


def _status_of_policy(
    manifest: Mapping[str, Any], outcome: PhasesOutcome, evaluation: Evaluation
) -> tuple[Status, str]:
    name = manifest["metadata"]["name"]
    explained = [each for _, each in outcome.explanations if each.policy == name]
    matched = [each for each in explained if each.outcome not in _UNMATCHED and OF_MATCH not in each.reason]
    if not matched:
        is_dropped = (
            not evaluation.is_native
            and not evaluation.rules
            and _is_plain_match(get(manifest, ("spec", "matchConstraints")))
        )
        return ("not found" if is_dropped else "excluded"), next((each.reason for each in explained), "")
    spoken = (decision for _, decision in outcome.decisions if decision.policy == name)
    first = min((each for each in spoken if each.evaluation != "admit"), key=_position, default=None)
    if first is not None:
        status = _status_of_decision(first)
        return ("fail" if evaluation.rules else status), one_line(first.message)
    return _status_of_explanations(matched)


def _position(decision: Decision) -> int:
    return -1 if decision.index is None else decision.index


def _status_of_decision(decision: Decision) -> Status:
    if decision.evaluation == "unknown":
        raise InputError(InputProblem(message=f"not evaluated: {one_line(decision.message)}"))
    return "fail" if decision.evaluation == "deny" else "error"


def _status_of_explanations(matched: Sequence[Explanation]) -> tuple[Status, str]:
    unmet = [each for each in matched if each.outcome in ("condition is false", "condition failed")]
    return ("skip", unmet[0].reason) if len(unmet) == len(matched) else ("pass", "")


def _is_plain_match(constraints: JSON) -> bool:
    """Return whether constraints are one rule without names and selectors.

    If such constraints do not match a resource, Kyverno reports nothing, and the expected result is missing.
    """
    selectors = (get(constraints, (key,)) or {} for key in ("namespaceSelector", "objectSelector"))
    rules: list[dict[str, Any]] = get(constraints, ("resourceRules",)) or []
    if any(any(each.values()) for each in selectors) or get(constraints, ("excludeResourceRules",)):
        return False
    return len(rules) == 1 and not rules[0].get("resourceNames")


def difference_of_resources(expected: JSON, actual: JSON) -> str:
    """Return the difference between two resources, or "". Like Kyverno, ignore empty fields."""
    expected_fields, actual_fields = _without_empty(expected), _without_empty(actual)
    if json.dumps(expected_fields, sort_keys=True) == json.dumps(actual_fields, sort_keys=True):
        return ""
    return f"patchedResources: the resulting object differs\n{diff_as_yaml(expected_fields, actual_fields)}"


def _without_empty(value: JSON) -> JSON:
    if isinstance(value, dict):
        items = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not None} or None
    if isinstance(value, list):
        return [item for item in map(_without_empty, value) if item is not None] or None
    return value
