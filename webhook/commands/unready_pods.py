"""Explains why the Pods behind a Service are not ready.

Knows the status that kubelet v1.36 and kube-scheduler v1.36 write into a Pod, and nothing of its logs or events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

_IMAGE: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
"""Reasons of a waiting container, of pkg/kubelet/images/types.go: the node has no image to start it from."""
_MOUNTS: Final = frozenset({"ContainerCreating", "CreateContainerConfigError"})


def describe_unready_pods(pods: Sequence[dict[str, Any]], namespace: str) -> Iterator[str]:
    """Yield a line for each Pod that is not ready and is not about to end, with the reason.

    Args:
        pods: Pod objects, as the API server stores them.
        namespace: theirs, for the commands that are named.
    """
    if not pods:
        yield f"there are no Pods: `kubectl -n {namespace} describe replicasets` says why none can be created"
        return
    for one in pods:
        if "deletionTimestamp" not in one["metadata"] and (reason := _reason_of_unready_pod(one, namespace)):
            yield f"Pod {one['metadata']['name']}: {reason}"


def _reason_of_unready_pod(pod: dict[str, Any], namespace: str) -> str:
    status = pod.get("status") or {}
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    if conditions.get("Ready", {}).get("status") == "True":
        return ""
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return f"no node takes it: {scheduled.get('message', '')}"
    name, containers = pod["metadata"]["name"], status.get("containerStatuses") or ()
    for container in containers:
        if waiting := (container.get("state") or {}).get("waiting"):
            return _reason_of_waiting_container(container, waiting, name, namespace)
    if not containers:
        return f"no kubelet has said anything of it yet: `kubectl -n {namespace} describe pod {name}` says who has"
    return f"it runs and is not ready: `kubectl -n {namespace} logs {name}` says what it cannot read"


def _reason_of_waiting_container(container: dict[str, Any], waiting: dict[str, Any], pod: str, namespace: str) -> str:
    reason = waiting.get("reason", "")
    if reason in _IMAGE:
        image = container.get("image", "")
        return f"nodes cannot pull image `{image}` ({reason}): apply again with an image that they can pull"
    if reason in _MOUNTS:
        see = f"`kubectl -n {namespace} describe pod {pod}` names it"
        return f"it waits for something that it mounts, such as the Secret with the certificate ({reason}): {see}"
    return f"it does not stay up ({reason}): `kubectl -n {namespace} logs --previous {pod}` says why"
