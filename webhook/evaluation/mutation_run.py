"""Runs the mutating policies on one object, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from webhook.attributes import JSON, POD
from webhook.cel.cost import RUNTIME_BUDGET
from webhook.cel.library.list_origins import record_origins
from webhook.decisions import Decision
from webhook.errors import BindingError, EvaluationError, LookupFailed, PatchError
from webhook.evaluation import mutation_decisions, mutations
from webhook.evaluation.activation import build_activation
from webhook.evaluation.contained_fault import contain_fault, is_contained
from webhook.evaluation.cost_budget import CostBudget
from webhook.evaluation.custom_kinds import definition_of
from webhook.evaluation.decision_list import DecisionList
from webhook.evaluation.invocations import Invocation, Unusable, invocations_of_policy
from webhook.evaluation.match_conditions import is_asked
from webhook.evaluation.object_decoding import Undecodable
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.rewriting import Rewriting, refresh_target, with_changed_pod
from webhook.evaluation.target import Target
from webhook.evaluation.trace import Trace
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Policy


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
    rewriting: Rewriting = field(default_factory=Rewriting)
    definition: JSON = None

    def round(self, candidates: Sequence[Candidate], context: RequestContext) -> None:
        """Match all policies against the object, then run the invocations in order."""
        self.rewriting.seal()
        matched = [each for candidate in candidates for each in _matched(candidate, context)]
        for each in matched:
            if isinstance(each, Unusable):
                self._add(mutation_decisions.decision_of_unusable_policy(each))
                if context.options.trace is not None:
                    context.options.trace.unusable(each.policy, each.binding, each.text)
        for each in matched:
            if isinstance(each, Invocation) and not self.is_aborted:
                if context.options.trace is None:
                    self._run(each, context)
                else:
                    self._traced(each, context, context.options.trace)

    def _traced(self, run: Invocation, context: RequestContext, trace: Trace) -> None:
        """Run one policy on one target, and tell the trace how that ended."""

        def decisions() -> Sequence[Decision]:
            before, count = self.object, len(self.decisions.decisions)
            self._run(run, context)
            made = self.decisions.decisions[count:]
            return [each for each in made if each.evaluation != "admit" or self.object is not before]

        trace.evaluation(run.policy, run.binding, run.param, run.target, decisions)

    def _run(self, run: Invocation, context: RequestContext) -> None:
        """Run one policy on one target; an unexpected error becomes an error of that policy."""
        try:
            self._invoke(run, context)
        except Exception as fault:
            if not is_contained(fault):
                raise
            self._add(
                mutation_decisions.decision_of_failed_mutation(
                    run, contain_fault(context.faults, run.policy.name, fault)
                )
            )

    def _invoke(self, run: Invocation, context: RequestContext) -> None:
        """Run one policy on one target if its conditions hold."""
        if run.key[:2] in self.stopped:
            return
        if run.target.podset is None or run.target.kind != POD:
            self.rewriting.seal()
        target = refresh_target(run.target, self.object, context.deadline)
        if target is None or not self._holds(run, target, context):
            return
        if self.only is not None and run.key not in self.only:
            return
        try:
            crd = self._definition(target, run.policy, context)
        except LookupFailed as error:
            self._add(mutation_decisions.decision_of_failed_mutation(run, error, target=target))
            return
        if self._applies(run, target, crd, context) and run.policy.reinvokes:
            self.reinvocable[run.key] = None

    def _holds(self, run: Invocation, target: Target, context: RequestContext) -> bool:
        """Return whether the conditions of the policy hold for the object as it is now."""
        try:
            return run.gate is None or is_asked(run.gate, run.policy, target, run.param, context)
        except (EvaluationError, BindingError, LookupFailed) as error:
            self._add(mutation_decisions.decision_of_failed_mutation(run, error, target=target))
            self._stops(run, context)
            return False

    def _definition(self, target: Target, policy: Policy, context: RequestContext) -> JSON:
        definition = definition_of(target, policy, context)
        if target.podset is None:
            self.definition = definition
        return definition

    def _applies(self, run: Invocation, target: Target, crd: JSON, context: RequestContext) -> bool:
        """Apply the mutations of a policy; return whether it reached the last. A failed one does not stop the
        others.
        """
        for index in range(len(run.policy.changes)):
            now = refresh_target(target, self.object, context.deadline)
            if now is None:
                break
            target = now
            try:
                self._apply(run, index, target, crd=crd, context=context)
            except Undecodable as error:
                self._abort(run, index, str(error))
                return False
            except (EvaluationError, PatchError, BindingError, LookupFailed) as error:
                self._add(mutation_decisions.decision_of_failed_mutation(run, error, target=target, index=index))
                if self._stops(run, context):
                    return False
        return True

    def _apply(self, run: Invocation, index: int, target: Target, *, crd: JSON, context: RequestContext) -> None:
        started, change = perf_counter(), run.policy.changes[index]
        budget = CostBudget(RUNTIME_BUDGET, context.deadline)
        if context.options.trace is not None:
            context.options.trace.meter(budget)
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
        self._add(mutation_decisions.decision_of_applied_mutation(run, index, target, perf_counter() - started))

    def _stops(self, run: Invocation, context: RequestContext) -> bool:
        """Return whether the time is over; the policy is then not run again."""
        if context.deadline.is_over:
            self.stopped.add(run.key[:2])
            return True
        return False

    def _abort(self, run: Invocation, index: int, text: str) -> None:
        self.is_aborted = True
        self.decisions = DecisionList()
        self._add(mutation_decisions.decision_of_invalid_result(run, index, text))

    def _add(self, decision: Decision) -> None:
        self.is_denied |= decision.action == "deny"
        self.decisions.add((decision,))


def _matched(candidate: Candidate, context: RequestContext) -> Sequence[Invocation | Unusable]:
    """Return the invocations of one policy; an unexpected error makes the policy unusable."""
    try:
        return invocations_of_policy(candidate, context)
    except Exception as fault:
        if not is_contained(fault):
            raise
        return [Unusable(candidate.policy, None, contain_fault(context.faults, candidate.policy.name, fault))]
