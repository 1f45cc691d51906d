"""Compares the gang of a Job with the number of nodes that its launchers wait for.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/gang/gang.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.command_lines.node_limits import node_count_range_of_launch
from webhook.facts.volcano.commands import ContainerCommand
from webhook.facts.volcano.groups import VOLCANO_JOB_ADVICE
from webhook.facts.volcano.plugin_setup import PluginSetup
from webhook.facts.volcano.pod_group import describe_partial_gang
from webhook.problem import Problem

PARTIAL_GANG: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/partial-gang",
    title="The gang of a Job is as large as the training that its pods start.",
    why=(
        "With a smaller minAvailable the first pods start and wait on their devices for others that may never get a "
        "place."
    ),
    refused_by="nobody; pods wait for each other",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins/gang/gang.go",
    function="OnSessionOpen",
    fails="waiting",
)


def advise_partial_gang(command: ContainerCommand, setup: PluginSetup) -> Iterator[Problem]:
    """Yield a gang that may start before there is room for all nodes that a launcher waits for."""
    job, limits = setup.job, node_count_range_of_launch(command.launch)
    if job.spec.has_no_placeholders and limits is not None and job.spec.min_available < limits[0] <= setup.pods:
        message = describe_partial_gang(job.spec.min_available, command.launch.by, limits[0])
        fix = f"set {limits[0]}, or remove minAvailable"
        yield PARTIAL_GANG.problem(job.spec.path("minAvailable"), message, fix, job.spec.min_available)
