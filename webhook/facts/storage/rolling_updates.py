"""Deployments of one pod with an update that waits for the volume of the old pod.

A rolling update makes the new pod before it removes the old one unless maxUnavailable, rounded down, is at least 1:
k8s.io/kubernetes v1.36 pkg/controller/deployment/util ResolveFenceposts. The new pod can mount a claim for one node
only on the node of the old pod, where the old pod uses the devices. A volume that is read-only in the pod may be
attached to several nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.facts.gpu.device_pods import read_device_workload
from webhook.facts.storage.mounts import VolumeMountInObject, read_mounts
from webhook.facts.storage.types import STORAGE, PersistentVolumeClaim
from webhook.facts.storage.volume_claims import is_network_file_system
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.typed.cluster_objects import Deployment, RollingUpdate
from webhook.typed.volumes import VolumeClaimSpec

ROLLING_UPDATE: Final = STORAGE.rule(
    "storage/rolling-update",
    title="The update of the Deployment waits for its own volume or devices",
    why=(
        "The new pod starts while the old pod still holds the volume and the devices. On another node it waits for the "
        "volume, on the same node for devices."
    ),
    source="https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#rolling-update-deployment",
    fails="pending",
    issues=("https://github.com/mattermost/mattermost-helm/issues/283",),
)

_DEPLOYMENT: Final = ("apps", "Deployment")
_PERCENT: Final = re.compile("([0-9]{1,4})%", re.ASCII)
_ALONE: Final = ({"ReadWriteOnce"}, {"ReadWriteOncePod"})


def advise_rolling_updates(subject: Subject) -> Iterator[Problem]:
    """Warn about a Deployment of one pod with devices if the old and new pod cannot mount a claim at the same time."""
    if subject.group_kind != _DEPLOYMENT or not subject.namespace:
        return
    spec = subject.typed(Deployment).spec
    if (
        spec.replicas not in (None, 1)
        or spec.is_omitted("replicas")
        or not _starts_new_pod_first(spec.strategy.rolling_update)
    ):
        return
    if spec.strategy.type not in ("", "RollingUpdate") or not subject.once(read_device_workload).device_pods:
        return
    view = subject.cluster_view()
    claims = [
        (name, mode, mounting)
        for name, mounting in subject.once(read_mounts).mounts_of_claims().items()
        if (mode := _mode_for_one_pod(view.find(PersistentVolumeClaim, name).spec, view))
        and not all(mount.volume.is_read_only for mount in mounting)
    ]
    if claims:
        yield _rolling_update_problem(claims)


def _mode_for_one_pod(claim: VolumeClaimSpec, view: ClusterView) -> str:
    """Return the mode of a claim that only one pod or the pods of one node can mount; "" for other claims."""
    modes = {*claim.access_modes}
    if modes not in _ALONE or (modes == {"ReadWriteOnce"} and is_network_file_system(claim, view)):
        return ""
    return modes.pop()


def _rolling_update_problem(claims: Sequence[tuple[str, str, Sequence[VolumeMountInObject]]]) -> Problem:
    """Return one problem for all claims of the Deployment, at the claim that only one pod can mount, if any."""
    name, mode, mounting = next((each for each in claims if each[1] == "ReadWriteOncePod"), claims[0])
    others = ", ".join(f"`{each}`" for each, _, _ in claims if each != name)
    is_mode = f"is {mode} (likewise {others})" if others else f"is {mode}"
    message = (
        f"claim `{name}` {is_mode}, so the new pod of a rolling update must start on the node of the old pod, "
        "and waits for ever if this node has too few free devices"
    )
    if mode == "ReadWriteOncePod":
        message = f"claim `{name}` is {mode}, so a rolling update waits for ever: the old pod keeps the claim"
    return ROLLING_UPDATE.problem(mounting[0].volume.path, message, "set spec.strategy.type to Recreate")


def _starts_new_pod_first(settings: RollingUpdate) -> bool:
    """Return whether the old pod stays until the new pod is ready: 25 % of one pod, the default, is 0, rounded down."""
    if any(settings.is_omitted(name) for name in ("maxSurge", "maxUnavailable")):
        return False
    return (
        _rolling_limit_for_one_pod(settings.max_unavailable) == 0
        and _rolling_limit_for_one_pod(settings.max_surge, default=1) != 0
    )


def _rolling_limit_for_one_pod(written: JSON, default: int = 0) -> int | None:
    """Return how many of one pod a setting means: percentages are rounded down, but any part that may be more
    is one.
    """
    if written is None:
        return default
    if isinstance(written, int):
        return min(written, 1)
    match = _PERCENT.fullmatch(written) if isinstance(written, str) else None
    if match is None:
        return None
    return int(int(match[1]) >= (1 if default else 100))
