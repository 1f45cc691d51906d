"""PersistentVolumeClaims of an object: whether they are there, and whether all of its pods can mount them as they do.

How many nodes and pods may mount a volume: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes.
A claim counts as absent only in the view of a whole cluster; otherwise nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from webhook import yamlfile
from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import reading
from webhook.facts.check import Group
from webhook.facts.storage.mounts import Mount, mounts, pods_of
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.facts.view import View
from webhook.paths import get
from webhook.placeholders import is_placeholder
from webhook.problem import MissingObject, Problem

problem: Final = Group("storage").problem
CLAIM: Final = GroupVersionKind("", "v1", "PersistentVolumeClaim")
CLASS: Final = GroupVersionKind("storage.k8s.io", "v1", "StorageClass")
LOOKUPS: Final = (
    reading(CLAIM, "spec.accessModes", "spec.storageClassName", "status.phase"),
    reading(CLASS, "provisioner"),
)
FILE: Final = Path(__file__).with_name("provisioners.yaml")


def validate_claims(subject: Subject) -> Iterator[Problem]:
    """Every claim that the pods of an object mount, once."""
    view = subject.view()
    for name, listed in subject.once(mounts).of_claims().items() if subject.namespace else ():
        claim = view.get(CLAIM, name)
        if claim is not None:
            yield from _class_of(claim, name, listed, view)
            yield from _access(claim, f"claim `{name}`", listed, view)
        elif view.is_whole():
            yield _absent(name, listed, subject)
        else:
            missing = MissingObject(kind=CLAIM.kind, namespace=subject.namespace, name=name)
            yield problem("claim-exists", listed[0].volume.path, missing=(missing,))


def _absent(name: str, listed: list[Mount], subject: Subject) -> Problem:
    near = subject.view().nearest(name, subject.once(_claims_of_the_namespace))
    fix = f"write `{near}` if that is meant, or create the claim" if near else "create the claim, or correct the name"
    message = f"PersistentVolumeClaim `{name}` does not exist in this namespace, so the pods stay Pending"
    return problem("claim-exists", listed[0].volume.path, message, fix)


def _claims_of_the_namespace(subject: Subject) -> tuple[str, ...]:
    metadata = (mapping(each["metadata"]) for each in subject.deadline.paced(subject.view().objects(CLAIM)))
    return tuple(text(each.get("name")) for each in metadata if each.get("namespace") == subject.namespace)


def _class_of(claim: JSON, name: str, listed: list[Mount], view: View) -> Iterator[Problem]:
    """A claim that waits for a class which is not there; one that is bound needs none any more."""
    wanted = text(get(claim, ("spec", "storageClassName")))
    if get(claim, ("status", "phase")) == "Pending" and _is_absent(wanted, view):
        who = f"PersistentVolumeClaim `{name}`"
        yield class_absent(who, wanted, listed[0].volume.path, view, is_created=True)


def class_absent(
    who: str, wanted: str, path: tuple[str | int, ...], view: View, *, is_created: bool = False
) -> Problem:
    """The problem of a StorageClass that is not there; the class of a claim that is created already cannot change."""
    near = view.nearest(wanted, (text(get(each, ("metadata", "name"))) for each in view.objects(CLASS)))
    message = f"{who} asks for StorageClass `{wanted}`, which does not exist, so no volume is created for it"
    fix = f"write `{near}` if that is meant" if near else "name a StorageClass that exists"
    if is_created:
        fix = f"create the claim again with {f'StorageClass `{near}`' if near else 'a StorageClass that exists'}"
    return problem("class-exists", path, message, fix)


def _is_absent(name: str, view: View) -> bool:
    if not name or is_placeholder(name) or view.get(CLASS, name, namespaced=False) is not None:
        return False
    return view.is_whole()


def validate_ephemeral_classes(subject: Subject) -> Iterator[Problem]:
    """StorageClasses of claims that are made for each pod."""
    view = subject.view()
    for volume in subject.once(mounts).volumes:
        if "ephemeral" not in volume.value:
            continue
        wanted = text(get(volume.value, ("ephemeral", "volumeClaimTemplate", "spec", "storageClassName")))
        if _is_absent(wanted, view):
            yield class_absent(f"volume `{volume.name}`", wanted, volume.path, view)


def validate_made_claims(subject: Subject) -> Iterator[Problem]:
    """Claims that a controller makes of an object, one for all of its pods."""
    view = subject.view()
    for path, listed in subject.once(mounts).of_made_claims().items():
        made, who = listed[0].volume.made, f"the claim for `{listed[0].target}`"
        wanted = text(made.get("storageClassName"))
        if _is_absent(wanted, view):
            yield class_absent(who, wanted, path, view)
        yield from _access({"spec": made}, who, listed, view)


def _access(claim: JSON, who: str, listed: list[Mount], view: View) -> Iterator[Problem]:
    """Whether as many pods can mount it; a class whose volumes are on one node says more than the access mode."""
    modes, path = {text(each) for each in items(get(claim, ("spec", "accessModes")))}, listed[0].volume.path
    pods = pods_of(listed)
    is_read = all(each.volume.is_read_only or each.is_read_only for each in listed)
    if modes == {"ReadOnlyMany"} and not is_read:
        written = next(each for each in listed if not (each.volume.is_read_only or each.is_read_only))
        message = f"mounts {who} for writing, but the claim is ReadOnlyMany, so the mount or the writes may fail"
        yield problem("read-only", written.path, message, "set readOnly: true on the volume and its mounts")
    if pods < 2:
        return
    node = _node_local(claim, view)
    if modes == {"ReadWriteOncePod"}:
        message = f"{who} is ReadWriteOncePod, so only 1 of the {pods} pods can start"
        yield problem("read-write-once-pod", path, message, "use a ReadWriteMany claim, or one claim for each pod")
    elif node and "ReadWriteMany" not in modes:
        message = (
            f"{who} of class `{node}` is on the disk of one node, so the {pods} pods that use it can run only on that "
            "node"
        )
        yield problem("node-local", path, message, "use storage that every node can mount")
    elif modes == {"ReadWriteOnce"} or (modes == {"ReadWriteOnce", "ReadOnlyMany"} and not is_read):
        message = f"{who} is ReadWriteOnce, so the {pods} pods that use it must all run on one node"
        yield problem("read-write-once", path, message, "use a ReadWriteMany claim, or keep all pods on one node")


def _node_local(claim: JSON, view: View) -> str:
    """The class of a claim, if its volumes are on the disks of nodes."""
    name = text(get(claim, ("spec", "storageClassName")))
    made_by = mapping(view.get(CLASS, name, namespaced=False)).get("provisioner") if name else None
    return name if made_by in _local() else ""


@cache
def _local() -> frozenset[str]:
    """Provisioners of volumes that are on one node; read on first use."""
    (document,) = yamlfile.read(FILE)
    return frozenset(document.value["node"])
