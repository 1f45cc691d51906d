"""MutatingAdmissionPolicies on one request: the object they make of it, and a decision per mutation.

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
from typing import TYPE_CHECKING, Literal

from webhook.attributes import JSON, POD, Attributes, Operation
from webhook.cel.cost import RUNTIME_BUDGET
from webhook.cel.library.list_origins import noted
from webhook.cluster import Cluster
from webhook.deadline import Deadline
from webhook.decisions import Decision, ValidationAction
from webhook.errors import BindingError, BudgetExceeded, EvaluationError, LookupFailed, PatchError
from webhook.evaluation import mutations, params
from webhook.evaluation.activation import activation
from webhook.evaluation.cost_budget import CostBudget
from webhook.evaluation.custom_kinds import definition_of, pruned
from webhook.evaluation.decision_list import DecisionList
from webhook.evaluation.expansion import asked, bound
from webhook.evaluation.match_conditions import is_asked
from webhook.evaluation.object_decoding import Undecodable
from webhook.evaluation.own_fault import contained, is_contained
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.evaluation.rewriting import Rewriting, put_back, refresh
from webhook.evaluation.target import Target
from webhook.evaluation.unchanged import Unchanged
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Binding, Policy
from webhook.policy.matching import is_exempt
from webhook.policy.policy_set import PolicySet

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer

_DENY = (ValidationAction.DENY,)
_CODE = 403
"""Every failed mutation is a 403 (admission.NewForbidden), whatever its reason."""


def mutate(
    attributes: Attributes,
    policies: PolicySet,
    cluster: Cluster,
    deadline: Deadline | None = None,
    *,
    authorizer: Authorizer | None = None,
    context: RequestContext | None = None,
) -> tuple[JSON, tuple[Decision, ...]]:
    """The object after all mutating policies, the same value when none changed it, and their decisions in order.

    Never raises for a policy's fault; what failed is in the decisions. There is nothing to change on DELETE. `around`
    are the request's surroundings where they are at hand.
    """
    if attributes.operation is Operation.DELETE or attributes.object is None:
        return attributes.object, ()
    candidates = policies.mutating_for(attributes)
    if not candidates or is_exempt(attributes):
        return attributes.object, ()
    run = _Run(attributes.object)
    context = context or request_context(policies, attributes, cluster, deadline, authorizer)
    unchanged = Unchanged(candidates, context)
    if unchanged.is_known:
        return attributes.object, ()
    run.round(candidates, context)
    if not (run.is_dirty or run.decisions.made or run.reinvocable):
        unchanged.keep()
    if run.is_dirty and run.reinvocable and not run.is_denied:
        again = replace(attributes, object=run.object)
        run.only = frozenset(run.reinvocable)
        second = request_context(policies, again, cluster, deadline, authorizer)
        second.faults = context.faults
        run.round(policies.mutating_for(again), second)
    made = tuple(run.decisions.made)
    if run.definition is None or not run.is_dirty:
        return run.object, made
    try:
        return pruned(run.object, run.definition, attributes.kind.version, deadline or Deadline()), made
    except BudgetExceeded as error:
        return run.object, (*made, *unfinished(policies, made, str(error)))


@dataclass(frozen=True, slots=True)
class _Invocation:
    """One policy under one binding with one parameter, to be run on one object."""

    policy: Policy
    binding: Binding
    param: JSON
    target: Target

    @property
    def key(self) -> tuple[str, str, str]:
        return self.policy.name, self.binding.name, params.name_of(self.param)


@dataclass(slots=True)
class _Run:
    """The object on its way through the policies. `only` are the keys that a second round runs.

    `stopped` are the policies and bindings that the deadline interrupted, which are not asked again. `definition` is
    the CustomResourceDefinition of the object, where a policy asked for it.
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
        """Match everything, then run it in order."""
        self.rewriting.seal()
        invocations = [each for candidate in candidates for each in _invocations(candidate, context)]
        for each in invocations:
            if isinstance(each, _Unusable):
                self._fail(each.policy, each.binding, each.text, "Forbidden")
        for each in invocations:
            if isinstance(each, _Invocation) and not self.is_aborted:
                try:
                    self._invoke(each, context)
                except Exception as fault:
                    if not is_contained(fault, context):
                        raise
                    text = contained(each.policy.name, fault, context)
                    self._fail(each.policy, each.binding, text, "Invalid", param=each.key[2])

    def _invoke(self, invocation: _Invocation, context: RequestContext) -> None:
        policy = invocation.policy
        if invocation.key[:2] in self.stopped:
            return
        if invocation.target.podset is None or invocation.target.kind != POD:
            self.rewriting.seal()
        target = refresh(invocation.target, self.object, context.deadline)
        if target is None or not self._holds(invocation, target, context):
            return
        if self.only is not None and invocation.key not in self.only:
            return
        try:
            crd = self._definition(target, policy, context)
        except LookupFailed as error:
            self._fail(policy, invocation.binding, str(error), "Invalid", target=target, param=invocation.key[2])
            return
        for index, change in enumerate(policy.changes):
            target = refresh(target, self.object, context.deadline)
            if target is None:
                break
            started = perf_counter()
            budget = CostBudget(RUNTIME_BUDGET, context.deadline)
            try:
                context.deadline.spend(1)
                seen = activation(policy, target, invocation.param, context, budget)
                with noted() as origins:
                    value = budget.evaluate(change.expression, seen)
                changed = mutations.apply(
                    change,
                    value,
                    target.written,
                    target.kind,
                    context.deadline,
                    seen=seen,
                    origins=origins,
                    crd=crd,
                    sent=invocation.target.written,
                )
            except Undecodable as error:
                self._abort(invocation, index, str(error))
                return
            except (EvaluationError, PatchError, BindingError, LookupFailed) as error:
                self._fail(
                    policy,
                    invocation.binding,
                    str(error),
                    "Invalid",
                    index=index,
                    target=target,
                    param=invocation.key[2],
                )
                if context.deadline.is_over:
                    self.stopped.add(invocation.key[:2])
                    return
                continue
            self.object = put_back(self.object, target, changed, self.rewriting)
            self.is_dirty = True
            self._note(invocation, index, target, perf_counter() - started)
        if policy.reinvokes:
            self.reinvocable[invocation.key] = None

    def _definition(self, target: Target, policy: Policy, context: RequestContext) -> JSON:
        definition = definition_of(target, policy, context)
        if target.podset is None:
            self.definition = definition
        return definition

    def _abort(self, invocation: _Invocation, index: int, text: str) -> None:
        """The patched object is no object of its kind: the request fails, whatever the failurePolicy."""
        self.is_denied = self.is_aborted = True
        self.decisions = DecisionList()
        self._add(
            Decision(
                kind="mutating",
                policy=invocation.policy.name,
                binding=invocation.binding.name,
                param=invocation.key[2],
                index=index,
                action="deny",
                evaluation="error",
                actions=_DENY,
                message=text,
                reason="InternalError",
                code=500,
                severity=invocation.policy.severity,
                category=invocation.policy.category,
            )
        )

    def _add(self, decision: Decision) -> None:
        self.decisions.add((decision,))

    def _holds(self, invocation: _Invocation, target: Target, context: RequestContext) -> bool:
        policy = invocation.policy
        try:
            return is_asked(policy, target, invocation.param, context)
        except (EvaluationError, BindingError, LookupFailed) as error:
            self._fail(policy, invocation.binding, str(error), "Invalid", target=target, param=invocation.key[2])
            if context.deadline.is_over:
                self.stopped.add(invocation.key[:2])
            return False

    def _note(self, invocation: _Invocation, index: int, target: Target, elapsed_s: float) -> None:
        policy = invocation.policy
        self._add(
            Decision(
                kind="mutating",
                policy=policy.name,
                rule=policy.name,
                binding=invocation.binding.name,
                param=invocation.key[2],
                index=index,
                path=target.reroot("")[0],
                action="admit",
                evaluation="admit",
                elapsed_s=elapsed_s,
                severity=policy.severity,
                category=policy.category,
            )
        )

    def _fail(
        self,
        policy: Policy,
        binding: Binding | None,
        text: str,
        reason: str,
        *,
        index: int | None = None,
        target: Target | None = None,
        param: str = "",
    ) -> None:
        path, message = target.reroot(text) if target else ("", text)
        action: Literal["admit", "deny"] = "deny" if policy.is_fail else "admit"
        self.is_denied |= policy.is_fail
        self._add(
            Decision(
                kind="mutating",
                policy=policy.name,
                rule=policy.name,
                binding=binding.name if binding else "",
                param=param,
                index=index,
                path=path,
                action=action,
                evaluation="error",
                actions=_DENY,
                message=message,
                reason=reason if policy.is_fail else "",
                code=_CODE if policy.is_fail else 0,
                severity=policy.severity,
                category=policy.category,
            )
        )


