"""Rules of Volcano's webhook for the volumes of a Job, and volumes that never reach a pod.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/util.go validateIO,
pkg/controllers/job/job_controller_actions.go createPVC and job_controller_util.go createJobPod.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.volcano.groups import VOLCANO_JOB, VOLCANO_JOB_ADVICE
from webhook.facts.volcano_objects.types import Job, JobVolume
from webhook.name_faults import subdomain_fault
from webhook.names import USE_SUBDOMAIN, dns1123_subdomain_errors
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.volumes import VolumeClaimSpec

MOUNT_PATH_TWICE: Final = VOLCANO_JOB.rule(
    "volcano-job/mount-path-twice",
    title="The volumes of a Job are mounted at different paths.",
    why="Kubernetes refuses pods with two volumes at one path.",
    function="validateIO",
)
VOLUME_SOURCE: Final = VOLCANO_JOB.rule(
    "volcano-job/volume-source",
    title="A volume of a Job names a claim or makes one.",
    why="Nobody could say what is mounted.",
    function="validateIO",
)
VOLUME_CLAIM_NAME: Final = VOLCANO_JOB.rule(
    "volcano-job/volume-claim-name",
    title="The claim of a volume has a name that claims can have.",
    why="A claim of another name cannot exist.",
    function="validateIO",
)
VOLUME_CLAIM: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/volume-claim",
    title="A claim that a Job makes has access modes and a size.",
    why="Kubernetes refuses the claim, and the Job stays pending.",
    refused_by="the API server, when the claim is created",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_actions.go",
    function="createPVC",
    fails="controller",
)
CLAIM_TWICE: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/claim-twice",
    title="A claim is mounted at one path.",
    why="Volcano mounts a claim at the first path that names it, and leaves out the others without a word.",
    refused_by="nobody; the volume is not mounted",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_util.go",
    function="createJobPod",
)
MOUNT_PATH_IN_PODS: Final = VOLCANO_JOB_ADVICE.rule(
    "volcano-job/mount-path-in-pods",
    title="The volumes of a Job are mounted where its containers mount nothing.",
    why="Volcano adds the volumes of a Job to every container, and Kubernetes refuses two mounts at one path.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/job_controller_util.go",
    function="createJobPod",
    fails="controller",
)


def validate_volumes(job: Job) -> Iterator[Problem]:
    """Yield volumes with the path of another, or without exactly one source."""
    seen: set[str] = set()
    for volume in job.spec.volumes:
        path = volume.mount_path
        if path in seen and not is_placeholder(path):
            message, fix = "is also the path of a volume before this one", "mount the two volumes at different paths"
            yield MOUNT_PATH_TWICE.problem(volume.path("mountPath"), message, fix, path)
        seen.add(path)
        yield from _check_volume_source(volume)
        yield from _check_volume_claim_name(volume)


def _check_volume_source(volume: JobVolume) -> Iterator[Problem]:
    name = volume.volume_claim_name
    if not volume.volume_claim and not name:
        message = "must have volumeClaimName or volumeClaim because the volume otherwise has nothing to mount"
        yield VOLUME_SOURCE.problem(volume.at, message, "set one of them")
    elif volume.volume_claim and name:
        message = "must not be set together with volumeClaim, which creates another claim"
        yield VOLUME_SOURCE.problem(volume.path("volumeClaimName"), message, "remove one of the two", name)


def _check_volume_claim_name(volume: JobVolume) -> Iterator[Problem]:
    name = volume.volume_claim_name
    if name and not volume.volume_claim and dns1123_subdomain_errors(name) and not is_placeholder(name):
        message = f"cannot be the name of a PersistentVolumeClaim because {subdomain_fault(name)}"
        yield VOLUME_CLAIM_NAME.problem(volume.path("volumeClaimName"), message, USE_SUBDOMAIN, name)


def warn_of_claims_and_unmounted_volumes(job: Job) -> Iterator[Problem]:
    """Yield claims that Kubernetes rejects, and volumes that are not mounted or whose pods are rejected."""
    claims: set[str] = set()
    mounting = _tasks_by_mount_path(job) if job.spec.volumes else {}
    for volume in job.spec.volumes:
        if volume.volume_claim:
            yield from _check_volume_claim(volume.volume_claim)
        elif volume.volume_claim_name in claims:
            yield from _check_claim_twice(volume)
        claims.add(volume.volume_claim_name)
        if volume.mount_path in mounting:
            yield _mount_path_conflict_problem(volume, mounting[volume.mount_path])


def _check_volume_claim(claim: VolumeClaimSpec) -> Iterator[Problem]:
    lacking = [] if claim.access_modes else ["accessModes"]
    if "storage" not in claim.resources.requests:
        lacking.append("resources.requests.storage")
    if lacking:
        message = f"makes a claim that Kubernetes refuses because the claim has no {' and no '.join(lacking)}"
        yield VOLUME_CLAIM.problem(claim.at, message, f"set {' and '.join(lacking)}")


def _check_claim_twice(volume: JobVolume) -> Iterator[Problem]:
    name = volume.volume_claim_name
    if name and not is_placeholder(name):
        message = "is mounted only at the first of its paths because Volcano ignores the other paths"
        fix = "remove this entry, and mount the claim in the pod templates"
        yield CLAIM_TWICE.problem(volume.path("volumeClaimName"), message, fix, name)


def _mount_path_conflict_problem(volume: JobVolume, task: str) -> Problem:
    message = (
        f"leads to pods that are refused because a container of task `{task}` mounts another volume at the same path"
    )
    return MOUNT_PATH_IN_PODS.problem(volume.path("mountPath"), message, "choose another path", volume.mount_path)


def _tasks_by_mount_path(job: Job) -> dict[str, str]:
    """Return paths that containers mount themselves, with their tasks. Init containers do not get the volumes
    of a Job.
    """
    return {
        mount.mount_path: task.name
        for task in job.spec.tasks
        for container in task.pod_spec.containers
        for mount in container.volume_mounts
    }
