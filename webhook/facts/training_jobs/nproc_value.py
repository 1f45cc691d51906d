"""What nprocPerNode of a PyTorchJob may be.

Source: pytorch/pytorch 010929fd torch/distributed/run.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.training_jobs.groups import TRAINING_JOB_ADVICE
from webhook.problem import Problem

NPROC_VALUE: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/nproc-value",
    title="nprocPerNode is a number or a kind of device.",
    why="torchrun ends on any other text.",
    source="pytorch/pytorch 010929fd torch/distributed/run.py",
    function="determine_local_world_size",
    fails="start",
)
_VALUE: Final = re.compile(r"[?]|[1-9][0-9]*|auto|cpu|gpu|xpu|hpu|npu|mps|mlu|musa")


def advise_nproc_value(nproc: str) -> Iterator[Problem]:
    """Warn of a number of processes that torchrun cannot read."""
    if not _VALUE.fullmatch(nproc):
        message = "must be a number of processes or a kind of device because torchrun fails on anything else"
        yield NPROC_VALUE.problem(
            ("spec", "nprocPerNode"), message, "set auto, cpu, gpu or a whole number of at least 1", nproc
        )
