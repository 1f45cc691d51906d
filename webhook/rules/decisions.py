"""Defines decisions, verdicts and explanations, with the terms of API servers.

A Decision is the answer of one validation of a policy, and a Verdict is the answer to a request. Audit reads decisions,
and the server reads the verdict. The evaluation itself records Explanations (evaluation/trace.py), so they agree with
the decisions. `claimgate replay --explain` prints explanations.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON
from webhook.rules.problem import MissingObject, Problem

Outcome: TypeAlias = Literal[
    "not registered",
    "not matched",
    "not bound",
    "no param",
    "condition is false",
    "condition failed",
    "no problem",
    "unchanged",
    "changed",
    "not evaluated",
    "advised",
    "audited",
    "warned",
    "denied",
    "error",
]
"""How the evaluation of a policy ended."""
SEVERITIES: Final = ("critical", "high", "medium", "low", "info")
"""The severities of policies, the worst first. "" means no severity."""
REASON_CODES: Mapping[str, int] = {
    # k8s.io/apiserver pkg/admission/plugin/policy/validating/plugin.go, reasonToCode. claimgate adds BadRequest
    "Unauthorized": 401,
    "Forbidden": 403,
    "Invalid": 422,
    "RequestEntityTooLarge": 413,
    "BadRequest": 400,
}


class Explanation(Struct, frozen=True, kw_only=True):
    """Why one policy, with one binding and parameter, has its outcome for one object or pod template.

    Args:
        policy: the name of the policy.
        kind: the kind of the policy.
        binding: the name of the binding; "" if the evaluation ended before the bindings.
        param: `namespace/name`; "" without a parameter.
        place: the path of the pod template, "" for the object itself.
        outcome: the outcome.
        reason: the cause of the outcome, such as the part that did not match, the condition, or the rules.
        unmet_condition: the name of the matchCondition that is false; "" without one.
        elapsed_s: the time of the evaluation. If several policies need a value, the time to compute the value counts
            for the first of these policies.
        cost: the cost of the expressions, in units of the API server's cost model.
    """

    policy: str
    kind: Literal["validating", "mutating"]
    binding: str = ""
    param: str = ""
    place: str = ""
    outcome: Outcome
    reason: str = ""
    unmet_condition: str = ""
    elapsed_s: float = 0.0
    cost: int = 0

    @property
    def is_not_registered(self) -> bool:
        """Return whether an API server does not call the policy for the request."""
        return self.outcome == "not registered"


class ValidationAction(StrEnum):
    """The action for a failed validation, as in a binding (admissionregistration/v1).

    `ADVICE` is for rules of level advice, and is shown only on request. No binding can have it.
    """

    DENY = "Deny"
    WARN = "Warn"
    AUDIT = "Audit"
    ADVICE = "Advice"


def severity_rank(severity: str) -> int:
    """Return the position in SEVERITIES. An unknown severity is last."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


class DenialReason(NamedTuple):
    """The reason and the HTTP code in the status of a denial."""

    reason: str
    code: int


NO_REASON: Final = DenialReason("", 0)
INVALID: Final = DenialReason("Invalid", REASON_CODES["Invalid"])
"""The denial reason of a validation without a reason, or with a failed evaluation."""


