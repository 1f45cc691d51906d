"""Rules for CPUs of the containers of a task with a NUMA policy.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go validateTaskTopoPolicy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook import quantity
from webhook.facts.pods import amounts
from webhook.facts.volcano.groups import VOLCANO_JOB
from webhook.facts.volcano_objects.types import Task
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

WHOLE_CPUS: Final = VOLCANO_JOB.rule(
    "volcano-job/whole-cpus",
    title="Every container of a task with a topologyPolicy requests whole CPUs.",
    why="Only whole CPUs are placed on NUMA nodes. The limit counts only where a container has no requests at all.",
    function="validateTaskTopoPolicy",
)
_NOT_PLACED: Final = ("", "none")


def validate_whole_cpus(task: Task) -> Iterator[Problem]:
    """Yield containers of a task with a NUMA policy that do not request whole CPUs (validateTaskTopoPolicy)."""
    if task.topology_policy in _NOT_PLACED:
        return
    for container in task.pod_spec.all_containers():
        resources = container.resources
        side, listed = ("requests", resources.requests) if resources.requests else ("limits", resources.limits)
        written = amounts.amount_as_string(listed.get("cpu"))
        cpus = quantity.read_quantity_or_none(written)
        if is_placeholder(written) or cpus is None or (cpus.sign() > 0 and cpus.is_whole()):
            continue
        message = (
            f"must be a whole number of CPUs because topologyPolicy {task.topology_policy} places each container on "
            "whole CPUs"
        )
        shown = "" if written == "0" else f"`{written}`"
        fix = "request a whole number of CPUs, such as 1"
        yield WHOLE_CPUS.problem(resources.path(side, "cpu"), message, fix, shown=shown)
