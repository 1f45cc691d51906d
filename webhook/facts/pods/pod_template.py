"""Validates fields of pods and containers, other than resources, as Kubernetes does.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go; functions have the names of Kubernetes'
functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery.names import (
    dns1123_label_errors,
    dns1123_subdomain_errors,
    forbidden_character_fault,
    label_fault,
    label_fix,
    port_name_fault,
    qualified_name_errors,
    qualified_name_fault,
    qualified_name_fix,
    subdomain_fault,
    subdomain_fix,
)
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.rules.problem import Problem
from webhook.rules.rule import BY_POD_VALIDATION, Rule, RuleGroup
from webhook.schema.types import Fields, kubernetes_type
from webhook.text.similar_names import nearest_name
from webhook.text.wording import did_you_mean
from webhook.typed.environment import has_source
from webhook.typed.pods import (
    Container,
    EnvironmentReference,
    KeySelector,
    PodSecurityContext,
    PodSpec,
    SecurityContext,
)
from webhook.typed.view import Typed
from webhook.typed.volumes import Volume, VolumeMount
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
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_ADMIN: Final = "CAP_SYS_ADMIN"
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_CONSTANT: Final = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)*(?![A-Za-z0-9_])")
"""Matches a word of capital letters in a name, such as `NODE_NAME` in `job-NODE_NAME`."""
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


def problems_in_files(pod: PodSpec, rule: Rule) -> Iterator[Problem]:
    """Yield what the API server refuses in a Pod or in the pod template of a built-in kind.

    The rules for the templates of all kinds report other values. Every release of Kubernetes refuses the values here.
    Texts that a program or a person replaces are not reported. All problems are problems of `rule`.
    """
    for container in pod.all_containers():
        yield from _validate_names_of_ports(container, rule)
        yield from _validate_probes(container, rule)
        yield from _validate_escalation(container, rule)
        yield from _validate_policies_and_protocols(container, rule)
        yield from _validate_references(container, rule)
        for mount in container.volume_mounts:
            yield from _validate_paths_of_mount(mount, rule)
    if pod.host_network:
        yield from _validate_ports_of_node(pod, rule)
    for volume in pod.volumes:
        yield from _validate_one_source(volume, rule)


def is_name_to_fill_in(name: str, holder: Typed) -> bool:
    """Return whether a person or a program replaces words of a name: a placeholder, or words of capital letters that
    alone make the name invalid. `holder` is the object with the name.
    """
    holder.charge_search(name)
    return is_placeholder_for_name(name) or (
        _CONSTANT.search(name) is not None and not dns1123_subdomain_errors(_CONSTANT.sub("x", name))
    )


def _fields_of(type_name: str) -> AbstractSet[str]:
    """Return the names of the fields of a type of Kubernetes."""
    declared = kubernetes_type(type_name)
    return declared.fields.keys() if isinstance(declared, Fields) else frozenset()


def _validate_names_of_ports(container: Container, rule: Rule) -> Iterator[Problem]:
    """Report names of ports that validateContainerPorts refuses (IsValidPortName). Names with the same fault are one
    problem.
    """
    seen: set[str] = set()
    by_fault: dict[str, list[Problem]] = {}
    for port in container.ports:
        name = port.name
        if not name or is_placeholder_for_name(name):
            continue
        if fault := port_name_fault(name):
            fix = "use at most 15 lower-case letters, digits and single dashes, with at least one letter"
            problem = rule.problem(port.path("name"), f"cannot be the name of a port because {fault}", fix, name)
            by_fault.setdefault(fault, []).append(problem)
        elif name in seen:
            message = "is already the name of another port of the container"
            yield rule.problem(port.path("name"), message, "give each port its own name", name)
        seen.add(name)
    for first, *others in by_fault.values():
        yield replace(first, also=tuple(each.path for each in others))


def _validate_ports_of_node(pod: PodSpec, rule: Rule) -> Iterator[Problem]:
    """Report host ports that differ from the port of the container although the pod uses the node's network
    (validatePodHostNetworkDeps, which does not read init containers).
    """
    for container in pod.containers:
        for port in container.ports:
            if port.host_port and port.container_port and port.host_port != port.container_port:
                message = f"must equal containerPort {port.container_port} because hostNetwork is true"
                yield rule.problem(port.path("hostPort"), message, "remove hostPort", port.host_port)


def _validate_probes(container: Container, rule: Rule) -> Iterator[Problem]:
    """Report probes without a handler or with several (validateHandler), and a successThreshold that is not 1."""
    fields = _fields_of("core.v1.Probe")
    for field, probe in (
        ("livenessProbe", container.liveness_probe),
        ("readinessProbe", container.readiness_probe),
        ("startupProbe", container.startup_probe),
    ):
        if not container.has(field) or container.is_omitted(field) or any(map(probe.is_omitted, _HANDLERS)):
            continue
        handlers = [name for name in _HANDLERS if probe.has(name)]
        is_misspelt = not handlers and not probe.json.keys() <= fields  # rules for unknown fields report the cause
        if len(handlers) != 1 and not is_misspelt:
            message, fix = "has no handler", f"set one of {', '.join(_HANDLERS)}"
            if handlers:
                message, fix = (
                    f"has {' and '.join(handlers)}, but a probe has only one handler",
                    "remove all handlers but one",
                )
            yield rule.problem(probe.at, message, fix)
        threshold = probe.success_threshold
        if field != "readinessProbe" and threshold not in (None, 0, 1):
            message, fix = f"must be 1 in a {field}", "remove the field, or set 1"
            yield rule.problem(probe.path("successThreshold"), message, fix, threshold)


def _validate_escalation(container: Container, rule: Rule) -> Iterator[Problem]:
    """Report allowPrivilegeEscalation false in a container with privileges (ValidateSecurityContext)."""
    context = container.security_context
    if context.allow_privilege_escalation is not False:
        return
    path = context.path("allowPrivilegeEscalation")
    if context.privileged:
        message, fix = "must not be false if privileged is true", "remove one of the two fields"
        yield rule.problem(path, message, fix)
    elif _ADMIN in context.capabilities.add:
        message, fix = f"must not be false if capabilities.add has {_ADMIN}", "remove the field or the capability"
        yield rule.problem(path, message, fix)


def _validate_policies_and_protocols(container: Container, rule: Rule) -> Iterator[Problem]:
    """Report pull policies and protocols that do not exist (validatePullPolicy, validateContainerPorts)."""
    policy = container.image_pull_policy
    if policy and policy not in _PULL_POLICIES and not is_placeholder_for_name(policy):
        message = f"must be one of {', '.join(_PULL_POLICIES)}"
        fix = did_you_mean(nearest_name(policy, _PULL_POLICIES), "set one of these policies")
        yield rule.problem(container.path("imagePullPolicy"), message, fix, policy)
    for port in container.ports:
        if port.protocol and port.protocol not in _PROTOCOLS and not is_placeholder_for_name(port.protocol):
            message = f"must be one of {', '.join(_PROTOCOLS)}, in capital letters"
            yield rule.problem(port.path("protocol"), message, "set one of these protocols", port.protocol)


def _validate_references(container: Container, rule: Rule) -> Iterator[Problem]:
    """Report names of ConfigMaps and Secrets that no ConfigMap or Secret can have (validateConfigMapKeySelector,
    validateSecretKeySelector, validateConfigMapEnvSource and validateSecretEnvSource).

    In `envFrom`, the API server also accepts a name with a dash at the end, as if Kubernetes added more to the name.
    """
    references: list[KeySelector | EnvironmentReference] = []
    for variable in container.env if has_source(container.json.get("env"), container.reading.deadline) else ():
        references += (variable.value_from.config_map_key_ref, variable.value_from.secret_key_ref)
    for source in container.env_sources:
        references += (source.config_map_ref, source.secret_ref)
    problems: dict[str, list[FieldPath]] = {}
    for reference in references:
        name = reference.name
        checked = _without_last_dash(name) if isinstance(reference, EnvironmentReference) else name
        if name and not is_name_to_fill_in(name, reference) and dns1123_subdomain_errors(checked):
            problems.setdefault(name, []).append(reference.path("name"))
    for name, (first, *others) in problems.items():
        message = f"cannot be the name of a ConfigMap or Secret because {subdomain_fault(name)}"
        problem = rule.problem(first, message, subdomain_fix(name), name)
        yield replace(problem, also=tuple(map(path_as_text, others)))


def _without_last_dash(name: str) -> str:
    """Return a name with a letter for a dash at the end and the character before the dash (maskTrailingDash)."""
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name


def _validate_paths_of_mount(mount: VolumeMount, rule: Rule) -> Iterator[Problem]:
    """Report paths that ValidateVolumeMounts refuses (validateLocalDescendingPath)."""
    for field, path in (("subPath", mount.sub_path), ("subPathExpr", mount.sub_path_expr)):
        if path.startswith("/"):
            message, fix = "must not begin with /, because the path is inside the volume", "remove the first /"
            yield rule.problem(mount.path(field), message, fix, path)
        elif ".." in path.split("/"):
            yield rule.problem(mount.path(field), "must not contain `..`", "write the path without `..`", path)
    if mount.sub_path and mount.sub_path_expr:
        message = "must not be set beside subPath"
        yield rule.problem(mount.path("subPathExpr"), message, "remove one of the two fields")


def _validate_one_source(volume: Volume, rule: Rule) -> Iterator[Problem]:
    """Report a volume with several sources (validateVolumeSource)."""
    sources = [field for field in sorted(_fields_of("core.v1.Volume")) if field != "name" and volume.has(field)]
    if len(sources) > 1:
        message = f"has {' and '.join(sources)}, but a volume has only one source"
        yield rule.problem(volume.at, message, "remove all sources but one")
