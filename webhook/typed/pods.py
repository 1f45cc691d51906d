"""The types of core/v1 for pods, with the fields that checks read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from re import Pattern
from typing import Any, Final

from webhook.apimachinery.attributes import POD
from webhook.typed.collections import Items
from webhook.typed.environment import EnvironmentField
from webhook.typed.fields import (
    Amounts,
    Field,
    Labels,
    Names,
    Number,
    OptionalNumber,
    OptionalTruth,
    Part,
    Parts,
    Raw,
    Text,
    Texts,
    Truth,
    ValueMap,
    Values,
)
from webhook.typed.objects import Metadata, Object
from webhook.typed.pod_parts import PodPartsField
from webhook.typed.view import Typed
from webhook.typed.volumes import Volume, VolumeMount

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class ContainerClaim(Typed):
    """core/v1 ResourceClaim: a claim of the pod that a container uses."""

    name = Text()
    request = Text()


class Resources(Typed):
    """core/v1 ResourceRequirements. The written amounts include null, which counts as 0 in a pod."""

    limits = Amounts()
    requests = Amounts()
    written_limits = ValueMap(name="limits")
    written_requests = ValueMap(name="requests")
    claims = Parts(ContainerClaim)


class KeySelector(Typed):
    """core/v1 ConfigMapKeySelector and SecretKeySelector."""

    name = Text()
    key = Text()
    optional = Truth()


class ObjectFieldSelector(Typed):
    """core/v1 ObjectFieldSelector."""

    field_path = Text()


class ResourceFieldSelector(Typed):
    """core/v1 ResourceFieldSelector."""

    resource = Text()


class VariableSource(Typed):
    """core/v1 EnvVarSource."""

    config_map_key_ref = Part(KeySelector)
    secret_key_ref = Part(KeySelector)
    field_ref = Part(ObjectFieldSelector)
    resource_field_ref = Part(ResourceFieldSelector)


class Variable(Typed):
    """core/v1 EnvVar."""

    name = Text()
    value = Text()
    value_from = Part(VariableSource)


class EnvironmentReference(Typed):
    """core/v1 ConfigMapEnvSource and SecretEnvSource."""

    name = Text()
    optional = Truth()


class EnvironmentSource(Typed):
    """core/v1 EnvFromSource."""

    config_map_ref = Part(EnvironmentReference)
    secret_ref = Part(EnvironmentReference)


class PullSecret(Typed):
    """core/v1 LocalObjectReference to a Secret for pulls of images."""

    name = Text()


class ContainerPort(Typed):
    """core/v1 ContainerPort."""

    name = Text()
    container_port = OptionalNumber()
    host_port = OptionalNumber()
    protocol = Text()


class ExecAction(Typed):
    """core/v1 ExecAction."""

    command = Texts()


class SleepAction(Typed):
    """core/v1 SleepAction."""

    seconds = Number()


class TcpSocketAction(Typed):
    """core/v1 TCPSocketAction. The host may differ from the pod, and the port may be a name."""

    host = Text()
    port = Raw()


class HttpGetAction(TcpSocketAction):
    """core/v1 HTTPGetAction."""

    url_path = Text(name="path")
    scheme = Text()


class GrpcAction(Typed):
    """core/v1 GRPCAction."""

    port = Raw()


class LifecycleHandler(Typed):
    """core/v1 LifecycleHandler."""

    exec = Part(ExecAction)
    http_get = Part(HttpGetAction)
    tcp_socket = Part(TcpSocketAction)
    sleep = Part(SleepAction)


class Probe(Typed):
    """core/v1 Probe. Numbers that are not set are None."""

    exec = Part(ExecAction)
    http_get = Part(HttpGetAction)
    tcp_socket = Part(TcpSocketAction)
    grpc = Part(GrpcAction)
    failure_threshold = OptionalNumber()
    initial_delay_seconds = OptionalNumber()
    period_seconds = OptionalNumber()
    success_threshold = OptionalNumber()

    @property
    def connections(self) -> Sequence[TcpSocketAction | GrpcAction]:
        """Return the handlers that connect to a port."""
        http = (self.http_get,) if "httpGet" in self.json else ()
        tcp = (self.tcp_socket,) if "tcpSocket" in self.json else ()
        return (*http, *tcp, self.grpc) if "grpc" in self.json else (*http, *tcp)


class Lifecycle(Typed):
    """core/v1 Lifecycle."""

    pre_stop = Part(LifecycleHandler)
    post_start = Part(LifecycleHandler)


class Capabilities(Typed):
    """core/v1 Capabilities."""

    add = Texts()
    drop = Texts()


class SELinuxOptions(Typed):
    """core/v1 SELinuxOptions."""

    type = Text()
    user = Text()
    role = Text()


class Profile(Typed):
    """core/v1 SeccompProfile and AppArmorProfile."""

    type = Text()


class WindowsOptions(Typed):
    """core/v1 WindowsSecurityContextOptions."""

    host_process = Truth()


class Sysctl(Typed):
    """core/v1 Sysctl."""

    name = Text()


class AnySecurityContext(Typed):
    """The common fields of the security contexts of containers and of pods."""

    run_as_user = OptionalNumber()
    run_as_group = OptionalNumber()
    run_as_non_root = OptionalTruth()
    app_armor_profile = Part(Profile)
    se_linux_options = Part(SELinuxOptions)
    seccomp_profile = Part(Profile)
    windows_options = Part(WindowsOptions)


class SecurityContext(AnySecurityContext):
    """core/v1 SecurityContext."""

    privileged = Truth()
    allow_privilege_escalation = OptionalTruth()
    capabilities = Part(Capabilities)
    proc_mount = Text()
    read_only_root_filesystem = Truth()


class PodSecurityContext(AnySecurityContext):
    """core/v1 PodSecurityContext."""

    fs_group = OptionalNumber()
    sysctls = Parts(Sysctl)


class Container(Typed):
    """core/v1 Container. `environment` has the names and values of `env`, without an object for each variable."""

    name = Text()
    image = Text()
    command = Texts()
    args = Texts()
    env = Parts(Variable)
    env_from = Values()
    env_sources = Parts(EnvironmentSource, name="envFrom")
    env_names = Names(name="env")
    environment = EnvironmentField(name="env")
    image_pull_policy = Text()
    lifecycle = Part(Lifecycle)
    liveness_probe = Part(Probe)
    ports = Parts(ContainerPort)
    readiness_probe = Part(Probe)
    resources = Part(Resources)
    restart_policy = Text()
    security_context = Part(SecurityContext)
    startup_probe = Part(Probe)
    restart_policy_rules = Values()
    volume_mounts = Parts(VolumeMount)
    working_dir = Text()

    def mounts_with_repetition(self) -> Iterator[tuple[VolumeMount, bool]]:
        """Yield each mount, and whether an earlier mount of the container has the same path."""
        paths: set[str] = set()
        for mount in self.volume_mounts:
            yield mount, mount.mount_path in paths
            paths.add(mount.mount_path)

    @property
    def is_part(self) -> bool:
        """Return whether a file has only a part of the container: the field `image` is not set, as in most patches."""
        return not self.has("image")

    @property
    def is_init(self) -> bool:
        """Return whether the container is an init container; a sidecar is also an init container."""
        return "initContainers" in self.at

    @property
    def is_sidecar(self) -> bool:
        """Return whether the container is an init container that keeps running next to the other containers."""
        return self.is_init and self.restart_policy == "Always"

    @cached_property
    def words(self) -> Sequence[str]:
        """Return the container's command and arguments."""
        return (*self.command, *self.args)

    @cached_property
    def command_line(self) -> str:
        """Return the container's command and arguments with a blank between them."""
        return " ".join(self.words)

    def runs(self, pattern: Pattern[str]) -> bool:
        """Return whether a pattern is found in the container's command line."""
        return self.is_found_in(pattern, (self.command_line,))

    def mentions(self, sign: str) -> bool:
        """Return whether the container's command line contains a text."""
        self.reading.deadline.spend_text(self.command_line)
        return sign in self.command_line


