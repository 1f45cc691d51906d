"""The nodes that torchrun waits for.

Source: pytorch/pytorch 010929fd torch/distributed/run.py parse_min_max_nnodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.training_jobs.autoscaler import max_pods_of_job
from webhook.facts.training_jobs.groups import TRAINING_JOB_ADVICE
from webhook.facts.training_jobs.typed_job import TrainingJobOfKind
from webhook.problem import Problem
from webhook.wording import counted

MORE_NODES_THAN_PODS: Final = TRAINING_JOB_ADVICE.rule(
    "training-job/more-nodes-than-pods",
    title="torchrun waits for no more nodes than there are pods.",
    why="The missing nodes never come, so the job never begins to train.",
    source="pytorch/pytorch 010929fd torch/distributed/run.py",
    function="parse_min_max_nnodes",
    fails="waiting",
)
_NODES: Final = re.compile(r"([0-9]{1,9})(:[0-9]{1,9})?")


def advise_nodes_of_torchrun(job: TrainingJobOfKind) -> Iterator[Problem]:
    """Warn of more nodes than there are pods, those included that an autoscaler may add."""
    pods = max_pods_of_job(job)
    if pods is None:
        return
    for role in job.roles.values():
        match = _NODES.fullmatch(role.launch.nodes)
        if match and int(match[1]) > pods:
            message = f"torchrun waits for {role.launch.nodes} nodes, but the job has {counted(pods, 'pod')}"
            fix = "use --nnodes=$(PET_NNODES), or remove --nnodes"
            yield MORE_NODES_THAN_PODS.problem(role.template_path, message, fix)
