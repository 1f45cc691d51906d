"""PersistentVolumeClaims of an object: whether the claims exist, and whether all pods can mount and write them.

A ReadWriteOnce claim can be mounted on one node, and a ReadWriteOncePod claim in one pod. A volume on the disk of a
node exists only on that node. Pods cannot write to a ReadOnlyMany claim. A claim that waits for a volume needs its
StorageClass, unless an administrator creates a PersistentVolume of this class. A claim or a class counts as absent
only in the view of a whole cluster.

The update of a Deployment with one pod may wait for the volume of the old pod. A rolling update creates the new pod
before it removes the old pod, unless maxUnavailable, rounded down, is at least 1. With a ReadWriteOnce claim, the new
pod must start on the node of the old pod, where the old pod uses the devices. A volume that is read-only in the pod may
be attached to several nodes.

Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes,
https://kubernetes.io/docs/concepts/storage/storage-classes/ and
https://kubernetes.io/docs/concepts/storage/volumes/#local; k8s.io/kubernetes v1.36 pkg/controller/deployment/util
ResolveFenceposts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.facts.gpu.device_pods import read_device_workload
from webhook.facts.kinds import DEPLOYMENT, STATEFUL_SET
from webhook.facts.nodes.device_plugin import shares_of_device
from webhook.facts.storage.mounts import (
    STORAGE,
    Volume,
    VolumeMountInObject,
    number_of_pods_with,
    read_mounts,
    volumes_of_all_pods,
)
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject, Problem
from webhook.text.wording import some_of
from webhook.typed.cluster_objects import Deployment, PersistentVolumeClaim, RollingUpdate, StatefulSet
from webhook.typed.fields import Part, Text
from webhook.typed.objects import Object
from webhook.typed.view import Typed
from webhook.typed.volumes import VolumeClaimSpec
from webhook.yamltext import yamlfile
from webhook.yamltext.placeholders import is_placeholder


class StorageClass(Object):
    """storage.k8s.io StorageClass."""

    gvk = GroupVersionKind("storage.k8s.io", "v1", "StorageClass")
    provisioner = Text()


class CsiVolume(Typed):
    """core/v1 CSIPersistentVolumeSource."""

    driver = Text()


class PersistentVolumeSpec(Typed):
    """core/v1 PersistentVolumeSpec."""

    csi = Part(CsiVolume)
    storage_class_name = Text()


class PersistentVolume(Object):
    """core/v1 PersistentVolume."""

    gvk = GroupVersionKind("", "v1", "PersistentVolume")
    spec = Part(PersistentVolumeSpec)


NODE_LOCAL: Final = STORAGE.rule(
    "storage/node-local",
    title="Pods share a local volume or a hostPath, but each node has its own disk",
    why="A local volume forces every pod onto its node, and a hostPath is a different folder on each node.",
    source="https://kubernetes.io/docs/concepts/storage/volumes/#local",
    fails="silent",
)
READ_ONLY: Final = STORAGE.rule(
    "storage/read-only",
    title="The checkpoint volume is read-only",
    why="The first checkpoint fails because nothing can be written to the volume.",
    fails="start",
)
READ_ONLY_CLAIM: Final = STORAGE.rule(
    "storage/read-only-claim",
    title="A ReadOnlyMany claim is mounted without readOnly",
    why=(
        "Some drivers do not mount a ReadOnlyMany volume unless the mount is read-only. Other drivers mount the volume "
        "read-only anyway."
    ),
    level="advice",
    fails="start",
)
READ_WRITE_ONCE_POD: Final = STORAGE.rule(
    "storage/read-write-once-pod",
    title="Several pods mount a ReadWriteOncePod claim",
    why="The claim allows one pod. All pods except the first stay Pending.",
    source="k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go",
    function="satisfyReadWriteOncePod",
)
READ_WRITE_ONCE: Final = STORAGE.rule(
    "storage/read-write-once",
    title="Pods on several nodes share a ReadWriteOnce claim",
    why="A disk is attached to one node at a time, so pods on a second node wait with a Multi-Attach error.",
    fails="start",
)
CLASS_EXISTS: Final = STORAGE.rule(
    "storage/class-exists",
    title="The StorageClass does not exist",
    why="No volume is created for the claim, so the pods stay Pending.",
    source="https://kubernetes.io/docs/concepts/storage/storage-classes/",
)
CLAIM_EXISTS: Final = STORAGE.rule(
    "storage/claim-exists",
    title="The PersistentVolumeClaim does not exist",
    why="The pods stay Pending. The other pods of a training hold their GPUs while they wait.",
    source="k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding/volume_binding.go",
    function="PreFilter",
)
ROLLING_UPDATE: Final = STORAGE.rule(
    "storage/rolling-update",
    title="The update of the Deployment waits for its own volume or devices",
    why=(
        "The new pod starts while the old pod still holds the volume and the devices. On another node, the new pod "
        "waits for the volume; on the same node, it waits for devices."
    ),
    source="https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#rolling-update-deployment",
    fails="disruption",
    issues=("https://github.com/mattermost/mattermost-helm/issues/283",),
)
_IS_ONCE: Final = " is ReadWriteOnce"
_MOST_CLAIMS: Final = 5
"""A message names at most this number of additional claims."""
_CEPHFS: Final = "cephfs.csi.ceph.com"
"""The end of the names of CephFS provisioners. The names begin with the namespace of the operator."""
PROVISIONERS_FILE: Final = Path(__file__).with_name("provisioners.yaml")
CLAIM_LOOKUPS: Final = (
    interest_in_fields(
        PersistentVolumeClaim.gvk, "spec.accessModes", "spec.storageClassName", "spec.volumeName", "status.phase"
    ),
    interest_in_fields(StorageClass.gvk, "provisioner", "metadata.annotations"),
)
_HOST_PATH: Final = "hostPath"
_NOT_ATTACHED: Final = ("azureFile", "cephfs", "glusterfs", _HOST_PATH, "nfs")
"""Fields of a PersistentVolume for network file systems and folders of nodes. Nodes mount such a volume without
attaching the volume.
"""
VOLUME_LOOKUPS: Final = (
    interest_in_fields(
        PersistentVolume.gvk,
        "spec.csi.driver",
        "spec.storageClassName",
        "spec.nodeAffinity",
        *(f"spec.{name}" for name in _NOT_ATTACHED),
    ),
)
"""The look-ups of audits. A server does not look up volumes, of which a cluster has many."""
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_PERCENT: Final = re.compile("([0-9]{1,4})%", re.ASCII)
_ALONE: Final = ({"ReadWriteOnce"}, {"ReadWriteOncePod"})


def validate_claims(subject: Subject) -> Iterator[Problem]:
    """Check each claim that the pods of an object mount."""
    view = subject.cluster_view()
    alike: dict[str, list[tuple[str, Problem]]] = {}
    mounts = subject.once(read_mounts)
    by_claim = mounts.mounts_of_claims() if subject.namespace else {}
    for name, mounting in by_claim.items():
        claim = view.find(PersistentVolumeClaim, name)
        if claim:
            yield from _check_class_of_pending_claim(claim, name, mounting, view)
            origin = view.file_of_object_as_text(claim.json)
            for problem in validate_access_modes(claim.spec, f"claim `{name}`", mounting, view):
                text = f"{problem.message} (claim `{name}`{origin})" if origin else problem.message
                problem_of_claim = replace(problem, message=text)
                if problem.code == READ_WRITE_ONCE.id:
                    alike.setdefault(problem.message.replace(f"`{name}`", ""), []).append((name, problem_of_claim))
                else:
                    yield problem_of_claim
        else:
            yield _missing_claim_problem(name, mounting[0].volume.path, subject)
    for volume in mounts.volumes if subject.namespace else ():
        # the scheduler also looks up the claim of a volume that no container mounts
        name = volume.claim_name
        if name and name not in by_claim and not view.find(PersistentVolumeClaim, name):
            yield _missing_claim_problem(name, volume.path, subject)
    for claims in alike.values():
        yield _problem_of_claims_on_one_node(claims)


def _problem_of_claims_on_one_node(claims: Sequence[tuple[str, Problem]]) -> Problem:
    """Return one problem for the ReadWriteOnce claims of the same pods. Each claim is given by its name and its own
    problem.
    """
    (_, problem), *others = claims
    if not others:
        return problem
    names = some_of([f"`{name}`" for name, _ in others], _MOST_CLAIMS)
    message = problem.message.replace(_IS_ONCE, f"{_IS_ONCE} (likewise {names})", 1)
    return replace(problem, message=message)


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
    """Report a claim that waits for an absent StorageClass. A bound claim needs no StorageClass."""
    wanted = claim.spec.storage_class_name
    if claim.status.phase == "Pending" and is_storage_class_absent(wanted, view):
        who = f"PersistentVolumeClaim `{name}`"
        yield missing_storage_class_problem(who, wanted, mounting[0].volume.path, view, is_created=True)


def problems_of_absent_storage(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of claims and StorageClasses that do not exist in a whole cluster, also for pods without
    devices. A claim in a file, without a status, waits for a volume as a new claim does.
    """
    view = subject.cluster_view()
    if not view.is_whole() or not subject.namespace:
        return
    yield from _problems_of_claim_templates(subject)
    of_templates = {each.metadata.name for each in _claim_templates(subject)}
    for volume in volumes_of_all_pods(subject):
        if volume.name in of_templates:
            continue
        yield from _problems_of_ephemeral_volume(volume, view)
        name = volume.claim_name
        claim = view.find(PersistentVolumeClaim, name) if name else PersistentVolumeClaim.of(None)
        if name and not claim and view.is_whole(PersistentVolumeClaim.gvk):
            yield _missing_claim_problem(name, volume.path, subject)
        elif claim and claim.status.phase in ("", "Pending"):
            who = f"PersistentVolumeClaim `{name}`"
            yield from _problems_of_new_claim(claim.spec, who, volume.path, view)


