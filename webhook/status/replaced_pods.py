"""Ended pods that their controller has replaced: they do not decide why a job waits.

Failed pods stay until they are collected, and deleted pods until their containers have ended.
Source: k8s.io/kubernetes v1.36 pkg/controller (FilterActivePods), pkg/controller/job/job_controller.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.cluster.naming import group_kind
from webhook.status.owned_objects import OwnedObjects
from webhook.status.statement import items_at, number_at, text_at

_PER_NODE: Final = ("apps", "DaemonSet")
_JOB: Final = ("batch", "Job")
_MAKING_AGAIN: Final = frozenset(
    (_JOB, _PER_NODE, ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("", "ReplicationController"))
)
"""Kinds with a controller that creates a pod in place of each pod that failed or is deleted."""


def makes_pods_again(pod: JSON) -> bool:
    """Return whether the controller of a pod replaces the pod when it fails; Jobs do this for a while."""
    return _controller(pod)[0] in _MAKING_AGAIN


def without_replaced_pods(pods: Sequence[JSON], tree: OwnedObjects) -> tuple[Sequence[JSON], Sequence[JSON]]:
    """Return the pods that count, and those that failed or are being deleted and have been replaced.

    The pod that a user names always counts.
    """
    owners = {text_at(each, ("metadata", "uid")): each for each in (*tree.owners, tree.root, *tree.objects)}
    active: dict[str, int] = defaultdict(int)
    for pod in pods:
        active[_controller(pod)[1]] += _is_active(pod)
    current, replaced = list[JSON](), list[JSON]()
    for pod in pods:
        owner = owners.get(_controller(pod)[1])
        is_replaced = pod is not tree.root and not _is_active(pod) and makes_pods_again(pod)
        is_replaced = is_replaced and text_at(pod, ("status", "phase")) != "Succeeded"
        has_others = owner is not None and active[_controller(pod)[1]] >= _wanted(owner)
        (replaced if is_replaced and has_others else current).append(pod)
    return current, replaced


def _wanted(owner: JSON) -> int:
    """Return the number of active pods that makes ended pods of a controller unimportant: at least one."""
    if group_kind(owner) == _JOB:
        return max(number_at(owner, ("status", "active")), 1)
    if group_kind(owner) == _PER_NODE:
        return max(number_at(owner, ("status", "desiredNumberScheduled")), 1)
    wanted = get(owner, ("spec", "replicas"), 1)
    return max(wanted, 1) if isinstance(wanted, int) else 1


def _is_active(pod: JSON) -> bool:
    ended = text_at(pod, ("status", "phase")) in ("Failed", "Succeeded")
    return not ended and not text_at(pod, ("metadata", "deletionTimestamp"))


def _controller(pod: JSON) -> tuple[tuple[str, str], str]:
    """Return group and kind, and the uid, of the controller of a pod."""
    references: Sequence[Mapping[str, JSON]] = list(items_at(pod, ("metadata", "ownerReferences")))
    reference = next((each for each in references if each.get("controller") is True), None)
    group = text_at(reference, ("apiVersion",)).rpartition("/")[0]
    return (group, text_at(reference, ("kind",))), text_at(reference, ("uid",))
