"""The group of rules of this package, and the kinds of storage that checks look up, with the fields that they read."""

from __future__ import annotations

from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.rules.rule import RuleGroup
from webhook.typed.fields import Part, Text
from webhook.typed.objects import Object
from webhook.typed.view import Typed
from webhook.typed.volumes import VolumeClaimSpec

STORAGE: Final = RuleGroup(
    "storage",
    source="https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes",
    level="warn",
    fails="pending",
)
"""Volumes of workloads with devices, as their pods can mount them and as their authors count on them."""


class VolumeClaimStatus(Typed):
    """core/v1 PersistentVolumeClaimStatus."""

    phase = Text()


class PersistentVolumeClaim(Object):
    """core/v1 PersistentVolumeClaim."""

    gvk = GroupVersionKind("", "v1", "PersistentVolumeClaim")
    spec = Part(VolumeClaimSpec)
    status = Part(VolumeClaimStatus)


class StorageClass(Object):
    """storage.k8s.io StorageClass."""

    gvk = GroupVersionKind("storage.k8s.io", "v1", "StorageClass")
    provisioner = Text()
