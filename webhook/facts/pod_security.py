"""Pods that Pod Security refuses: what the levels `baseline` and `restricted` demand of each field, by release.

Labels of a Namespace name the level, and perhaps the release. Without a release in the labels, Pod Security uses the
release of the API server. This release is not known here. So a demand is reported only if both the oldest and the
newest supported release have the demand.

OpenShift sets fields of each pod by a SecurityContextConstraints before Pod Security reads the pod. The default,
restricted-v2, sets the fields that the level `restricted` demands.

A file may have only a part of a template. Another file, or a controller, may set more fields, so only the fields of the
part are reported.

Source: k8s.io/pod-security-admission v0.36 policy/check_*.go, policy/registry.go and api/helpers.go;
openshift/cluster-kube-apiserver-operator bindata/bootkube/scc-manifests for restricted-v2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from webhook.apimachinery import releases
from webhook.apimachinery.attributes import JSON
from webhook.facts.subject import Subject
from webhook.text.wording import shown, some_of
from webhook.typed.collections import Entries
from webhook.typed.objects import Namespace
from webhook.typed.pods import AnySecurityContext, Container, LifecycleHandler, PodSpec, PodTemplate, Probe
from webhook.typed.view import Typed
from webhook.typed.volumes import Volume

_LABEL: Final = "pod-security.kubernetes.io/enforce"
_RELEASE_LABEL: Final = "pod-security.kubernetes.io/enforce-version"
_RELEASE: Final = re.compile(r"v1\.(0|[1-9][0-9]{0,2})")
_OLDEST: Final = releases.OLDEST[1]
_NEWEST: Final = releases.DEFAULT[1]
"""The oldest and the newest minor release of Kubernetes for an API server of unknown release."""
_OPENSHIFT: Final = "openshift.io/"
"""A part of the keys of OpenShift's labels and annotations."""
_MOST_NAMES: Final = 3
_NEVER: Final = 1000
_CAPABILITIES: Final = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_RESTRICTED_CAPABILITIES: Final = frozenset(("NET_BIND_SERVICE",))
_VOLUMES: Final = frozenset(
    (
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim"),
        *("projected", "secret"),
    )
)
_PROFILES: Final = frozenset(("RuntimeDefault", "Localhost"))
_SE_LINUX_TYPES: Final = (
    (0, frozenset(("", "container_t", "container_init_t", "container_kvm_t"))),
    (31, frozenset(("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"))),
)
_SYSCTLS: Final = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}
"""The safe sysctls, each with the first minor release that allows it."""
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"


class Breach(NamedTuple):
    """A part of a pod that does not meet a demand, such as `the pod` or `container a`, and the demand, such as
    `securityContext.privileged must not be true`.
    """

    of: str
    demand: str


class Enforced(NamedTuple):
    """What a Namespace enforces: a level, and the minor releases that may apply. Only demands that all these releases
    have are reported.

    Args:
        level: baseline or restricted.
        releases: the minor releases.
        on_openshift: whether the Namespace has labels or annotations of OpenShift, which sets fields of the pods.
    """

    level: str
    releases: tuple[int, ...]
    on_openshift: bool = False


def enforced_level(subject: Subject) -> Enforced | None:
    """Return what the namespace of an object enforces; None if the namespace enforces nothing or is not known."""
    namespace = subject.cluster_view().find_namespace(subject.namespace)
    if namespace is None:
        return None
    metadata = Namespace.of(namespace).metadata
    labels, on_openshift = metadata.labels, _OPENSHIFT in metadata.keys
    level = labels.get(_LABEL)
    if level not in ("baseline", "restricted"):
        return None
    release = labels.get(_RELEASE_LABEL, "")
    if release in ("", "latest"):
        return Enforced(level, (_OLDEST, _NEWEST), on_openshift)
    match = _RELEASE.fullmatch(release)
    return Enforced(level, (min(int(match[1]), _NEWEST),), on_openshift) if match else None


def breaches_of_pods(template: PodTemplate, enforced: Enforced, *, is_part: bool = False) -> list[Breach]:
    """Return the demands that the pods do not meet and that all releases of `enforced` have, without repetitions.

    `is_part` says that the template is only a part of a template, so fields that the part lacks are not reported.
    """
    if enforced.on_openshift or is_part:
        template = _with_demanded_fields(template)
    first, *others = (dict.fromkeys(_breaches(template, enforced.level, each)) for each in enforced.releases)
    return [breach for breach in first if all(breach in other for other in others)]