def _problems_of_new_claim(claim: VolumeClaimSpec, who: str, path: FieldPath, view: ClusterView) -> Iterator[Problem]:
    """Report a claim without a volume, if its StorageClass does not exist.

    A claim without a class needs a default class or a volume that exists. If no volume is known, it is not known
    whether an administrator will create a volume.
    """
    wanted = claim.storage_class_name
    if claim.volume_name:
        return
    if is_storage_class_absent(wanted, view):
        yield missing_storage_class_problem(who, wanted, path, view)
    elif not wanted and not _volumes_of_class("", view) and _has_no_default_class(view):
        yield missing_storage_class_problem("", "", path, view)


def check_classes_of_ephemeral_volumes(subject: Subject) -> Iterator[Problem]:
    """Check the StorageClasses of claims that are created for each pod."""
    view = subject.cluster_view()
    for volume in subject.once(read_mounts).volumes:
        yield from _problems_of_ephemeral_volume(volume, view)


def _problems_of_ephemeral_volume(volume: Volume, view: ClusterView) -> Iterator[Problem]:
    if volume.value.has("ephemeral"):
        wanted = volume.value.ephemeral.volume_claim_template.spec.storage_class_name
        if is_storage_class_absent(wanted, view):
            yield missing_storage_class_problem(f"volume `{volume.name}`", wanted, volume.path, view)


