"""Rules for nodes, processes and GPUs of a TrainJob on its runtime: lost GPUs, and numbers that do not fit together.

train_job_pods/nodes_and_processes.py counts nodes and processes. Trainer counts extended resources but no claims, so a
TrainJob that gets its devices by claims needs numProcPerNode.

Source: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins, and pkg/runtime/runtime.go GetNumGPUPerNode;
kubeflow/trainer#3974 and #3551 for resourcesPerNode without the GPUs of the runtime; NVIDIA/aicr#2280 for GPU jobs that
train on CPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.releases import release_as_text
from webhook.facts.gpu.resources import may_have_gpus_by_annotation
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.facts.train_job_pods.nodes_and_processes import find_by_name, find_trainer_job
from webhook.facts.train_job_pods.releases import FLUX_NODES, INJECTION, NUMBERS_ONLY, REFUSES_ZERO
from webhook.facts.train_job_pods.train_job_and_runtime_fields import WORDS_FOR_PROCESSES
from webhook.facts.train_job_pods.types import TRAIN_JOB, TRAIN_JOB_ADVICE
from webhook.facts.trainer.train_job import NUM_NODES
from webhook.facts.trainer.train_job_claims import (
    NodeDeviceClaim,
    check_shared_claims,
    gpus_of_node_container,
    gpus_of_node_in_runtime,
)
from webhook.facts.trainer.train_job_launcher import (
    LauncherProcesses,
    is_launcher_node,
    launcher_of_job,
    warn_of_launcher_process_count,
)
from webhook.facts.trainer.train_job_steps import (
    fields_without_container,
    is_num_nodes_ignored,
    reason_for_missing_node_container,
)
from webhook.rules.problem import MissingObject, Problem
from webhook.text.wording import counted
from webhook.typed.fields import read_whole_number
from webhook.typed.pods import PodSpec, Resources
from webhook.yamltext.placeholders import is_placeholder

NO_NODES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/no-nodes",
    title="numNodes is 0",
    why="With numNodes 0, Trainer creates no training pod.",
    source="https://github.com/kubeflow/trainer/issues/2170",
    severity="low",
)
TRAIN_JOB_FLUX_NODES: Final = TRAIN_JOB.rule(
    "train-job/flux-nodes",
    title="numNodes is missing, which crashes the flux plugin",
    why="The plugin runs in Trainer's controller. The controller crashes, starts again, and crashes again.",
    refused_by="Trainer's controller, which crashes",
    source="https://github.com/kubeflow/trainer/issues/3667",
    fails="controller",
    issues=("https://github.com/kubeflow/trainer/pull/3904",),
)
EXTRA_NODE: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/extra-node",
    title="numNodes is 1, but two nodes start: the MPI launcher and a worker",
    why="With runLauncherAsNode the launcher trains too, so the launcher and the worker both get devices.",
    source="https://github.com/kubeflow/trainer/issues/3954",
)
IGNORED_NODES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/ignored-nodes",
    title="numNodes has no effect because the runtime has no trainer step",
    why="Trainer sets the number only on the replicated job with the trainer label.",
)
LOST_GPUS: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/lost-gpus",
    title="resourcesPerNode drops the GPUs of the runtime",
    why=(
        "Before 2.3 Trainer replaces the resources, so the pods lose the GPUs. Since 2.3 the pods keep the GPUs, but "
        "Trainer starts processes as if there were no GPUs."
    ),
    source="https://github.com/kubeflow/trainer/pull/3974",
    issues=(
        "https://github.com/kubeflow/trainer/issues/3551",
        "https://github.com/NVIDIA/aicr/issues/2306",
    ),
)
PROCESSES_PER_GPU: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/processes-per-gpu",
    title="numProcPerNode differs from the GPUs of a node",
    why="With too few processes, GPUs stay idle. With too many processes, some fail or share a GPU.",
)
AMBIGUOUS_GPUS: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/ambiguous-gpus",
    title="Trainer cannot tell which resource counts the GPUs",
    why="Trainer counts the first resource with `gpu` in its name, and the order of resources changes from run to run.",
    source="kubeflow/trainer@8c0f5059bd51 pkg/runtime/runtime.go",
    function="GetNumGPUPerNode",
)
NO_GPU: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/no-gpu",
    title="A TrainJob for GPUs requests no GPU",
    why="Without a GPU, torch starts one process for each CPU and trains on the CPUs.",
    source="https://github.com/NVIDIA/aicr/issues/2280",
)
PROCESSES: Final = TRAIN_JOB.rule(
    "train-job/processes",
    title="Trainer does not accept the numProcPerNode of the TrainJob in this release",
    why=(
        "Since 2.2 numProcPerNode is a whole number, and since 2.4 it is at least 1. Before 2.2, torch also accepts "
        "auto, cpu and gpu, and mpi accepts only numbers."
    ),
    source="https://github.com/kubeflow/trainer/pull/3239",
)
NO_PROCESSES: Final = TRAIN_JOB_ADVICE.rule(
    "train-job/no-processes",
    title="numProcPerNode is below 1",
    why="Releases before 2.4 accept 0 and start no process.",
    source="https://github.com/kubeflow/trainer/pull/3809",
    fails="start",
)
_PER_NODE, _PROCESSES = "spec.trainer.resourcesPerNode", "spec.trainer.numProcPerNode"
_GPU_IMAGE: Final = re.compile(r"(^|[-_:/.])(cuda|rocm)")
_OF_PYTORCH: Final = "pytorch/pytorch"
"""A repository whose images are all for CUDA. Jobs on CPUs also use these images."""
NOT_READ: Final = ("jax", "plain", "none")
"""Plugins that do not read numProcPerNode."""
_BY_RUNTIME: Final = ("mpi", "flux")
"""Plugins with their own numProcPerNode in the runtime."""


def check_num_nodes_not_zero(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of numNodes 0, which Trainer accepts (kubeflow/trainer#2170)."""
    if job.trainer.num_nodes == 0 and not job.spec.suspend:
        message = "makes a job without a training pod"
        fix = "set at least 1, or suspend the job with spec.suspend"
        yield NO_NODES.problem("spec.trainer.numNodes", message, fix, 0)