class PodClaim(Typed):
    """core/v1 PodResourceClaim."""

    name = Text()
    resource_claim_name = Text()
    resource_claim_template_name = Text()


class Toleration(Typed):
    """core/v1 Toleration."""

    key = Text()
    operator = Text()
    value = Text()
    effect = Text()
    toleration_seconds = OptionalNumber()


class Taint(Typed):
    """core/v1 Taint."""

    key = Text()
    value = Text()
    effect = Text()


class SelectorRequirement(Typed):
    """core/v1 NodeSelectorRequirement and meta/v1 LabelSelectorRequirement."""

    key = Text()
    operator = Text()
    values = Texts()


class LabelSelector(Typed):
    """meta/v1 LabelSelector."""

    match_labels = Labels()
    match_expressions = Parts(SelectorRequirement)


class NodeSelectorTerm(Typed):
    """core/v1 NodeSelectorTerm."""

    match_expressions = Parts(SelectorRequirement)
    match_fields = Parts(SelectorRequirement)


class NodeSelector(Typed):
    """core/v1 NodeSelector."""

    node_selector_terms = Parts(NodeSelectorTerm)


class PreferredNodes(Typed):
    """core/v1 PreferredSchedulingTerm."""

    weight = Number()
    preference = Part(NodeSelectorTerm)


class NodeAffinity(Typed):
    """core/v1 NodeAffinity."""

    required = Part(NodeSelector, name=REQUIRED)
    preferred = Parts(PreferredNodes, name=PREFERRED)