def check_classes_of_claim_templates(subject: Subject) -> Iterator[Problem]:
    """Check the StorageClasses of the claims that a StatefulSet with devices makes for each pod."""
    if subject.group_kind == STATEFUL_SET and subject.once(read_device_workload).device_pods:
        yield from _problems_of_claim_templates(subject)


def _claim_templates(subject: Subject) -> Sequence[PersistentVolumeClaim]:
    """Return the claims that a StatefulSet makes for each pod; nothing for another kind."""
    return subject.typed(StatefulSet).spec.volume_claim_templates if subject.group_kind == STATEFUL_SET else ()


def _problems_of_claim_templates(subject: Subject) -> Iterator[Problem]:
    for template in _claim_templates(subject):
        who = f"the claim `{template.metadata.name}`"
        yield from _problems_of_new_claim(template.spec, who, template.at, subject.cluster_view())


def _has_no_default_class(view: ClusterView) -> bool:
    """Return whether the view has all objects of the cluster, and no default StorageClass."""
    classes = view.list_visible(StorageClass)
    return view.is_whole(StorageClass.gvk) and not any(
        each.metadata.annotations.get(_DEFAULT_CLASS) == "true" for each in classes
    )


def validate_created_claims(subject: Subject) -> Iterator[Problem]:
    """Check the claims that a controller creates and all pods of an object share."""
    view = subject.cluster_view()
    for path, mounting in subject.once(read_mounts).mounts_of_created_claims().items():
        claim, who = mounting[0].volume.created_claim, f"the claim for `{mounting[0].target}`"
        if is_storage_class_absent(claim.storage_class_name, view):
            yield missing_storage_class_problem(who, claim.storage_class_name, path, view)
        yield from validate_access_modes(claim, who, mounting, view)


