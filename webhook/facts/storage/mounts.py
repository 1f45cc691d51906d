"""Which containers of an object mount which volumes, and what claims they come from. Knows no rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from webhook.attributes import JSON
from webhook.facts.gpu.device_pods import workload
from webhook.facts.pods.containers import Container, containers
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.facts.volcano_objects import kinds
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.workloads.podsets import PodSet


class Volume(NamedTuple):
    """A volume of a template, and where it stands in the object; an object may have hundreds.

    `claim` is the PersistentVolumeClaim that it names, "" for none or one whose name is still to be filled in; `made`
    is the spec of a claim that it leads to.
    """

    podset: PodSet
    value: JSON
    path: FieldPath
    claim: str
    made: JSON = None

    @property
    def name(self) -> str:
        """Its name in the template."""
        return text(self.value.get("name"))

    @property
    def source(self) -> str:
        """What it is made of: `emptyDir`; "" for one without a source."""
        return next((key for key, value in self.value.items() if key != "name" and value is not None), "")

    @property
    def is_read_only(self) -> bool:
        """Whether the volume of a claim is mounted read-only whatever the containers say."""
        return mapping(self.value.get("persistentVolumeClaim")).get("readOnly") is True


class Mount(NamedTuple):
    """One mount of a volume, and which of the container it is; None where the volume itself says that it is mounted."""

    volume: Volume
    container: Container
    value: JSON
    number: int | None

    @property
    def path(self) -> FieldPath:
        """Where it stands in the object."""
        if self.number is None:
            return self.volume.path
        return self.volume.podset.locate((*self.container.path, "volumeMounts", self.number))

    @property
    def target(self) -> str:
        """Where the container sees it, without a slash at its end: `/data`."""
        return text(self.value.get("mountPath")).rstrip("/") or "/"

    @property
    def is_read_only(self) -> bool:
        """Whether the container asks for it to be."""
        return self.value.get("readOnly") is True


@dataclass(frozen=True, slots=True)
class Mounts:
    """All volumes and all mounts of an object with devices; nothing of other objects."""

    volumes: tuple[Volume, ...]
    all: tuple[Mount, ...]

    def of_made_claims(self) -> dict[FieldPath, list[Mount]]:
        """The mounts of each claim that a controller makes for all pods, by where it stands."""
        made: dict[FieldPath, list[Mount]] = {}
        for mount in self.all if any(volume.made for volume in self.volumes) else ():
            if mount.volume.made:
                made.setdefault(mount.volume.path, []).append(mount)
        return made

    def of_claims(self) -> dict[str, list[Mount]]:
        """The mounts of each PersistentVolumeClaim, by its name."""
        named: dict[str, list[Mount]] = {}
        for mount in self.all:
            if claim := mount.volume.claim:
                named.setdefault(claim, []).append(mount)
        return named


def mounts(subject: Subject) -> Mounts:
    """The volumes and mounts of an object, to be asked for with `Subject.once`."""
    made = subject.once(workload)
    volumes: list[Volume] = []
    listed: list[Mount] = []
    for podset in subject.deadline.paced(made.pod_sets if made.device_pods else ()):
        own = {each.name: each for each in _volumes(podset, subject)}
        volumes += own.values()
        listed += _mounts(podset, own, subject)
        for volume, path in _of_volcano(podset, subject):
            volumes.append(volume)
            listed += _everywhere(volume, path)
    return Mounts(tuple(volumes), tuple(listed))


def _of_volcano(podset: PodSet, subject: Subject) -> Iterator[tuple[Volume, str]]:
    """The volumes of a Job of Volcano with their paths: createJobPod adds the first of each claim to every pod."""
    at = kinds.SPECS.get(subject.group_kind)
    listed = items(get(subject.object, (*at, "volumes"))) if at else []
    seen: set[str] = set()
    for index, value in enumerate(subject.deadline.paced(listed)):
        name, made = text(mapping(value).get("volumeClaimName")), mapping(mapping(value).get("volumeClaim"))
        if made or (name and name not in seen):
            seen.add(name)
            held = {"name": name, "persistentVolumeClaim": {"claimName": name}}
            path = (*(at or ()), "volumes", index)
            yield Volume(podset, held, path, _claim(held), made), text(value.get("mountPath"))


def _everywhere(volume: Volume, path: str) -> Iterator[Mount]:
    """A mount in each container, init containers left out."""
    for container in containers(volume.podset.template):
        if not container.init:
            yield Mount(volume, container, {"mountPath": path}, None)


def _volumes(podset: PodSet, subject: Subject) -> Iterator[Volume]:
    spec = mapping(mapping(podset.template).get("spec"))
    for index, value in enumerate(subject.deadline.paced(items(spec.get("volumes")))):
        if isinstance(value, dict):
            yield Volume(podset, value, podset.locate(("spec", "volumes", index)), _claim(value))


def _claim(volume: dict[str, JSON]) -> str:
    name = text(mapping(volume.get("persistentVolumeClaim")).get("claimName"))
    return "" if is_placeholder(name) else name


def _mounts(podset: PodSet, volumes: dict[str, Volume], subject: Subject) -> Iterator[Mount]:
    for container in containers(podset.template):
        for index, value in enumerate(subject.deadline.paced(items(container.value.get("volumeMounts")))):
            name = value.get("name") if isinstance(value, dict) else None
            volume = volumes.get(name if isinstance(name, str) else "")
            if volume is not None:
                yield Mount(volume, container, value, index)


def pods_of(listed: list[Mount]) -> int:
    """How many pods mount a volume, as far as their number is known."""
    sets = {each.volume.podset.path: each.volume.podset for each in listed}
    return sum(each.pods or 0 for each in sets.values())
