"""Evaluates MutatingAdmissionPolicies on one request: returns the changed object, and a decision for each mutation.

Policies run in the order of their names. All are matched, with their parameters, before the first runs;
matchConditions and expressions see the object as it is by then. After any mutation has been applied, every policy with
reinvocationPolicy IfNeeded that ran is run once more. A failed mutation does not stop those after it. Source:
k8s.io/apiserver v0.36 pkg/admission/plugin/policy/mutating/{dispatcher,reinvocationcontext}.go and
generic/policy_dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from webhook.apimachinery.attributes import JSON, POD, Attributes, Operation
from webhook.cel.cost import RUNTIME_BUDGET
from webhook.cel.library.lists import record_origins
from webhook.cluster import Cluster
from webhook.deadline import Deadline
from webhook.errors import AmbiguousObject, BindingError, BudgetExceeded, EvaluationError, LookupFailed, PatchError
from webhook.evaluation import mutations
from webhook.evaluation.activation import build_activation
from webhook.evaluation.cost_budget import CostBudget
from webhook.evaluation.decision_list import DecisionList
from webhook.evaluation.invocations import PolicyInvocation, UnusablePolicy, invocations_of_policy
from webhook.evaluation.match_conditions import do_conditions_hold, policies_that_may_concern
from webhook.evaluation.mutations import (
    TemplateRewriting,
    find_crd_of_target,
    refresh_target,
    with_changed_pod,
    without_unknown_fields,
)
from webhook.evaluation.not_evaluated import contain_fault, is_contained, undecided_decision
from webhook.evaluation.object_decoding import UndecodableObject
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.evaluation.request_objects import EvaluationTarget
from webhook.evaluation.trace import ReviewTrace
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Policy
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision, ValidationAction

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer

_DENY: Final = (ValidationAction.DENY,)
_CODE: Final = 403
"""The code of every failed mutation, whatever its reason (admission.NewForbidden)."""


def apply_mutating_policies(
    attributes: Attributes,
    policies: PolicySet,
    cluster: Cluster,
    deadline: Deadline | None = None,
    *,
    authorizer: Authorizer | None = None,
    context: RequestContext | None = None,
) -> tuple[JSON, tuple[Decision, ...]]:
    """Return the object after all mutating policies, the same value if none changed it, and their decisions in order.

    Never raises for a policy's fault; what failed is in the decisions. There is nothing to change on DELETE. `context`
    is that of the request, where it is at hand.
    """
    if attributes.operation is Operation.DELETE or attributes.object is None:
        return attributes.object, ()
    candidates = policies.mutating_for(attributes)
    if context is not None and context.options.trace is not None:
        context.options.trace.record_skipped_policies(policies.mutating, candidates, attributes)
    if not candidates:
        return attributes.object, ()
    run = MutationRun(attributes.object)
    context = context or request_context(policies, attributes, cluster, deadline, authorizer)
    run.run_round(policies_that_may_concern(candidates, context), context)
    if run.is_dirty and run.reinvocable and not run.is_denied:
        again = replace(attributes, object=run.object)
        run.only = frozenset(run.reinvocable)
        untold, faults = replace(context.options, trace=None), context.faults  # the first round is explained
        second = request_context(policies, again, cluster, deadline, authorizer, faults=faults, options=untold)
        run.run_round(policies_that_may_concern(policies.mutating_for(again), second), second)
    decisions = tuple(run.decisions.decisions)
    if run.definition is None or not run.is_dirty:
        return run.object, decisions
    try:
        return without_unknown_fields(
            run.object, run.definition, attributes.kind.version, deadline or Deadline()
        ), decisions
    except BudgetExceeded as error:
        return run.object, (*decisions, *decisions_of_unfinished_mutations(policies, decisions, str(error)))


@dataclass(slots=True)
class MutationRun:
    """One object during the mutating policies, with their decisions. `only` has the keys of policies for a second
    round.

    `stopped` are the policies and bindings that the deadline interrupted, which are not asked again. `definition` is
    the CustomResourceDefinition of the object, where a policy asked for it. `reinvocable` are the keys of what may run
    once more. When the run `is_aborted` nothing more is asked.
    """

    object: JSON
    decisions: DecisionList = field(default_factory=DecisionList)
    is_dirty: bool = False
    is_denied: bool = False
    is_aborted: bool = False
    reinvocable: dict[tuple[str, str, str], None] = field(default_factory=dict)
    only: frozenset[tuple[str, str, str]] | None = None
    stopped: set[tuple[str, str]] = field(default_factory=set)
    rewriting: TemplateRewriting = field(default_factory=TemplateRewriting)
    definition: JSON = None

    def run_round(self, candidates: Sequence[Candidate], context: RequestContext) -> None:
        """Match all policies against the object, then run the invocations in order."""
        self.rewriting.freeze_copies()
        matched = [each for candidate in candidates for each in _invocations_of_policy(candidate, context)]
        for each in matched:
            if isinstance(each, UnusablePolicy):
                self._add_decision(decision_of_unusable_policy(each))
                if context.options.trace is not None:
                    context.options.trace.record_unusable_policy(each.policy, each.binding, each.text)
        for each in matched:
            if isinstance(each, PolicyInvocation) and not self.is_aborted:
                if context.options.trace is None:
                    self._run_policy(each, context)
                else:
                    self._run_with_trace(each, context, context.options.trace)

    def _run_with_trace(self, run: PolicyInvocation, context: RequestContext, trace: ReviewTrace) -> None:
        """Run one policy on one target, and tell the trace how that ended."""

        def decisions() -> Sequence[Decision]:
            before, count = self.object, len(self.decisions.decisions)
            self._run_policy(run, context)
            made = self.decisions.decisions[count:]
            return [each for each in made if each.evaluation != "admit" or self.object is not before]

        trace.evaluate_and_record(run.policy, run.binding, run.param, run.target, decisions)

    def _run_policy(self, run: PolicyInvocation, context: RequestContext) -> None:
        """Run one policy on one target; an unexpected error becomes an error of that policy."""
        try:
            self._run_if_conditions_hold(run, context)
        except Exception as fault:
            if not is_contained(fault):
                raise
            self._add_decision(decision_of_failed_mutation(run, contain_fault(context.faults, run.policy.name, fault)))

    def _run_if_conditions_hold(self, run: PolicyInvocation, context: RequestContext) -> None:
        """Run one policy on one target if its conditions hold."""
        if run.key[:2] in self.stopped:
            return
        if run.target.podset is None or run.target.kind != POD:
            self.rewriting.freeze_copies()
        target = refresh_target(run.target, self.object, context.deadline)
        if target is None or not self._do_conditions_hold(run, target, context):
            return
        if self.only is not None and run.key not in self.only:
            return
        try:
            crd = self._definition_of_kind(target, run.policy, context)
        except LookupFailed as error:
            self._add_decision(decision_of_failed_mutation(run, error, target=target))
            return
        if self._apply_all_mutations(run, target, crd, context) and run.policy.reinvokes:
            self.reinvocable[run.key] = None

    def _do_conditions_hold(self, run: PolicyInvocation, target: EvaluationTarget, context: RequestContext) -> bool:
        """Return whether the conditions of the policy hold for the object as it is now."""
        try:
            return run.gate is None or do_conditions_hold(run.gate, run.policy, target, run.param, context)
        except (EvaluationError, BindingError, LookupFailed) as error:
            self._add_decision(decision_of_failed_mutation(run, error, target=target))
            self._is_time_over(run, context)
            return False

    def _definition_of_kind(self, target: EvaluationTarget, policy: Policy, context: RequestContext) -> JSON:
        definition = find_crd_of_target(target, policy, context)
        if target.podset is None:
            self.definition = definition
        return definition

    def _apply_all_mutations(
        self, run: PolicyInvocation, target: EvaluationTarget, crd: JSON, context: RequestContext
    ) -> bool:
        """Apply the mutations of a policy; return whether it reached the last. A failed one does not stop the
        others.
        """
        for index in range(len(run.policy.changes)):
            now = refresh_target(target, self.object, context.deadline)
            if now is None:
                break
            target = now
            try:
                self._apply_one_mutation(run, index, target, crd=crd, context=context)
            except UndecodableObject as error:
                self._abort_with_error(run, index, str(error))
                return False
            except (EvaluationError, PatchError, BindingError, LookupFailed) as error:
                self._add_decision(decision_of_failed_mutation(run, error, target=target, index=index))
                if self._is_time_over(run, context):
                    return False
        return True

    def _apply_one_mutation(
        self, run: PolicyInvocation, index: int, target: EvaluationTarget, *, crd: JSON, context: RequestContext
    ) -> None:
        started, change = perf_counter(), run.policy.changes[index]
        budget = CostBudget(RUNTIME_BUDGET, context.deadline)
        if context.options.trace is not None:
            context.options.trace.count_cost_of_budget(budget)
        context.deadline.spend(1)
        names = build_activation(run.policy, target, run.param, context, budget)
        with record_origins() as origins:
            value = budget.evaluate(change.expression, names)
        changed = mutations.apply_mutation(
            change,
            value,
            target.written,
            target.kind,
            context.deadline,
            seen=names,
            origins=origins,
            crd=crd,
            sent=run.target.written,
        )
        self.object = with_changed_pod(self.object, target, changed, self.rewriting)
        self.is_dirty = True
        self._add_decision(decision_of_applied_mutation(run, index, target, perf_counter() - started))

    def _is_time_over(self, run: PolicyInvocation, context: RequestContext) -> bool:
        """Return whether the time is over; the policy is then not run again."""
        if context.deadline.is_over:
            self.stopped.add(run.key[:2])
            return True
        return False

    def _abort_with_error(self, run: PolicyInvocation, index: int, text: str) -> None:
        self.is_aborted = True
        self.decisions = DecisionList()
        self._add_decision(decision_of_invalid_result(run, index, text))

    def _add_decision(self, decision: Decision) -> None:
        self.is_denied |= decision.action == "deny"
        self.decisions.add((decision,))


def _invocations_of_policy(
    candidate: Candidate, context: RequestContext
) -> Sequence[PolicyInvocation | UnusablePolicy]:
    """Return the invocations of one policy; an unexpected error makes the policy unusable."""
    try:
        return invocations_of_policy(candidate, context)
    except Exception as fault:
        if not is_contained(fault):
            raise
        return [UnusablePolicy(candidate.policy, None, contain_fault(context.faults, candidate.policy.name, fault))]


def decision_of_applied_mutation(
    run: PolicyInvocation, index: int, target: EvaluationTarget, elapsed_s: float
) -> Decision:
    """Return the decision about a mutation that changed its target."""
    more = {"index": index, "path": target.reroot("")[0], "elapsed_s": elapsed_s}
    return _mutating_decision(
        run.policy, "admit", "admit", rule=run.policy.name, **_names_of_binding_and_param(run), **more
    )


def decision_of_failed_mutation(
    run: PolicyInvocation, error: Exception | str, *, target: EvaluationTarget | None = None, index: int | None = None
) -> Decision:
    """Return the decision about a mutation, or conditions of its policy, that could not be evaluated."""
    if isinstance(error, AmbiguousObject):
        return undecided_decision(run.policy, run.binding, str(error), run.param.name)
    text = str(error)
    path, message = target.reroot(text) if target else ("", text)
    return _error_decision(
        run.policy, "Invalid", **_names_of_binding_and_param(run), index=index, path=path, message=message
    )


def decision_of_unusable_policy(each: UnusablePolicy) -> Decision:
    """Return the decision about a policy or binding that cannot be used on this request."""
    if each.is_unknown:
        return undecided_decision(each.policy, each.binding, each.text)
    binding = each.binding.name if each.binding else ""
    return _error_decision(each.policy, "Forbidden", binding=binding, message=each.text, is_told=each.is_told)


def decision_of_invalid_result(run: PolicyInvocation, index: int, text: str) -> Decision:
    """Return the denial for a patched object that is not an object of its kind; the failurePolicy does not matter."""
    more = {"index": index, "message": text, "actions": _DENY, "reason": "InternalError", "code": 500}
    return _mutating_decision(run.policy, "deny", "error", **_names_of_binding_and_param(run), **more)


def decisions_of_unfinished_mutations(
    policies: PolicySet, decisions: Sequence[Decision], text: str
) -> Iterator[Decision]:
    """Yield the decisions of policies that changed the object when time ran out before the change became a patch."""
    changed = {(each.policy, each.binding): each for each in decisions if each.evaluation == "admit"}
    fails = {policy.name for policy in policies.mutating if policy.is_fail}
    for decision in changed.values():
        error = replace(decision, index=None, path="", evaluation="error", message=text)
        yield _by_failure_policy(error, "Invalid", is_fail=decision.policy in fails)


def _error_decision(policy: Policy, reason: str, **more: Any) -> Decision:
    error = _mutating_decision(policy, "admit", "error", rule=policy.name, **more)
    return _by_failure_policy(error, reason, is_fail=policy.is_fail)


def _by_failure_policy(error: Decision, reason: str, *, is_fail: bool) -> Decision:
    """Return the error as a denial or an admission, by the failurePolicy of its policy."""
    if is_fail:
        return replace(error, action="deny", actions=_DENY, reason=reason, code=_CODE)
    return replace(error, action="admit", actions=_DENY, reason="", code=0)


def _names_of_binding_and_param(run: PolicyInvocation) -> dict[str, str]:
    _, binding, param = run.key
    return {"binding": binding, "param": param}


def _mutating_decision(policy: Policy, action: Any, evaluation: Any, **more: Any) -> Decision:
    return Decision(
        kind="mutating",
        policy=policy.name,
        action=action,
        evaluation=evaluation,
        severity=policy.severity,
        category=policy.category,
        **more,
    )
