"""Fields of a pod as a whole, as Kubernetes validates them.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go; functions are named like those there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.pods.groups import POD_TEMPLATE
from webhook.problem import Problem
from webhook.typed.pods import PodSpec

HOST_USERS: Final = POD_TEMPLATE.rule(
    "pod-template/host-users",
    title="A pod with a user namespace of its own shares no other namespace and no block device with its node.",
    why="The API server refuses hostUsers: false beside hostNetwork, hostPID, hostIPC and volumeDevices.",
    function="validateHostUsers",
)
ACTIVE_DEADLINE: Final = POD_TEMPLATE.rule(
    "pod-template/active-deadline",
    title="activeDeadlineSeconds of a pod is a number from 1 to 2147483647.",
    why="A pod without any time could not run. The API server refuses it.",
    function="ValidatePodSpec",
)

_SHARED: Final = ("hostNetwork", "hostPID", "hostIPC")
_SECONDS: Final = range(1, 2**31)


def validate_host_users(pod: PodSpec) -> Iterator[Problem]:
    """As validateHostUsers, while the feature UserNamespacesHostNetworkSupport is off, as it is by default."""
    if pod.host_users is not False:
        return
    fix = "remove hostUsers, or this field"
    for field in _SHARED:
        if pod.json.get(field) is True:
            message = "must not be true where hostUsers is false because the pod has a user namespace of its own"
            yield HOST_USERS.problem(pod.path(field), message, fix)
    for container in pod.all_containers():
        if container.json.get("volumeDevices"):
            message = "must not be set where hostUsers is false because the pod has a user namespace of its own"
            yield HOST_USERS.problem(container.path("volumeDevices"), message, fix)


def validate_active_deadline(pod: PodSpec) -> Iterator[Problem]:
    """As ValidatePodSpec."""
    seconds = pod.active_deadline_seconds
    if seconds is not None and seconds not in _SECONDS:
        message = f"must be a number from 1 to {_SECONDS[-1]}"
        fix = "set the seconds that the pod may run, or remove the field"
        yield ACTIVE_DEADLINE.problem(pod.path("activeDeadlineSeconds"), message, fix, seconds)
