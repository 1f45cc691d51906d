"""PersistentVolumeClaims of an object: whether they are there, and whether all of its pods can mount them as they do.

How many nodes and pods may mount a volume: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes.
A claim counts as absent only in the view of a whole cluster; otherwise nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from webhook import yamlfile
from webhook.cluster.interest import reading
from webhook.facts.storage.groups import STORAGE
from webhook.facts.storage.mounts import Mount, mounts, pods_of
from webhook.facts.storage.types import PersistentVolumeClaim, StorageClass
from webhook.facts.subject import Subject
from webhook.facts.view import View
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import MissingObject, Problem
from webhook.typed.volumes import VolumeClaimSpec

CLAIM_EXISTS: Final = STORAGE.rule(
    "storage/claim-exists",
    title="The PersistentVolumeClaims of a workload exist.",
    why="Pods whose claim does not exist stay Pending, and the other pods of a training wait for them on their GPUs.",
    source="k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding/volume_binding.go",
    function="PreFilter",
)
CLASS_EXISTS: Final = STORAGE.rule(
    "storage/class-exists",
    title="The StorageClasses of claims that wait for a volume exist.",
    why="Nobody makes a volume of a class that does not exist, so the pods stay Pending.",
    source="https://kubernetes.io/docs/concepts/storage/storage-classes/",
)
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
NODE_LOCAL: Final = STORAGE.rule(
    "storage/node-local",
    title="Pods on several nodes do not share the disk of one of them.",
    why="A local volume forces every pod onto its node, and a hostPath is another folder on each node.",
    source="https://kubernetes.io/docs/concepts/storage/volumes/#local",
    fails="silent",
)
READ_ONLY: Final = STORAGE.rule(
    "storage/read-only",
    title="A volume for checkpoints can be written.",
    why="The first checkpoint fails on a read-only volume.",
    fails="start",
)
READ_ONLY_CLAIM: Final = STORAGE.rule(
    "storage/read-only-claim",
    title="A ReadOnlyMany claim is mounted read-only.",
    why=(
        "Some drivers mount such a volume not at all unless the volume says readOnly, and others read-only, which is "
        "enough for who only reads."
    ),
    level="advice",
    fails="start",
)

LOOKUPS: Final = (
    reading(PersistentVolumeClaim.gvk, "spec.accessModes", "spec.storageClassName", "status.phase"),
    reading(StorageClass.gvk, "provisioner"),
)
FILE: Final = Path(__file__).with_name("provisioners.yaml")


def validate_claims(subject: Subject) -> Iterator[Problem]:
    """Every claim that the pods of an object mount, once."""
    view = subject.view()
    for name, mounting in subject.once(mounts).of_claims().items() if subject.namespace else ():
        claim = view.find(PersistentVolumeClaim, name)
        if claim:
            yield from _class_of_pending_claim(claim, name, mounting, view)
            origin = view.origin(claim.json)
            for problem in _access(claim.spec, f"claim `{name}`", mounting, view):
                told = f"{problem.message} (claim `{name}`{origin})" if origin else problem.message
                yield replace(problem, message=told)
        else:
            yield _claim_exists(name, mounting[0].volume.path, subject)


def _claim_exists(name: str, path: FieldPath, subject: Subject) -> Problem:
    view = subject.view()
    if not view.is_whole(PersistentVolumeClaim.gvk):
        missing = MissingObject(kind=PersistentVolumeClaim.gvk.kind, namespace=subject.namespace, name=name)
        return CLAIM_EXISTS.problem(path, missing=(missing,))
    near = view.nearest(name, subject.once(_claims_of_the_namespace))
    fix = f"write `{near}` if that is meant, or create the claim" if near else "create the claim, or correct the name"
    message = f"PersistentVolumeClaim `{name}` does not exist in this namespace, so the pods stay Pending"
    return CLAIM_EXISTS.problem(path, message, fix)


def _claims_of_the_namespace(subject: Subject) -> tuple[str, ...]:
    claims = subject.view().every(PersistentVolumeClaim)
    return tuple(claim.name for claim in claims if claim.namespace == subject.namespace)


def _class_of_pending_claim(
    claim: PersistentVolumeClaim, name: str, mounting: Sequence[Mount], view: View
) -> Iterator[Problem]:
    """A claim that waits for a class which is not there; one that is bound needs none any more."""
    wanted = claim.spec.storage_class_name
    if claim.status.phase == "Pending" and _is_absent(wanted, view):
        who = f"PersistentVolumeClaim `{name}`"
        yield _class_exists(who, wanted, mounting[0].volume.path, view, is_created=True)


def _class_exists(who: str, wanted: str, path: FieldPath, view: View, *, is_created: bool = False) -> Problem:
    """The problem of a StorageClass that is not there; the class of a claim that is created already cannot change."""
    near = view.nearest(wanted, (known.name for known in view.every(StorageClass)))
    message = f"{who} asks for StorageClass `{wanted}`, which does not exist, so no volume is created for it"
    fix = f"write `{near}` if that is meant" if near else "name a StorageClass that exists"
    if is_created:
        fix = f"create the claim again with {f'StorageClass `{near}`' if near else 'a StorageClass that exists'}"
    return CLASS_EXISTS.problem(path, message, fix)


def _is_absent(name: str, view: View) -> bool:
    if not name or is_placeholder(name) or view.find(StorageClass, name, namespaced=False):
        return False
    return view.is_whole(StorageClass.gvk)


def validate_ephemeral_classes(subject: Subject) -> Iterator[Problem]:
    """StorageClasses of claims that are made for each pod."""
    view = subject.view()
    for volume in subject.once(mounts).volumes:
        wanted = volume.value.ephemeral.volume_claim_template.spec.storage_class_name
        if _is_absent(wanted, view):
            yield _class_exists(f"volume `{volume.name}`", wanted, volume.path, view)


def validate_created_claims(subject: Subject) -> Iterator[Problem]:
    """Claims that a controller creates for an object, one for all of its pods."""
    view = subject.view()
    for path, mounting in subject.once(mounts).of_created_claims().items():
        claim, who = mounting[0].volume.created_claim, f"the claim for `{mounting[0].target}`"
        if _is_absent(claim.storage_class_name, view):
            yield _class_exists(who, claim.storage_class_name, path, view)
        yield from _access(claim, who, mounting, view)


def _access(claim: VolumeClaimSpec, who: str, mounting: Sequence[Mount], view: View) -> Iterator[Problem]:
    """Whether as many pods can mount it; a class whose volumes are on one node says more than the access mode."""
    modes, path, pods = set(claim.access_modes), mounting[0].volume.path, pods_of(mounting)
    writing = [mount for mount in mounting if not (mount.volume.is_read_only or mount.is_read_only)]
    if modes == {"ReadOnlyMany"} and writing:
        yield read_only(writing[0], who)
    if pods < 2:
        return
    node = _class_on_one_node(claim, view)
    if modes == {"ReadWriteOncePod"}:
        message = f"{who} is ReadWriteOncePod, so only 1 of the {pods} pods can start"
        yield READ_WRITE_ONCE_POD.problem(path, message, "use a ReadWriteMany claim, or one claim for each pod")
    elif node and "ReadWriteMany" not in modes:
        yield node_local(path, f"{who} of class `{node}`", pods)
    elif modes == {"ReadWriteOnce"} or (modes == {"ReadWriteOnce", "ReadOnlyMany"} and writing):
        message = f"{who} is ReadWriteOnce, so the {pods} pods that use it must all run on one node"
        yield READ_WRITE_ONCE.problem(path, message, "use a ReadWriteMany claim, or keep all pods on one node")


def read_only(mount: Mount, claim: str = "") -> Problem:
    """The problem of pods that write where they cannot: to a claim, or checkpoints to a read-only volume."""
    if claim:
        message = f"mounts {claim} for writing, but the claim is ReadOnlyMany, so the mount or the writes may fail"
        return READ_ONLY_CLAIM.problem(mount.path, message, "set readOnly: true on the volume and its mounts")
    message = f"checkpoints cannot be written to `{mount.target}` because the volume is read-only"
    return READ_ONLY.problem(mount.path, message, "remove readOnly from the volume and its mount")


def node_local(path: FieldPath, claim: str = "", pods: int = 0, folder: str = "") -> Problem:
    """The problem of pods that share what is on one node: a claim of a class, or a folder of checkpoints."""
    if claim:
        message = f"{claim} is on the disk of one node, so the {pods} pods that use it can run only on that node"
        return NODE_LOCAL.problem(path, message, "use storage that every node can mount")
    message = f"checkpoints in `{folder}` are on a hostPath, which is a different folder on each node"
    fix = "use a volume that every node can mount, unless the path is on a shared file system"
    return NODE_LOCAL.problem(path, message, fix)


def _class_on_one_node(claim: VolumeClaimSpec, view: View) -> str:
    """The class of a claim, if its volumes are on the disks of nodes."""
    name = claim.storage_class_name
    return name if name and view.find(StorageClass, name, namespaced=False).provisioner in _local() else ""


@cache
def _local() -> frozenset[str]:
    """Provisioners of volumes that are on one node; read on first use."""
    (document,) = yamlfile.read(FILE)
    return frozenset(document.value["node"])
