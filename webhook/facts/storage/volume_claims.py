"""PersistentVolumeClaims of an object: whether they are there, and whether all of its pods can mount them as they do.

How many nodes and pods may mount a volume: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes.
A claim counts as absent only in the view of a whole cluster; otherwise nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from webhook.cluster.interest import interest_in_fields
from webhook.facts.storage.groups import STORAGE
from webhook.facts.storage.mounts import VolumeMountInObject, read_mounts
from webhook.facts.storage.read_write_once import validate_access_modes
from webhook.facts.storage.storage_classes import is_storage_class_absent, missing_storage_class_problem
from webhook.facts.storage.types import PersistentVolumeClaim, StorageClass
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.paths import FieldPath
from webhook.problem import MissingObject, Problem

CLAIM_EXISTS: Final = STORAGE.rule(
    "storage/claim-exists",
    title="The PersistentVolumeClaims of a workload exist.",
    why="Pods whose claim does not exist stay Pending, and the other pods of a training wait for them on their GPUs.",
    source="k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding/volume_binding.go",
    function="PreFilter",
)

LOOKUPS: Final = (
    interest_in_fields(PersistentVolumeClaim.gvk, "spec.accessModes", "spec.storageClassName", "status.phase"),
    interest_in_fields(StorageClass.gvk, "provisioner"),
)


def validate_claims(subject: Subject) -> Iterator[Problem]:
    """Check every claim that the pods of an object mount, once."""
    view = subject.cluster_view()
    for name, mounting in subject.once(read_mounts).mounts_of_claims().items() if subject.namespace else ():
        claim = view.find(PersistentVolumeClaim, name)
        if claim:
            yield from _check_class_of_pending_claim(claim, name, mounting, view)
            origin = view.file_of_object_as_text(claim.json)
            for problem in validate_access_modes(claim.spec, f"claim `{name}`", mounting, view):
                told = f"{problem.message} (claim `{name}`{origin})" if origin else problem.message
                yield replace(problem, message=told)
        else:
            yield _missing_claim_problem(name, mounting[0].volume.path, subject)


def _missing_claim_problem(name: str, path: FieldPath, subject: Subject) -> Problem:
    view = subject.cluster_view()
    if not view.is_whole(PersistentVolumeClaim.gvk):
        missing = MissingObject(kind=PersistentVolumeClaim.gvk.kind, namespace=subject.namespace, name=name)
        return CLAIM_EXISTS.problem(path, missing=(missing,))
    near = view.nearest_here(name, PersistentVolumeClaim.gvk)
    fix = f"write `{near}` if that is meant, or create the claim" if near else "create the claim, or correct the name"
    message = f"PersistentVolumeClaim `{name}` does not exist in this namespace, so the pods stay Pending"
    return CLAIM_EXISTS.problem(path, message, fix)


def _check_class_of_pending_claim(
    claim: PersistentVolumeClaim, name: str, mounting: Sequence[VolumeMountInObject], view: ClusterView
) -> Iterator[Problem]:
    """Report a claim that waits for an absent class; one that is bound needs none any more."""
    wanted = claim.spec.storage_class_name
    if claim.status.phase == "Pending" and is_storage_class_absent(wanted, view):
        who = f"PersistentVolumeClaim `{name}`"
        yield missing_storage_class_problem(who, wanted, mounting[0].volume.path, view, is_created=True)


def check_classes_of_ephemeral_volumes(subject: Subject) -> Iterator[Problem]:
    """Check the StorageClasses of claims that are made for each pod."""
    view = subject.cluster_view()
    for volume in subject.once(read_mounts).volumes:
        wanted = volume.value.ephemeral.volume_claim_template.spec.storage_class_name
        if is_storage_class_absent(wanted, view):
            yield missing_storage_class_problem(f"volume `{volume.name}`", wanted, volume.path, view)


def validate_created_claims(subject: Subject) -> Iterator[Problem]:
    """Check the claims that a controller creates for an object, one for all of its pods."""
    view = subject.cluster_view()
    for path, mounting in subject.once(read_mounts).mounts_of_created_claims().items():
        claim, who = mounting[0].volume.created_claim, f"the claim for `{mounting[0].target}`"
        if is_storage_class_absent(claim.storage_class_name, view):
            yield missing_storage_class_problem(who, claim.storage_class_name, path, view)
        yield from validate_access_modes(claim, who, mounting, view)
