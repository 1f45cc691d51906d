"""Problems of lists in queue objects that have more or fewer entries than Kueue allows.

Source: the rules of kubernetes-sigs/kueue@ff69552e config/components/crd/bases.
"""

from __future__ import annotations

from typing import Final

from webhook.facts.kueue.groups import KUEUE_QUEUE
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.wording import counted

TOO_MANY: Final = KUEUE_QUEUE.rule(
    "kueue-queue/too-many",
    title="Groups, flavors and resources are not more than Kueue takes.",
    why="The CustomResourceDefinition and the webhook bound them.",
    function="validateResourceGroups",
)


def too_many_entries_problem(path: FieldPath, message: str, fix: str, shown: str) -> Problem:
    """Return the problem of a list with more entries than allowed, or with too few."""
    return TOO_MANY.problem(path, message, fix, shown=shown)


def fault_of_count(count: int, most: int) -> str:
    """Return the fault in the length of a list that must not be empty; "" if there is none."""
    return "" if 1 <= count <= most else f"are given, but 1 to {most} are allowed"


def fix_for_count(count: int, most: int, noun: str) -> str:
    """Return the fix for a list that has too many entries, or none."""
    return f"remove {counted(count - most, noun)}" if count else f"add a {noun}"
