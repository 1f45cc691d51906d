"""Validates fields of pods and containers, other than resources, as Kubernetes does.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go; functions have the names of Kubernetes'
functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.apimachinery.names import (
    dns1123_label_errors,
    dns1123_subdomain_errors,
    forbidden_character_fault,
    label_fault,
    label_fix,
    qualified_name_errors,
    qualified_name_fault,
    qualified_name_fix,
    subdomain_fault,
    subdomain_fix,
)
from webhook.rules.problem import Problem
from webhook.rules.rule import BY_POD_VALIDATION, RuleGroup
from webhook.typed.pods import Container, PodSecurityContext, PodSpec, SecurityContext
from webhook.typed.volumes import Volume
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_name

POD_TEMPLATE: Final = RuleGroup(
    "pod-template",
    refused_by=BY_POD_VALIDATION,
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
"""Rules of Kubernetes for pods, except rules for resources, for templates that the API server does not check."""
HOST_USERS: Final = POD_TEMPLATE.rule(
    "pod-template/host-users",
    title="hostUsers is false, but the pod shares a namespace or block device of the node",
    why="The API server refuses hostUsers: false together with hostNetwork, hostPID, hostIPC or volumeDevices.",
    function="validateHostUsers",
)
ACTIVE_DEADLINE: Final = POD_TEMPLATE.rule(
    "pod-template/active-deadline",
    title="activeDeadlineSeconds is not between 1 and 2147483647",
    why="The API server refuses the pods when the controller creates them.",
    function="ValidatePodSpec",
)
ENV_NAME: Final = POD_TEMPLATE.rule(
    "pod-template/env-name",
    title="The name of the environment variable is invalid",
    why="The API server refuses the pods when the controller creates them.",
    function="ValidateEnv",
)
IMAGE: Final = POD_TEMPLATE.rule(
    "pod-template/image",
    title="The image name begins or ends with a space",
    why="The API server refuses the pods when the controller creates them.",
    function="validateContainerOnlyForPod",
)
MOUNT_PATH: Final = POD_TEMPLATE.rule(
    "pod-template/mount-path",
    title="The mount path is missing or used twice",
    why="Two volumes cannot be mounted at the same path, and a mount needs a path.",
    function="ValidateVolumeMounts",
)
NAME: Final = POD_TEMPLATE.rule(
    "pod-template/name",
    title="The name of a container or volume is invalid or used twice",
    why="The API server refuses the pods, because mounts and probes find containers and volumes by name.",
    function="validateContainerCommon",
)
PORT: Final = POD_TEMPLATE.rule(
    "pod-template/port",
    title="The port is not between 1 and 65535",
    why="The API server refuses the pods when the controller creates them.",
    function="validateContainerPorts",
)
USER: Final = POD_TEMPLATE.rule(
    "pod-template/user",
    title="The user or group id is not between 0 and 2147483647",
    why="The API server refuses the pods when the controller creates them.",
    function="validatePodSpecSecurityContext",
)
SERVICE_ACCOUNT: Final = POD_TEMPLATE.rule(
    "pod-template/service-account",
    title="The service account name is invalid",
    why="No ServiceAccount can have this name.",
    function="ValidatePodSpec",
)
HOST_PATH: Final = POD_TEMPLATE.rule(
    "pod-template/host-path",
    title="The path of the hostPath volume contains `..`",
    why="The API server refuses a path with `..`, because it may lead out of the directory.",
    function="validatePathNoBacksteps",
)
SCHEDULING_GATE: Final = POD_TEMPLATE.rule(
    "pod-template/scheduling-gate",
    title="The name of the scheduling gate is invalid",
    why="The API server refuses the pods when the controller creates them.",
    function="validateSchedulingGates",
)
_SHARED: Final = ("hostNetwork", "hostPID", "hostIPC")
_SECONDS: Final = range(1, 2**31)
_PORTS: Final = range(1, 65536)
_USERS: Final = range(2**31)
_OF_ENV_NAMES: Final = bytes(sign for sign in range(ord(" "), ord("~") + 1) if sign != ord("="))


def validate_host_users(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems of validateHostUsers if UserNamespacesHostNetworkSupport is off, which is the default."""
    if pod.host_users is not False:
        return
    fix = "remove hostUsers, or this field"
    for field in _SHARED:
        if pod.json.get(field) is True:
            message = "must not be true if hostUsers is false because the pod has its own user namespace"
            yield HOST_USERS.problem(pod.path(field), message, fix)
    for container in pod.all_containers():
        if container.json.get("volumeDevices"):
            message = "must not be set if hostUsers is false because the pod has its own user namespace"
            yield HOST_USERS.problem(container.path("volumeDevices"), message, fix)


