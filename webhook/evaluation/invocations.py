"""The invocations of a mutating policy on one request: one for each binding, parameter and target.

Source: k8s.io/apiserver v0.36 pkg/admission/plugin/policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from webhook.errors import AmbiguousObject, BindingError, BudgetExceeded, LookupFailed
from webhook.evaluation.expansion import matching_targets, record_binding_in_trace, record_targets_in_trace, targets_of
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import EvaluationTarget
from webhook.evaluation.whole_policy import sentence_about_other_version
from webhook.policy.candidates import Candidate, CandidateBinding
from webhook.policy.compiled import Binding, MatchConditions, Policy
from webhook.policy.static_params import Param

_REVERSIBLE: Final = ("none", "version")
"""Conversions that allow changes to be put back into the object as it was sent."""


@dataclass(slots=True)  # not frozen, which makes it twice as slow to make
class PolicyInvocation:
    """One policy with one binding and parameter, to be run on one object; `gate` has its matchConditions."""

    policy: Policy
    gate: MatchConditions | None
    binding: Binding
    param: Param
    target: EvaluationTarget

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the names of policy, binding and parameter."""
        return self.policy.name, self.binding.name, self.param.name


@dataclass(frozen=True, slots=True)
class UnusablePolicy:
    """A policy or binding that cannot be used on this request, and the reason; `is_unknown` if that is not an error."""

    policy: Policy
    binding: Binding | None
    text: str
    is_told: bool = False
    is_unknown: bool = False


def invocations_of_policy(candidate: Candidate, context: RequestContext) -> list[PolicyInvocation | UnusablePolicy]:
    """Return the invocations of one policy, in the order of its bindings, parameters and targets."""
    policy, runs = candidate.policy, list[PolicyInvocation | UnusablePolicy]()
    try:
        targets = (candidate.is_own_alone and context.objects.typed_own) or targets_of(candidate, context)
    except AmbiguousObject as error:
        return [UnusablePolicy(policy, None, str(error), is_unknown=True)]
    except (BindingError, LookupFailed) as error:
        return [UnusablePolicy(policy, None, f"failed to configure policy: {error}")]
    except BudgetExceeded as error:
        return [UnusablePolicy(policy, None, str(error))]
    if context.options.trace is not None:
        record_targets_in_trace(candidate, targets, context)
    for binding in candidate.bindings if targets else ():
        runs += _invocations_of_binding(candidate, binding, targets, context)
    return runs


def _invocations_of_binding(
    candidate: Candidate,
    candidate_binding: CandidateBinding,
    targets: Sequence[EvaluationTarget],
    context: RequestContext,
) -> Sequence[PolicyInvocation | UnusablePolicy]:
    policy, binding, index = candidate.policy, candidate_binding.binding, candidate_binding.index
    try:
        bound = targets if index is None else matching_targets(index, targets, context)
        params = context.params.params_of_binding(policy, binding) if bound else ()
    except AmbiguousObject as error:
        return [UnusablePolicy(policy, binding, str(error), is_unknown=True)]
    except (BindingError, LookupFailed) as error:
        return [UnusablePolicy(policy, binding, f"failed to configure binding: {error}")]
    except BudgetExceeded as error:
        return [UnusablePolicy(policy, binding, str(error))]
    if context.options.trace is not None:
        record_binding_in_trace(policy, binding, targets, context, bound=bound, params=params)
    if not params:
        return ()
    others = [target for target in bound if target.match.conversion not in _REVERSIBLE]
    can = [target for target in bound if target.match.conversion in _REVERSIBLE] if others else bound
    unusable = [
        UnusablePolicy(policy, binding, sentence_about_other_version(target), is_told=True)
        for target in others
        if not target.attributes.is_plain
    ]
    return [
        *unusable,
        *(PolicyInvocation(policy, candidate.gate, binding, param, target) for param in params for target in can),
    ]
