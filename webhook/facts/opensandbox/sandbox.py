"""Objects of OpenSandbox and agent-sandbox as their rules read them: of their types, and what an update changes.

What stands in a pod template itself is a pod template as any other, and the Pod policies look at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from webhook.attributes import JSON, Operation
from webhook.deadline import Deadline
from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.paths import FieldPath, get

problem: Final = Group("sandbox").problem
OPENSANDBOX: Final = "sandbox.opensandbox.io"
AGENTS: Final = "agents.x-k8s.io"
EXTENSIONS: Final = "extensions.agents.x-k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """One object.

    Args:
        spec: what it says, without nulls and without what is still to be filled in where no text belongs.
        old: what it said before an update, None where the object is created.
        omitted: where it says something that is not in `spec`.
        deadline: is charged for what is walked.

    """

    spec: Mapping[str, JSON]
    old: Mapping[str, JSON] | None
    omitted: frozenset[FieldPath]
    deadline: Deadline

    def has(self, name: str) -> bool:
        """Whether a field is set, to something that is still to be filled in included."""
        return name in self.spec or ("spec", name) in self.omitted

    def changes(self, *fields: str) -> bool:
        """Whether it is created, or some of these fields change: what was stored before stays workable."""
        return self.old is None or any(self.spec.get(name) != self.old.get(name) for name in fields)

    def changes_at_all(self) -> bool:
        """Whether it is created, or its spec changes."""
        return self.old is None or self.spec != self.old


def read_sandbox(subject: Subject) -> Sandbox:
    """The object that a subject is."""
    is_update = subject.attributes.operation == Operation.UPDATE
    return Sandbox(
        spec=get(subject.object, ("spec",), {}),
        old=get(subject.old_object, ("spec",), {}) if is_update else None,
        omitted=subject.omitted,
        deadline=subject.deadline,
    )
