"""Evaluates MutatingAdmissionPolicies on one request, and returns the changed object with a decision for each mutation.

Policies run in the order of their names. All policies are matched, with their parameters, before the first policy runs;
matchConditions and expressions see the current object. After a mutation changed the object,
earlier policies with reinvocationPolicy IfNeeded run a second time. A failed mutation does not stop the mutations after
it. Source: k8s.io/apiserver v0.36 pkg/admission/plugin/policy/mutating/{dispatcher,reinvocationcontext}.go and
generic/policy_dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Final

from msgspec import Struct, field, structs

from webhook.apimachinery.attributes import JSON, POD, Operation
from webhook.cel.cost import RUNTIME_BUDGET
from webhook.cel.library.lists import record_origins
from webhook.errors import (
    AmbiguousObject,
    BindingError,
    BudgetExceeded,
    EvaluationError,
    LookupFailed,
    NoDecision,
    PatchError,
)
from webhook.evaluation.activation import build_activation
from webhook.evaluation.decision_list import DecisionList
from webhook.evaluation.invocations import (
    Invocation,
    UnusablePolicy,
    invocations_of_policy,
    policies_that_may_concern,
)
from webhook.evaluation.match_conditions import do_conditions_hold, may_conditions_hold
from webhook.evaluation.merged_pods import PartialPod
from webhook.evaluation.mutations import (
    TemplateRewriting,
    apply_mutation,
    find_crd_of_target,
    refresh_target,
    with_changed_pod,
    without_unknown_fields,
)
from webhook.evaluation.not_evaluated import (
    contain_fault,
    decision_of_unknown_pods,
    decisions_of_unusable_policy,
    error_of_policy,
    is_contained,
    sentence_about_other_version,
    undecided_decision,
)
from webhook.evaluation.patch_values import JsonPartTracker
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.trace import ReviewTrace
from webhook.evaluation.typed_input import UndecodableObject
from webhook.patch.diff import operations_between
from webhook.patch.write_back import write_back_changes
from webhook.policy.candidates import Candidate
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision, DenialReason
from webhook.yamltext.jsontext import equal_as_json

_REVERSIBLE: Final = ("none", "version")
"""Conversions between versions after which changes can still be written into the object that was sent."""
_INTERNAL_ERROR: Final = DenialReason("InternalError", 500)
"""The reason and code of a denial after a failed mutation (admission.NewForbidden)."""


def apply_mutating_policies(context: RequestContext) -> tuple[JSON, tuple[Decision, ...]]:
    """Return the object after all mutating policies, and their decisions in order. If nothing changed, the object is
    the same value.

    Failures of policies become decisions and raise no error. On DELETE, no policy is run.
    """
    attributes, policies = context.attributes, context.policies
    if attributes.operation is Operation.DELETE or attributes.object is None:
        return attributes.object, ()
    candidates = policies.mutating_for(attributes)
    if context.options.trace is not None:
        context.options.trace.record_skipped_policies(policies.mutating, candidates, attributes)
    concerned = policies_that_may_concern(candidates, context)
    if not concerned:
        return attributes.object, ()
    run = MutationRun(attributes.object)
    run.run_round(concerned, context)
    if run.is_dirty and run.reinvocable and not run.is_denied:
        second_request = replace(attributes, object=run.object)
        run.only = frozenset(run.reinvocable)
        second = context.of_other_request(second_request)  # the trace explains only the first round
        run.run_round(policies_that_may_concern(policies.mutating_for(second_request), second), second)
    decisions = tuple(run.decisions.decisions)
    if run.definition is None or not run.is_dirty:
        return run.object, decisions
    try:
        return without_unknown_fields(run.object, run.definition, attributes.kind.version, context.deadline), decisions
    except BudgetExceeded as error:
        return run.object, (*decisions, *decisions_of_unfinished_mutations(policies, decisions, str(error)))


class MutationRun(Struct):
    """The state while mutating policies run on one object. `only` has the keys of the policies to run in a second
    round.

    `stopped` has the policies and bindings that the deadline interrupted; they do not run again. `definition` is the
    CustomResourceDefinition of the object, if a policy needed it. `reinvocable` has the keys of the policies that may
    run again. If the run `is_aborted`, no other policy runs.
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
        """Match all policies against the object, then run them in order."""
        self.rewriting.freeze_copies()
        matched = [each for candidate in candidates for each in _match_policy(candidate, context)]
        for each in matched:
            if isinstance(each, UnusablePolicy):
                for decision in decisions_of_unusable_policy(each):
                    self._add_decision(decision)
                if context.options.trace is not None:
                    context.options.trace.record_unusable_policy(each.policy, each.binding, each.message)
        for each in matched:
            if isinstance(each, Invocation) and not self.is_aborted:
                if context.options.trace is None:
                    self._run_policy(each)
                else:
                    self._run_with_trace(each, context.options.trace)

    def _run_with_trace(self, invocation: Invocation, trace: ReviewTrace) -> None:
        """Run one policy on one target, and record the outcome in the trace."""

        def decisions() -> Sequence[Decision]:
            before, count = self.object, len(self.decisions.decisions)
            self._run_policy(invocation)
            added = self.decisions.decisions[count:]
            return [each for each in added if each.evaluation != "admit" or self.object is not before]

        policy, binding, place = invocation.policy, invocation.binding, invocation.target.place
        trace.evaluate_and_record(policy, binding, invocation.param, place, decisions)

    def _run_policy(self, invocation: Invocation) -> None:
        """Run one policy on one target. An unexpected error becomes an error of the policy."""
        try:
            self._run_if_conditions_hold(invocation)
        except Exception as fault:
            if not is_contained(fault):
                raise
            text = contain_fault(invocation.context.faults, invocation.policy.name, fault)
            self._add_decision(_decision_of_failed_policy(invocation, text))

    def _run_if_conditions_hold(self, matched: Invocation) -> None:
        """Run one policy on one target if its conditions hold for the current object."""
        if matched.key[:2] in self.stopped:
            return
        if matched.target.merged is not None or matched.target.missing:
            self._add_decision_about_pods_outside_object(matched)
            return
        if matched.target.podset is None or matched.target.kind != POD:
            self.rewriting.freeze_copies()
        target = refresh_target(matched.target, self.object, matched.context.deadline)
        if target is None:
            return
        invocation = structs.replace(matched, target=target)
        try:
            if not do_conditions_hold(invocation):
                return
        except (EvaluationError, BindingError, LookupFailed) as error:
            self._add_decision(_decision_of_failed_mutation(invocation, error))
            self._stops_at_deadline(invocation)
            return
        if self.only is not None and invocation.key not in self.only:
            return
        try:
            definition = find_crd_of_target(invocation)
            sent = matched.target.object_for_mutations(matched.context.deadline)
        except (LookupFailed, BudgetExceeded) as error:
            self._add_decision(_decision_of_failed_mutation(invocation, error))
            return
        if target.podset is None:
            self.definition = definition
        if self._apply_all_mutations(invocation, sent, definition) and invocation.policy.reinvokes:
            self.reinvocable[invocation.key] = None

    def _add_decision_about_pods_outside_object(self, invocation: Invocation) -> None:
        """Report that a policy would change pods that are not in the object, so that the change cannot be written."""
        if self.only is not None:
            return
        policy, binding, target = invocation.policy, invocation.binding, invocation.target
        try:
            if target.missing:
                if may_conditions_hold(invocation):
                    self._add_decision(decision_of_unknown_pods(policy, binding, invocation.param.name, target.missing))
                return
            if not do_conditions_hold(invocation) or not self._changes_pod(invocation):
                return
            kind = invocation.context.attributes.kind.kind
            text = f"the pods of {kind} get this change when they are created, and {kind} itself is not changed"
            self._add_decision(undecided_decision(policy, binding, NoDecision(text), invocation.param.name))
        except (EvaluationError, PatchError, BindingError, LookupFailed) as error:
            self._add_decision(_decision_of_failed_mutation(invocation, error))
            self._stops_at_deadline(invocation)

    def _changes_pod(self, invocation: Invocation) -> bool:
        """Return whether a policy changes a pod that is not in the object. If only a part of the pod is known, return
        True.
        """
        target, deadline = invocation.target, invocation.context.deadline
        if isinstance(target.merged, PartialPod):
            return True
        pod = target.object_for_mutations(deadline)
        for index in range(len(invocation.policy.changes)):
            changed, _ = self._mutated_object(invocation, index, pod, None)
            if not equal_as_json(changed, pod):
                return True
        return False

    def _apply_all_mutations(self, invocation: Invocation, sent: JSON, crd: JSON) -> bool:
        """Apply the mutations of a policy, and return whether all were tried. A failed mutation does not stop later
        mutations. `sent` is the object with which all policies were matched.
        """
        for index in range(len(invocation.policy.changes)):
            target = refresh_target(invocation.target, self.object, invocation.context.deadline)
            if target is None:
                break
            invocation = structs.replace(invocation, target=target)
            try:
                self._apply_one_mutation(invocation, index, sent, crd)
            except UndecodableObject as error:
                self.is_aborted = True
                self.decisions = DecisionList()
                self._add_decision(_decision_of_invalid_result(invocation, index, str(error)))
                return False
            except (EvaluationError, PatchError, BindingError, LookupFailed) as error:
                self._add_decision(_decision_of_failed_mutation(invocation, error, index))
                if self._stops_at_deadline(invocation):
                    return False
        return True

    def _apply_one_mutation(self, invocation: Invocation, index: int, sent: JSON, crd: JSON) -> None:
        started, context, target = perf_counter(), invocation.context, invocation.target
        changed, shown = self._mutated_object(invocation, index, sent, crd)
        written = write_back_changes(target.written, shown, changed, context.deadline) if target.podset else changed
        before, now = self.object, with_changed_pod(self.object, target, written, self.rewriting)
        operations = operations_between(before, now, context.deadline) if context.options.warn_of_mutations else ()
        changes = tuple(each["path"] for each in operations)
        self.object = now
        self.is_dirty = True
        self._add_decision(_decision_of_applied_mutation(invocation, index, changes, perf_counter() - started))

    def _mutated_object(self, invocation: Invocation, index: int, sent: JSON, crd: JSON) -> tuple[JSON, JSON]:
        """Return the target's object after and before a mutation."""
        context, target, change = invocation.context, invocation.target, invocation.policy.changes[index]
        budget = context.cost_budget(RUNTIME_BUDGET)
        context.deadline.spend(1)
        names = build_activation(invocation, budget)
        with record_origins() as origins:
            value = budget.evaluate(change.expression, names)
        tracker = JsonPartTracker(names.values(), context.deadline, origins)
        shown = target.object_for_mutations(context.deadline)
        changed = apply_mutation(
            change, value, shown, target.kind, context.deadline, tracker=tracker, crd=crd, sent=sent
        )
        return changed, shown

    def _stops_at_deadline(self, invocation: Invocation) -> bool:
        """Return whether the time is over. If it is over, the policy does not run again."""
        if invocation.context.deadline.is_over:
            self.stopped.add(invocation.key[:2])
            return True
        return False

    def _add_decision(self, decision: Decision) -> None:
        self.is_denied |= decision.action == "deny"
        self.decisions.add((decision,))


