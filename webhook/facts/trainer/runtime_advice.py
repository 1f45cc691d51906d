"""Runtimes that Trainer takes and on which TrainJobs run otherwise than they read, or never start.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/{jobset,volcano,coscheduling}; #3714 for the mount
of initializers.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.attributes import JSON
from webhook.facts.pods.containers import containers
from webhook.facts.train_job_pods.nodes import STEP_LABEL, container_of, is_trainer, name_of, step, trainer_step
from webhook.facts.train_job_pods.releases import INITIALIZER_MOUNT, WHOLE_JOBSET
from webhook.facts.train_job_pods.runtime_reference import SUPPORT
from webhook.facts.trainer.plugin_validation import RESERVED, instead_of
from webhook.facts.trainer.runtime_plugins import JOBS, POD, RuntimeSpec, problem
from webhook.facts.trainer.runtime_validation import CONTAINERS
from webhook.facts.values import names
from webhook.paths import get
from webhook.problem import Problem
from webhook.releases import shown


def deprecated(obj: JSON) -> Iterator[Problem]:
    """A runtime whose label says so."""
    if get(obj, ("metadata", "labels", SUPPORT)) == "deprecated":
        message = "says that the runtime is deprecated, so a later release of Trainer removes it"
        yield problem("deprecated", ("metadata", "labels", SUPPORT), message, "use another runtime for new TrainJobs")


def no_trainer_step(runtime: RuntimeSpec) -> Iterator[Problem]:
    """A runtime whose TrainJobs cannot say what runs."""
    if runtime.jobs and trainer_step(runtime.jobs) is None:
        message = f"has no template with the label {STEP_LABEL}: trainer, so spec.trainer of TrainJobs has no effect"
        yield problem("trainer-step", JOBS, message, "add the label to template.metadata.labels of the job that trains")


def overlooked_steps(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Steps that Trainer's webhook refuses in a new runtime, and overlooks in a changed one."""
    for index, job in enumerate(runtime.deadline.paced(runtime.jobs)):
        container = CONTAINERS.get(step(job) or "")
        fixes = {}
        if container and container_of(job, container) is None:
            fixes[f"a container `{container}`"] = f"rename the main container to `{container}`"
        if container and job.get("replicas", 1) != 1:
            fixes["one replica"] = "set replicas to 1"
        if fixes:
            message = (
                f"must have {' and '.join(fixes)} because Trainer refuses to create such a runtime, although it lets "
                "this update pass"
            )
            yield problem("overlooked-step", (*JOBS, index), message, ", and ".join(fixes.values()))


def no_ml_policy(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Since 2.3 resourcesPerNode needs a policy."""
    if runtime.release >= WHOLE_JOBSET and runtime.spec.get("mlPolicy") is None:
        message = f"is not set, so Trainer {shown(runtime.release)} ignores resourcesPerNode of TrainJobs"
        fix = "set an mlPolicy, such as torch: {}, or {numNodes: 1} for a plain command"
        yield problem("ml-policy", "spec.mlPolicy", message, fix)


def plugin_variables(runtime: RuntimeSpec) -> Iterator[Problem]:
    """torch.go EnforceMLPolicy: the plugin replaces the variables PET_* of the node of TrainJobs with spec.trainer."""
    for index, job in enumerate(runtime.deadline.paced(runtime.jobs if runtime.plugin == "torch" else [])):
        for container in containers(get(job, POD) or {}) if is_trainer(job) else ():
            env = container.value.get("env", []) if container.name == "node" and not container.init else []
            for place, name in enumerate(runtime.deadline.paced(names(env))):
                if name in RESERVED["torch"]:
                    message = "is replaced by the torch plugin, which sets it for each TrainJob with spec.trainer"
                    at = (*JOBS, index, *POD, *container.path, "env", place, "name")
                    yield problem("plugin-variable", at, message, instead_of(name, "TrainJobs"), name)


def unmounted_initializers(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Containers of initializers without the mount that TrainJobs need."""
    for index, job in enumerate(runtime.deadline.paced(runtime.jobs if runtime.release >= INITIALIZER_MOUNT else [])):
        name = step(job) or ""
        for container in containers(get(job, POD) or {}) if name.endswith("-initializer") else ():
            mounts = map(name_of, container.value.get("volumeMounts", []))
            if not container.init and container.name == name and "initializer" not in mounts:
                release = shown(runtime.release)
                message = f"has no mount `initializer`, so Trainer {release} refuses TrainJobs that use this step"
                yield problem(
                    "initializer-mount", (*JOBS, index, *POD, *container.path, "volumeMounts"), message, "add the mount"
                )


def gangs(runtime: RuntimeSpec) -> Iterator[Problem]:
    """Pods that never start together: volcano.go and coscheduling.go count those of every replicated job."""
    policy = runtime.spec.get("podGroupPolicy", {})
    by = [name for name in ("volcano", "coscheduling") if policy.get(name) is not None]
    if len(by) > 1:
        message = "has `coscheduling` and `volcano`, which both group the same pods"
        yield problem(
            "one-scheduler", "spec.podGroupPolicy", message, "keep the one that the scheduler of the cluster supports"
        )
    if by and any(job.get("dependsOn", []) for job in runtime.deadline.paced(runtime.jobs)):
        message = (
            "waits for the pods of all replicated jobs, but jobs with dependsOn are created later, so no pod starts"
        )
        yield problem("gang-dependency", f"spec.podGroupPolicy.{by[0]}", message, "remove dependsOn or podGroupPolicy")
