"""Folders of one volume that several pods are meant to have each for itself, and share.

The kubelet expands variables in subPathExpr alone, and a container whose variable is not set does not start:
https://kubernetes.io/docs/concepts/storage/volumes/#using-subpath-expanded-environment
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.storage.mounts import Mount, mounts
from webhook.facts.subject import Subject
from webhook.problem import Problem

problem: Final = Group("storage").problem
_VARIABLE: Final = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_RANK: Final = re.compile(r"(?i)(?:^|[/_-])(?:rank|worker|node|replica|pod)[-_]?[0-9]+(?:$|/)")
_OF_THE_POD: Final = frozenset(("POD_NAME", "POD_NAMESPACE", "POD_UID", "POD_IP", "NODE_NAME", "HOSTNAME"))
"""Variables that no controller sets: a container names them in its env."""
_OF_ONE_POD: Final = frozenset(("emptyDir", "ephemeral", "configMap", "secret", "downwardAPI", "projected"))


def advise_sub_paths(subject: Subject) -> Iterator[Problem]:
    """Every mount whose subPath is the same for pods that count on another, or that cannot be expanded."""
    for mount in subject.once(mounts).all:
        if mount.value.sub_path and mount.volume.value.source not in _OF_ONE_POD:
            yield from _sub_path(mount)
        if mount.value.sub_path_expr:
            yield from _sub_path_variable(mount)


def _sub_path(mount: Mount) -> Iterator[Problem]:
    written = mount.value.sub_path
    pods = mount.volume.podset.pods or 0
    if _VARIABLE.search(written):
        message = (
            "is not expanded because subPath does not support variables, so all pods use one folder with exactly this "
            "name"
        )
        yield problem("sub-path", (*mount.path, "subPath"), message, "use subPathExpr", written)
    elif pods > 1 and _RANK.search(written) and not mount.is_read_only:
        message = f"is the folder of one rank, but all {pods} pods of the template write to this folder"
        fix = "use subPathExpr with a variable that differs in each pod"
        yield problem("sub-path", (*mount.path, "subPath"), message, fix, written)


def _sub_path_variable(mount: Mount) -> Iterator[Problem]:
    container = mount.container
    wanted = _OF_THE_POD.intersection(_VARIABLE.findall(mount.value.sub_path_expr))
    if container.env_from or not wanted:
        return
    unset = sorted(wanted.difference(variable.name for variable in container.env))
    if unset:
        message = f"needs the variable {unset[0]}, which the container does not set, so the container does not start"
        yield problem("sub-path", (*mount.path, "subPathExpr"), message, "set the variable in env with fieldRef")
