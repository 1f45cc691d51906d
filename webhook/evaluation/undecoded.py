"""Reports objects and pod templates that policies are not evaluated on because their types are wrong.

Each is reported once, whatever number of policies would have been asked. Where a policy about types was asked, it has
reported it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webhook.evaluation.target import EvaluationTarget
from webhook.policy.compiled import Policy
from webhook.rules.decisions import Decision


def decisions_of_undecoded_objects(asked: Iterable[tuple[EvaluationTarget, Policy]]) -> Iterator[Decision]:
    """Yield an "unknown" decision for each such object, in the name of the first policy that was not evaluated on it.

    `asked` are such objects with each policy that would have been asked, one about types among them that was.
    """
    skipped: dict[int, tuple[EvaluationTarget, Policy]] = {}  # by the `id` of the object, which the target keeps alive
    judged: set[int] = set()
    for target, policy in asked:
        if policy.judges_types:
            judged.add(id(target.object))
        else:
            skipped.setdefault(id(target.object), (target, policy))
    for key, (target, policy) in skipped.items():
        if key not in judged:
            yield _undecoded_decision(target, policy)


def _undecoded_decision(target: EvaluationTarget, policy: Policy) -> Decision:
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