def _with_demanded_fields(template: PodTemplate) -> PodTemplate:
    """Return the template with the fields that the level `restricted` demands. Fields that the template sets keep
    their values. The other fields have the values of restricted-v2.
    """
    spec = template.spec
    of_pod = {"seccompProfile": {"type": "RuntimeDefault"}, "runAsNonRoot": True} | _set_fields(spec.security_context)
    filled = {**spec.json, "securityContext": of_pod}
    lists = {"initContainers": spec.init_containers, "containers": spec.containers}
    for name, containers in lists.items():
        if containers:
            filled[name] = [{**each.json, "securityContext": _filled_context(each)} for each in containers]
    return PodTemplate.of({**template.json, "spec": filled}, template.at, template.reading)


def _filled_context(container: Container) -> Mapping[str, JSON]:
    context = container.security_context
    capabilities = {**_set_fields(context.capabilities), "drop": ["ALL"]}
    return {"allowPrivilegeEscalation": False} | _set_fields(context) | {"capabilities": capabilities}


def _set_fields(value: Typed) -> dict[str, JSON]:
    return {name: field for name, field in value.json.items() if field is not None}


def _breaches(template: PodTemplate, level: str, minor: int) -> Iterator[Breach]:
    spec = template.spec
    is_restricted = level == "restricted"
    yield from (Breach("the pod", demand) for demand in _demands_of_pod(template, minor, is_restricted=is_restricted))
    for container in _all_containers(spec):
        of = f"container {shown(container.name)}"
        yield from (Breach(of, demand) for demand in _demands_of_container(container, spec, minor, is_restricted))
        if is_restricted:
            yield from (Breach(of, demand) for demand in _demands_only_of_restricted(container, spec, minor))
    for volume in spec.volumes:
        if demand := _demand_of_volume(volume, is_restricted=is_restricted):
            yield Breach(f"volume {shown(volume.name)}", demand)


def _all_containers(spec: PodSpec) -> Iterator[Container]:
    for listed in (spec.init_containers, spec.containers, spec.ephemeral_containers):
        yield from listed


def _demands_of_pod(template: PodTemplate, minor: int, *, is_restricted: bool) -> Iterator[str]:
    spec, annotations = template.spec, template.metadata.annotations
    context = spec.security_context
    shared = {"hostNetwork": spec.host_network, "hostPID": spec.host_pid, "hostIPC": spec.host_ipc}
    yield from (f"{name} must not be true" for name, is_shared in shared.items() if is_shared)
    yield from _demands_of_context(context, minor)
    yield from _demands_of_profile(context, minor, needed=False)
    if unsafe := [each.name for each in context.sysctls if minor < _SYSCTLS.get(each.name, _NEVER)]:
        yield f"securityContext.sysctls must not list {_first_names(unsafe)}"
    profiles = {key: value for key, value in annotations.items() if key.startswith(_APP_ARMOR) and value}
    if wrong := _keys_of_other_profiles(profiles, "runtime/default"):
        yield f"the value of annotation {_first_names(wrong)} must be runtime/default or begin with localhost/"
    if minor < 19:
        yield from _demands_of_old_seccomp(annotations, spec)
    if is_restricted:
        if context.run_as_non_root is False and not _may_be_root(spec, minor):
            yield "securityContext.runAsNonRoot must be true"
        if minor >= 23 and context.run_as_user == 0 and not _may_be_root(spec, minor):
            yield "securityContext.runAsUser must not be 0"


def _demands_of_old_seccomp(annotations: Entries[str], spec: PodSpec) -> Iterator[str]:
    """Yield the demands that seccomp annotations do not meet. Releases before 1.19 have no field seccompProfile."""
    names = (_SECCOMP_OF_POD, *(f"{_SECCOMP_OF_CONTAINER}{each.name}" for each in _all_containers(spec)))
    profiles = {name: annotations[name] for name in names if name in annotations}
    if wrong := _keys_of_other_profiles(profiles, "runtime/default", "docker/default"):
        yield f"the value of annotation {_first_names(wrong)} must be runtime/default or begin with localhost/"


def _keys_of_other_profiles(profiles: Mapping[str, str], *allowed: str) -> list[str]:
    """Return the annotations that name neither an allowed profile nor a profile of the node."""
    return [key for key, value in profiles.items() if value not in allowed and not value.startswith("localhost/")]


