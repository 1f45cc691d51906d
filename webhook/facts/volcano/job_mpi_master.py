"""The master that the plugin mpi of a Job looks for.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/admit_job.go validateJobCreate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.volcano.groups import VOLCANO_JOB
from webhook.facts.volcano.job_plugins import fix_for_role_without_task
from webhook.facts.volcano_objects.plugins import PLUGINS
from webhook.facts.volcano_objects.types import Job
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

MPI_MASTER: Final = VOLCANO_JOB.rule(
    "volcano-job/mpi-master",
    title="The task of the master that the plugin mpi looks for exists.",
    why="The plugin sets up the launcher in it. Options behind one that cannot be read are ignored.",
    function="validateJobCreate",
)


def validate_mpi_master(job: Job) -> Iterator[Problem]:
    """Yield the problem of a missing master task, if the Job has the plugin mpi."""
    if "mpi" not in job.spec.plugins:
        return
    wanted = job.spec.tasks_by_role("mpi")["master"]
    if wanted in job.spec.tasks_by_name or is_placeholder(wanted):
        return
    default = PLUGINS["mpi"].tasks["master"]
    looked_for = f"task `{wanted}`, " + ("the default of --master" if wanted == default else "as --master says")
    message = f"looks for the master in {looked_for}, but the job has no such task"
    yield MPI_MASTER.problem(job.spec.path("plugins", "mpi"), message, fix_for_role_without_task("master", wanted))