def _match_policy(candidate: Candidate, context: RequestContext) -> Sequence[Invocation | UnusablePolicy]:
    """An unexpected error makes the policy unusable."""
    try:
        return [*_reversible_invocations(candidate, context)]
    except Exception as fault:
        if not is_contained(fault):
            raise
        return [UnusablePolicy(candidate.policy, None, contain_fault(context.faults, candidate.policy.name, fault))]


def _reversible_invocations(candidate: Candidate, context: RequestContext) -> Iterator[Invocation | UnusablePolicy]:
    """Yield the invocations of one policy. For a target in a version that cannot be converted back, the policy is
    unusable with each binding.
    """
    reported: set[tuple[int, int]] = set()
    for each in invocations_of_policy(candidate, context):
        if isinstance(each, UnusablePolicy) or each.target.match.conversion in _REVERSIBLE:
            yield each
        elif not each.target.attributes.is_plain and (id(each.binding), id(each.target)) not in reported:
            reported.add((id(each.binding), id(each.target)))
            yield UnusablePolicy(each.policy, each.binding, sentence_about_other_version(each.target), warns_user=True)


def _decision_of_applied_mutation(
    invocation: Invocation, index: int, changes: tuple[str, ...], elapsed_s: float
) -> Decision:
    policy, binding, param = invocation.key
    return Decision(
        kind="mutating",
        policy=policy,
        rule=policy,
        binding=binding,
        param=param,
        index=index,
        path=invocation.target.reroot("")[0],
        evaluation="admit",
        changes=changes,
        elapsed_s=elapsed_s,
        severity=invocation.policy.severity,
        category=invocation.policy.category,
    )


