"""Folders of one volume that several pods are meant to have each for itself, and share.

The kubelet expands variables in subPathExpr alone, and a container whose variable is not set does not start:
https://kubernetes.io/docs/concepts/storage/volumes/#using-subpath-expanded-environment
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.storage.groups import STORAGE
from webhook.facts.storage.mounts import VolumeMountInObject, read_mounts
from webhook.facts.subject import Subject
from webhook.problem import Problem

SUB_PATH: Final = STORAGE.rule(
    "storage/sub-path",
    title="Pods that are meant to have a folder each do not share one.",
    why=(
        "A subPath is the same for all pods of a template, so they overwrite each other's files; only subPathExpr "
        "expands variables, and a container that does not set them does not start."
    ),
    source="https://kubernetes.io/docs/concepts/storage/volumes/#using-subpath-expanded-environment",
    fails="silent",
)

_VARIABLE: Final = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_RANK: Final = re.compile(r"(?i)(?:^|[/_-])(?:rank|worker|node|replica|pod)[-_]?[0-9]+(?:$|/)")
_OF_THE_POD: Final = frozenset(("POD_NAME", "POD_NAMESPACE", "POD_UID", "POD_IP", "NODE_NAME", "HOSTNAME"))
"""Variables that no controller sets: a container names them in its env."""
_OF_ONE_POD: Final = frozenset(("emptyDir", "ephemeral", "configMap", "secret", "downwardAPI", "projected"))


def advise_sub_paths(subject: Subject) -> Iterator[Problem]:
    """Warn of every mount whose subPath is the same for pods that count on another, or that cannot be expanded."""
    for mount in subject.once(read_mounts).all:
        yield from _check_sub_path(mount)


def _check_sub_path(mount: VolumeMountInObject) -> Iterator[Problem]:
    """Report variables that are not expanded, one rank's folder for all pods, and variables that are not set."""
    written, pods = mount.value.sub_path, mount.volume.podset.pods or 0
    if mount.volume.value.source in _OF_ONE_POD:
        pass  # no other pod sees its folders
    elif _VARIABLE.search(written):
        message = (
            "is not expanded because subPath does not support variables, so all pods use one folder with exactly this "
            "name"
        )
        yield SUB_PATH.problem((*mount.path, "subPath"), message, "use subPathExpr", written)
    elif pods > 1 and _RANK.search(written) and not mount.is_read_only:
        message = f"is the folder of one rank, but all {pods} pods of the template write to this folder"
        fix = "use subPathExpr with a variable that differs in each pod"
        yield SUB_PATH.problem((*mount.path, "subPath"), message, fix, written)
    if unset := _unset_variables(mount):
        message = f"needs the variable {unset[0]}, which the container does not set, so the container does not start"
        yield SUB_PATH.problem((*mount.path, "subPathExpr"), message, "set the variable in env with fieldRef")


def _unset_variables(mount: VolumeMountInObject) -> list[str]:
    """Return the variables about a pod in subPathExpr that the container does not set, by their names."""
    wanted = _OF_THE_POD.intersection(_VARIABLE.findall(mount.value.sub_path_expr))
    if mount.container.env_from or not wanted:
        return []
    return sorted(wanted.difference(variable.name for variable in mount.container.env))