def _demands_of_context(context: AnySecurityContext, minor: int) -> Iterator[str]:
    """Yield the demands that a security context of a pod or container does not meet."""
    if context.windows_options.host_process:
        yield "securityContext.windowsOptions.hostProcess must not be true"
    if context.app_armor_profile and context.app_armor_profile.type not in _PROFILES:
        yield "securityContext.appArmorProfile.type must be RuntimeDefault or Localhost"
    options = context.se_linux_options
    types = next(names for since, names in reversed(_SE_LINUX_TYPES) if minor >= since)
    if options.type not in types:
        yield f"securityContext.seLinuxOptions.type must not be {shown(options.type)}"
    for name, value in (("user", options.user), ("role", options.role)):
        if value:
            yield f"securityContext.seLinuxOptions.{name} must not be set"


def _demands_of_profile(context: AnySecurityContext, minor: int, *, needed: bool) -> Iterator[str]:
    is_wrong = context.seccomp_profile.type not in _PROFILES if context.seccomp_profile else needed
    if minor >= 19 and is_wrong:
        yield "securityContext.seccompProfile.type must be RuntimeDefault or Localhost"


def _demands_of_container(container: Container, spec: PodSpec, minor: int, is_restricted: bool) -> Iterator[str]:
    context = container.security_context
    if context.privileged:
        yield "securityContext.privileged must not be true"
    yield from _demands_of_context(context, minor)
    is_windows = is_restricted and spec.os.name == "windows" and minor >= 25
    has_profile = bool(spec.security_context.seccomp_profile) and (
        spec.security_context.seccomp_profile.type in _PROFILES
    )
    if not is_windows:
        yield from _demands_of_profile(context, minor, needed=is_restricted and not has_profile)
        allowed = _RESTRICTED_CAPABILITIES if is_restricted and minor >= 22 else _CAPABILITIES
        if added := [each for each in context.capabilities.add if each not in allowed]:
            yield f"securityContext.capabilities.add must not list {_first_names(added)}"
    is_unmasked = context.proc_mount not in ("", "Default")
    if is_unmasked and (is_restricted or minor < 35 or spec.host_users is not False):
        yield "securityContext.procMount must be Default"
    if any(each.host_port for each in container.ports):
        yield "ports must not have hostPort"
    if minor >= 34 and any(_names_a_host(each) for each in _probes_and_hooks(container)):
        yield "probes and lifecycle must not name a host"


def _demands_only_of_restricted(container: Container, spec: PodSpec, minor: int) -> Iterator[str]:
    context = container.security_context
    if spec.os.name != "windows" or minor < 25:
        if minor >= 8 and context.allow_privilege_escalation is not False:
            yield "securityContext.allowPrivilegeEscalation must be false"
        if minor >= 22 and "ALL" not in context.capabilities.drop:
            yield "securityContext.capabilities.drop must list ALL"
    if _may_be_root(spec, minor):
        return
    of_pod = spec.security_context.run_as_non_root
    if context.run_as_non_root is False or (context.run_as_non_root is None and of_pod is not True):
        yield "securityContext.runAsNonRoot must be true"
    if minor >= 23 and context.run_as_user == 0:
        yield "securityContext.runAsUser must not be 0"


def _demand_of_volume(volume: Volume, *, is_restricted: bool) -> str:
    """Return the demand that a volume does not meet, or "". A volume without a source becomes an emptyDir."""
    source = volume.source
    if is_restricted and source and source not in _VOLUMES:
        return f"the type must not be {shown(source)}"
    return "the type must not be hostPath" if source == "hostPath" else ""


def _may_be_root(spec: PodSpec, minor: int) -> bool:
    """Return whether the pod may run as root because it has its own user namespace. Root of this pod is not root of the
    node.
    """
    return minor >= 35 and spec.host_users is False


def _probes_and_hooks(container: Container) -> Iterable[Probe | LifecycleHandler]:
    lifecycle = container.lifecycle
    probes = (container.liveness_probe, container.readiness_probe, container.startup_probe)
    return (*probes, lifecycle.post_start, lifecycle.pre_stop)


def _names_a_host(action: Probe | LifecycleHandler) -> bool:
    return bool(action.http_get.host or action.tcp_socket.host)


def _first_names(names: Sequence[str]) -> str:
    """Return the first names for a message, and the number of the other names."""
    return some_of([*map(shown, names[:_MOST_NAMES]), *names[_MOST_NAMES:]], _MOST_NAMES)