def _decision_of_failed_mutation(invocation: Invocation, error: Exception, index: int | None = None) -> Decision:
    """Return the decision about a mutation, or about matchConditions, that could not be evaluated."""
    if isinstance(error, AmbiguousObject | NoDecision):
        return undecided_decision(invocation.policy, invocation.binding, error, invocation.param.name)
    path, message = invocation.target.reroot(str(error))
    return structs.replace(_decision_of_failed_policy(invocation, message), index=index, path=path)


def _decision_of_failed_policy(invocation: Invocation, message: str) -> Decision:
    return structs.replace(error_of_policy(invocation.policy, invocation.binding, message), param=invocation.param.name)


def _decision_of_invalid_result(invocation: Invocation, index: int, text: str) -> Decision:
    """Return the denial for a patched object that is not a valid object of its kind. The failurePolicy has no
    effect.
    """
    error = _decision_of_failed_policy(invocation, text)
    return structs.replace(error, rule="", index=index, lets_pass=False, denial=_INTERNAL_ERROR)


def decisions_of_unfinished_mutations(
    policies: PolicySet, decisions: Sequence[Decision], text: str
) -> Iterator[Decision]:
    """Yield an error for each policy that changed the object, because the time ended before the changes became a
    patch.
    """
    changed = {(each.policy, each.binding): each for each in decisions if each.evaluation == "admit"}
    named = {policy.name: policy for policy in policies.mutating}
    for decision in changed.values():
        error = error_of_policy(named[decision.policy], None, text)
        yield structs.replace(error, binding=decision.binding, param=decision.param, elapsed_s=decision.elapsed_s)
