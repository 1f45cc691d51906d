"""How many nodes and pods may mount a claim: ReadWriteOnce and ReadWriteOncePod.

https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.facts.storage.groups import STORAGE
from webhook.facts.storage.mounts import VolumeMountInObject, number_of_pods_with
from webhook.facts.storage.node_local import node_local_class_of_claim, node_local_problem
from webhook.facts.storage.read_only import read_only_problem
from webhook.facts.storage.types import StorageClass
from webhook.facts.view import ClusterView
from webhook.problem import Problem
from webhook.typed.volumes import VolumeClaimSpec

READ_WRITE_ONCE_POD: Final = STORAGE.rule(
    "storage/read-write-once-pod",
    title="Only one pod mounts a ReadWriteOncePod claim.",
    why="The scheduler keeps all pods Pending but the first.",
    source="k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go",
    function="satisfyReadWriteOncePod",
)
READ_WRITE_ONCE: Final = STORAGE.rule(
    "storage/read-write-once",
    title="Pods on several nodes do not share a ReadWriteOnce claim.",
    why="A disk is attached to one node at a time, so pods on a second node wait with a Multi-Attach error.",
    fails="start",
)


def validate_access_modes(
    claim: VolumeClaimSpec, who: str, mounting: Sequence[VolumeMountInObject], view: ClusterView
) -> Iterator[Problem]:
    """Check that all pods that mount a claim can; a class with volumes on one node says more than the access mode."""
    modes, path, pods = set(claim.access_modes), mounting[0].volume.path, number_of_pods_with(mounting)
    writing = [mount for mount in mounting if not (mount.volume.is_read_only or mount.is_read_only)]
    if modes == {"ReadOnlyMany"} and writing:
        yield read_only_problem(writing[0], who)
    if pods < 2:
        return
    node = node_local_class_of_claim(claim, view)
    if modes == {"ReadWriteOncePod"}:
        message = f"{who} is ReadWriteOncePod, so only 1 of the {pods} pods can start"
        yield READ_WRITE_ONCE_POD.problem(path, message, "use a ReadWriteMany claim, or one claim for each pod")
    elif node and "ReadWriteMany" not in modes:
        yield node_local_problem(path, f"{who} of {view.name_with_file(StorageClass.gvk, node)}", pods)
    elif modes == {"ReadWriteOnce"} or (modes == {"ReadWriteOnce", "ReadOnlyMany"} and writing):
        message = f"{who} is ReadWriteOnce, so the {pods} pods that use it must all run on one node"
        yield READ_WRITE_ONCE.problem(path, message, "use a ReadWriteMany claim, or keep all pods on one node")
