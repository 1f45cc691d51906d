"""The volumes of a Job: what Volcano's webhook refuses of them, and which of them never come to a pod.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/webhooks/admission/jobs/validate/util.go validateIO,
pkg/controllers/job/job_controller_actions.go createPVC and job_controller_util.go createJobPod.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.attributes import JSON
from webhook.facts.pods.containers import containers
from webhook.facts.volcano.job import Job, problem
from webhook.name_faults import subdomain_fault
from webhook.names import USE_SUBDOMAIN, dns1123_subdomain
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem


def validate_volumes(job: Job) -> Iterator[Problem]:
    """Each volume has a path of its own and one source."""
    seen: set[str] = set()
    for index, volume in enumerate(job.deadline.paced(_volumes(job))):
        at = (*job.at, "volumes", index)
        mounted, name, claim = volume.get("mountPath", ""), volume.get("volumeClaimName", ""), volume.get("volumeClaim")
        if mounted in seen and not is_placeholder(mounted):
            message = "is also the path of a volume before this one"
            yield problem(
                "mount-path-twice", (*at, "mountPath"), message, "mount the two volumes at different paths", mounted
            )
        seen.add(mounted)
        if claim is None and not name:
            message = "must have volumeClaimName or volumeClaim because the volume otherwise has nothing to mount"
            yield problem("volume-source", at, message, "set one of them")
        elif claim is not None and name:
            message = "must not be set together with volumeClaim, which creates another claim"
            yield problem("volume-source", (*at, "volumeClaimName"), message, "remove one of the two", name)
        elif name and dns1123_subdomain(name) and not is_placeholder(name):
            message = f"cannot be the name of a PersistentVolumeClaim because {subdomain_fault(name)}"
            yield problem("volume-claim-name", (*at, "volumeClaimName"), message, USE_SUBDOMAIN, name)


def advise_volumes(job: Job) -> Iterator[Problem]:
    """Claims that Kubernetes refuses, and volumes that are not mounted, or whose pods are refused."""
    claims: set[str] = set()
    mounted = _mounted(job) if _volumes(job) else {}
    for index, volume in enumerate(job.deadline.paced(_volumes(job))):
        at, path = (*job.at, "volumes", index), volume.get("mountPath", "")
        name, claim = volume.get("volumeClaimName", ""), volume.get("volumeClaim")
        if claim is not None:
            lacking = [each for each, is_there in _needed(claim) if not is_there]
            if lacking:
                message = f"makes a claim that Kubernetes refuses because the claim has no {' and no '.join(lacking)}"
                yield problem("volume-claim", (*at, "volumeClaim"), message, f"set {' and '.join(lacking)}")
        elif name in claims and name and not is_placeholder(name):
            message = "is mounted only at the first of its paths because Volcano ignores the other paths"
            fix = "remove this entry, and mount the claim in the pod templates"
            yield problem("claim-twice", (*at, "volumeClaimName"), message, fix, name)
        claims.add(name)
        if path in mounted:
            message = (
                "leads to pods that are refused because a container of task "
                f"`{mounted[path]}` mounts another volume at the same path"
            )
            yield problem("mount-path-in-pods", (*at, "mountPath"), message, "choose another path", path)


def _volumes(job: Job) -> Sequence[JSON]:
    return job.spec.get("volumes") or ()


def _needed(claim: JSON) -> Iterator[tuple[str, bool]]:
    yield "accessModes", bool(get(claim, ("accessModes",)))
    yield "resources.requests.storage", get(claim, ("resources", "requests", "storage")) is not None


def _mounted(job: Job) -> dict[str, str]:
    """Paths that containers mount by themselves, with their tasks. Init containers do not get the volumes of a Job."""
    return {
        mount.get("mountPath", ""): task.name
        for task in job.deadline.each(job.tasks)
        for container in job.deadline.paced([*containers(task.value.get("template") or {})])
        if not container.init
        for mount in job.deadline.paced(container.value.get("volumeMounts") or ())
    }
