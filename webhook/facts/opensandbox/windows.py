"""Windows in a sandbox: a Linux pod in which QEMU runs it, known by its volume.

Source: opensandbox-group/OpenSandbox@3bb6fad3 server/opensandbox_server/services/k8s/windows_profile.py and
windows_common.py: 2 CPUs and 4 GB for Windows, with 2 GiB more for QEMU, and 64 GB of disk. RAM_SIZE, CPU_CORES and
DISK_SIZE are variables of dockur/windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook import quantity
from webhook.attributes import JSON
from webhook.facts.opensandbox.batch_sandbox import CONTAINERS
from webhook.facts.opensandbox.sandbox import Sandbox, problem
from webhook.paths import FieldPath, get
from webhook.problem import Problem

_VOLUME: Final = "opensandbox-win-kvm"
_LIMITS: Final[Mapping[str, str]] = {"cpu": "2", "memory": "6Gi"}
_VARIABLES: Final[Mapping[str, str]] = {"CPU_CORES": "2", "RAM_SIZE": "4G", "DISK_SIZE": "64G"}


def advise_windows(sandbox: Sandbox) -> Iterator[Problem]:
    """Devices that Windows cannot see, less than it needs, and a restart policy that ends its installation."""
    pod, each = get(sandbox.spec, ("template", "spec"), {}), sandbox.deadline.each
    if not any(volume.get("name") == _VOLUME for volume in each(pod.get("volumes", []))):
        return
    containers = pod.get("containers", [])
    for index, container in enumerate(each(containers)):
        path: FieldPath = ("spec", *CONTAINERS, index, "resources", "limits")
        for name in each(get(container, ("resources", "limits"), {})):
            if name == "gpu" or ("/" in name and "kubernetes.io/" not in name):
                message = (
                    f"is not visible to Windows because a sandbox with volume `{_VOLUME}` runs Windows in a virtual "
                    "machine of QEMU, which gets no device of the pod"
                )
                yield problem(
                    "windows-device",
                    (*path, name),
                    message,
                    "remove the resource, so that other pods can use the device",
                )
    if containers:
        yield from _advise_size(containers[0], sandbox)
    policy = pod.get("restartPolicy")
    if policy not in (None, "Always"):
        message = (
            f"must be Always because a sandbox with volume `{_VOLUME}` installs Windows, which restarts the container"
        )
        yield problem(
            "windows-restart-policy", ("spec", "template", "spec", "restartPolicy"), message, "set Always", policy
        )


def _advise_size(container: Mapping[str, JSON], sandbox: Sandbox) -> Iterator[Problem]:
    first: FieldPath = ("spec", *CONTAINERS, 0)
    limits = get(container, ("resources", "limits"), {})
    for name, least in _LIMITS.items():
        yield from _compare((*first, "resources", "limits", name), limits.get(name), least)
    for index, variable in enumerate(sandbox.deadline.each(container.get("env", []))):
        if variable.get("name") in _VARIABLES:
            yield from _compare((*first, "env", index, "value"), variable.get("value"), _VARIABLES[variable["name"]])


def _compare(path: FieldPath, value: JSON, least: str) -> Iterator[Problem]:
    amount = None if value is None else quantity.read(value)
    if amount is not None and amount < quantity.parse(least):
        yield problem(
            "windows-size",
            path,
            f"must be at least {least} because a sandbox with volume `{_VOLUME}` runs Windows",
            f"set {least}",
            value,
        )