def node_local_problem(path: FieldPath, claim: str = "", pods: int = 0, folder: str = "") -> Problem:
    """Return the problem of pods that share data on the disk of one node: a claim, or a folder of checkpoints."""
    if claim:
        message = f"{claim} is on the disk of one node, so the {pods} pods that use it can run only on that node"
        return NODE_LOCAL.problem(path, message, "use storage that every node can mount")
    message = f"checkpoints in `{folder}` are on a hostPath, which is a different folder on each node"
    fix = "use a volume that every node can mount, unless the path is on a shared file system"
    return NODE_LOCAL.problem(path, message, fix)


def node_local_class_of_claim(claim: VolumeClaimSpec, view: ClusterView) -> str:
    """Return the class of a claim, if volumes of this class are on the disks of nodes; otherwise ""."""
    name = claim.storage_class_name
    return name if name and view.find(StorageClass, name, namespaced=False).provisioner in _provisioners("node") else ""


def may_be_mounted_on_several_nodes(claim: VolumeClaimSpec, view: ClusterView) -> bool:
    """Return whether several nodes may mount a ReadWriteOnce claim, because no node attaches its volume. Kubernetes
    attaches neither network file systems nor hostPath volumes.

    The volume that the claim names decides, then the provisioner of the class. If both are not known, and volumes may
    exist that are not known, the volume that the claim names may be a network file system. For other claims, the
    volumes of the class decide, and without volumes its name, for example `nfs-client`.
    """
    volumes = view.copy_without_missing_objects()
    bound = volumes.find(PersistentVolume, claim.volume_name, namespaced=False) if claim.volume_name else None
    if bound:
        return _is_never_attached(bound.spec)
    name = claim.storage_class_name
    provisioner = view.find(StorageClass, name, namespaced=False).provisioner if name else ""
    if provisioner:
        return _makes_network_file_systems(provisioner)
    if claim.volume_name and not volumes.is_whole(PersistentVolume.gvk):
        return True
    if of_class := _volumes_of_class(name, view):
        return all(_is_never_attached(each) for each in of_class)
    return not _provisioners("network_names").isdisjoint(name.replace("_", "-").replace(".", "-").split("-"))


def _is_never_attached(volume: PersistentVolumeSpec) -> bool:
    if volume.has(_HOST_PATH) and volume.has("nodeAffinity"):
        return False  # only the nodes that nodeAffinity selects have the volume
    return any(map(volume.has, _NOT_ATTACHED)) or _makes_network_file_systems(volume.csi.driver)


