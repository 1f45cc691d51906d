"""What JobSet's webhook refuses of volumeClaimPolicies, of which it makes PersistentVolumeClaims for all its pods.

Source: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go validateVolumeClaimPolicies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from webhook.facts.jobset.groups import JOB_SET
from webhook.name_faults import subdomain_fault
from webhook.names import dns1123_subdomain_errors
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.typed.job_sets import JobSetSpec, PersistentVolumeClaimTemplate
from webhook.typed.objects import Metadata

CLAIM_NAMESPACE: Final = JOB_SET.rule(
    "job-set/claim-namespace",
    title="Templates of volumeClaimPolicies have no namespace.",
    why="The claims are made in the namespace of the JobSet.",
    function="validateVolumeClaimPolicies",
)
CLAIM_TEMPLATE_TWICE: Final = JOB_SET.rule(
    "job-set/claim-template-twice",
    title="Each template of volumeClaimPolicies has a name of its own.",
    why="The name is that of a volume in the pods, and part of the name of the claim.",
    function="validateVolumeClaimPolicies",
)
CLAIM_TEMPLATE_NAME: Final = JOB_SET.rule(
    "job-set/claim-template-name",
    title="The name of a template of volumeClaimPolicies is a DNS name.",
    why="The PersistentVolumeClaim is named after it.",
    function="validateVolumeClaimPolicies",
)
VOLUME_CONFLICT: Final = JOB_SET.rule(
    "job-set/volume-conflict",
    title="No pod has a volume with the name of a template of volumeClaimPolicies.",
    why="JobSet adds a volume of that name to each pod that mounts it.",
    function="validateVolumeClaimPolicies",
)
UNMOUNTED_CLAIM: Final = JOB_SET.rule(
    "job-set/unmounted-claim",
    title="A container mounts the volume of each template of volumeClaimPolicies.",
    why="A claim that nothing mounts would be made in vain.",
    function="validateVolumeClaimPolicies",
)


def claim_template_names(job_set: JobSetSpec) -> frozenset[str]:
    """Return the names of the volumes that volumeClaimPolicies add to pods."""
    return frozenset(template.metadata.name for template in _claim_templates(job_set))


def _claim_templates(job_set: JobSetSpec) -> Iterator[PersistentVolumeClaimTemplate]:
    for policy in job_set.volume_claim_policies:
        yield from policy.templates


def validate_volume_claim_policies(job_set: JobSetSpec) -> Iterator[Problem]:
    """Require of each claim a name of its own, mounted somewhere, that no volume in a pod has."""
    if not job_set.volume_claim_policies:
        return
    volumes = _volume_names_of_jobs(job_set)
    seen: set[str] = set()
    for template in _claim_templates(job_set):
        metadata = template.metadata
        yield from _check_claim_namespace(metadata)
        if not is_placeholder(metadata.name):
            yield from _validate_claim_template_name(metadata, seen, volumes)
            seen.add(metadata.name)


def _check_claim_namespace(metadata: Metadata) -> Iterator[Problem]:
    if metadata.namespace:
        message = "must not be set because the claims are created in the namespace of the JobSet"
        yield CLAIM_NAMESPACE.problem(metadata.path("namespace"), message, "remove the namespace")


def _validate_claim_template_name(metadata: Metadata, seen: set[str], volumes: _VolumeNames) -> Iterator[Problem]:
    name, path = metadata.name, metadata.path("name")
    if name in seen:
        message = "is also the name of a template before this one"
        yield CLAIM_TEMPLATE_TWICE.problem(path, message, "rename one of the two templates", name)
    elif dns1123_subdomain_errors(name):
        message = f"cannot be a part of the names of claims because {subdomain_fault(name)}"
        fix = "use lower-case letters, digits and dashes in the name"
        yield CLAIM_TEMPLATE_NAME.problem(path, message, fix, name)
    else:
        yield from _check_volume_conflict(metadata, volumes)
        if name not in volumes.mounted:
            message = "is not mounted by any container"
            fix = f"add `{name}` to volumeMounts of a container, or remove the template"
            yield UNMOUNTED_CLAIM.problem(path, message, fix, name)


def _check_volume_conflict(metadata: Metadata, volumes: _VolumeNames) -> Iterator[Problem]:
    for job in volumes.jobs.get(metadata.name, ()):
        message = (
            f"is also the name of a volume in the pods of replicated job `{job}`, but volumes of a pod need different "
            "names"
        )
        fix = f"rename the template, or rename the volume of replicated job `{job}`"
        yield VOLUME_CONFLICT.problem(metadata.path("name"), message, fix, metadata.name)


@dataclass(frozen=True, slots=True)
class _VolumeNames:
    """The names of the replicated jobs that have a volume of a name, and the names that containers mount."""

    jobs: dict[str, list[str]]
    mounted: set[str]


def _volume_names_of_jobs(job_set: JobSetSpec) -> _VolumeNames:
    volumes = _VolumeNames({}, set())
    for job in job_set.replicated_jobs:
        for name in dict.fromkeys(volume.name for volume in job.pod.volumes):
            volumes.jobs.setdefault(name, []).append(job.name)
        for container in job.pod.all_containers():
            volumes.mounted.update(mount.name for mount in container.volume_mounts)
    return volumes
