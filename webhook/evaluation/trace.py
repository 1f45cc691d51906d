"""Records during the evaluation of a request why each policy reports something or nothing.

A trace exists only if the caller wants explanations. The evaluation records outcomes, and the parts of criteria that
do not match. The trace decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Final

from webhook.apimachinery.attributes import Attributes
from webhook.cel import CostMeter
from webhook.errors import EvaluationError
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Binding, Condition, Policy
from webhook.policy.matching import is_exempt
from webhook.policy.static_params import Param
from webhook.rules.decisions import Decision, Explanation, Outcome, ValidationAction

_RULES: Final = "resourceRules"
_STRICTEST: Final[tuple[Outcome, ...]] = ("error", "denied", "warned", "audited", "advised", "not evaluated")
_TYPES: Final = "some of its values do not have the types of its kind"
_NO_PODS: Final = "it is about pods, and the object has no pod template itself"
_EXEMPT: Final = "no policy is evaluated on policies and webhook configurations"
_NO_RULE: Final = "no rule of its matchConstraints names {}"


class ReviewTrace:
    """The explanations of one review, in the order of its evaluation."""

    __slots__ = ("_budgets", "_unmet", "_unmet_condition", "explanations")

    def __init__(self) -> None:
        self.explanations: list[Explanation] = []
        self._budgets: list[tuple[int, CostMeter]] = []
        self._unmet: tuple[Outcome, str] | None = None
        self._unmet_condition = ""

    def record_skipped_policies(
        self, policies: Iterable[Policy], candidates: Sequence[Candidate], attributes: Attributes
    ) -> None:
        """Record the policies of a phase that are not evaluated at all."""
        identities = {id(candidate.policy) for candidate in candidates}
        for policy in policies:
            if not policy.bindings:
                self._add_explanation(policy, None, "not bound", "no binding names it")
            elif policy.is_registered and is_exempt(attributes):
                self._add_explanation(policy, None, "not registered", _EXEMPT)
            elif id(policy) not in identities:
                self._add_explanation(policy, None, "not registered", _NO_RULE.format(_request_as_text(attributes)))

    def record_unmatched_request(self, policy: Policy, attributes: Attributes, part: str) -> None:
        """Record that a policy matches no object of the request. `part` is the part of its criteria that does not
        match.
        """
        is_about_pods = policy.expands and part == _RULES
        reason = _NO_PODS if is_about_pods else _describe_unmatched_part(part, attributes)
        self._add_explanation(policy, None, "not matched", reason)

    def record_unmatched_object(
        self, policy: Policy, binding: Binding | None, attributes: Attributes, part: str, place: str
    ) -> None:
        """Record that a policy or a binding does not match one object. `part` is the part of its criteria that does
        not match.
        """
        reason = _describe_unmatched_part(part, attributes)
        self._add_explanation(policy, binding, "not matched", f"binding: {reason}" if binding else reason, place)

    def record_missing_param(self, policy: Policy, binding: Binding) -> None:
        """Record that a binding has no parameter and allows this."""
        self._add_explanation(policy, binding, "no param", "its binding finds no parameter, and allows that")

    def count_cost_of_budget(self, budget: CostMeter) -> None:
        """Add the cost that a budget pays to the current evaluation."""
        self._budgets.append((budget.budget, budget))

    def record_unmet_condition(self, reason: Condition | EvaluationError) -> None:
        """Record which condition is false, or that a condition failed under failurePolicy Ignore."""
        if isinstance(reason, Condition):
            self._unmet = "condition is false", f"matchCondition `{reason.name}`"
            self._unmet_condition = reason.name
        else:
            self._unmet = "condition failed", f"failurePolicy is Ignore: {reason}"

    def record_unconcerned_pod(self, candidate: Candidate) -> None:
        """Record that a Pod has none of the resources that a policy concerns."""
        self._add_explanation(candidate.policy, None, "condition is false", _reason_without_concerns(candidate))

    def record_unconcerned_template(self, candidate: Candidate) -> None:
        """Record that the pod template of the current evaluation has none of the resources that a policy concerns."""
        self._unmet = "condition is false", _reason_without_concerns(candidate)

    def evaluate_and_record(
        self,
        policy: Policy,
        binding: Binding,
        param: Param,
        place: str,
        evaluate: Callable[[], Sequence[Decision]],
    ) -> Sequence[Decision]:
        self._budgets, self._unmet, self._unmet_condition = [], None, ""
        started = perf_counter()
        decisions = evaluate()
        elapsed_s = perf_counter() - started
        outcome, reason = self._outcome_of_evaluation(policy, decisions)
        cost = sum(before - budget.budget for before, budget in self._budgets)
        self.explanations.append(
            Explanation(
                policy=policy.name,
                kind=policy.kind,
                binding=binding.name,
                param=param.name,
                place=place,
                outcome=outcome,
                reason=reason,
                unmet_condition=self._unmet_condition,
                elapsed_s=elapsed_s,
                cost=cost,
            )
        )
        return decisions

    def _outcome_of_evaluation(self, policy: Policy, decisions: Sequence[Decision]) -> tuple[Outcome, str]:
        if self._unmet is not None:
            return self._unmet
        reported: dict[Outcome, list[str]] = {}
        for decision in decisions:
            if (outcome := _outcome_of_decision(decision)) is not None:
                reported.setdefault(outcome, []).extend(_rules_or_objects_of(decision, outcome))
        spoken = [outcome for outcome in _STRICTEST if outcome in reported]
        if not spoken:
            if policy.kind == "validating":
                return "no problem", ""
            return ("changed", "") if decisions else ("unchanged", "")
        first, *others = spoken
        texts = [
            ", ".join(dict.fromkeys(reported[first])),
            *(f"{o}: {', '.join(dict.fromkeys(reported[o]))}" for o in others),
        ]
        return first, "; ".join(texts)

    def drop_explanations(self) -> None:
        """Drop all explanations, because the review starts again."""
        self.explanations = []

    def record_unusable_policy(self, policy: Policy, binding: Binding | None, reason: str) -> None:
        """Record that a policy or a binding cannot be used on this request."""
        self._add_explanation(policy, binding, "error", reason)

    def _add_explanation(
        self, policy: Policy, binding: Binding | None, outcome: Outcome, reason: str, place: str = ""
    ) -> None:
        name = binding.name if binding else ""
        self.explanations.append(
            Explanation(policy=policy.name, kind=policy.kind, binding=name, place=place, outcome=outcome, reason=reason)
        )


def _reason_without_concerns(candidate: Candidate) -> str:
    return f"annotation `claimgate.dev/concerns`: the pod has no {' or '.join(sorted(candidate.concerns))}"


def _outcome_of_decision(decision: Decision) -> Outcome | None:
    """Return None if the decision reports nothing."""
    if decision.evaluation in ("error", "unknown"):
        return "error" if decision.evaluation == "error" else "not evaluated"
    if decision.action == "admit":
        return None
    if decision.is_enforced:
        return "denied"
    if ValidationAction.WARN in decision.actions:
        return "warned"
    return "advised" if decision.is_advice else "audited"


def _rules_or_objects_of(decision: Decision, outcome: Outcome) -> Iterable[str]:
    if outcome == "not evaluated" and decision.missing:
        return [str(each) for each in decision.missing]
    if decision.problems:
        return [problem.code for problem in decision.problems]
    return [decision.rule if "/" in decision.rule and outcome != "error" else decision.message or decision.rule]


def _describe_unmatched_part(part: str, attributes: Attributes) -> str:
    return _NO_RULE.format(_request_as_text(attributes)) if part == _RULES else part or _TYPES


def _request_as_text(attributes: Attributes) -> str:
    """Return a request as a text, such as `CREATE pods` or `UPDATE jobs.batch`."""
    resource = attributes.request_resource
    named = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
    return f"{attributes.operation} {named}{'/' if attributes.sub_resource else ''}{attributes.sub_resource}"