def validate_flux_nodes(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield the problem of a flux TrainJob without numNodes (kubeflow/trainer#3667)."""
    if job.plugin == "flux" and job.release < FLUX_NODES and job.trainer.num_nodes is None:
        message = f"is not set, and the flux plugin of Trainer {release_as_text(job.release)} crashes without numNodes"
        yield TRAIN_JOB_FLUX_NODES.problem(NUM_NODES, message, f"set numNodes, for example to {job.number_of_nodes}")


def check_launcher_as_second_node(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield numNodes 1 if two nodes start because the launcher is a node too (kubeflow/trainer#3954)."""
    worker = find_by_name(job.replicated_jobs, "node")
    has_worker = worker is not None and find_trainer_job(job.replicated_jobs) is not worker
    if job.trainer.num_nodes == 1 and has_worker and is_launcher_node(job):
        message = (
            f"starts 2 nodes, each with its devices, because {job.runtime} runs the launcher as a node beside a worker"
        )
        fix = "set 2, which starts the same nodes, or use a runtime whose launcher is not a node"
        yield EXTRA_NODE.problem("spec.trainer.numNodes", message, fix, 1)


def validate_ignored_nodes(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield numNodes that no replicated job gets."""
    if is_num_nodes_ignored(job) and not fields_without_container(job):
        message = f"is ignored because {reason_for_missing_node_container(job, None)}"
        yield IGNORED_NODES.problem("spec.trainer.numNodes", message, "use a runtime with a trainer step")


def gpus_of_node(job: MergedTrainJob, claims: Sequence[NodeDeviceClaim]) -> int:
    """Return the number of GPUs of one node, from the resources of the container or from claims.

    Return 0 if both have GPUs, or if a number of devices is not known.
    """
    claims = [claim for claim in claims if not claim.is_unused]
    if not any(claim.is_gpu for claim in claims):
        return gpus_of_node_container(job)
    if gpus_of_node_container(job):
        return 0
    counts = [(claim, claim.devices) for claim in claims if claim.devices is not None]
    return sum(count for claim, count in counts if claim.is_gpu) if len(counts) == len(claims) else 0


def advise_processes(subject: Subject, claims: Sequence[NodeDeviceClaim]) -> Iterator[Problem]:
    """Yield the problems of the GPUs and processes of a TrainJob; `claims` are the device claims of each node."""
    job = subject.once(merge_train_job)
    gpus = gpus_of_node(job, claims)
    launcher = launcher_of_job(subject, gpus)
    yield from check_lost_gpus(job, launcher)
    yield from (
        check_processes_per_gpu(job, gpus)
        if launcher.processes is None
        else warn_of_launcher_process_count(job, gpus, launcher)
    )
    yield from check_ambiguous_gpus(job)
    yield from check_torch_job_has_gpu(job, gpus, claims)
    yield from check_shared_claims(job, claims)


def check_lost_gpus(job: MergedTrainJob, launcher: LauncherProcesses) -> Iterator[Problem]:
    """Yield resourcesPerNode without the GPUs of the runtime.

    Before 2.3 pods lose these GPUs. Since 2.3 pods keep these GPUs, but Trainer does not count them.
    """
    resources = job.trainer.resources_per_node
    if not resources or gpus_of_node_in_runtime(job) == 0 or job.counted_gpus[0] > 0 or _has_gpu_amount(resources):
        return
    lacks = f"has no GPU although {job.runtime} has {gpus_of_node_in_runtime(job)} per node"
    if gpus_of_node_container(job) == 0:
        message = (
            f"{lacks}, and Trainer {release_as_text(job.release)} replaces all resources, so the job runs without a GPU"
        )
        yield LOST_GPUS.problem(resources.at, message, "request the GPUs in resourcesPerNode too")
    elif launcher.processes is None and not _is_process_count_right(job):
        message = f"{lacks}, so the pods keep these GPUs, but the processes per node will be {job.processes}"
        number = "" if job.plugin == "xgboost" else f", or set numProcPerNode to {gpus_of_node_container(job)}"
        yield LOST_GPUS.problem(resources.at, message, f"request the GPUs in resourcesPerNode too{number}")


def _has_gpu_amount(resources: Resources) -> bool:
    """Return whether the resources name GPUs. The amount may be 0, which is then intended."""
    return any("gpu" in name for name in (*resources.limits, *resources.requests))


def _is_process_count_right(job: MergedTrainJob) -> bool:
    explicit = job.trainer.has("numProcPerNode") and job.plugin != "xgboost"  # xgboost does not read numProcPerNode
    return explicit or job.processes.count == gpus_of_node_container(job) or job.plugin in NOT_READ


def check_processes_per_gpu(job: MergedTrainJob, gpus: int) -> Iterator[Problem]:
    """Yield a number of processes that differs from the number of GPUs."""
    count, written = job.processes.count, job.trainer.num_proc_per_node
    if written is None or _is_text_refused(job, written) or not count or count < 1 or gpus == 0:
        return
    if job.plugin not in (*NOT_READ, "xgboost") and count != gpus:
        more = "processes without a GPU of their own fail or share a GPU"
        idle = more if count > gpus else "the other GPUs stay idle"
        gpus_text = f"{gpus} GPUs" if gpus > 1 else "one GPU"
        message = f"differs from the {gpus_text} of a node, so {idle}"
        yield PROCESSES_PER_GPU.problem(_PROCESSES, message, f"set {gpus}", written)


def _is_text_refused(job: MergedTrainJob, written: int | str) -> bool:
    """Return whether numProcPerNode is a text that the release does not accept."""
    is_word = read_whole_number(written) is None
    is_refused_word = is_word and written not in WORDS_FOR_PROCESSES
    return isinstance(written, str) and (job.release >= NUMBERS_ONLY or is_refused_word)


def check_ambiguous_gpus(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield a problem if several resources have `gpu` in their names and numProcPerNode is not set. Trainer counts only
    one of these resources, at random.
    """
    explicit = job.trainer.has("numProcPerNode")
    if job.counted_gpus[1] and not explicit and job.plugin in ("mpi", "xgboost", "flux"):
        message = (
            "has several resources with `gpu` in their names, and Trainer takes the number of processes per node from "
            "one of them at random"
        )
        number = "set spec.trainer.numProcPerNode to the number you want"
        fix = "keep one of them" if job.plugin == "xgboost" else number
        yield AMBIGUOUS_GPUS.problem(_PER_NODE, message, fix)


def check_torch_job_has_gpu(job: MergedTrainJob, gpus: int, claims: Sequence[NodeDeviceClaim]) -> Iterator[Problem]:
    """Yield a torch job that is meant for GPUs, but requests no GPU."""
    explicit = job.trainer.has("numProcPerNode")
    if job.plugin != "torch" or job.node_container is None or explicit or claims:
        return
    if job.node_job is not None and may_have_gpus_by_annotation(job.node_job.pod_template.metadata):
        return
    if job.counted_gpus[0] == gpus == gpus_of_node_in_runtime(job) == 0 and (reason := _evidence_of_gpus(job)):
        outcome = "so the job trains on CPUs unless its nodes show GPUs to every pod"
        message = f"has no GPU although {reason} is for GPUs, {outcome}"
        fix = "set the number of GPUs for each node in limits, such as nvidia.com/gpu: 1, or "
        fix += f"{'use another image' if reason.startswith('image') else f'remove {reason}'} if the job needs no GPU"
        yield NO_GPU.problem(_PER_NODE, message, fix)


def _evidence_of_gpus(job: MergedTrainJob) -> str:
    """Return the setting that shows that a job needs GPUs: a selector, toleration, runtime class or image; "" for
    none.
    """
    if job.node_job is not None and (what := _scheduling_evidence_of_gpus(job.node_job.pod)):
        return what
    image = "" if job.trainer.resources_per_node else job.trainer.image
    is_for_gpus = _GPU_IMAGE.search(image) is not None and not parse_image_name(image).is_in_any_registry(_OF_PYTORCH)
    return f"image `{image}`" if is_for_gpus else ""


def _scheduling_evidence_of_gpus(pod: PodSpec) -> str:
    for key in pod.node_selector:
        if key.startswith("nvidia.com/") or "gpu" in key:
            return f"the node selector `{key}`"
    for toleration in pod.tolerations:
        if toleration.key in ("nvidia.com/gpu", "amd.com/gpu"):
            return f"the toleration of taint `{toleration.key}`"
    return "runtimeClassName `nvidia`" if pod.runtime_class_name == "nvidia" else ""


def validate_num_proc_per_node(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield a numProcPerNode that is a text (since 2.2, kubeflow/trainer#3239) or below 1 (since 2.4, #3809)."""
    per_node = job.trainer.num_proc_per_node
    if job.release < NUMBERS_ONLY:
        return
    if isinstance(per_node, str) and not is_placeholder(per_node):
        message = f"must be a whole number because Trainer {release_as_text(job.release)} does not accept a string"
        otherwise = "set a number, or remove numProcPerNode for one process per GPU"
        fix = f"write the number {per_node}" if per_node.isdecimal() else otherwise
        yield wrong_processes_problem(message, fix, f"the text `{per_node}`")
    elif (number := read_whole_number(per_node)) is not None and number < 1 and job.release >= REFUSES_ZERO:
        message = f"must be at least 1 because Trainer {release_as_text(job.release)} refuses less"
        fix = "set a number of at least 1, or remove numProcPerNode for one process per GPU"
        yield wrong_processes_problem(message, fix, f"`{number}`")


def wrong_processes_problem(
    message: str = "", fix: str = "", shown: str = "", missing: tuple[MissingObject, ...] = ()
) -> Problem:
    """Return the problem of a number of processes that the API server or a plugin rejects. `missing` names the object
    that shows whether a word is allowed.
    """
    return PROCESSES.problem(_PROCESSES, message, fix, shown=shown, missing=missing)


def validate_processes(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield a numProcPerNode that the plugin rejects, or that starts no process."""
    per_node = job.trainer.num_proc_per_node
    if per_node is None or is_placeholder(str(per_node)):
        return
    number = read_whole_number(per_node)
    if job.release < NUMBERS_ONLY and number is None:
        yield from _check_num_proc_word(job, per_node)
    elif number is not None and number < 1 and job.release < REFUSES_ZERO:
        fix = "set a whole number of at least 1, or remove numProcPerNode"
        if job.plugin == "flux" and job.release >= INJECTION:
            message = (
                f"must be at least 1 because the flux plugin of Trainer {release_as_text(job.release)} refuses less"
            )
            yield wrong_processes_problem(message, fix, f"`{number}`")
        else:
            yield NO_PROCESSES.problem(_PROCESSES, "does not start a process on any node", fix, number)


def _check_num_proc_word(job: MergedTrainJob, per_node: str) -> Iterator[Problem]:
    """Yield a word for numProcPerNode that the plugin of 2.0 and 2.1 rejects."""
    words = {"torch": WORDS_FOR_PROCESSES, "mpi": ()}.get(job.plugin, (per_node,))
    if per_node not in words:
        allowed = "a whole number, auto, cpu or gpu" if words else "a whole number"
        message = f"must be {allowed} for the {job.plugin} plugin of Trainer {release_as_text(job.release)}"
        yield wrong_processes_problem(message, "set such a value, or remove numProcPerNode", f"the text `{per_node}`")


def sentence_about_unset_processes(
    job: MergedTrainJob, claims: Sequence[NodeDeviceClaim], launcher: LauncherProcesses, *, is_named: bool
) -> str:
    """Return the text that follows `is not set` in a message; "" if no claim may be for GPUs.

    `is_named`: whether a user named the release of Trainer. Otherwise the release is assumed.
    """
    gpus = [claim for claim in claims if not claim.is_other]
    if not gpus:
        return ""
    kept = [claim for claim in gpus if not claim.is_dropped]
    return (
        _advise_kept_gpus(job, kept, launcher) if kept else _sentence_about_dropped_gpus(job, gpus, is_named=is_named)
    )


def _sentence_about_dropped_gpus(job: MergedTrainJob, gpus: Sequence[NodeDeviceClaim], *, is_named: bool) -> str:
    """Return the end of the message for dropped claims. The number in the fix is for a release that keeps claims."""
    claims = f"claim{'s' if len(gpus) > 1 else ''} {_names_of_claims(gpus)}"
    assumed = "" if is_named else " (the assumed release)"
    start = f"and Trainer {release_as_text(job.release)}{assumed} drops {claims}"
    if job.plugin in NOT_READ:
        return f" and not read by this runtime, {start}: give the pods of the runtime {claims}"
    outcome = (
        f"so the processes per node will be {job.processes if job.runtime.is_found else '1 or the number of CPUs'}"
    )
    if job.plugin == "xgboost":
        return f", {start}, {outcome}: request the GPUs as an extended resource"
    number = _devices_of_claims(gpus) or "the number of devices of one node"
    return f", {start}, {outcome}: set the field to {number}, and give the pods of the runtime {claims}"


def _advise_kept_gpus(job: MergedTrainJob, gpus: Sequence[NodeDeviceClaim], launcher: LauncherProcesses) -> str:
    devices, named = _devices_of_claims(gpus), _names_of_claims(gpus)
    is_unused = any(claim.is_unused for claim in gpus)
    if job.plugin in NOT_READ:
        return f" and not read by this runtime, so {_sentence_about_single_process(launcher, devices, named)}"
    if not is_unused and _is_default_process_count_right(job, launcher, devices):
        fix = f"set the field to {devices} to keep that number"
        return f", but the processes per node fit the devices of claim {named}: {fix}"
    claim_text = f"claim {named}{', which no container uses' if is_unused else ''}"
    what = "device" if devices == 1 else f"{devices} devices" if devices else "devices"
    uncounted = f"and Trainer does not count the {what} of {claim_text}"
    fix = _fix_for_unset_processes(job, devices, is_unused=is_unused)
    return f", {uncounted}, {_describe_outcome(job, launcher)}: {fix}"


def _devices_of_claims(claims: Sequence[NodeDeviceClaim]) -> int:
    """Return how many devices the claims give, 0 if the number is not known."""
    counts = [claim.devices for claim in claims]
    return sum(count or 0 for count in counts) if None not in counts else 0


def _names_of_claims(claims: Sequence[NodeDeviceClaim]) -> str:
    return ", ".join(f"`{claim.name}`" for claim in claims)


def _sentence_about_single_process(launcher: LauncherProcesses, devices: int, named: str) -> str:
    """Return what starts on a node with a plugin that runs the command once."""
    if launcher.processes is not None:
        return f"{launcher.by} starts {counted(launcher.processes, 'process', 'processes')} on each node"
    use = "" if devices == 1 else f" and has to use all devices of claim {named}"
    return f"one process starts on each node{use}"


def _is_default_process_count_right(job: MergedTrainJob, launcher: LauncherProcesses, devices: int) -> bool:
    """Return whether Trainer's default is the number of devices, and no launcher starts another number."""
    is_meant = devices == 1 or job.plugin in _BY_RUNTIME
    return is_meant and job.processes.per_node == str(devices) and launcher.processes in (None, devices)


def _describe_outcome(job: MergedTrainJob, launcher: LauncherProcesses) -> str:
    if not job.runtime.is_found:
        return "so the processes per node will be 1 or the number of CPUs"
    if launcher.processes is None:
        return f"so the processes per node will be {job.processes}"
    return (
        f"so Trainer sets {job.processes.per_node}, but {launcher.by} starts {launcher.processes} ({launcher.option})"
    )


def _fix_for_unset_processes(job: MergedTrainJob, devices: int, *, is_unused: bool) -> str:
    first = "name the claim in resources.claims of container `node`, and " if is_unused else ""
    if job.plugin == "xgboost":
        return f"{first}request the GPUs as an extended resource"
    return f"{first}set the field to {devices or 'the number of devices of one node'}"
