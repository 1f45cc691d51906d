"""Describes the effect of a TrainJob with devices by claims and without numProcPerNode.

Trainer counts extended resources and no claims: kubeflow/trainer@8c0f5059bd51 pkg/runtime/runtime.go GetNumGPUPerNode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webhook.apimachinery.releases import release_as_text
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.trainer.train_job_claims import NodeDeviceClaim
from webhook.facts.trainer.train_job_launcher import LauncherProcesses
from webhook.text.wording import counted

NOT_READ: Final = ("jax", "plain", "none")
"""Plugins that do not read the number."""
_BY_RUNTIME: Final = ("mpi", "flux")
"""Plugins of runtimes with their own number."""


def sentence_about_unset_processes(
    job: MergedTrainJob, claims: Sequence[NodeDeviceClaim], launcher: LauncherProcesses, *, is_named: bool
) -> str:
    """Return the sentence, which continues `is not set`; "" if no claim may be for GPUs.

    `is_named`: a user named the release of Trainer, otherwise it is assumed.
    """
    gpus = [claim for claim in claims if not claim.is_other]
    if not gpus:
        return ""
    kept = [claim for claim in gpus if not claim.is_dropped]
    return _advise_kept_gpus(job, kept, launcher) if kept else _advise_dropped_gpus(job, gpus, is_named=is_named)


def _advise_dropped_gpus(job: MergedTrainJob, gpus: Sequence[NodeDeviceClaim], *, is_named: bool) -> str:
    """Return the sentence about claims that are dropped, with the number for a release that keeps them."""
    claims = f"claim{'s' if len(gpus) > 1 else ''} {_names_of_claims(gpus)}"
    assumed = "" if is_named else ", which is assumed,"
    start = f"and Trainer {release_as_text(job.release)}{assumed} drops {claims}"
    if job.plugin in NOT_READ:
        return f" and not read by this runtime, {start}: give the pods of the runtime {claims}"
    outcome = f"so the processes per node will be {job.processes if job.runtime.is_found else '1 or the CPUs'}"
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
    of = f"claim {named}{', which no container uses' if is_unused else ''}"
    what = "device" if devices == 1 else f"{devices} devices" if devices else "devices"
    uncounted = f"and Trainer does not count the {what} of {of}"
    fix = _fix_for_unset_processes(job, devices, is_unused=is_unused)
    return f", {uncounted}, {_describe_outcome(job, launcher)}: {fix}"


def _devices_of_claims(claims: Sequence[NodeDeviceClaim]) -> int:
    """Return how many devices some claims give, 0 if it is not known."""
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
    """Return whether Trainer's number is right anyway, and is the number that starts."""
    is_meant = devices == 1 or job.plugin in _BY_RUNTIME
    return is_meant and job.processes.per_node == str(devices) and launcher.processes in (None, devices)


def _describe_outcome(job: MergedTrainJob, launcher: LauncherProcesses) -> str:
    if not job.runtime.is_found:
        return "so the processes per node will be 1 or the CPUs"
    if launcher.processes is None:
        return f"so the processes per node will be {job.processes}"
    why = f"because its own option {launcher.option} wins over PET_NPROC_PER_NODE"
    return f"so Trainer passes on {job.processes}, while {launcher.by} starts {launcher.processes} per node {why}"


def _fix_for_unset_processes(job: MergedTrainJob, devices: int, *, is_unused: bool) -> str:
    first = "name the claim in resources.claims of container `node`, and " if is_unused else ""
    if job.plugin == "xgboost":
        return f"{first}request the GPUs as an extended resource"
    return f"{first}set the field to {devices or 'the number of devices of one node'}"