class PodAffinityTerm(Typed):
    """core/v1 PodAffinityTerm."""

    topology_key = Text()


class PreferredPods(Typed):
    """core/v1 WeightedPodAffinityTerm."""

    weight = Number()
    pod_affinity_term = Part(PodAffinityTerm)


class PodAffinity(Typed):
    """core/v1 PodAffinity and PodAntiAffinity."""

    required = Parts(PodAffinityTerm, name=REQUIRED)
    preferred = Parts(PreferredPods, name=PREFERRED)


class Affinity(Typed):
    """core/v1 Affinity."""

    node_affinity = Part(NodeAffinity)
    pod_affinity = Part(PodAffinity)
    pod_anti_affinity = Part(PodAffinity)


class SchedulingGate(Typed):
    """core/v1 PodSchedulingGate."""

    name = Text()


class PodOs(Typed):
    """core/v1 PodOS."""

    name = Text()


class SchedulingGroup(Typed):
    """core/v1 PodSchedulingGroup: the group that the pod is scheduled with."""

    pod_group_name = Text()


_OWN_AND_ANOTHER: Final = 2


class _AllContainers(Field[tuple[Container, ...]]):
    """The containers of a pod, then its init containers. They are read once, because nearly every check uses them."""

    def read(self, value: Any, owner: Typed) -> tuple[Container, ...]:  # noqa: ARG002
        """Return the containers and init containers that are objects."""
        assert isinstance(owner, PodSpec)
        init = owner.init_containers if "initContainers" in owner.json else ()
        return tuple([container for listed in (owner.containers, init) for container in listed if container.is_set])


class PodSpec(Typed):
    """core/v1 PodSpec."""

    active_deadline_seconds = OptionalNumber()
    affinity = Part(Affinity)
    automount_service_account_token = OptionalTruth()
    containers = Parts(Container)
    ephemeral_containers = Parts(Container)
    dns_policy = Text()
    host_ipc = Truth(name="hostIPC")
    host_network = Truth()
    host_pid = Truth(name="hostPID")
    host_users = OptionalTruth()
    hostname = Text()
    image_pull_secrets = Parts(PullSecret)
    init_containers = Parts(Container)
    node_name = Text()
    node_selector = Labels()
    os = Part(PodOs)
    overhead = ValueMap()
    priority_class_name = Text()
    resource_claims = Parts(PodClaim)
    resources = Part(Resources)
    restart_policy = Text()
    runtime_class_name = Text()
    scheduler_name = Text()
    scheduling_group = Part(SchedulingGroup)
    scheduling_gates = Parts(SchedulingGate)
    security_context = Part(PodSecurityContext)
    service_account_name = Text()
    subdomain = Text()
    termination_grace_period_seconds = OptionalNumber()
    tolerations = Parts(Toleration)
    volumes = Parts(Volume)
    _all_containers = _AllContainers(name="containers")

    def all_containers(self) -> Iterable[Container]:
        """Return the containers, then the init containers, in order, for one iteration. Ephemeral containers cannot
        have resources. The work for each container may be long, so the iteration reads the clock.
        """
        return self.reading.deadline.charge_for_items(self._all_containers)

    def running_containers(self) -> Iterable[Container]:
        """Return the containers and sidecars, which run as long as the pod does, for one iteration."""
        return self.reading.deadline.charge_for_items(self._running_containers)

    @property
    def is_part(self) -> bool:
        """Return whether a file has only a part of the pod: no container, or only a part of a container."""
        return not self.containers or any(container.is_part for container in self.all_containers())

    @cached_property
    def _running_containers(self) -> Sequence[Container]:
        return [container for container in self.all_containers() if not container.is_init or container.is_sidecar]

    @cached_property
    def names_of_listeners(self) -> Mapping[int | None, Collection[str]]:
        """Return the names of running containers by the ports that they list; None is the key for containers without
        ports. Two names of a port are enough to know whether another container listens on the port.
        """
        names: dict[int | None, dict[str, None]] = {}
        for container in self.running_containers():
            for number in [each.container_port for each in container.ports] or [None]:
                known = names.setdefault(number, {})
                if len(known) < _OWN_AND_ANOTHER:
                    known[container.name] = None
        return names

    def required_node_terms(self) -> Items[NodeSelectorTerm]:
        """Return the terms of required affinity; a node must match at least one."""
        if "affinity" not in self.json:  # as in most pods
            return self.charged_list(())
        return self.affinity.node_affinity.required.node_selector_terms


class PodTemplate(Typed):
    """core/v1 PodTemplateSpec."""

    metadata = Part(Metadata)
    spec = Part(PodSpec)


class Pod(PodTemplate, Object):
    """core/v1 Pod, which is its own template."""

    gvk = POD
    parts = PodPartsField(name="spec")
