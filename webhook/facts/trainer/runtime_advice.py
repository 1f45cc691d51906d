"""Runtimes that Trainer takes and on which TrainJobs run otherwise than they read, or never start.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/{jobset,volcano,coscheduling}; #3714 for the mount
of initializers.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.facts.train_job_pods.nodes import STEP_LABEL, container_of, is_trainer, step, trainer_step
from webhook.facts.train_job_pods.releases import INITIALIZER_MOUNT, WHOLE_JOBSET
from webhook.facts.train_job_pods.train_job import MergedTrainJob
from webhook.facts.train_job_pods.types import SUPPORT, RuntimeSpec, TrainingRuntime
from webhook.facts.trainer.plugin_validation import RESERVED, instead_of
from webhook.facts.trainer.runtime_plugins import jobs_of, problem
from webhook.facts.trainer.runtime_validation import CONTAINERS
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.releases import Release, shown


def advise_deprecation(runtime: TrainingRuntime) -> Iterator[Problem]:
    """A runtime whose label says so."""
    if runtime.is_deprecated:
        message = "says that the runtime is deprecated, so a later release of Trainer removes it"
        yield _deprecated(("metadata", "labels", SUPPORT), message, "use another runtime for new TrainJobs")


def advise_deprecated_runtime(job: MergedTrainJob) -> Iterator[Problem]:
    """A TrainJob that names such a runtime."""
    if job.runtime.object.is_deprecated:
        message = f"names {job.runtime}, which is labelled deprecated and will be removed"
        yield _deprecated(("spec", "runtimeRef", "name"), message, "choose another runtime")


def _deprecated(path: FieldPath, message: str, fix: str) -> Problem:
    return problem("deprecated", path, message, fix)


def advise_trainer_step(runtime: RuntimeSpec) -> Iterator[Problem]:
    """A runtime whose TrainJobs cannot say what runs."""
    jobs, path = jobs_of(runtime), runtime.template.spec.path("replicatedJobs")
    if jobs and trainer_step(jobs) is None:
        message = f"has no template with the label {STEP_LABEL}: trainer, so spec.trainer of TrainJobs has no effect"
        yield problem("trainer-step", path, message, "add the label to template.metadata.labels of the job that trains")


def advise_overlooked_steps(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Steps that Trainer's webhook refuses in a new runtime, and overlooks in a changed one."""
    for job in jobs_of(runtime):
        container = CONTAINERS.get(step(job))
        fixes = {}
        if container and container_of(job, container) is None:
            fixes[f"a container `{container}`"] = f"rename the main container to `{container}`"
        if container and job.replicas != 1:
            fixes["one replica"] = "set replicas to 1"
        if fixes:
            message = (
                f"must have {' and '.join(fixes)} because Trainer refuses to create such a runtime, although it lets "
                "this update pass"
            )
            yield problem("overlooked-step", job.at, message, ", and ".join(fixes.values()))


def advise_ml_policy(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Since 2.3 resourcesPerNode needs a policy."""
    if release >= WHOLE_JOBSET and not runtime.ml_policy:
        message = f"is not set, so Trainer {shown(release)} ignores resourcesPerNode of TrainJobs"
        fix = "set an mlPolicy, such as torch: {}, or {numNodes: 1} for a plain command"
        yield problem("ml-policy", runtime.path("mlPolicy"), message, fix)


def advise_plugin_variables(runtime: RuntimeSpec) -> Iterator[Problem]:
    """torch.go EnforceMLPolicy: the plugin replaces the variables PET_* of the node of TrainJobs with spec.trainer."""
    jobs = jobs_of(runtime) if runtime.ml_policy.plugin == "torch" else ()
    nodes = (node for job in jobs if is_trainer(job) for node in job.pod.containers if node.name == "node")
    for variable in (variable for node in nodes for variable in node.env):
        if variable.name in RESERVED["torch"]:
            message = "is replaced by the torch plugin, which sets it for each TrainJob with spec.trainer"
            fix = instead_of(variable.name, "TrainJobs")
            yield problem("plugin-variable", variable.path("name"), message, fix, variable.name)


def advise_initializer_mounts(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """Containers of initializers without the mount that TrainJobs need."""
    jobs = [job for job in jobs_of(runtime) if step(job).endswith("-initializer")]
    for job in jobs if release >= INITIALIZER_MOUNT else ():
        for container in job.pod.containers:
            is_mounted = any(mount.name == "initializer" for mount in container.volume_mounts)
            if container.name == step(job) and not is_mounted:
                message = (
                    f"has no mount `initializer`, so Trainer {shown(release)} refuses TrainJobs that use this step"
                )
                yield problem("initializer-mount", container.path("volumeMounts"), message, "add the mount")


def advise_gangs(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Pods that never start together: volcano.go and coscheduling.go count those of every replicated job."""
    policy = runtime.pod_group_policy
    schedulers = policy.schedulers
    if len(schedulers) > 1:
        message = "has `coscheduling` and `volcano`, which both group the same pods"
        fix = "keep the one that the scheduler of the cluster supports"
        yield problem("one-scheduler", policy.at, message, fix)
    if schedulers and any(job.depends_on for job in jobs_of(runtime)):
        message = (
            "waits for the pods of all replicated jobs, but jobs with dependsOn are created later, so no pod starts"
        )
        yield problem("gang-dependency", policy.path(schedulers[0]), message, "remove dependsOn or podGroupPolicy")
