"""Whether the runtime of a TrainJob is there, and what reaches its steps: spec.initializer and spec.trainer.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/jobset/{jobset,builder}.go, and branches
release-2.0 to release-2.3. The jobs are those of the runtime with the patches merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.nodes import (
    STEP_LABEL,
    container_of,
    job_named,
    launcher_is_node,
    name_of,
    trainer_step,
)
from webhook.facts.train_job_pods.releases import INITIALIZER_MOUNT
from webhook.facts.train_job_pods.train_job import TrainJob
from webhook.paths import get
from webhook.problem import Problem

problem: Final = Group("train-job").problem
_FIELDS: Final = ("image", "command", "args", "env", "resourcesPerNode")
_SHARED: Final = ("env", "resourcesPerNode")
"""Fields that an MPI job named `node` gets where the launcher is a node."""
_SHOWN: Final = 80


def validate_runtime(job: TrainJob, subject: Subject) -> Iterator[Problem]:
    """A runtime that is known not to be there; of another one nobody knows."""
    if job.runtime.is_found or not job.runtime.name:
        return
    view = subject.view()
    near = view.nearest(job.runtime.name, (name_of(each.get("metadata")) for each in view.objects(job.runtime.kind)))
    if near or view.is_whole():
        message = f"names {job.runtime}, which does not exist, so Trainer refuses the job"
        fix = (
            f"write `{near}`, or create the runtime first" if near else "correct the name, or create the runtime first"
        )
        yield problem("runtime-exists", "spec.runtimeRef.name", message, fix)
    else:
        yield problem("runtime-exists", "spec.runtimeRef.name", missing=job.missing)


def validate_initializers(job: TrainJob) -> Iterator[Problem]:
    """jobset.go checkInitializer: the job, its container, and since 2.3 its mount (kubeflow/trainer#3714)."""
    for role in ("dataset", "model"):
        if get(job.spec, ("initializer", role)) is None:
            continue
        lacking = _lacks_initializer(job, f"{role}-initializer")
        if lacking:
            message = f"needs {lacking}, which {job.runtime} does not have"
            fix = "use a runtime with that step, or remove the initializer"
            if lacking.startswith("a volumeMount"):
                fix = "add the volumeMount to the runtime, or remove the initializer"
            yield problem("initializer-step", f"spec.initializer.{role}", message, fix)


def _lacks_initializer(job: TrainJob, name: str) -> str:
    step = job_named(job.jobs, name)
    if step is None:
        return f"a replicated job `{name}`"
    container = container_of(step, name)
    if container is None and container_of(step, name, "initContainers") is None:
        return f"a container `{name}` in its replicated job `{name}`"
    mounts = map(name_of, get(container, ("volumeMounts",), []))
    if job.release >= INITIALIZER_MOUNT and "initializer" not in mounts:
        return f"a volumeMount `initializer` in its container `{name}`"
    return ""


def validate_trainer(job: TrainJob) -> Iterator[Problem]:
    """Fields of spec.trainer that land in no container (kubeflow/trainer#2722)."""
    step = trainer_step(job.jobs)
    node = container_of(step, "node")
    if unreached := _unreached(job):
        yield _no_effect(unreached, _lacks_node(job, step))
    elif node is not None and job.trainer.get("command") and job.trainer.get("args") is None and node.get("args"):
        args = " ".join(node["args"])
        shown = args if len(args) <= _SHOWN else f"{args[:_SHOWN]} …"
        message = f"runs with the args of {job.runtime}, `{shown}`"
        yield problem("runtime-args", "spec.trainer.command", message, "set spec.trainer.args too")


def _no_effect(names: Sequence[str], reason: str) -> Problem:
    if len(names) == 1:
        path, message, fix = f"spec.trainer.{names[0]}", "has no effect", "remove the field"
    else:
        *most, last = [f"`{name}`" for name in names]
        path, message, fix = "spec.trainer", f"{', '.join(most)} and {last} have no effect", "remove these fields"
    return problem("trainer-step", path, f"{message} because {reason}", f"use a runtime with a trainer step, or {fix}")


def _unreached(job: TrainJob) -> list[str]:
    """Fields of spec.trainer for a container that is not there, and then the number of nodes that nobody reads."""
    if container_of(trainer_step(job.jobs), "node") is not None:
        return []
    names = [name for name in _FIELDS if job.trainer.get(name) and not (name in _SHARED and _shares_node(job))]
    return [*names, "numNodes"] if names and _is_number_unread(job) else names


def _lacks_node(job: TrainJob, step: JSON) -> str:
    if step is None:
        return f"{job.runtime} has no replicated job with the label {STEP_LABEL}: trainer"
    return f"replicated job `{name_of(step)}`, the trainer of {job.runtime}, has no container `node`"


def _shares_node(job: TrainJob) -> bool:
    """Whether the launcher of an MPI job is a node beside the job named `node`, which then gets a share."""
    is_node = launcher_is_node(job.runtime.spec.get("mlPolicy"))
    return is_node and container_of(job_named(job.jobs, "node"), "node") is not None


def validate_num_nodes_reaches(job: TrainJob) -> Iterator[Problem]:
    """The number goes to the labelled job, of an MPI runtime to the job named `node`."""
    if _is_number_unread(job) and not _unreached(job):
        message = f"is ignored because {_lacks_node(job, None)}"
        yield problem("ignored-nodes", "spec.trainer.numNodes", message, "use a runtime with a trainer step")


def _is_number_unread(job: TrainJob) -> bool:
    has_worker = job.plugin == "mpi" and job_named(job.jobs, "node") is not None
    return trainer_step(job.jobs) is None and not has_worker and job.trainer.get("numNodes") is not None
