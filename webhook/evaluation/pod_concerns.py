"""Whether a Pod has anything of what a policy concerns: its annotation `claimgate.dev/concerns`, told from resources.

The webhooks of a policy are registered with the same words (export/concerns.py), so that an API server does not send
Pods without; a policy with matchConditions is not asked about them here either. What is read here is never less than
what the expressions of the webhooks find.
"""

from __future__ import annotations

from typing import Final

from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.typed.pod_parts import CLAIMS
from webhook.typed.pods import Pod
from webhook.typed.view import Reading

_AMOUNTS: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
"""Resources that are no devices."""


def is_concerned(words: frozenset[str], target: Target, context: RequestContext) -> bool:
    """Whether a Pod has any of what some words stand for, or had it before an update; True where nobody can tell."""
    present = target.concerns
    if present is None:
        if target.mismatches:
            return True
        reading = Reading(context.deadline, frozenset(target.omitted), bool(context.objects.typed_own))
        pod = target.typed_objects.get(Pod)
        if pod is None:
            pod = target.typed_objects[Pod] = Pod.of(target.object, (), reading)
        present = _words(pod)
        if target.old_object is not None:
            present |= _words(Pod.of(target.old_object, (), reading))
        target.concerns = present
    return not words.isdisjoint(present)


def _words(pod: Pod) -> frozenset[str]:
    """The words whose things a Pod has; none of one that is no more."""
    parts, spec = pod.parts, pod.json.get("spec") or {}
    words = {
        "devices": not parts.resource_names <= _AMOUNTS,
        "claims": CLAIMS in parts.present,
        "pod-level": "resources" in spec or "overhead" in spec,
    }
    return frozenset(word for word, is_there in words.items() if is_there)
