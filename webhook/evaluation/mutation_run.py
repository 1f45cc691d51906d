"""Runs the mutating policies on one object, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from webhook.apimachinery.attributes import JSON, POD
from webhook.cel.cost import RUNTIME_BUDGET
from webhook.cel.library.lists import record_origins
from webhook.errors import BindingError, EvaluationError, LookupFailed, PatchError
from webhook.evaluation import mutation_decisions, mutations
from webhook.evaluation.activation import build_activation
from webhook.evaluation.contained_fault import contain_fault, is_contained
from webhook.evaluation.cost_budget import CostBudget
from webhook.evaluation.custom_kinds import find_crd_of_target
from webhook.evaluation.decision_list import DecisionList
from webhook.evaluation.invocations import PolicyInvocation, UnusablePolicy, invocations_of_policy
from webhook.evaluation.match_conditions import do_conditions_hold
from webhook.evaluation.object_decoding import UndecodableObject
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.rewriting import TemplateRewriting, refresh_target, with_changed_pod
from webhook.evaluation.target import EvaluationTarget
from webhook.evaluation.trace import ReviewTrace
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Policy
from webhook.rules.decisions import Decision


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
                self._add_decision(mutation_decisions.decision_of_unusable_policy(each))
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
            self._add_decision(
                mutation_decisions.decision_of_failed_mutation(
                    run, contain_fault(context.faults, run.policy.name, fault)
                )
            )

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
            self._add_decision(mutation_decisions.decision_of_failed_mutation(run, error, target=target))
            return
        if self._apply_all_mutations(run, target, crd, context) and run.policy.reinvokes:
            self.reinvocable[run.key] = None

    def _do_conditions_hold(self, run: PolicyInvocation, target: EvaluationTarget, context: RequestContext) -> bool:
        """Return whether the conditions of the policy hold for the object as it is now."""
        try:
            return run.gate is None or do_conditions_hold(run.gate, run.policy, target, run.param, context)
        except (EvaluationError, BindingError, LookupFailed) as error:
            self._add_decision(mutation_decisions.decision_of_failed_mutation(run, error, target=target))
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
                self._add_decision(
                    mutation_decisions.decision_of_failed_mutation(run, error, target=target, index=index)
                )
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
        self._add_decision(
            mutation_decisions.decision_of_applied_mutation(run, index, target, perf_counter() - started)
        )

    def _is_time_over(self, run: PolicyInvocation, context: RequestContext) -> bool:
        """Return whether the time is over; the policy is then not run again."""
        if context.deadline.is_over:
            self.stopped.add(run.key[:2])
            return True
        return False

    def _abort_with_error(self, run: PolicyInvocation, index: int, text: str) -> None:
        self.is_aborted = True
        self.decisions = DecisionList()
        self._add_decision(mutation_decisions.decision_of_invalid_result(run, index, text))

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
