"""The types of core/v1 that pods are made of, with the fields that checks read."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.attributes import POD
from webhook.typed.fields import (
    Amounts,
    Labels,
    OptionalNumber,
    OptionalTruth,
    Part,
    Parts,
    Raw,
    Text,
    Texts,
    Truth,
)
from webhook.typed.objects import Metadata, Object
from webhook.typed.view import Typed


class ContainerClaim(Typed):
    """core/v1 ResourceClaim: a claim of the pod that a container uses."""

    name = Text()
    request = Text()


class Resources(Typed):
    """core/v1 ResourceRequirements."""

    limits = Amounts()
    requests = Amounts()
    claims = Parts(ContainerClaim)


class KeySelector(Typed):
    """core/v1 ConfigMapKeySelector and SecretKeySelector."""

    name = Text()
    key = Text()
    optional = Truth()


class VariableSource(Typed):
    """core/v1 EnvVarSource."""

    config_map_key_ref = Part(KeySelector)
    secret_key_ref = Part(KeySelector)
    field_ref = Raw()
    resource_field_ref = Raw()


class Variable(Typed):
    """core/v1 EnvVar."""

    name = Text()
    value = Text()
    value_from = Part(VariableSource)


class ContainerPort(Typed):
    """core/v1 ContainerPort."""

    name = Text()
    container_port = OptionalNumber()
    host_port = OptionalNumber()
    protocol = Text()


class VolumeMount(Typed):
    """core/v1 VolumeMount."""

    name = Text()
    mount_path = Text()
    sub_path = Text()
    read_only = Truth()


class Container(Typed):
    """core/v1 Container."""

    name = Text()
    image = Text()
    command = Texts()
    args = Texts()
    env = Parts(Variable)
    ports = Parts(ContainerPort)
    resources = Part(Resources)
    restart_policy = Text()
    volume_mounts = Parts(VolumeMount)
    working_dir = Text()

    @property
    def is_init(self) -> bool:
        """Whether it is an init container; a sidecar is one."""
        return "initContainers" in self.at

    @property
    def is_sidecar(self) -> bool:
        """Whether it is an init container that keeps running beside the others."""
        return self.is_init and self.restart_policy == "Always"

    @property
    def words(self) -> list[str]:
        """Its command and arguments."""
        return [*self.command, *self.args]


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


class VolumeClaimSource(Typed):
    """core/v1 PersistentVolumeClaimVolumeSource."""

    claim_name = Text()
    read_only = Truth()


class EmptyDir(Typed):
    """core/v1 EmptyDirVolumeSource."""

    medium = Text()
    size_limit = Raw()


class Volume(Typed):
    """core/v1 Volume."""

    name = Text()
    persistent_volume_claim = Part(VolumeClaimSource)
    empty_dir = Part(EmptyDir)


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


class NodeSelector(Typed):
    """core/v1 NodeSelector."""

    node_selector_terms = Parts(NodeSelectorTerm)


class NodeAffinity(Typed):
    """core/v1 NodeAffinity."""

    required = Part(NodeSelector, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Typed):
    """core/v1 Affinity."""

    node_affinity = Part(NodeAffinity)


class PodSpec(Typed):
    """core/v1 PodSpec."""

    active_deadline_seconds = OptionalNumber()
    affinity = Part(Affinity)
    automount_service_account_token = OptionalTruth()
    containers = Parts(Container)
    host_ipc = Truth(name="hostIPC")
    host_network = Truth()
    init_containers = Parts(Container)
    node_name = Text()
    node_selector = Labels()
    overhead = Amounts()
    priority_class_name = Text()
    resource_claims = Parts(PodClaim)
    resources = Part(Resources)
    restart_policy = Text()
    runtime_class_name = Text()
    scheduler_name = Text()
    subdomain = Text()
    tolerations = Parts(Toleration)
    volumes = Parts(Volume)

    def all_containers(self) -> Iterator[Container]:
        """The containers, then the init containers, each in order. Ephemeral ones cannot have resources.

        Source: k8s.io/kubernetes v1.36 allowedEphemeralContainerFields.
        """
        yield from self.containers
        yield from self.init_containers


class PodTemplate(Typed):
    """core/v1 PodTemplateSpec."""

    metadata = Part(Metadata)
    spec = Part(PodSpec)


class Pod(Object):
    """core/v1 Pod."""

    gvk = POD
    spec = Part(PodSpec)
