"""Windows in a sandbox: a Linux pod in which QEMU runs it, known by its volume.

Source: opensandbox-group/OpenSandbox@3bb6fad3 server/opensandbox_server/services/k8s/windows_profile.py and
windows_common.py: 2 CPUs and 4 GB for Windows, with 2 GiB more for QEMU, and 64 GB of disk. RAM_SIZE, CPU_CORES and
DISK_SIZE are variables of dockur/windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook import quantity
from webhook.facts.sandbox.groups import SANDBOX_ADVICE
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.typed.fields import Amount
from webhook.typed.pods import Container, PodSpec, PodTemplate

WINDOWS_DEVICE: Final = SANDBOX_ADVICE.rule(
    "sandbox/windows-device",
    title="A Windows sandbox requests no device.",
    why="Windows runs as a guest of QEMU and cannot see the device, which the pod takes from others.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 server/opensandbox_server/services/k8s/windows_profile.py",
)
WINDOWS_SIZE: Final = SANDBOX_ADVICE.rule(
    "sandbox/windows-size",
    title="A Windows sandbox has the CPUs, memory and disk that Windows needs.",
    why="Windows does not install or start with less.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 server/opensandbox_server/services/k8s/windows_common.py",
    fails="start",
)
WINDOWS_RESTART_POLICY: Final = SANDBOX_ADVICE.rule(
    "sandbox/windows-restart-policy",
    title="A Windows sandbox restarts its container.",
    why="The installation of Windows ends the container several times, and goes on when it is restarted.",
    source="opensandbox-group/OpenSandbox 3bb6fad3 server/opensandbox_server/services/k8s/windows_profile.py",
    fails="start",
)

_VOLUME: Final = "opensandbox-win-kvm"
_LIMITS: Final[Mapping[str, str]] = {"cpu": "2", "memory": "6Gi"}
_VARIABLES: Final[Mapping[str, str]] = {"CPU_CORES": "2", "RAM_SIZE": "4G", "DISK_SIZE": "64G"}


def advise_windows(template: PodTemplate) -> Iterator[Problem]:
    """Warn of devices that Windows cannot see, less than it needs, and a restart policy that ends its installation."""
    pod = template.spec
    if not any(volume.name == _VOLUME for volume in pod.volumes):
        return
    for container in pod.containers:
        yield from _check_windows_device(container)
    if pod.containers:
        yield from _check_windows_size(pod.containers[0])
    yield from _check_windows_restart_policy(pod)


def _check_windows_device(container: Container) -> Iterator[Problem]:
    for name in container.resources.limits:
        if name == "gpu" or ("/" in name and "kubernetes.io/" not in name):
            message = (
                f"is not visible to Windows because a sandbox with volume `{_VOLUME}` runs Windows in a virtual "
                "machine of QEMU, which gets no device of the pod"
            )
            fix = "remove the resource, so that other pods can use the device"
            yield WINDOWS_DEVICE.problem(container.resources.path("limits", name), message, fix)


def _check_windows_restart_policy(pod: PodSpec) -> Iterator[Problem]:
    if pod.restart_policy not in ("", "Always"):
        message = (
            f"must be Always because a sandbox with volume `{_VOLUME}` installs Windows, which restarts the container"
        )
        yield WINDOWS_RESTART_POLICY.problem(pod.path("restartPolicy"), message, "set Always", pod.restart_policy)


def _check_windows_size(container: Container) -> Iterator[Problem]:
    for name, least in _LIMITS.items():
        yield from _check_windows_minimum(
            container.resources.path("limits", name), container.resources.limits.get(name), least
        )
    for variable in container.env:
        if variable.name in _VARIABLES:
            yield from _check_windows_minimum(variable.path("value"), variable.value, _VARIABLES[variable.name])


def _check_windows_minimum(path: FieldPath, value: Amount | None, least: str) -> Iterator[Problem]:
    amount = None if value is None else quantity.read_quantity_or_none(value)
    if amount is not None and amount < quantity.parse_quantity(least):
        message = f"must be at least {least} because a sandbox with volume `{_VOLUME}` runs Windows"
        yield WINDOWS_SIZE.problem(path, message, f"set {least}", value)