@dataclass(frozen=True, slots=True)
class _Unusable:
    """A policy or binding that cannot be used on this request."""

    policy: Policy
    binding: Binding | None
    text: str


def _invocations(candidate: Candidate, context: RequestContext) -> Iterator[_Invocation | _Unusable]:
    policy = candidate.policy
    try:
        matched = asked(candidate, context)
    except (BindingError, LookupFailed) as error:
        yield _Unusable(policy, None, f"failed to configure policy: {error}")
        return
    except BudgetExceeded as error:
        yield _Unusable(policy, None, str(error))
        return
    for each in candidate.bindings if matched else ():
        binding = each[0]
        try:
            targeted = bound(each, matched, context)
            chosen = params.collect(policy, binding, context) if targeted else ()
        except (BindingError, LookupFailed) as error:
            yield _Unusable(policy, binding, f"failed to configure binding: {error}")
            continue
        except BudgetExceeded as error:
            yield _Unusable(policy, binding, str(error))
            continue
        can = [target for target in targeted if target.match.conversion != "impossible"]
        yield from (_Invocation(policy, binding, param, target) for param in chosen for target in can)


def unfinished(policies: PolicySet, made: Sequence[Decision], text: str) -> Iterator[Decision]:
    """The decisions of policies that changed the object, when the time was up before the change became a patch."""
    changed = {(each.policy, each.binding): each for each in made if each.evaluation == "admit"}
    fails = {policy.name for policy in policies.mutating if policy.is_fail}
    for each in changed.values():
        is_fail = each.policy in fails
        yield replace(
            each,
            index=None,
            path="",
            action="deny" if is_fail else "admit",
            evaluation="error",
            actions=_DENY,
            message=text,
            reason="Invalid" if is_fail else "",
            code=_CODE if is_fail else 0,
        )
