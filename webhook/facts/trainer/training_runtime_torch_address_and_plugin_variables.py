"""How torch runtimes find their first node, and variables that they leave to the plugin torch.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torch.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME_ADVICE
from webhook.facts.train_job_pods.nodes import find_trainer_job, is_trainer_job
from webhook.facts.train_job_pods.types import RuntimeSpec
from webhook.facts.trainer.train_job import RESERVED, fix_for_variable_of_plugin
from webhook.facts.trainer.training_runtime_job_names import replicated_jobs_of
from webhook.problem import Problem
from webhook.typed.job_sets import JobSetSpec

TORCH_ADDRESS: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/torch-address",
    title="The trainer of a torch runtime is the job `node` in the default subdomain.",
    why="Nodes look for the first one at the address <TrainJob>-node-0-0.<TrainJob>, whatever the runtime says.",
    refused_by="nobody; the nodes wait for each other",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torch.go",
    fails="waiting",
)
PLUGIN_VARIABLE: Final = TRAINING_RUNTIME_ADVICE.rule(
    "training-runtime/plugin-variable",
    title="A torch runtime leaves the variables of torchrun to the plugin.",
    why="The torch plugin writes PET_NNODES, PET_NODE_RANK and the like for each TrainJob, over what the runtime says.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torch.go",
    function="EnforceMLPolicy",
    severity="low",
)


def advise_torch_address(job_set: JobSetSpec) -> Iterator[Problem]:
    """Yield names because of which nodes do not find `<name>-node-0-0.<name>`, torch.go's master address."""
    why = "because torch nodes look for each other at `<TrainJob>-node-0-0.<TrainJob>`"
    step, network = find_trainer_job(job_set.replicated_jobs), job_set.network
    if step is not None and step.name != "node":
        message = f"must have `node` as the name of the trainer job, not `{step.name}`, {why}"
        yield TORCH_ADDRESS.problem(job_set.path("replicatedJobs"), message, "rename that job to `node`")
    if network.subdomain:
        path, message = network.path("subdomain"), f"must not be set {why}"
        yield TORCH_ADDRESS.problem(path, message, "remove the subdomain", network.subdomain)


def advise_plugin_variables(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Yield variables PET_* of a runtime, which the plugin replaces for TrainJobs with spec.trainer (torch.go
    EnforceMLPolicy).
    """
    jobs = replicated_jobs_of(runtime) if runtime.ml_policy.plugin == "torch" else ()
    nodes = (node for job in jobs if is_trainer_job(job) for node in job.pod.containers if node.name == "node")
    for variable in (variable for node in nodes for variable in node.env):
        if variable.name in RESERVED["torch"]:
            message = "is replaced by the torch plugin, which sets it for each TrainJob with spec.trainer"
            fix = fix_for_variable_of_plugin(variable.name, "TrainJobs")
            yield PLUGIN_VARIABLE.problem(variable.path("name"), message, fix, variable.name)
