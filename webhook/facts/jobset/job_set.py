"""A JobSet spec that is to be validated, wherever it stands. Knows no rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.check import Group
from webhook.paths import FieldPath
from webhook.wording import either

problem: Final = Group("job-set").problem
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSet:
    """A JobSet spec, made or still to be made.

    Args:
        spec: the spec.
        at: where it stands, with which every path begins.
        is_counted: whether the pods of the replicated jobs are final; those of a runtime are not.
        deadline: is charged for what is walked.
    """

    spec: Mapping[str, JSON]
    at: FieldPath = ()
    is_counted: bool = True
    deadline: Deadline = field(default_factory=Deadline)

    @property
    def jobs(self) -> JSON:
        """The replicated jobs."""
        return self.spec.get("replicatedJobs", [])

    def choice(self) -> str:
        """What to do about a name that no replicated job has."""
        names = [f"`{name}`" for job in self.jobs[:_MOST_NAMED] if (name := job.get("name", ""))]
        return f"name a replicated job, such as {either(names)}" if names else "add a replicated job of this name"

    def places(self) -> Mapping[str, int]:
        """The index of the first replicated job of each name."""
        last = len(self.jobs) - 1
        return {job.get("name", ""): last - back for back, job in enumerate(self.deadline.paced(reversed(self.jobs)))}
