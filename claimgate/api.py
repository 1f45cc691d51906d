"""The documented functions and classes, which call the same code as `claimgate replay`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from webhook.admission.fixtures import attributes_of_fixture
from webhook.admission.phases import LocalAnswerer, PhasesOutcome, run_phases
from webhook.apimachinery.attributes import Operation
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.errors import CallError, InputError, InputProblem
from webhook.input import shipped
from webhook.policy.load import Options, load_policy_set
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision, ValidationAction
from webhook.workloads.table import load_table

ResultName: TypeAlias = Literal["deny", "warn", "audit", "error", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFinding:
    """The result of one rule for an object.

    result: `deny`, `warn` and `audit`: the rule is broken, and the binding says what follows. `error`: the evaluation
    failed. `unknown`: an object that the rule needs was not given. rule: the id of the rule, or the name of the
    policy. path: the place in the object, "" for the object as a whole. fix: what to do, if the message does not say
    it.
    """

    result: ResultName
    policy: str
    rule: str
    path: str
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewResult:
    """The answer to one review.

    message: why the object is denied, "" if it is not. object: the object after all mutations, None if it is denied.
    patch: these mutations as JSON Patch (RFC 6902).
    """

    allowed: bool
    message: str
    findings: tuple[RuleFinding, ...]
    warnings: tuple[str, ...]
    patch: tuple[Mapping[str, Any], ...]
    object: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """Compiled policies. They are immutable, and several threads may use them."""

    names: tuple[str, ...]
    policy_set: PolicySet
    """The compiled policies in the form of `webhook`, which is not part of the API."""


def load_policies(*places: str | Path, with_shipped: bool = False) -> Policies:
    """Read and compile the policies of files and folders.

    Args:
        *places: files and folders of policies with their bindings and params.
        with_shipped: also load the policies that claimgate ships.

    Raises:
        PolicyError: every problem of every file, or there is no policy.
    """
    folders = [*([shipped.policies_folder()] if with_shipped or not places else []), *map(Path, places)]
    loaded = load_policy_set(folders, Options(table=load_table(), lazy=not places))
    return Policies(names=tuple(policy.name for policy in loaded.policies), policy_set=loaded)


def review(
    policies: Policies,
    obj: Mapping[str, Any],
    *,
    operation: str = "CREATE",
    context: Sequence[Mapping[str, Any]] = (),
    context_is_whole: bool = False,
) -> ReviewResult:
    """Review one object as an API server would: first all mutations, then all validations.

    Args:
        policies: those of `load_policies`.
        obj: an object, an AdmissionReview, or the request of an AdmissionReview, as plain JSON. It is not changed.
        operation: CREATE, UPDATE or DELETE, for a plain object.
        context: the other objects of the cluster that policies may look up.
        context_is_whole: whether an object that `context` does not have does not exist.

    Raises:
        InputError: `obj` is none of the three.
    """
    table = policies.policy_set.table
    try:
        attributes = attributes_of_fixture(dict(obj), table.row, operation=Operation(operation))
    except (CallError, ValueError) as error:
        raise InputError(InputProblem(message=str(error))) from None
    cluster = ClusterWithAssumedNamespaces(FilesCluster(map(dict, context), is_whole=context_is_whole))
    outcome = run_phases(attributes, "auto", LocalAnswerer(policies=policies.policy_set, cluster=cluster))
    return _result_of_outcome(outcome)


def _result_of_outcome(outcome: PhasesOutcome) -> ReviewResult:
    verdict = outcome.verdict
    denied = verdict.status is not None and not verdict.allowed
    return ReviewResult(
        allowed=verdict.allowed,
        message=verdict.status.message if denied and verdict.status is not None else "",
        findings=tuple(_findings(decision for _, decision in (*outcome.decisions, *outcome.further))),
        warnings=tuple(verdict.warnings),
        patch=tuple(verdict.patch),
        object=outcome.patched_object,
    )


def _findings(decisions: Iterable[Decision]) -> Iterator[RuleFinding]:
    for each in decisions:
        if each.evaluation == "admit" or each.is_advice:
            continue
        result = _result_of_decision(each)
        for problem in each.problems:
            yield RuleFinding(
                result=result,
                policy=each.policy,
                rule=problem.code,
                path=problem.path,
                message=problem.found_and_message,
                fix=problem.fix,
            )
        if not each.problems:
            yield RuleFinding(result=result, policy=each.policy, rule=each.rule, path=each.path, message=each.message)


def _result_of_decision(decision: Decision) -> ResultName:
    if decision.evaluation in ("error", "unknown"):
        return "error" if decision.evaluation == "error" else "unknown"
    if decision.is_enforced and not decision.lets_pass:
        return "deny"
    return "warn" if ValidationAction.WARN in decision.actions else "audit"
