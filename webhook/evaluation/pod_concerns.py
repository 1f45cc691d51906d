"""Selects the policies that concern a Pod by their annotation `claimgate.dev/concerns` and the Pod's resources.

The webhooks of a policy are registered with the same words (export/concerns.py), so that an API server does not send
Pods without; a policy with matchConditions is not asked about them here either, whatever its bindings say. What is read
here is never less than what the expressions of the webhooks find.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from webhook.errors import BudgetExceeded, UnreadPartError
from webhook.evaluation.request_context import RequestContext
from webhook.manifests.annotations import RESOURCE_CONCERNS
from webhook.policy.candidates import Candidate
from webhook.typed.pod_parts import CLAIMS, PORTABLE
from webhook.typed.pods import Pod
from webhook.typed.view import ReadingContext

_AMOUNTS: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
"""Resources that are not devices."""


def policies_that_may_concern(candidates: Iterable[Candidate], context: RequestContext) -> list[Candidate]:
    """Return the policies that may concern a request; a policy is left out if the Pod has nothing that it concerns."""
    present: frozenset[str] | None = None
    kept = []
    for candidate in candidates:
        if candidate.concerns:
            if present is None:
                present = _concerns_of_request_or_all(context)
            if candidate.concerns.isdisjoint(present):
                if context.options.trace is not None:
                    context.options.trace.record_unconcerned_pod(candidate)
                continue
        kept.append(candidate)
    return kept


def _concerns_of_request(context: RequestContext) -> frozenset[str]:
    """Return the words of `concerns` that apply to the Pod or to what it was before an update; all words if its types
    are wrong.
    """
    target = context.objects.own_object_target(context.objects.sent)
    if target.mismatches:
        return RESOURCE_CONCERNS
    reading = ReadingContext(context.deadline, frozenset(target.omitted), bool(context.objects.typed_own))
    pod = target.typed_objects.get(Pod)
    if pod is None:
        pod = target.typed_objects[Pod] = Pod.of(target.object, (), reading)
    words = _concerns_of_pod(pod)
    return words if target.old_object is None else words | _concerns_of_pod(Pod.of(target.old_object, (), reading))


def _concerns_of_request_or_all(context: RequestContext) -> frozenset[str]:
    """Return the words that apply to the Pod; all words if there is no time, or a part of the Pod has another type or
    was not read, so that each failurePolicy decides.
    """
    try:
        return _concerns_of_request(context)
    except (BudgetExceeded, TypeError, UnreadPartError):
        return RESOURCE_CONCERNS


def _concerns_of_pod(pod: Pod) -> frozenset[str]:
    """Return the words of `concerns` that apply to a Pod."""
    parts, spec = pod.parts, pod.json.get("spec") or {}
    words = {
        "devices": not parts.resource_names <= _AMOUNTS,
        "portable-gpu": PORTABLE in parts.resource_names,
        "claims": CLAIMS in parts.present,
        "pod-level": "resources" in spec or "overhead" in spec,
    }
    return frozenset(word for word, is_there in words.items() if is_there)
