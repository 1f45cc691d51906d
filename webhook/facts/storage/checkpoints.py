"""Checkpoints of jobs that are lost with a pod: on an emptyDir, in the container itself, or on the disk of one node.

What is a checkpoint, names and options say: a path or a volume named so, or an option such as --checkpoint-dir. A
volume that another container mounts too may be copied elsewhere by it.
https://kubernetes.io/docs/concepts/storage/volumes/#emptydir
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Final

from webhook.facts.gpu.device_pods import BATCH, DevicePods, read_device_workload
from webhook.facts.storage.groups import STORAGE
from webhook.facts.storage.mounts import Mount, Mounts, pods_of, read_mounts
from webhook.facts.storage.node_local import node_local
from webhook.facts.storage.read_only import read_only
from webhook.facts.subject import Subject
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.typed.pods import Container

CHECKPOINT_LOST: Final = STORAGE.rule(
    "storage/checkpoint-lost",
    title="Checkpoints outlive the pod that writes them.",
    why="An emptyDir and the files of a container are deleted with the pod, so a restarted training begins anew.",
    source="https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
    fails="disruption",
)

_NAMED: Final = re.compile(r"(?i)checkpoint|(?<![a-z])ckpts?(?![a-z])")
_OPTION: Final = re.compile(r"--(?:checkpoint|ckpt|save)[-_](?:dir|directory|path|folder)(?:[= ]['\"]?(/[\w./-]+))?")
_IN_ALL_NAMES: Final = "ckp"
"""What every name of a checkpoint contains."""


def names_checkpoints(mount: Mount) -> bool:
    """Return whether a mount is one for checkpoints, by its path or its volume."""
    return bool(_NAMED.search(mount.target) or _NAMED.search(mount.volume.name))


def advise_checkpoints(subject: Subject) -> Iterator[Problem]:
    """Yield every warning about where a job writes its checkpoints."""
    work = subject.once(read_device_workload)
    if not work.device_pods or subject.group_kind not in BATCH:
        return
    if _IN_ALL_NAMES in _names(subject.once(read_mounts)):
        for mounting in _by_volume(subject.once(read_mounts)).values():
            yield from _volume(mounting)
    for pods in work.device_pods:
        for container in pods.containers:
            yield from _option(pods, container, subject)


def _names(known: Mounts) -> str:
    """Return the paths of all mounts and the names of all volumes in small letters: one search mostly covers
    them all.
    """
    targets = [mount.target for mount in known.all]
    return "\n".join([*targets, *(volume.name for volume in known.volumes)]).lower()


def _by_volume(known: Mounts) -> Mapping[FieldPath, list[Mount]]:
    """Return the mounts of each volume, by where it stands."""
    by_volume: dict[FieldPath, list[Mount]] = {}
    for mount in known.all:
        by_volume.setdefault(mount.volume.path, []).append(mount)
    return by_volume


def _by_container(subject: Subject) -> Mapping[tuple[FieldPath, FieldPath], list[Mount]]:
    """Return the mounts of each container, by where its template and then the container in it stand."""
    by_container: dict[tuple[FieldPath, FieldPath], list[Mount]] = {}
    for mount in subject.once(read_mounts).all:
        by_container.setdefault((mount.volume.podset.path, mount.container.at), []).append(mount)
    return by_container


def _volume(mounting: Sequence[Mount]) -> Iterator[Problem]:
    volume = mounting[0].volume
    mount = next(filter(names_checkpoints, mounting), None)
    if mount is None:
        return
    if volume.value.source == "emptyDir" and len(mounting) == 1:
        yield _checkpoint_lost(mount.path, mount.target, is_mounted=True)
    elif volume.value.source == "hostPath" and pods_of(mounting) > 1 and not mount.is_read_only:
        yield node_local(mount.path, folder=mount.target)
    elif volume.is_read_only and not mount.is_read_only:
        yield read_only(mount)


def _option(pods: DevicePods, container: Container, subject: Subject) -> Iterator[Problem]:
    """Warn of a folder that the command names, in which nothing is mounted."""
    folder = _folder(container)
    if not folder:
        return
    mounting = subject.once(_by_container).get((pods.podset.path, container.at), ())
    if any(PurePosixPath(folder).is_relative_to(mount.target) for mount in mounting):
        return
    yield _checkpoint_lost(pods.locate(container.at), folder, is_mounted=False)


def _checkpoint_lost(path: FieldPath | str, folder: str, *, is_mounted: bool) -> Problem:
    """Return the problem of a folder on an emptyDir, or of one in the container itself, where no volume is mounted."""
    if is_mounted:
        message = f"checkpoints in `{folder}` are on an emptyDir, which is deleted with the pod"
        return CHECKPOINT_LOST.problem(path, message, "use a PersistentVolumeClaim")
    message = f"what the command writes to `{folder}` is lost with the container because no volume is mounted there"
    return CHECKPOINT_LOST.problem(path, message, "mount a PersistentVolumeClaim")


def _folder(container: Container) -> str:
    """Return the folder of an option for checkpoints, as a word of its own after it, or inside a script."""
    for word, following in pairwise((*container.words, "")):
        if "-" in word and "--" in word and (option := _OPTION.search(word)) is not None:
            folder = option[1] or (following if option[0] == word else "")
            return folder if folder.startswith("/") and "$" not in folder else ""
    return ""