def _makes_network_file_systems(provisioner: str) -> bool:
    return provisioner in _provisioners("network") or provisioner.endswith(_CEPHFS)


@cache
def _provisioners(group: str) -> frozenset[str]:
    """Return a group of provisioners. They are read on first use."""
    (document,) = yamlfile.read(PROVISIONERS_FILE)
    return frozenset(document.value[group])


def read_only_problem(mount: VolumeMountInObject, claim: str = "") -> Problem:
    """Return the problem of a ReadOnlyMany claim mounted for writing, or of checkpoints on a read-only volume."""
    if claim:
        message = f"mounts {claim} for writing, but the claim is ReadOnlyMany, so the mount or the writes may fail"
        return READ_ONLY_CLAIM.problem(mount.path, message, "set readOnly: true on the volume and its mounts")
    message = f"checkpoints cannot be written to `{mount.target}` because the volume is read-only"
    return READ_ONLY.problem(mount.path, message, "remove readOnly from the volume and its mount")


def validate_access_modes(
    claim: VolumeClaimSpec, who: str, mounting: Sequence[VolumeMountInObject], view: ClusterView
) -> Iterator[Problem]:
    """Report a claim that not all of its pods can mount or write. A StorageClass with volumes on the disks of nodes is
    reported instead of the mode ReadWriteOnce.
    """
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
    elif (
        modes == {"ReadWriteOnce"} or (modes == {"ReadWriteOnce", "ReadOnlyMany"} and writing)
    ) and not may_be_mounted_on_several_nodes(claim, view):
        message = f"{who}{_IS_ONCE}, so the {pods} pods that use it must all run on one node"
        fix = "use a ReadWriteMany claim, or keep all pods on one node"
        yield READ_WRITE_ONCE.problem(path, message, fix, is_conditional=True)  # the pods may all run on one node


def missing_storage_class_problem(
    who: str, wanted: str, path: FieldPath, view: ClusterView, *, is_created: bool = False
) -> Problem:
    """Return the problem of a StorageClass that does not exist. The fix for an existing claim is a new claim, because
    the class of a claim cannot change. If the claim names no class, the default class of the cluster decides. The
    problem then says that the rule is not checked.
    """
    if not wanted:
        default = MissingObject(kind=f"default {StorageClass.gvk.kind}", name="")
        return CLASS_EXISTS.problem(path, missing=(default,))
    near = view.nearest(wanted, (known.name for known in view.list_visible(StorageClass)))
    absent = f"{who} requests StorageClass `{wanted}`, which does not exist"
    are_volumes_read = view.is_whole(PersistentVolume.gvk)
    effect = "no volume is created" if are_volumes_read else "the pods wait unless a PersistentVolume has this class"
    fix = f"write `{near}` if that is meant" if near else "name a StorageClass that exists"
    if is_created:
        fix = f"create the claim again with {f'StorageClass `{near}`' if near else 'a StorageClass that exists'}"
    return CLASS_EXISTS.problem(path, f"{absent}, so {effect}", fix, is_conditional=not are_volumes_read)


def is_storage_class_absent(name: str, view: ClusterView) -> bool:
    """Return whether the view has all objects of the cluster, no StorageClass of this name, and no volume of this
    class. If the volumes were not read, as in a server, a volume of this class may exist.
    """
    if not name or is_placeholder(name) or view.find(StorageClass, name, namespaced=False):
        return False
    return view.is_whole(StorageClass.gvk) and not _volumes_of_class(name, view)


def _volumes_of_class(name: str, view: ClusterView) -> Sequence[PersistentVolumeSpec]:
    """Return the known PersistentVolumes of a class; "" means volumes without a class."""
    volumes = view.copy_without_missing_objects().list_typed(PersistentVolume)
    return [each.spec for each in volumes if each.spec.storage_class_name == name]


