"""Shared memory of pods with several GPUs.

Source: https://github.com/NVIDIA/nccl/issues/525.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.storage.shared_memory import MORE_SHARED_MEMORY
from webhook.facts.training_jobs.groups import TRAINING_JOB_ADVICE
from webhook.facts.training_jobs.typed_job import TrainingJobOfKind
from webhook.problem import Problem

SHARED_MEMORY: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/shared-memory",
    title="Several GPUs have enough shared memory.",
    why="NCCL and data loaders need more than the 64 MiB that a container gets, and fail.",
    source="https://github.com/NVIDIA/nccl/issues/525",
    fails="start",
)


def advise_shared_memory(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Warn of several GPUs with the default 64 MiB of /dev/shm (https://github.com/NVIDIA/nccl/issues/525).

    Of a role that starts one Python process, another rule says that most of its GPUs are idle. A program that stands in
    the command itself mostly looks at its GPUs, or tries them.
    """
    for role in job.roles.values():
        is_one_process = role.launch.by == "python" or role.launch.is_inline
        if role.gpus > 1 and not role.shares_memory and not is_one_process:
            message = f"has {role.gpus} GPUs but only 64 MiB of /dev/shm, which is too little for NCCL and data loaders"
            yield SHARED_MEMORY.problem(role.template_path, message, MORE_SHARED_MEMORY)
