"""Finds facts that a policy with `expand: pods` reads and that say less about a pod template than about the whole
object.

With `claimgate.dev/expand: pods` a policy sees one template at a time: `gpu.devices` is then for one pod, and a limit
on it allows an object with a thousand such pods. Each fact declares its meaning there (facts/subject.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.cel.check.reads import WHOLE
from webhook.facts.subject import FactRegistry
from webhook.policy.compiled import Policy


def sentences_about_expanded_facts(policy: Policy, registry: FactRegistry) -> Iterator[str]:
    """Yield a sentence for each field of a fact that says less about a pod template than about the whole object; none
    if the policy does not expand.
    """
    if not policy.expands:
        return
    read = _fields_read_by_variable(policy)
    for name in policy.facts:
        for field, meaning in registry.fact(name).expanded.items():
            if name in read and (field == WHOLE or field in read[name]):
                path = f"{name}.{field}" if field else name
                yield (
                    f"with `expand: pods`, `{path}` is {meaning}: to judge a workload as a whole, remove `expand` and "
                    "name its kinds in matchConstraints"
                )


def _fields_read_by_variable(policy: Policy) -> dict[str, frozenset[str]]:
    """Return the variables that the expressions read, with the fields that they select from each."""
    read: dict[str, frozenset[str]] = {}
    for expression in policy.expressions():
        if expression.program is not None:
            for name, fields in expression.program.paths_read().fields_by_variable.items():
                read[name] = read.get(name, frozenset()) | fields
    return read
