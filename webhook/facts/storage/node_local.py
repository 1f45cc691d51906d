"""Volumes that are on the disk of one node.

https://kubernetes.io/docs/concepts/storage/volumes/#local
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from webhook import yamlfile
from webhook.facts.storage.groups import STORAGE
from webhook.facts.storage.types import StorageClass
from webhook.facts.view import ClusterView
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.typed.volumes import VolumeClaimSpec

NODE_LOCAL: Final = STORAGE.rule(
    "storage/node-local",
    title="Pods on several nodes do not share the disk of one of them.",
    why="A local volume forces every pod onto its node, and a hostPath is another folder on each node.",
    source="https://kubernetes.io/docs/concepts/storage/volumes/#local",
    fails="silent",
)
FILE: Final = Path(__file__).with_name("provisioners.yaml")


def node_local_problem(path: FieldPath, claim: str = "", pods: int = 0, folder: str = "") -> Problem:
    """Return the problem of pods that share what is on one node: a claim of a class, or a folder of checkpoints."""
    if claim:
        message = f"{claim} is on the disk of one node, so the {pods} pods that use it can run only on that node"
        return NODE_LOCAL.problem(path, message, "use storage that every node can mount")
    message = f"checkpoints in `{folder}` are on a hostPath, which is a different folder on each node"
    fix = "use a volume that every node can mount, unless the path is on a shared file system"
    return NODE_LOCAL.problem(path, message, fix)


def node_local_class_of_claim(claim: VolumeClaimSpec, view: ClusterView) -> str:
    """Return the class of a claim, if its volumes are on the disks of nodes."""
    name = claim.storage_class_name
    return (
        name
        if name and view.find(StorageClass, name, namespaced=False).provisioner in _node_local_provisioners()
        else ""
    )


@cache
def _node_local_provisioners() -> frozenset[str]:
    """Return the provisioners of volumes that are on one node, which are read on first use."""
    (document,) = yamlfile.read(FILE)
    return frozenset(document.value["node"])
