"""What a mutating policy is to do on one request: a run for each binding, parameter and target.

Source: k8s.io/apiserver v0.36 pkg/admission/plugin/policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.attributes import JSON
from webhook.errors import BindingError, BudgetExceeded, LookupFailed
from webhook.evaluation import params
from webhook.evaluation.expansion import asked, bound
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Binding, Policy


@dataclass(frozen=True, slots=True)
class Invocation:
    """One policy under one binding with one parameter, to be run on one object."""

    policy: Policy
    binding: Binding
    param: JSON
    target: Target

    @property
    def key(self) -> tuple[str, str, str]:
        """The names of policy, binding and parameter."""
        return self.policy.name, self.binding.name, params.name_of(self.param)


@dataclass(frozen=True, slots=True)
class Unusable:
    """A policy or binding that cannot be used on this request, and why."""

    policy: Policy
    binding: Binding | None
    text: str


def invocations(candidate: Candidate, context: RequestContext) -> Iterator[Invocation | Unusable]:
    """The runs of one policy, in the order of its bindings, parameters and targets."""
    policy = candidate.policy
    try:
        matched = asked(candidate, context)
    except (BindingError, LookupFailed) as error:
        yield Unusable(policy, None, f"failed to configure policy: {error}")
    except BudgetExceeded as error:
        yield Unusable(policy, None, str(error))
    else:
        for each in candidate.bindings if matched else ():
            yield from _of_binding(policy, each, matched, context)


def _of_binding(
    policy: Policy, selected: tuple[Binding, bool], matched: tuple[Target, ...], context: RequestContext
) -> Iterator[Invocation | Unusable]:
    binding = selected[0]
    try:
        targeted = bound(selected, matched, context)
        chosen = params.collect(policy, binding, context) if targeted else ()
    except (BindingError, LookupFailed) as error:
        yield Unusable(policy, binding, f"failed to configure binding: {error}")
    except BudgetExceeded as error:
        yield Unusable(policy, binding, str(error))
    else:
        can = [target for target in targeted if target.match.conversion != "impossible"]
        yield from (Invocation(policy, binding, param, target) for param in chosen for target in can)
