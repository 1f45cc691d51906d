"""Checkpoints that are lost with a pod, and folders of one volume that several pods share by mistake.

Checkpoints on an emptyDir, in the container itself or on the disk of one node are lost. The name of a path or a
volume, or an option such as --checkpoint-dir, shows where checkpoints are written. A volume that another container also
mounts is not reported, because the other container may copy the checkpoints. Nothing is reported either if the command
itself copies the folder, or only loads checkpoints. The kubelet expands variables only in subPathExpr. If a variable of
subPathExpr is not set, the container does not start.

Source: https://kubernetes.io/docs/concepts/storage/volumes/#emptydir and
https://kubernetes.io/docs/concepts/storage/volumes/#using-subpath-expanded-environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Final

from webhook.apimachinery.paths import FieldPath
from webhook.facts.gpu.device_pods import BATCH, DevicePods, read_device_workload
from webhook.facts.storage.mounts import STORAGE, MountsOfObject, VolumeMountInObject, number_of_pods_with, read_mounts
from webhook.facts.storage.volume_claims import node_local_problem, read_only_problem
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.pods import Container

CHECKPOINT_LOST: Final = STORAGE.rule(
    "storage/checkpoint-lost",
    title="Checkpoints are deleted with the pod",
    why="An emptyDir and the files of a container are deleted with the pod. A new pod trains from the beginning.",
    source="https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
    fails="disruption",
)
SUB_PATH: Final = STORAGE.rule(
    "storage/sub-path",
    title="All pods write to the same subPath",
    why=(
        "All pods of a template get the same subPath, so they overwrite each other's files. Only subPathExpr expands "
        "variables."
    ),
    source="https://kubernetes.io/docs/concepts/storage/volumes/#using-subpath-expanded-environment",
    fails="silent",
)
_NAMED: Final = re.compile(r"(?i)checkpoint|(?<![a-z])ckpts?(?![a-z])")
_OPTION: Final = re.compile(r"--(?:checkpoint|ckpt|save)[-_](?:dir|directory|path|folder)(?:[= ]['\"]?(/[\w./-]+))?")
_SAVES: Final = "--save"
"""The beginning of an option that always names a folder to write. A program may also load from --checkpoint-dir."""
_LOADS: Final = re.compile(
    r"(?i)(?:eval|infer|generat|predict|convert|serve|sampl|chat|demo|export|completion)[\w-]{0,40}\.py\b"
    r"|trtllm-build|\bexample_\w{1,40}\.py\b"
)
"""Matches programs that load checkpoints, such as `trtllm-build` and Llama's examples for inference."""
_TRAINS: Final = re.compile(r"(?i)(?:train|tun)[\w-]{0,40}\.py\b")
_COPIES: Final = re.compile(
    r"\b(?:aws s3|s3cmd|s5cmd|gsutil|gcloud storage|rclone|azcopy|az storage|mc (?:cp|mirror)|ossutil|rsync|scp"
    r"|(?:huggingface-cli|hf) upload) [^\n;&|]*"
)
"""Matches a program that copies files to other storage, with its arguments."""
_SIGNS_OF_PLACE: Final = ("/", ":", "$")
"""The signs of a path, of the address of a bucket or host, and of a variable for a path or an address."""
_CONTINUED: Final = "\\\n"
_IN_ALL_NAMES: Final = "ckp"
"""Every name for checkpoints contains this text."""
_VARIABLE: Final = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_RANK: Final = re.compile(r"(?i)(?:^|[/_-])(?:rank|worker|node|replica|pod)[-_]?[0-9]+(?:$|/)")
_OF_THE_POD: Final[Mapping[str, str]] = {
    "POD_NAME": "metadata.name",
    "POD_NAMESPACE": "metadata.namespace",
    "POD_UID": "metadata.uid",
    "POD_IP": "status.podIP",
    "NODE_NAME": "spec.nodeName",
    "HOSTNAME": "metadata.name",
}
"""Maps a variable to the field of the pod for `fieldRef`. Only `env` of the container sets these variables, and no
controller.
"""
_OF_ONE_POD: Final = frozenset(("emptyDir", "ephemeral", "configMap", "secret", "downwardAPI", "projected"))