def validate_active_deadline(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that ValidatePodSpec would report about activeDeadlineSeconds."""
    seconds = pod.active_deadline_seconds
    if seconds is not None and seconds not in _SECONDS:
        message = f"must be a number from 1 to {_SECONDS[-1]}"
        fix = "set the seconds that the pod may run, or remove the field"
        yield ACTIVE_DEADLINE.problem(pod.path("activeDeadlineSeconds"), message, fix, seconds)


def validate_containers(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that validateContainers and validateInitContainers would report."""
    seen: set[str] = set()
    for container in pod.all_containers():
        yield from _validate_name(container, "container", seen)
        yield from _validate_image(container)
        yield from validate_env(container)
        yield from validate_volume_mounts(container)
        if container.has("ports"):
            yield from validate_container_ports(container)
        if container.has("securityContext"):
            yield from validate_user(container.security_context)


def _validate_name(named: Container | Volume, what: str, seen: set[str]) -> Sequence[Problem]:
    """Return the problems of the name of a container or volume; add the name to `seen`."""
    name = named.name
    is_known = name in seen
    seen.add(name)
    if not name or is_placeholder_for_name(name):
        return ()
    named.charge_search(name)
    if dns1123_label_errors(name):
        message = f"cannot be the name of a {what} because {label_fault(name)}"
        return (NAME.problem(named.path("name"), message, label_fix(name), name),)
    if is_known:
        message = f"is already the name of another {what} of the pod"
        return (NAME.problem(named.path("name"), message, f"give each {what} its own name", name),)
    return ()


def _validate_image(container: Container) -> Iterator[Problem]:
    """Report an invalid image (validateContainerOnlyForPod), not a missing image, which a controller may set."""
    if container.image != container.image.strip():
        path = container.path("image")
        yield IMAGE.problem(path, "must not begin or end with a space", "remove the spaces", container.image)


def validate_env(container: Container) -> Iterator[Problem]:
    """Yield the problems that ValidateEnv would report, with the relaxed rule for names."""
    names = container.env_names
    if not names or ("" not in names and _is_env_name("".join(names))):  # fast for hundreds of valid names
        return
    for index, name in enumerate(names):
        if not _is_env_name(name):
            message, fix = _env_name_fault(name)
            yield ENV_NAME.problem(container.path("env", index, "name"), message, fix, name)


def _is_env_name(name: str) -> bool:
    """Return whether Kubernetes accepts a name for an environment variable (IsRelaxedEnvVarName)."""
    return name != "" and name.isascii() and not name.encode().translate(None, _OF_ENV_NAMES)


def _env_name_fault(name: str) -> tuple[str, str]:
    if not name:
        return "is not set, so no program can read the variable", "set the name of the variable"
    fix = "use only letters, digits and underscores"
    if "=" in name:
        fix = "remove `=` from the name, and write the value in the field value"
    return f"cannot be the name of a variable because {forbidden_character_fault(name, _OF_ENV_NAMES.decode())}", fix


def validate_volume_mounts(container: Container) -> Iterator[Problem]:
    """Yield the problems that ValidateVolumeMounts would report."""
    for mount, is_repeated in container.mounts_with_repetition():
        path, target = mount.path("mountPath"), mount.mount_path
        if not target:
            yield MOUNT_PATH.problem(path, "must be set", "name the directory where the volume appears")
        elif is_repeated:
            message = "is also the path of an earlier mount in the container"
            yield MOUNT_PATH.problem(path, message, "mount each volume at a different path", target)


def validate_container_ports(container: Container) -> Iterator[Problem]:
    """Yield the problems that validateContainerPorts would report."""
    for port in container.ports:
        for name, number in (("containerPort", port.container_port), ("hostPort", port.host_port)):
            if number is not None and number not in _PORTS and (number or name == "containerPort"):
                message, fix = "must be a port from 1 to 65535", "set a port in this range"
                yield PORT.problem(port.path(name), message, fix, number)


def validate_user(context: SecurityContext | PodSecurityContext) -> Iterator[Problem]:
    """Report user and group ids of a security context that are out of range (IsValidUserID, IsValidGroupID)."""
    yield from _validate_user(context, "runAsUser", context.run_as_user)
    yield from _validate_user(context, "runAsGroup", context.run_as_group)


def validate_pod_user(context: PodSecurityContext) -> Iterator[Problem]:
    """Yield the problems that validatePodSpecSecurityContext would report."""
    yield from validate_user(context)
    yield from _validate_user(context, "fsGroup", context.fs_group)


def _validate_user(context: SecurityContext | PodSecurityContext, name: str, number: int | None) -> Iterator[Problem]:
    if number is not None and number not in _USERS:
        message = f"must be a number from 0 to {_USERS[-1]}"
        yield USER.problem(context.path(name), message, "set a number in this range", number)


def validate_service_account(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that ValidateServiceAccountName would report about spec.serviceAccountName."""
    name = pod.service_account_name
    if name and dns1123_subdomain_errors(name) and not is_placeholder_for_name(name):
        message = f"cannot be the name of a ServiceAccount because {subdomain_fault(name)}"
        yield SERVICE_ACCOUNT.problem(pod.path("serviceAccountName"), message, subdomain_fix(name), name)


def validate_volumes(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that ValidateVolumes would report."""
    seen: set[str] = set()
    for volume in pod.volumes:
        yield from _validate_name(volume, "volume", seen)
        host = volume.host_path.path_on_host
        if ".." in host.split("/"):
            path, message = volume.host_path.path("path"), "must not contain `..`"
            yield HOST_PATH.problem(path, message, "write the path without `..`", host)


def validate_scheduling_gates(pod: PodSpec) -> Iterator[Problem]:
    """Yield the problems that validateSchedulingGates would report."""
    for gate in pod.scheduling_gates:
        if qualified_name_errors(gate.name) and not is_placeholder(gate.name):
            message = f"cannot be the name of a scheduling gate because {qualified_name_fault(gate.name)}"
            yield SCHEDULING_GATE.problem(gate.path("name"), message, qualified_name_fix(gate.name), gate.name)
