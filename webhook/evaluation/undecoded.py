"""Objects and pod templates that no policy is asked about because they are not of their types.

Each is reported once, whatever number of policies would have been asked. Where a policy about types was asked, it has
reported it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webhook.decisions import Decision
from webhook.evaluation.target import Target
from webhook.policy.compiled import Policy


def decisions_of_undecoded_objects(asked: Iterable[tuple[Target, Policy]]) -> Iterator[Decision]:
    """A decision for each object, in the name of the first policy that was not asked: it admits, and nobody knows.

    `asked` are such objects with each policy that would have been asked, one about types among them that was.
    """
    skipped: dict[int, tuple[Target, Policy]] = {}  # by the `id` of the object, which the target keeps alive
    judged: set[int] = set()
    for target, policy in asked:
        if policy.judges_types:
            judged.add(id(target.object))
        else:
            skipped.setdefault(id(target.object), (target, policy))
    for key, (target, policy) in skipped.items():
        if key not in judged:
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
