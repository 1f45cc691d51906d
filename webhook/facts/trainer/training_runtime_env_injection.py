"""The variables that torch.envInjection of a runtime gives to more containers than `node`.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/torch/torch.go and manifests/base/crds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.jobset.jobs_by_name import jobs_by_name
from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME
from webhook.facts.train_job_pods.types import EnvInjection, MLPolicy
from webhook.problem import Problem
from webhook.typed.job_sets import JobSetSpec

INJECTED_NODE: Final = TRAINING_RUNTIME.rule(
    "training-runtime/injected-node",
    title="torch.envInjection does not name the container `node`.",
    why="It always gets the variables, and the CustomResourceDefinition refuses its name.",
)
ENV_INJECTION: Final = TRAINING_RUNTIME.rule(
    "training-runtime/env-injection",
    title="Targets of torch.envInjection are containers of the runtime.",
    why="The torch plugin refuses TrainJobs of a runtime with other targets.",
    function="validateEnvInjectionTargets",
)


def check_node_not_injection_target(policy: MLPolicy) -> Iterator[Problem]:
    """Yield targets that name the container `node`, as the CustomResourceDefinition does."""
    for target in policy.torch.env_injection.targets:
        if "node" in target.container_names:
            message = "must not name container `node` because it always gets the variables"
            yield INJECTED_NODE.problem(target.path("containerNames"), message, "remove `node` from the list")


def validate_env_injection(injection: EnvInjection, job_set: JobSetSpec) -> Iterator[Problem]:
    """Yield targets whose jobs or containers the runtime does not have (torch.go validateEnvInjectionTargets)."""
    jobs = jobs_by_name(job_set) if injection.targets else {}
    containers: dict[str, set[str]] = {}
    for target in injection.targets:
        job = target.job_name
        if job not in containers:
            listed = jobs[job].pod.all_containers() if job in jobs else ()
            containers[job] = {container.name for container in listed}
        for name in target.container_names:
            if name not in containers[job]:
                message = f"must name a container of a replicated job, but job `{job}` has no container `{name}`"
                yield ENV_INJECTION.problem(target.at, message, f"name a container of job `{job}`")
