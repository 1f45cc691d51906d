"""Rules for the steps that spec.initializer and spec.trainer need in the runtime, and for volumes of the pods.

The rules read the replicated jobs of the runtime, after the merge of the patches. The TrainJob does not contain the
pods. So a problem in the runtime itself is reported at the place where the TrainJob names the runtime, and any other
problem at the patches.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/jobset/{jobset,builder}.go, and branches release-2.0
to release-2.3; k8s.io/kubernetes v1.36 pkg/apis/core/validation for volumes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.nodes_and_processes import (
    STEP_LABEL,
    container_named,
    find_by_name,
    find_trainer_job,
    init_container_of,
)
from webhook.facts.train_job_pods.releases import INITIALIZER_MOUNT
from webhook.facts.train_job_pods.types import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.trainer.generated_pods import (
    GeneratedPods,
    sentence_about_several_sources,
    source_fields_of,
    sources_by_name,
)
from webhook.facts.trainer.train_job import advise_runtime_args
from webhook.rules.problem import Problem
from webhook.typed.job_sets import ReplicatedJob
from webhook.typed.pods import Container
from webhook.yamltext.placeholders import is_placeholder

INITIALIZER_STEP: Final = TRAIN_JOB.rule(
    "train-job/initializer-step",
    title="The runtime lacks the job, the container or the mount of the initializer",
    why="Trainer refuses a TrainJob with an initializer if the runtime lacks the job, the container or the mount.",
    source="https://github.com/kubeflow/trainer/pull/3714",
    function="checkInitializer",
)
TRAINER_STEP: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/trainer-step",
    title="spec.trainer has no effect because the runtime has no trainer container",
    why=(
        "Trainer applies spec.trainer to container `node` of the replicated job with the trainer label. Without this "
        "job or this container, the settings have no effect."
    ),
    refused_by="nothing; the fields are ignored",
    source="https://github.com/kubeflow/trainer/pull/2722",
)
VOLUME_SOURCE: Final = TRAIN_JOB.rule(
    "train-job/volume-source",
    title="The volume of the merged pod has several sources",
    why="A volume has one source. If a patch adds a second source, the API server refuses the pods.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
VOLUME_EXISTS: Final = TRAIN_JOB.rule(
    "train-job/volume-exists",
    title="The container mounts a volume that the merged pod does not have",
    why="The API server refuses pods with a mount of an undeclared volume.",
    refused_by="the API server, when the pods are created",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
STATUS_VOLUME: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/status-volume",
    title="A container outside the trainer step mounts the status volume",
    why="Trainer adds this volume only to pods of the trainer step, and only with the alpha feature TrainJobStatus.",
    refused_by="the API server, when the pods are created",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/trainjobstatus/trainjobstatus.go",
    fails="controller",
)
_FIELDS: Final = ("image", "command", "args", "env", "resourcesPerNode")
_SHARED_FIELDS: Final = ("env", "resourcesPerNode")
"""The fields of spec.trainer that the replicated job `node` of an MPI runtime gets if the launcher is a node."""
_STATUS_VOLUME: Final = "kubeflow-trainer-token"
"""The volume that pods use to report the status of the job."""


def validate_initializer_step(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield initializers for which the runtime has no job, no container, or, since 2.3, no mount
    (kubeflow/trainer#3714).
    """
    initializer = job.spec.initializer
    for role, source in (("dataset", initializer.dataset), ("model", initializer.model)):
        lacking = _missing_part_of_initializer(job, f"{role}-initializer") if source else ""
        if lacking:
            message = f"needs {lacking}, which {job.runtime} does not have"
            fix = "use a runtime with that step, or remove the initializer"
            if lacking.startswith("a volumeMount"):
                fix = "add the volumeMount to the runtime, or remove the initializer"
            yield INITIALIZER_STEP.problem(source.at, message, fix)


def _missing_part_of_initializer(job: MergedTrainJob, name: str) -> str:
    step = find_by_name(job.replicated_jobs, name)
    if step is None:
        return f"a replicated job `{name}`"
    container = container_named(step, name)
    if container is None and init_container_of(step, name) is None:
        return f"a container `{name}` in replicated job `{name}`"
    mounts = () if container is None else container.volume_mounts
    if job.release >= INITIALIZER_MOUNT and not any(mount.name == "initializer" for mount in mounts):
        return f"a volumeMount `initializer` in container `{name}`"
    return ""


