"""The volumes that the containers of an object mount, and the claims of these volumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from webhook.apimachinery.paths import FieldPath
from webhook.facts.gpu.device_pods import read_device_workload
from webhook.facts.pods.pod_sets import template_of
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects import types
from webhook.facts.volcano_objects.types import JobSpec
from webhook.typed.collections import Items
from webhook.typed.pods import Container, PodTemplate
from webhook.typed.view import ReadingContext
from webhook.typed.volumes import Volume as PodVolume
from webhook.typed.volumes import VolumeClaimSpec, VolumeMount
from webhook.workloads.podsets import PodSet
from webhook.yamltext.placeholders import is_placeholder


class Volume(NamedTuple):
    """A volume of a template, and its path in the object.

    Args:
        podset: the pod set.
        value: the volume.
        path: the path of the volume in the object.
        created_claim: the claim that a controller creates for the volume; empty if no claim is created.
    """

    podset: PodSet
    value: PodVolume
    path: FieldPath
    created_claim: VolumeClaimSpec

    @property
    def name(self) -> str:
        """Return the name of the volume in the pod template."""
        return self.value.name

    @property
    def claim_name(self) -> str:
        """Return the PersistentVolumeClaim that the volume names; "" without a claim, and for a placeholder."""
        name = self.value.persistent_volume_claim.claim_name
        return "" if is_placeholder(name) else name

    @property
    def is_read_only(self) -> bool:
        """Return whether the volume mounts its claim read-only in every container."""
        return self.value.persistent_volume_claim.read_only


class VolumeMountInObject(NamedTuple):
    """One mount of a volume. `is_written`: the container lists the mount; otherwise Volcano adds the mount, for a
    volume of a Volcano Job.
    """

    volume: Volume
    container: Container
    value: VolumeMount
    is_written: bool = True

    @property
    def path(self) -> FieldPath:
        """Return the path of the mount in the object."""
        return self.volume.podset.locate(self.value.at) if self.is_written else self.volume.path

    @property
    def target(self) -> str:
        """Return the path of the volume in the container, without a slash at its end: `/data`."""
        return self.value.mount_path.rstrip("/") or "/"

    @property
    def is_read_only(self) -> bool:
        """Return whether the mount is read-only."""
        return self.value.read_only


class MountsOfObject(Struct, frozen=True):
    """All volumes and mounts of an object with devices; empty for other objects."""

    volumes: Items[Volume]
    all: Items[VolumeMountInObject]

    def mounts_of_created_claims(self) -> dict[FieldPath, list[VolumeMountInObject]]:
        """Return the mounts of each claim that a controller creates for all pods, by the path of its volume."""
        mounts: dict[FieldPath, list[VolumeMountInObject]] = {}
        for mount in self.all:
            if mount.volume.created_claim:
                mounts.setdefault(mount.volume.path, []).append(mount)
        return mounts

    def mounts_of_claims(self) -> dict[str, list[VolumeMountInObject]]:
        """Return the mounts of each PersistentVolumeClaim, by its name."""
        mounts: dict[str, list[VolumeMountInObject]] = {}
        for mount in self.all:
            if claim := mount.volume.claim_name:
                mounts.setdefault(claim, []).append(mount)
        return mounts


def read_mounts(subject: Subject) -> MountsOfObject:
    """Return the volumes and mounts of an object. Call this through `Subject.once`."""
    work = subject.once(read_device_workload)
    volumes: list[Volume] = []
    mounts: list[VolumeMountInObject] = []
    for podset in Items(work.pod_sets if work.device_pods else (), subject.deadline):
        template = template_of(podset, subject)
        by_name = {volume.name: volume for volume in _volumes_of_template(podset, template)}
        volumes += by_name.values()
        mounts += _mounts_of_template(template, by_name)
        for volume, path in _volumes_of_volcano_job(podset, subject):
            volumes.append(volume)
            mounts += _implied_mounts(volume, path, template)
    return MountsOfObject(Items(volumes, subject.deadline), Items(mounts, subject.deadline))


def _volumes_of_volcano_job(podset: PodSet, subject: Subject) -> Iterator[tuple[Volume, str]]:
    """Yield the volumes of a Volcano Job with their mount paths. If several volumes name the same claim, Volcano adds
    only the first volume (createJobPod).
    """
    if subject.group_kind not in types.SPECS:
        return
    seen: set[str] = set()
    for volume in _volcano_job_spec_of_object(subject).volumes:
        name = volume.volume_claim_name
        if volume.volume_claim.json or (name and name not in seen):
            seen.add(name)
            json = {"name": name, "persistentVolumeClaim": {"claimName": name}}
            claim = volume.volume_claim if volume.volume_claim.json else VolumeClaimSpec.of(None)
            yield Volume(podset, PodVolume.of(json, volume.at, volume.reading), volume.at, claim), volume.mount_path


def _volcano_job_spec_of_object(subject: Subject) -> JobSpec:
    at = types.SPECS.get(subject.group_kind)
    spec = subject.object
    for step in at or ():
        spec = spec.get(step) or {}
    return JobSpec.of(spec if at else None, at or (), ReadingContext(subject.deadline))


def _implied_mounts(volume: Volume, path: str, template: PodTemplate) -> Iterator[VolumeMountInObject]:
    """Yield the mounts that Volcano adds to all containers except init containers."""
    for container in template.spec.containers:
        mount = VolumeMount.of({"mountPath": path}, container.at, container.reading)
        yield VolumeMountInObject(volume, container, mount, is_written=False)


def _volumes_of_template(podset: PodSet, template: PodTemplate) -> Iterator[Volume]:
    no_claim = VolumeClaimSpec.of(None)
    for volume in template.spec.volumes:
        if volume:
            yield Volume(podset, volume, podset.locate(volume.at), no_claim)


def _mounts_of_template(template: PodTemplate, volumes: Mapping[str, Volume]) -> Iterator[VolumeMountInObject]:
    for container in template.spec.all_containers():
        for mount in container.volume_mounts:
            volume = volumes.get(mount.name)
            if volume is not None:
                yield VolumeMountInObject(volume, container, mount)


def number_of_pods_with(mounts: Sequence[VolumeMountInObject]) -> int:
    """Return the number of pods in the pod sets with these mounts; a pod set of unknown size counts as 0."""
    sets = {mount.volume.podset.path: mount.volume.podset for mount in mounts}
    return sum(podset.pods or 0 for podset in sets.values())
