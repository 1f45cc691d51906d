"""The volumes that the containers of an object mount, the claims of these volumes, and commands that are mounted files.

The kernel runs a file only if its mode has an execute bit, for any user. Files of ConfigMaps and Secrets have the mode
0644 unless `defaultMode` or the `mode` of an item sets another mode.

Source: https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/volume/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from webhook.apimachinery.paths import FieldPath
from webhook.facts.command_lines.shell import read_shell_call
from webhook.facts.gpu.device_pods import located_templates, read_device_workload
from webhook.facts.subject import Subject
from webhook.facts.volcano_objects import types
from webhook.facts.volcano_objects.types import JobSpec
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.typed.collections import Items
from webhook.typed.pods import Container, PodTemplate
from webhook.typed.view import ReadingContext
from webhook.typed.volumes import KeyToPath, VolumeClaimSpec, VolumeMount
from webhook.typed.volumes import Volume as PodVolume
from webhook.workloads.podsets import PodSet
from webhook.yamltext.placeholders import is_placeholder

STORAGE: Final = RuleGroup(
    "storage",
    source="https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes",
    level="warn",
    fails="pending",
)
"""Volumes of workloads with devices: whether all pods can mount them, and whether they keep data as expected."""

FILE_MODE: Final = STORAGE.rule(
    "storage/file-mode",
    title="A container runs a mounted file that is not executable",
    why=(
        "Files of a ConfigMap or Secret volume have mode 0644 unless defaultMode or mode is set. The kernel runs only "
        "files with an execute bit."
    ),
    source="https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/volume/",
    refused_by="the container runtime, when it starts the container",
    fails="start",
)
_DEFAULT_MODE: Final = 0o644
_EXECUTABLE: Final = 0o111
_LONGEST_COMMAND: Final = 4096
_OF_SHELL: Final = frozenset("|&;<>()$`\\\"'*?[]#~{}\n")
"""A script without these characters runs one program."""


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
    volumes: list[Volume] = []
    mounts: list[VolumeMountInObject] = []
    has_devices = bool(subject.once(read_device_workload).device_pods)
    for podset, template in subject.once(located_templates) if has_devices else ():
        by_name = {volume.name: volume for volume in _volumes_of_template(podset, template)}
        volumes += by_name.values()
        mounts += _mounts_of_template(template, by_name)
        for volume, path in _volumes_of_volcano_job(podset, subject):
            volumes.append(volume)
            mounts += _implied_mounts(volume, path, template)
    return MountsOfObject(Items(volumes, subject.deadline), Items(mounts, subject.deadline))


def volumes_of_all_pods(subject: Subject) -> Iterator[Volume]:
    """Yield the volumes of all pods of an object, also of pods without devices."""
    for podset, template in subject.once(located_templates):
        yield from _volumes_of_template(podset, template)
        yield from (volume for volume, _ in _volumes_of_volcano_job(podset, subject))


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


def check_file_modes(subject: Subject) -> Iterator[Problem]:
    """Report containers with a command that is a file of a ConfigMap or a Secret without execute permission."""
    for mount in subject.once(read_mounts).all:
        volume = mount.volume.value
        if volume.config_map:
            source, default = f"ConfigMap `{volume.config_map.name}`", volume.config_map.default_mode
        elif volume.secret:
            source, default = f"Secret `{volume.secret.secret_name}`", volume.secret.default_mode
        else:
            continue
        file = _file_of_command(mount.container)
        mode = _mode_of_file(mount.value, file, volume.config_map.items or volume.secret.items, default)
        if mode is not None and not mode & _EXECUTABLE:
            message = f"runs `{file}`, a file of {source} with mode {mode:04o}, which no user can execute"
            fix = "set defaultMode: 0555 on the volume, or run the file with a shell"
            yield FILE_MODE.problem(mount.volume.podset.locate(mount.container.at), message, fix)


def _file_of_command(container: Container) -> str:
    """Return the file that a command runs, itself or by `sh -c`; "" if this is not known."""
    words = container.command
    if not words or any(len(word) > _LONGEST_COMMAND for word in words[:3]):
        return ""
    first = words[0]
    call = read_shell_call(words)
    if call is not None and not call.is_file and not call.rest:
        script = call.script.split() if _OF_SHELL.isdisjoint(call.script.strip()) else []
        first = next((word for word in script if word != "exec"), "")
    return first if first.startswith("/") else ""


def _mode_of_file(mount: VolumeMount, file: str, items: Sequence[KeyToPath], default: int | None) -> int | None:
    """Return the mode of a file in a volume with these items; None if the mount does not have the file, or if its mode
    is not known.
    """
    name = mount.path_in_volume(file)
    if not name or mount.sub_path_expr:
        return None
    item = next((each for each in items if each.file_path == name), None)
    if item is None and (items or "/" in name):
        return None  # keys have no slash, so another mount has the file
    modes = (item.mode if item is not None else None, default, _DEFAULT_MODE)
    return next(mode for mode in modes if mode is not None)
