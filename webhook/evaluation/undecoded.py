"""What is said of objects and pod templates that no policy is asked about because they are not of their types.

Said once for each of them, whatever number of policies would have been asked. Where a policy about types was asked, it
has said it.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.decisions import Decision
from webhook.evaluation.request_context import RequestContext


def undecoded(context: RequestContext) -> Iterator[Decision]:
    """A decision for each, in the name of the first policy that was not asked: it admits, and nobody knows."""
    for key, (target, policy) in context.undecoded.items():
        if key in context.judged:
            continue
        first = target.mismatches[0]
        path, text = target.reroot(f"{first.path}: {first.message}" if first.path else first.message)
        yield Decision(
            policy=policy.name,
            binding=policy.bindings[0].name if policy.bindings else "",
            path=path,
            action="admit",
            evaluation="unknown",
            message=f"not evaluated: {text}",
            rule=policy.name,
            severity=policy.severity,
            category=policy.category,
        )