def check_trainer_fields_reach_container(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield fields of spec.trainer that reach no container (kubeflow/trainer#2722)."""
    step = find_trainer_job(job.replicated_jobs)
    node = container_named(step, "node")
    if unreached := fields_without_container(job):
        yield _trainer_step_problem(unreached, reason_for_missing_node_container(job, step))
    elif node is not None:
        yield from advise_runtime_args(job, node)


def _trainer_step_problem(names: Sequence[str], reason: str) -> Problem:
    if len(names) == 1:
        path, message, fix = f"spec.trainer.{names[0]}", "has no effect", "remove the field"
    else:
        *most, last = [f"`{name}`" for name in names]
        path, message, fix = "spec.trainer", f"{', '.join(most)} and {last} have no effect", "remove these fields"
    return TRAINER_STEP.problem(path, f"{message} because {reason}", f"use a runtime with a trainer step, or {fix}")


def fields_without_container(job: MergedTrainJob) -> list[str]:
    """Return the fields of spec.trainer that reach no container. If there are such fields and no job gets numNodes,
    include numNodes.
    """
    if container_named(find_trainer_job(job.replicated_jobs), "node") is not None:
        return []
    names = [
        name
        for name in _FIELDS
        if job.trainer.json.get(name) and not (name in _SHARED_FIELDS and _is_launcher_a_node(job))
    ]
    return [*names, "numNodes"] if names and is_num_nodes_ignored(job) else names


def reason_for_missing_node_container(job: MergedTrainJob, step: ReplicatedJob | None) -> str:
    """Return why spec.trainer reaches no container: the trainer step or its container `node` is missing."""
    if step is None:
        reached = ""
        if job.plugin == "mpi" and find_by_name(job.replicated_jobs, "node") is not None:
            reached = ", and its MPI job `node` accepts only numNodes and numProcPerNode"
            if _is_launcher_a_node(job):
                reached = ", and its MPI job `node` accepts only numNodes, numProcPerNode, env and resourcesPerNode"
        return f"{job.runtime} has no replicated job with the label `{STEP_LABEL}: trainer`{reached}"
    return f"replicated job `{step.name}`, the trainer of {job.runtime}, has no container `node`"


def _is_launcher_a_node(job: MergedTrainJob) -> bool:
    """Return whether the launcher of an MPI job is a node, so that job `node` gets the fields of _SHARED_FIELDS."""
    is_node = job.runtime.spec.ml_policy.mpi.run_launcher_as_node
    return is_node and container_named(find_by_name(job.replicated_jobs, "node"), "node") is not None


def is_num_nodes_ignored(job: MergedTrainJob) -> bool:
    """Return whether no replicated job gets the numNodes that the TrainJob sets."""
    has_worker = job.plugin == "mpi" and find_by_name(job.replicated_jobs, "node") is not None
    return find_trainer_job(job.replicated_jobs) is None and not has_worker and job.trainer.num_nodes is not None


def validate_volume_sources(pods: GeneratedPods) -> Iterator[Problem]:
    """Yield volumes of the merged pod with several sources."""
    wrong = [volume for volume in pods.spec.volumes if len(source_fields_of(volume)) > 1]
    before = sources_by_name(pods.before.pod.volumes) if wrong and pods.before is not None else {}
    for volume in wrong:
        yield VOLUME_SOURCE.problem("", *sentence_about_several_sources(volume, "volume", before, pods))


def validate_mounts(container: Container, volumes: Collection[str], pods: GeneratedPods) -> Iterator[Problem]:
    """Yield mounts of volumes that the pod does not have."""
    for mount in container.volume_mounts:
        name = mount.name
        mounts = f"container `{container.name}` of {pods} mounts volume `{name}`, which"
        if name == _STATUS_VOLUME and name not in volumes:
            message = f"{mounts} only pods of the trainer step have, and only with the feature TrainJobStatus"
            yield STATUS_VOLUME.problem("", message, "remove the mount in the runtime")
        elif name not in volumes and not is_placeholder(name):
            fix = f"add a volume `{name}` to the pod, in the runtime or a patch, or correct the name in the mount"
            yield VOLUME_EXISTS.problem("", f"{mounts} the pod does not have", fix)