def is_for_checkpoints(mount: VolumeMountInObject) -> bool:
    """Return whether a mount is for checkpoints, by its path or its volume."""
    return bool(_NAMED.search(mount.target) or _NAMED.search(mount.volume.name))


def advise_checkpoints(subject: Subject) -> Iterator[Problem]:
    """Yield the advice about where a job writes its checkpoints."""
    work = subject.once(read_device_workload)
    if not work.device_pods or subject.group_kind not in BATCH:
        return
    if _IN_ALL_NAMES in _paths_and_names_of_mounts(subject.once(read_mounts)):
        for mounting in _mounts_by_volume(subject.once(read_mounts)).values():
            yield from _check_checkpoint_volume(mounting)
    for pods in work.device_pods:
        for container in pods.containers:
            yield from _check_checkpoint_option(pods, container, subject)


def _paths_and_names_of_mounts(known: MountsOfObject) -> str:
    """Return the paths of all mounts and the names of all volumes as one text in lower case, for a single search."""
    targets = [mount.target for mount in known.all]
    return "\n".join([*targets, *(volume.name for volume in known.volumes)]).lower()


def _mounts_by_volume(known: MountsOfObject) -> Mapping[FieldPath, list[VolumeMountInObject]]:
    """Return the mounts of each volume, by the path of the volume."""
    by_volume: dict[FieldPath, list[VolumeMountInObject]] = {}
    for mount in known.all:
        by_volume.setdefault(mount.volume.path, []).append(mount)
    return by_volume


def _mounts_by_container(subject: Subject) -> Mapping[tuple[FieldPath, FieldPath], list[VolumeMountInObject]]:
    """Return the mounts of each container, by the path of the template and the container's path in the template."""
    by_container: dict[tuple[FieldPath, FieldPath], list[VolumeMountInObject]] = {}
    for mount in subject.once(read_mounts).all:
        by_container.setdefault((mount.volume.podset.path, mount.container.at), []).append(mount)
    return by_container


def _check_checkpoint_volume(mounting: Sequence[VolumeMountInObject]) -> Iterator[Problem]:
    volume = mounting[0].volume
    mount = next(filter(is_for_checkpoints, mounting), None)
    if mount is None:
        return
    if volume.value.source == "emptyDir" and len(mounting) == 1:
        if not _is_copied(mount.container, mount.target):
            yield _checkpoint_lost_problem(mount.path, mount.target, is_mounted=True)
    elif volume.value.source == "hostPath" and number_of_pods_with(mounting) > 1 and not mount.is_read_only:
        yield node_local_problem(mount.path, folder=mount.target)
    elif volume.is_read_only and not mount.is_read_only:
        yield read_only_problem(mount)


def _check_checkpoint_option(pods: DevicePods, container: Container, subject: Subject) -> Iterator[Problem]:
    """Warn of a folder for checkpoints in the command, if no volume is mounted at the folder."""
    folder = _checkpoint_folder_of_option(container)
    if not folder or _is_copied(container, folder):
        return
    mounting = subject.once(_mounts_by_container).get((pods.podset.path, container.at), ())
    if any(PurePosixPath(folder).is_relative_to(mount.target) for mount in mounting):
        return
    yield _checkpoint_lost_problem(pods.locate(container.at), folder, is_mounted=False)


def _checkpoint_lost_problem(path: FieldPath | str, folder: str, *, is_mounted: bool) -> Problem:
    """Return the problem of a folder on an emptyDir, or of a folder in the container without a volume."""
    if is_mounted:
        message = f"checkpoints in `{folder}` are on an emptyDir, which is deleted with the pod"
        return CHECKPOINT_LOST.problem(path, message, "use a PersistentVolumeClaim")
    message = f"what the command writes to `{folder}` is lost with the container because no volume is mounted there"
    return CHECKPOINT_LOST.problem(path, message, "mount a PersistentVolumeClaim", needs="volumes")


