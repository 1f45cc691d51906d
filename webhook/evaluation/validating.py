"""ValidatingAdmissionPolicies on one request: every rule of every policy, binding and parameter, as decisions.

Decides nothing beyond what policies say: what a decision is worth is admission/enforce.py's. Order and errors:
k8s.io/apiserver v0.36 pkg/admission/plugin/policy/validating/dispatcher.go. Everything is evaluated, also after a
denial; validator.py asks one policy about one object.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from webhook.attributes import JSON, Attributes, Phase
from webhook.cluster import Cluster
from webhook.deadline import Deadline
from webhook.decisions import Decision
from webhook.errors import BindingError, BudgetExceeded, EvaluationError, LookupFailed
from webhook.evaluation import expansion, params
from webhook.evaluation.decision_list import DecisionList
from webhook.evaluation.expansion import asked, bound
from webhook.evaluation.kept_answers import KeptAnswers
from webhook.evaluation.match_conditions import is_asked
from webhook.evaluation.own_fault import contained, is_contained
from webhook.evaluation.prepared import steps
from webhook.evaluation.problem_values import has_none
from webhook.evaluation.quiet import quiet_checks
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.evaluation.said_once import said_once
from webhook.evaluation.target import Target
from webhook.evaluation.undecoded import undecoded
from webhook.evaluation.validator import Validator
from webhook.evaluation.whole_policy import interrupted, unconverted, unusable
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Binding, Policy
from webhook.policy.matching import is_exempt
from webhook.policy.policy_set import PolicySet

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer


def validate(
    attributes: Attributes,
    policies: PolicySet,
    cluster: Cluster,
    phase: Phase,
    deadline: Deadline | None = None,
    *,
    authorizer: Authorizer | None = None,
    context: RequestContext | None = None,
) -> tuple[Decision, ...]:
    """What the validating policies of a phase say about a request, in the order of their names; () when none matches.

    Never raises for a policy's fault. `context` is that of the request, where somebody has made it already.
    """
    candidates = policies.validating_for(attributes, phase)
    if not candidates or is_exempt(attributes):
        return ()
    context = context or request_context(policies, attributes, cluster, deadline, authorizer)
    made = DecisionList()
    own = expansion.own(context) if context.faults is None else ()
    for step in steps(candidates, own[0], context) if own else candidates:
        if isinstance(step, Candidate):
            _candidate(step, context, made)
        elif isinstance(step, KeptAnswers):
            _kept(step, own[0], context, made)
        else:
            made.admit(step)
    made.add(undecoded(context))
    return said_once(made.made, lambda: {each.policy.name: each.policy for each in candidates}, context.deadline)


def _kept(step: KeptAnswers, own: Target, context: RequestContext, made: DecisionList) -> None:
    """Add what a policy says of a Pod, as of the last one of which it read the same."""
    key = step.key(own, context)
    said = step.answer(key)
    if said is not None:
        made.admit(said)
        return
    before = len(made.made)
    _candidate(step.candidate, context, made)
    step.keep(key, made.made[before:], context)


def _candidate(candidate: Candidate, context: RequestContext, made: DecisionList) -> None:
    """Add what a policy says of a request; a fault of our own is what it says, too."""
    try:
        _asked(candidate, context, made)
    except Exception as fault:
        if not is_contained(fault, context):
            raise
        text = contained(candidate.policy.name, fault, context)
        made.add(interrupted(candidate.policy, binding, text) for binding, _ in candidate.bindings)


def _asked(candidate: Candidate, context: RequestContext, made: DecisionList) -> None:
    policy = candidate.policy
    try:
        matched = asked(candidate, context)
    except (BindingError, LookupFailed) as error:
        made.add([unusable(policy, None, f"failed to configure policy: {error}")])
    except BudgetExceeded as error:
        made.add(interrupted(policy, binding, str(error)) for binding in policy.bindings)
    else:
        for binding in candidate.bindings if matched else ():
            _binding(policy, binding, matched, context, made)


def _binding(
    policy: Policy,
    candidate: tuple[Binding, bool],
    matched: tuple[Target, ...],
    context: RequestContext,
    made: DecisionList,
) -> None:
    """Add what a policy says under one binding; once the time is up, that it could not say more."""
    deadline, binding = context.deadline, candidate[0]
    try:
        targeted = bound(candidate, matched, context)
        if not targeted:
            return
        for param in params.collect(policy, binding, context):
            quiet = quiet_checks(policy, param, context)
            for target in targeted:
                deadline.spend(1)
                if quiet is not None and quiet.say_nothing(target):
                    made.admit(_admits(binding, param, target))
                    continue
                said = _invoke(policy, binding, param, target, context)
                if said:
                    made.add(said)
                    if said[-1].evaluation == "error" and deadline.is_over:
                        return
    except (BindingError, LookupFailed) as error:
        made.add([unusable(policy, binding, f"failed to configure binding: {error}")])
    except BudgetExceeded as error:
        made.add([interrupted(policy, binding, str(error))])


def _invoke(
    policy: Policy, binding: Binding, param: JSON, target: Target, context: RequestContext
) -> Sequence[Decision]:
    """What a policy says of one object: nothing where its conditions do not hold, which is the most frequent case."""
    if target.match.conversion == "impossible":
        return [unconverted(policy, binding, target)]
    started = perf_counter()
    try:
        if not is_asked(policy, target, param, context):
            return ()
        if policy.checks and policy.body().admits_without_problems() and has_none(policy, target, param, context):
            return _admits(binding, param, target)
        return Validator(policy, binding, param, target, context, started=started).decisions()
    except (EvaluationError, BindingError, LookupFailed) as error:
        return [Validator(policy, binding, param, target, context, started=started).failure(str(error))]


def _admits(binding: Binding, param: JSON, target: Target) -> Sequence[Decision]:
    """The decisions of rules that hold."""
    return params.admitted(binding, param, target.place)
