"""What a mutating policy is to do on one request: a run for each binding, parameter and target.

Source: k8s.io/apiserver v0.36 pkg/admission/plugin/policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.errors import BindingError, BudgetExceeded, LookupFailed
from webhook.evaluation.expansion import explain_binding, explain_targets, matching, targets_of
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.evaluation.whole_policy import other_version
from webhook.policy.candidates import Candidate, CandidateBinding
from webhook.policy.compiled import Binding, Policy
from webhook.policy.static_params import Param

_REVERSIBLE: Final = ("none", "version")
"""Conversions after which what was changed can be put back into the object as it came."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One policy under one binding with one parameter, to be run on one object."""

    policy: Policy
    binding: Binding
    param: Param
    target: Target

    @property
    def key(self) -> tuple[str, str, str]:
        """The names of policy, binding and parameter."""
        return self.policy.name, self.binding.name, self.param.name


@dataclass(frozen=True, slots=True)
class Unusable:
    """A policy or binding that cannot be used on this request, and why."""

    policy: Policy
    binding: Binding | None
    text: str
    is_told: bool = False


def invocations(candidate: Candidate, context: RequestContext) -> Iterator[Invocation | Unusable]:
    """The runs of one policy, in the order of its bindings, parameters and targets."""
    policy = candidate.policy
    try:
        targets = (candidate.is_own_alone and context.objects.typed_own) or targets_of(candidate, context)
    except (BindingError, LookupFailed) as error:
        yield Unusable(policy, None, f"failed to configure policy: {error}")
    except BudgetExceeded as error:
        yield Unusable(policy, None, str(error))
    else:
        if context.options.trace is not None:
            explain_targets(candidate, targets, context)
        for binding in candidate.bindings if targets else ():
            yield from _of_binding(policy, binding, targets, context)


def _of_binding(
    policy: Policy, candidate: CandidateBinding, targets: Sequence[Target], context: RequestContext
) -> Iterator[Invocation | Unusable]:
    binding = candidate.binding
    try:
        bound_targets = targets if candidate.index is None else matching(candidate.index, targets, context)
        params = context.params.of(policy, binding) if bound_targets else ()
    except (BindingError, LookupFailed) as error:
        yield Unusable(policy, binding, f"failed to configure binding: {error}")
    except BudgetExceeded as error:
        yield Unusable(policy, binding, str(error))
    else:
        if context.options.trace is not None:
            explain_binding(policy, binding, targets, context, bound=bound_targets, params=params)
        can = [target for target in bound_targets if target.match.conversion in _REVERSIBLE]
        for target in bound_targets:
            if target.match.conversion not in _REVERSIBLE and params and not target.attributes.is_plain:
                yield Unusable(policy, binding, other_version(target), is_told=True)
        yield from (Invocation(policy, binding, param, target) for param in params for target in can)
