"""Names, variables, mounts, ports and users of the containers of a pod, and its volumes.

Source: k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go; functions are named like those there. Images,
and volumes that mounts need, are left out: a controller may add them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.attributes import JSON
from webhook.facts.check import Group
from webhook.facts.pods.containers import Container, containers_of
from webhook.facts.subject import Subject
from webhook.facts.values import names
from webhook.name_faults import label_fault, sign_fault, subdomain_fault
from webhook.names import USE_SUBDOMAIN, dns1123_label, dns1123_subdomain
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

problem: Final = Group("pod-template").problem
_PORTS: Final = range(1, 65536)
_USERS: Final = range(2**31)
_OF_ENV_NAMES: Final = bytes(each for each in range(ord(" "), ord("~") + 1) if each != ord("="))
_LABEL: Final = "use at most 63 lower-case letters, digits and dashes"


def validate_containers(subject: Subject) -> Iterator[Problem]:
    """As validateContainers and validateInitContainers."""
    seen: set[str] = set()
    for container in subject.once(containers_of):
        value = container.value
        yield from _validate_name(container.name, container.path, "container", seen)
        if image := value.get("image"):
            yield from _validate_image(image, container)
        if value.get("env"):
            yield from validate_env(container, subject)
        if value.get("volumeMounts"):
            yield from validate_volume_mounts(container, subject)
        if value.get("ports"):
            yield from validate_container_ports(container, subject)
        if context := value.get("securityContext"):
            yield from validate_user(context, (*container.path, "securityContext"))


def _validate_name(name: str, at: FieldPath, what: str, seen: set[str]) -> Sequence[Problem]:
    """The name of a container or volume at a path; `seen` has those before it, and then this one too."""
    is_known = name in seen
    seen.add(name)
    if not name or is_placeholder(name):
        return ()
    if dns1123_label(name):
        message = f"cannot be the name of a {what} because {label_fault(name)}"
        return (problem("name", (*at, "name"), message, _LABEL, name),)
    if is_known:
        message = f"is already the name of another {what} of the pod"
        return (problem("name", (*at, "name"), message, f"give each {what} its own name", name),)
    return ()


def _validate_image(image: str, container: Container) -> Iterator[Problem]:
    """As validateContainerOnlyForPod; one that is absent may come from a controller."""
    if image != image.strip():
        path = (*container.path, "image")
        yield problem("image", path, "must not begin or end with a space", "remove the spaces", image)


def validate_env(container: Container, subject: Subject) -> Iterator[Problem]:
    """As ValidateEnv, with relaxed names."""
    listed = names(container.value.get("env"))
    subject.deadline.spend(len(listed) // 10)  # of what is done in C
    if "" not in listed and _is_env_name("".join(listed)):  # as nearly always, and there may be hundreds
        return
    for index, name in enumerate(subject.deadline.each(listed)):
        if not _is_env_name(name):
            message, fix = _env_name_fault(name)
            yield problem("env-name", (*container.path, "env", index, "name"), message, fix, name)


def _is_env_name(name: str) -> bool:
    """IsRelaxedEnvVarName."""
    return name != "" and name.isascii() and not name.encode().translate(None, _OF_ENV_NAMES)


def _env_name_fault(name: str) -> tuple[str, str]:
    """What is wrong with the name of a variable, and what to do."""
    if not name:
        return "must be set because a variable without a name cannot be read", "set the name of the variable"
    fix = "use only letters, digits and underscores"
    if "=" in name:
        fix = "remove `=` from the name, and write the value in the field value"
    return f"cannot be the name of a variable because {sign_fault(name, _OF_ENV_NAMES.decode())}", fix


def validate_volume_mounts(container: Container, subject: Subject) -> Iterator[Problem]:
    """As ValidateVolumeMounts."""
    listed: Sequence[JSON] = container.value.get("volumeMounts") or ()
    targets = [each.get("mountPath") or "" for each in subject.deadline.each(listed)]
    if len({*targets}) == len(targets) and "" not in targets:  # as nearly always
        return
    seen: set[str] = set()
    for index, mounted in enumerate(subject.deadline.each(targets)):
        path = (*container.path, "volumeMounts", index, "mountPath")
        if not mounted:
            yield problem("mount-path", path, "must be set", "name the directory where the volume appears")
        elif mounted in seen:
            message = "is also the path of a mount before this one in the container"
            yield problem("mount-path", path, message, "mount each volume at a path of its own", mounted)
        seen.add(mounted)


def validate_container_ports(container: Container, subject: Subject) -> Iterator[Problem]:
    """As validateContainerPorts."""
    for index, each in enumerate(subject.deadline.paced(container.value.get("ports") or ())):
        for name in ("containerPort", "hostPort"):
            number = each.get(name)
            if number is not None and number not in _PORTS and (number or name == "containerPort"):
                path = (*container.path, "ports", index, name)
                yield problem("port", path, "must be a port from 1 to 65535", "set a port in this range", number)


def validate_user(context: JSON, at: FieldPath) -> Iterator[Problem]:
    """ValidateSecurityContext and validatePodSpecSecurityContext: IsValidUserID and IsValidGroupID."""
    for name in ("runAsUser", "runAsGroup", "fsGroup"):
        number = get(context, (name,))
        if number is not None and number not in _USERS:
            yield problem(
                "user", (*at, name), f"must be a number from 0 to {_USERS[-1]}", "set a number in this range", number
            )


def validate_service_account(pod: JSON) -> Iterator[Problem]:
    """ValidatePodSpec: ValidateServiceAccountName."""
    name = pod.get("serviceAccountName") or ""
    if name and dns1123_subdomain(name) and not is_placeholder(name):
        message = f"cannot be the name of a ServiceAccount because {subdomain_fault(name)}"
        yield problem("service-account", ("spec", "serviceAccountName"), message, USE_SUBDOMAIN, name)


def validate_volumes(subject: Subject) -> Iterator[Problem]:
    """As ValidateVolumes."""
    volumes: Sequence[JSON] = get(subject.object, ("spec", "volumes")) or ()
    seen: set[str] = set()
    for index, each in enumerate(subject.deadline.paced(volumes)):
        at = ("spec", "volumes", index)
        yield from _validate_name(each.get("name") or "", at, "volume", seen)
        host = get(each, ("hostPath", "path"), "") if "hostPath" in each else ""
        if ".." in host.split("/"):
            message = "must not contain `..`"
            yield problem("host-path", (*at, "hostPath", "path"), message, "write the path without `..`", host)
