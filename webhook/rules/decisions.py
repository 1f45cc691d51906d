"""Decisions, verdicts and explanations, in the API server's closed vocabularies.

A Decision is the answer of one policy; a Verdict is enforced. Audit reads decisions, the server reads the verdict. The
evaluation itself records an Explanation (evaluation/trace.py), so that it cannot differ from the decision. `claimgate
replay --explain` prints it.
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
"""The severities of policies, the worst first; "" means no severity."""
REASON_CODES: Mapping[str, int] = {
    # k8s.io/apiserver pkg/admission/plugin/policy/validating/plugin.go, reasonToCode; BadRequest is only here
    "Unauthorized": 401,
    "Forbidden": 403,
    "Invalid": 422,
    "RequestEntityTooLarge": 413,
    "BadRequest": 400,
}


class Explanation(Struct, frozen=True, kw_only=True):
    """The explanation for one policy, with one binding and parameter, for one object or pod template.

    Args:
        policy: its name.
        kind: the kind of the policy.
        binding: "" if no binding was reached.
        param: `namespace/name`, "" for none.
        place: the path of the pod template, "" for the object itself.
        outcome: the outcome.
        reason: the cause of the outcome in the policy or the request: the part that did not match, the condition, the
            rules.
        unmet_condition: the name of the matchCondition that is false, "" if none is.
        elapsed_s: the time of its evaluation. A value that several policies need is computed for the first of them.
        cost: the cost of its expressions, in the units of the API server's cost model.
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
        """Return whether the policy does not apply to such requests at all."""
        return self.outcome == "not registered"


class ValidationAction(StrEnum):
    """The action for a failed validation, as in a binding (admissionregistration/v1).

    No binding can have `ADVICE`. It is for rules of level advice, and is shown only on request.
    """

    DENY = "Deny"
    WARN = "Warn"
    AUDIT = "Audit"
    ADVICE = "Advice"


def severity_rank(severity: str) -> int:
    """Return the position of a severity in SEVERITIES; unknown ones are last."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


class DenialReason(NamedTuple):
    """The reason and the HTTP code in the status of a denial."""

    reason: str
    code: int


NO_REASON: Final = DenialReason("", 0)
INVALID: Final = DenialReason("Invalid", REASON_CODES["Invalid"])
"""The reason if a validation names no reason, or if its evaluation failed."""


class Decision(Struct, kw_only=True):
    """The result of one validation of one policy, with one binding and param, for one object or template.

    Treat a decision as immutable.

    `rule` is the stable id of the broken rule: `group/rule` of a problem, or of a validation that rules.yaml names;
    otherwise the policy's name. `problems` are all problems of the validation, with paths from the root of the object.
    `missing` are the objects that were needed and not found.

    `evaluation` is the result of the expression: admit, deny, error, or unknown (it admits, but an object that it
    needed was not found; `message` names it). `lets_pass`: a failure does not deny, because of the policy's
    failurePolicy or `missing`, an exception of the site, or the enforcement action. `denial` is the reason and the code
    if the decision denies. `actions` are the actions of the binding.

    `param` is `namespace/name` or "". `index` is the index of the validation or mutation, None for the whole policy.
    `path` is the field path that the message is about: the template's path joined with the path at the start of the
    message; "" is the object itself. `message` is the policy's text without a prefix, with paths from the root of the
    object. `audit_annotations` are the auditAnnotations of the policy, without its name; they are in a separate
    decision. `withheld` is the stronger action that the limit of the installation prevents: deny or warn; "" if none.
    `is_told`: users get a warning although the failurePolicy lets the object pass, because an API server could have
    evaluated what claimgate could not. `exception` is the reason of the exception that allows a failure, or "".
    `changes` are the fields that the mutation changed, as JSON Pointers, if the site warns of mutations.
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
    is_told: bool = False
    withheld: Literal["", "deny", "warn"] = ""
    exception: str = ""
    changes: tuple[str, ...] = ()

    @property
    def action(self) -> Literal["admit", "deny"]:
        """Return the result of the evaluation. The actions of the binding decide whether a denial is enforced."""
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
        """Return whether the decision may deny. A decision of a binding that only warns or audits does not change the
        verdict.
        """
        return self.kind == "mutating" or ValidationAction.DENY in self.actions

    @property
    def broken_rules(self) -> tuple[str, ...]:
        """Return the ids of the broken rules; the policy's name if a rule has no id."""
        return tuple(each.code for each in self.problems) or (self.rule or self.policy,)

    @property
    def is_excepted(self) -> bool:
        """Return whether an exception of a site lets a broken rule pass."""
        return self.evaluation == "deny" and bool(self.exception)

    @property
    def is_advice(self) -> bool:
        """Return whether the decision is shown only on request."""
        return self.actions == (ValidationAction.ADVICE,)


class DenialCause(Struct, frozen=True, kw_only=True):
    """One of the problems for which a request is denied (metav1.StatusCause). `reason` is the id of the rule."""

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
    """The metav1.Status of a denial, always with a code and a reason that fit each other."""

    code: int
    reason: str
    message: str
    details: DenialDetails | None = None


class EvaluationFault(Struct, frozen=True, kw_only=True):
    """An unexpected error during the evaluation of a policy: its type and place, never its text.

    `checks` is the group of checks in which it happened, "" outside of checks.
    """

    policy: str
    checks: str
    error: str
    traceback: tuple[str, ...]


class Verdict(Struct, kw_only=True):
    """The enforced result of a review. Treat it as immutable.

    `patch` is a minimal RFC 6902 list for the sent object, or () without a change. `faults` are internal errors that
    prevented the evaluation of a policy. `explanations` are those that were requested. `further` explains a denial in
    the mutating phase, and changes no verdict: the decisions of the validating phase about the object, with the
    mutations that could be made.
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
