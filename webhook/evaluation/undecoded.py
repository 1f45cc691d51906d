"""Objects and pod templates that no policy is asked about because they are not of their types.

Each is reported once, whatever number of policies would have been asked. Where a policy about types was asked, it has
reported it.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.decisions import Decision
from webhook.evaluation.target import Target
from webhook.policy.compiled import Policy


class UndecodedTargets:
    """Those of one request."""

    __slots__ = ("_judged", "_skipped")

    def __init__(self) -> None:
        self._judged: dict[int, Target] = {}  # by the `id` of the object, which the target keeps alive
        self._skipped: dict[int, tuple[Target, Policy]] = {}

    def add(self, target: Target, policy: Policy) -> None:
        """Note that a policy would have been asked about a target; one about types is."""
        if policy.judges_types:
            self._judged[id(target.object)] = target
        else:
            self._skipped.setdefault(id(target.object), (target, policy))

    def decisions(self) -> Iterator[Decision]:
        """A decision for each, in the name of the first policy that was not asked: it admits, and nobody knows."""
        for key, (target, policy) in self._skipped.items():
            if key not in self._judged:
                yield _unknown(target, policy)


def _unknown(target: Target, policy: Policy) -> Decision:
    first = target.mismatches[0]
    path, text = target.reroot(f"{first.path}: {first.message}" if first.path else first.message)
    return Decision(
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