def advise_rolling_updates(subject: Subject) -> Iterator[Problem]:
    """Warn about a Deployment of one pod with devices if the old and new pod cannot mount a claim at the same time."""
    if subject.group_kind != DEPLOYMENT or not subject.namespace:
        return
    spec = subject.typed(Deployment).spec
    if spec.strategy.type not in ("", "RollingUpdate") or spec.replicas not in (None, 1) or spec.is_omitted("replicas"):
        return
    if not (_starts_new_pod_first(spec.strategy.rolling_update) and subject.once(read_device_workload).device_pods):
        return
    view = subject.cluster_view()
    claims = [
        (name, mode, mounting)
        for name, mounting in subject.once(read_mounts).mounts_of_claims().items()
        if (mode := _mode_for_one_pod(view.find(PersistentVolumeClaim, name).spec, view))
        and not all(mount.volume.is_read_only for mount in mounting)
    ]
    if any(mode == "ReadWriteOnce" for _, mode, _ in claims) and _may_two_pods_share_devices(subject, view):
        claims = [each for each in claims if each[1] != "ReadWriteOnce"]
    if claims:
        yield _rolling_update_problem(claims, has_settings=spec.strategy.has("rollingUpdate"))


def _may_two_pods_share_devices(subject: Subject, view: ClusterView) -> bool:
    """Return whether the old and the new pod may use the same devices, because NVIDIA's device plugin offers each
    device several times. Other pods may use these shares, so the new pod may still wait.
    """
    devices = [pair for pods in subject.once(read_device_workload).device_pods for pair in pods.devices.items()]
    return bool(devices) and all(shares_of_device(name, view) >= 2 * count for name, count in devices)


def _mode_for_one_pod(claim: VolumeClaimSpec, view: ClusterView) -> str:
    """Return the access mode of a claim that only one pod, or only pods of one node, can mount; "" for other claims."""
    modes = {*claim.access_modes}
    if modes not in _ALONE or (modes == {"ReadWriteOnce"} and may_be_mounted_on_several_nodes(claim, view)):
        return ""
    return modes.pop()


def _rolling_update_problem(
    claims: Sequence[tuple[str, str, Sequence[VolumeMountInObject]]], *, has_settings: bool
) -> Problem:
    """Return one problem for all claims of the Deployment; the problem names a ReadWriteOncePod claim first."""
    name, mode, mounting = next((each for each in claims if each[1] == "ReadWriteOncePod"), claims[0])
    others = ", ".join(f"`{each}`" for each, _, _ in claims if each != name)
    is_mode = f"is {mode} (likewise {others})" if others else f"is {mode}"
    message = (
        f"claim `{name}` {is_mode}, so the new pod of a rolling update must start on the node of the old pod, "
        "and waits for ever if this node has too few free devices"
    )
    if mode == "ReadWriteOncePod":
        message = f"claim `{name}` is {mode}, so the old pod keeps the claim, and a rolling update waits for ever"
    removal = " and remove spec.strategy.rollingUpdate" if has_settings else ""
    return ROLLING_UPDATE.problem(mounting[0].volume.path, message, f"set spec.strategy.type to Recreate{removal}")


def _starts_new_pod_first(settings: RollingUpdate) -> bool:
    """Return whether the old pod stays until the new pod is ready. The default, 25 % of one pod, rounds down to 0."""
    if any(settings.is_omitted(name) for name in ("maxSurge", "maxUnavailable")):
        return False
    return (
        _rolling_limit_for_one_pod(settings.max_unavailable) == 0
        and _rolling_limit_for_one_pod(settings.max_surge, default=1) != 0
    )


def _rolling_limit_for_one_pod(written: JSON, default: int = 0) -> int | None:
    """Return the number of pods that maxUnavailable (`default` 0, rounded down) or maxSurge (`default` 1, rounded up)
    means for a Deployment with one pod.
    """
    if written is None:
        return default
    if isinstance(written, int):
        return min(written, 1)
    match = _PERCENT.fullmatch(written) if isinstance(written, str) else None
    if match is None:
        return None
    return int(int(match[1]) >= (1 if default else 100))