def _checkpoint_folder_of_option(container: Container) -> str:
    """Return the folder to which a command writes checkpoints, by the value of an option."""
    for word, following in pairwise((*container.words, "")):
        if "-" in word and "--" in word and (option := _OPTION.search(word)) is not None:
            folder = option[1] or (following if option[0] == word else "")
            if not option[0].startswith(_SAVES) and container.runs(_LOADS) and not container.runs(_TRAINS):
                return ""
            return folder if folder.startswith("/") and "$" not in folder else ""
    return ""


def _is_copied(container: Container, folder: str) -> bool:
    """Return whether the command copies a folder, a part of the folder, or a folder above, to another place."""
    if not container.runs(_COPIES):
        return False
    copies = _COPIES.findall(container.command_line.replace(_CONTINUED, " "))
    sources = (source for copy in copies for source in _sources_of_copy(copy, container))
    return any(path.is_relative_to(folder) or PurePosixPath(folder).is_relative_to(path) for path in sources)


def _sources_of_copy(copy: str, container: Container) -> Iterator[PurePosixPath]:
    """Yield the paths from which a program copies. The last of several places is the target, except for an upload."""
    words = (word.strip("'\"") for word in container.charged_list(copy.split()) if not word.startswith("-"))
    places = [word for word in words if any(sign in word for sign in _SIGNS_OF_PLACE)]
    if len(places) > 1 and "upload" not in copy:
        places.pop()
    yield from map(PurePosixPath, places)


def advise_sub_paths(subject: Subject) -> Iterator[Problem]:
    """Warn of mounts with a subPath that several pods share by mistake, or with variables that are not expanded or not
    set.
    """
    for mount in subject.once(read_mounts).all:
        yield from _check_sub_path(mount)


def _check_sub_path(mount: VolumeMountInObject) -> Iterator[Problem]:
    """Report variables that are not expanded or not set, and a folder of one rank that all pods use."""
    written, pods = mount.value.sub_path, mount.volume.podset.pods or 0
    if mount.volume.value.source in _OF_ONE_POD:
        pass  # no other pod sees the folders of this volume
    elif _VARIABLE.search(written):
        message = (
            "is not expanded because subPath does not support variables, so all pods use one folder with exactly this "
            "name"
        )
        unset = _unset_variables(mount, written)
        fix = f"use subPathExpr, and {_how_to_set(unset[0])}" if unset else "use subPathExpr"
        yield SUB_PATH.problem((*mount.path, "subPath"), message, fix, written)
    elif pods > 1 and _RANK.search(written) and not mount.is_read_only:
        message = f"is the folder of one rank, but all {pods} pods of the template write to this folder"
        fix = "use subPathExpr with a variable that differs in each pod, such as $(POD_NAME)"
        yield SUB_PATH.problem((*mount.path, "subPath"), message, fix, written)
    if unset := _unset_variables(mount, mount.value.sub_path_expr):
        message = f"needs the variable {unset[0]}, which the container does not set, so the container does not start"
        yield SUB_PATH.problem((*mount.path, "subPathExpr"), message, _how_to_set(unset[0]))


def _how_to_set(variable: str) -> str:
    return f"set {variable} in env with fieldRef {_OF_THE_POD[variable]}"


def _unset_variables(mount: VolumeMountInObject, path: str) -> list[str]:
    """Return the variables of _OF_THE_POD that a path contains and that the container does not set."""
    wanted = _OF_THE_POD.keys() & _VARIABLE.findall(path)
    if mount.container.env_from or not wanted:
        return []
    return sorted(wanted.difference(variable.name for variable in mount.container.env))
