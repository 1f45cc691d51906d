"""What the plugins of Trainer refuse of a runtime, or do otherwise than it reads; told of each TrainJob on it, too.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/{torch/torch,mpi/mpi,flux/flux}.go; the reserved
volume is kubeflow/trainer#3998.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.check import Group
from webhook.facts.pods.containers import containers
from webhook.facts.train_job_pods.nodes import container_of, job_named, name_of, trainer_step
from webhook.facts.train_job_pods.processes import plugin
from webhook.facts.train_job_pods.releases import INJECTION
from webhook.facts.values import text
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.releases import Release

problem: Final = Group("training-runtime").problem
JOBS: Final = ("spec", "template", "spec", "replicatedJobs")
POD: Final = ("template", "spec", "template")
_TOKEN_VOLUME: Final = "kubeflow-trainer-token"  # noqa: S105 - a volume's name
_TOKEN_MOUNT: Final = "/var/run/secrets/kubeflow/trainer"  # noqa: S105 - a path


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSpec:
    """The spec of a runtime, by itself or with a TrainJob merged into its template."""

    spec: Mapping[str, JSON]
    release: Release
    deadline: Deadline = field(default_factory=Deadline)

    @property
    def plugin(self) -> str:
        """Its plugin."""
        return plugin(self.spec)

    @property
    def jobs(self) -> JSON:
        """Its replicated jobs."""
        return get(self.spec, ("template", "spec", "replicatedJobs"), [])


def validate_plugins(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Everything that concerns the plugin of a runtime."""
    match runtime.plugin:
        case "torch":
            yield from validate_env_injection(runtime)
            yield from validate_rendezvous(runtime)
        case "flux":
            yield from validate_flux_installer(runtime)
        case "mpi":
            yield from validate_mpi_implementation(runtime)
            yield from validate_launchers(runtime)


def validate_env_injection(runtime: RuntimeSpec) -> Iterator[Problem]:
    """torch.go validateEnvInjectionTargets: jobs and containers that the runtime does not have."""
    held: dict[str, set[str]] = {}
    targets = get(runtime.spec, ("mlPolicy", "torch", "envInjection", "targets"), [])
    for index, target in enumerate(runtime.deadline.paced(targets if runtime.release >= INJECTION else [])):
        job = target.get("jobName", "")
        if job not in held:
            template = get(job_named(runtime.jobs, job), POD) or {}
            held[job] = {each.name for each in runtime.deadline.paced(containers(template))}
        for name in runtime.deadline.paced(target.get("containerNames", [])):
            if name not in held[job]:
                path = f"spec.mlPolicy.torch.envInjection.targets[{index}]"
                message = f"must name a container of a replicated job, but job `{job}` has no container `{name}`"
                yield problem("env-injection", path, message, f"name a container of job `{job}`")


def validate_rendezvous(runtime: RuntimeSpec) -> Iterator[Problem]:
    """torch.go: the master address is `<name>-node-0-0.<name>`, whatever the job and the subdomain are called."""
    why = "because torch nodes look for each other at `<TrainJob>-node-0-0.<TrainJob>`"
    if (step := trainer_step(runtime.jobs)) is not None and (name := name_of(step)) != "node":
        message = f"must have `node` as the name of the trainer job, not `{name}`, {why}"
        yield problem("torch-address", JOBS, message, "rename that job to `node`")
    if subdomain := get(runtime.spec, ("template", "spec", "network", "subdomain"), ""):
        path = ("spec", "template", "spec", "network", "subdomain")
        yield problem("torch-address", path, f"must not be set {why}", "remove the subdomain", subdomain)


def validate_flux_installer(runtime: RuntimeSpec) -> Iterator[Problem]:
    """flux.go: the init container that the plugin adds."""
    if container_of(job_named(runtime.jobs, "node"), "flux-installer", "initContainers") is not None:
        message = "must not have an init container `flux-installer` in job `node` because Trainer adds one of this name"
        yield problem("flux-installer", JOBS, message, "give that init container another name")


def validate_mpi_implementation(runtime: RuntimeSpec) -> Iterator[Problem]:
    """mpi.go: looked at where there is a launcher."""
    built = get(runtime.spec, ("mlPolicy", "mpi", "mpiImplementation"), "OpenMPI")
    is_used = container_of(job_named(runtime.jobs, "launcher"), "node") is not None
    if built != "OpenMPI" and is_used and not is_placeholder(text(built)):
        message = "must be OpenMPI because Trainer knows no other implementation"
        path = "spec.mlPolicy.mpi.mpiImplementation"
        yield problem("mpi-implementation", path, message, "set the field to OpenMPI, or remove the field", built)


def validate_launchers(runtime: RuntimeSpec) -> Iterator[Problem]:
    """mlPolicy.numNodes is how many pods the labelled job gets, which of an mpi runtime is the launcher (nodes.py)."""
    nodes, step = get(runtime.spec, ("mlPolicy", "numNodes")), trainer_step(runtime.jobs)
    if step is not None and (name := name_of(step)) != "node" and nodes is not None and nodes > 1:
        message = f"makes {nodes} launchers because it counts the pods of job `{name}`, the trainer step"
        fix = "set mlPolicy.numNodes to 1, and set the number of workers as parallelism of job `node`"
        yield problem("launcher-count", "spec.mlPolicy.numNodes", message, fix, nodes)


def validate_token_volume(runtime: RuntimeSpec) -> Iterator[Problem]:
    """The volume and the mount by which pods report the job's status."""
    for index, job in enumerate(runtime.deadline.paced(runtime.jobs)):
        template, at = get(job, POD) or {}, (*JOBS, index, *POD)
        if any(name_of(each) == _TOKEN_VOLUME for each in get(template, ("spec", "volumes"), [])):
            yield _reserved((*at, "spec", "volumes"), _TOKEN_VOLUME)
        for container in containers(template):
            for place, mount in enumerate(runtime.deadline.paced(container.value.get("volumeMounts", []))):
                if mount.get("mountPath", "") == _TOKEN_MOUNT:
                    yield _reserved((*at, *container.path, "volumeMounts", place, "mountPath"), _TOKEN_MOUNT)


def _reserved(path: FieldPath, name: str) -> Problem:
    message = "is overwritten by Trainer, which reports the status of the job through it"
    return problem("token-volume", path, message, "use another name or path", name)