class Decision(Struct, kw_only=True):
    """The result of one validation of one policy, with one binding and param, for one object or template.

    Treat a decision as immutable. Field paths begin at the root of the object.

    Attributes:
        rule: the stable id of the broken rule: `group/rule` of a problem, or of a validation in rules.yaml. Otherwise
            the policy's name.
        problems: all problems of the validation.
        missing: the objects that were needed and not found.
        evaluation: the result of the expression: admit, deny, error, or unknown. Unknown means that a needed object was
            not found; `message` names this object.
        lets_pass: whether a failure does not deny. The cause is the policy's failurePolicy, `missing`, an exception of
            the configuration, or the enforcement action.
        denial: reason and code of a denial.
        actions: the actions of the binding.
        param: `namespace/name` or "".
        index: the index of the validation or mutation; None for the whole policy.
        path: the template's path, joined with the path at the beginning of the message. "" means the object itself.
        message: the policy's text without a prefix.
        audit_annotations: the auditAnnotations of the policy, in a separate decision. The keys do not have the policy's
            name.
        withheld: the stronger action that the limit of the installation prevents: deny, warn, or "".
        warns_user: whether users get a warning if the failurePolicy lets the object pass. An API server could evaluate
            the policy, but claimgate could not.
        exception: the reason of the exception that allows a failure, or "".
        changes: the fields that the mutation changed, as JSON Pointers, if the server warns of mutations.
    """

    policy: str
    rule: str = ""
    binding: str
    param: str = ""
    index: int | None = None
    path: str = ""
    evaluation: Literal["admit", "deny", "error", "unknown"]
    lets_pass: bool = False
    denial: DenialReason = NO_REASON
    actions: tuple[ValidationAction, ...] = ()
    message: str = ""
    elapsed_s: float = 0.0
    kind: Literal["validating", "mutating"] = "validating"
    severity: str = ""
    category: str = ""
    audit_annotations: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    missing: tuple[MissingObject, ...] = ()
    warns_user: bool = False
    withheld: Literal["", "deny", "warn"] = ""
    exception: str = ""
    changes: tuple[str, ...] = ()

    @property
    def action(self) -> Literal["admit", "deny"]:
        """Return `deny` if the validation failed. A failure denies the request only if `is_enforced` is also true."""
        return "admit" if self.evaluation == "admit" or self.lets_pass else "deny"

    @property
    def reason(self) -> str:
        """Return the reason of a denial; "" if the decision admits."""
        return self.denial.reason if self.action == "deny" else ""

    @property
    def code(self) -> int:
        """Return the HTTP code of a denial; 0 if the decision admits."""
        return self.denial.code if self.action == "deny" else 0

    @property
    def is_enforced(self) -> bool:
        """Return whether a failure denies the request. With a binding that only warns or audits, the request passes."""
        return self.kind == "mutating" or ValidationAction.DENY in self.actions

    @property
    def broken_rules(self) -> tuple[str, ...]:
        """Return the ids of the broken rules, or the policy's name for a rule without id."""
        return tuple(each.code for each in self.problems) or (self.rule or self.policy,)

    @property
    def is_excepted(self) -> bool:
        """Return whether an exception allows the failure."""
        return self.evaluation == "deny" and bool(self.exception)

    @property
    def is_advice(self) -> bool:
        """Return whether the decision is shown only on request."""
        return self.actions == (ValidationAction.ADVICE,)


class DenialCause(Struct, frozen=True, kw_only=True):
    """One problem for which a request is denied (metav1.StatusCause). `reason` is the id of the rule."""

    field: str
    message: str
    reason: str


class DenialDetails(Struct, frozen=True, kw_only=True):
    """The object of a denial, and every problem in its message (metav1.StatusDetails)."""

    group: str
    kind: str
    name: str
    causes: tuple[DenialCause, ...]


class DenialStatus(Struct, frozen=True, kw_only=True):
    """The metav1.Status of a denial. The code always belongs to the reason."""

    code: int
    reason: str
    message: str
    details: DenialDetails | None = None


class EvaluationFault(Struct, frozen=True, kw_only=True):
    """An unexpected error during the evaluation of a policy: its type and place, but not its text, which may have
    secrets.

    `checks` is the group of checks with the error; "" outside of checks.
    """

    policy: str
    checks: str
    error: str
    traceback: tuple[str, ...]


class Verdict(Struct, kw_only=True):
    """The result of a review. Treat a verdict as immutable.

    Attributes:
        patch: a minimal list of RFC 6902 operations for the sent object; () without a change.
        faults: internal errors that prevented the evaluation of a policy.
        explanations: empty unless requested.
        further: the decisions of the validating phase about the mutated object, after a denial in the mutating phase.
            They do not change the verdict.
    """

    allowed: bool
    decisions: tuple[Decision, ...] = ()
    status: DenialStatus | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)
    patch: tuple[Mapping[str, JSON], ...] = ()
    patched_object: JSON = None
    faults: tuple[EvaluationFault, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    further: tuple[Decision, ...] = ()
