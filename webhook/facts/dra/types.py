"""The kinds of resource.k8s.io, and others that name claims, with the fields that are read.

v1beta1 and v1alpha3 write what a request asks for exactly next to its name, v1beta2 and v1 under `exactly`:
`DeviceRequest.flat_request` reads the old form. The fields are those of v1, which look-ups ask for. Source:
k8s.io/api v0.36.1 resource.
"""

from __future__ import annotations

from typing import Final

from webhook.attributes import GroupVersionKind
from webhook.typed.fields import (
    Amounts,
    AnyPart,
    OptionalNumber,
    Part,
    Parts,
    Raw,
    Text,
    Texts,
    Truth,
    Values,
)
from webhook.typed.objects import Object
from webhook.typed.pods import PodClaim, Toleration
from webhook.typed.view import Typed

GROUP: Final = "resource.k8s.io"
SCHEDULING: Final = "scheduling.k8s.io"


class CelSelector(Typed):
    """An expression about one device."""

    expression = Text()


class DeviceSelector(Typed):
    """A selector of devices."""

    cel = Part(CelSelector)


class CapacityRequirements(Typed):
    """How much a request needs of the capacities of a device."""

    requests = Amounts()


class DeviceSubRequest(Typed):
    """An alternative of a request."""

    name = Text()
    device_class_name = Text()
    selectors = Parts(DeviceSelector)
    allocation_mode = Text()
    count = OptionalNumber()
    tolerations = Parts(Toleration)
    tolerations_json = Values(name="tolerations")
    capacity = Part(CapacityRequirements)


class ExactDeviceRequest(Typed):
    """The fields of an exact request."""

    device_class_name = Text()
    selectors = Parts(DeviceSelector)
    allocation_mode = Text()
    count = OptionalNumber()
    admin_access = Truth()
    tolerations = Parts(Toleration)
    tolerations_json = Values(name="tolerations")
    capacity = Part(CapacityRequirements)

    def has_any_field_set(self) -> bool:
        """Return whether any field is set; zero values do not count.

        k8s.io/kubernetes v1.36 pkg/apis/resource/v1beta1/conversion.go hasDeviceRequestMainRequestFieldsSet.
        """
        named = self.device_class_name or self.allocation_mode or self.count
        return bool(named) or any(self.json.get(field) is not None for field in POINTERS)


POINTERS: Final = ("selectors", "adminAccess", "tolerations", "capacity")
"""Fields of an exact request that count as set when they are present, as in the API server."""


class DeviceRequest(Typed):
    """A request of a claim."""

    name = Text()
    exactly = Part(ExactDeviceRequest)
    first_available = Parts(DeviceSubRequest)

    @property
    def flat_request(self) -> ExactDeviceRequest:
        """Return the exact request of v1beta1, whose fields stand beside the name; false if none is set."""
        asked = ExactDeviceRequest(self.json, self.at, self.reading)
        asked.is_set = asked.has_any_field_set()
        return asked


class DeviceConstraint(Typed):
    """An attribute that the devices of some requests have in common, or in which they differ."""

    requests = Texts()
    match_attribute = Text()
    distinct_attribute = Text()


class GpuSharing(Typed):
    """How several pods share a GPU."""

    strategy = Text()


class NvidiaParameters(Typed):
    """Parameters of NVIDIA's driver: an object of resource.nvidia.com."""

    api_version = Text()
    domain_id = Text(name="domainID")
    kind = Text()
    sharing = Part(GpuSharing)


class OpaqueConfiguration(Typed):
    """Parameters that only the driver understands."""

    driver = Text()
    parameters = Raw()
    nvidia = AnyPart(NvidiaParameters, name="parameters")


class DeviceConfiguration(Typed):
    """Parameters for a driver, for some requests of a claim."""

    requests = Texts()
    opaque = Part(OpaqueConfiguration)


class DeviceClassConfiguration(Typed):
    """Parameters for a driver in a class."""

    opaque = Part(OpaqueConfiguration)


class Devices(Typed):
    """The devices that a claim asks for."""

    requests = Parts(DeviceRequest)
    constraints = Parts(DeviceConstraint)
    config = Parts(DeviceConfiguration)


class ClaimSpec(Typed):
    """The spec of a claim."""

    devices = Part(Devices)


class ResourceClaim(Object):
    """resource.k8s.io ResourceClaim."""

    gvk = GroupVersionKind(GROUP, "v1", "ResourceClaim")
    spec = Part(ClaimSpec)

    @property
    def claim_spec(self) -> ClaimSpec:
        """Return the spec of the claim."""
        return self.spec


class ClaimTemplateSpec(Typed):
    """The metadata and spec of the claims that a template creates."""

    spec = Part(ClaimSpec)


class ResourceClaimTemplate(Object):
    """resource.k8s.io ResourceClaimTemplate."""

    gvk = GroupVersionKind(GROUP, "v1", "ResourceClaimTemplate")
    spec = Part(ClaimTemplateSpec)

    @property
    def claim_spec(self) -> ClaimSpec:
        """Return the spec of the claims that the template creates."""
        return self.spec.spec


class DeviceClassSpec(Typed):
    """The selectors and parameters of a class."""

    selectors = Parts(DeviceSelector)
    config = Parts(DeviceClassConfiguration)
    extended_resource_name = Text()


class DeviceClass(Object):
    """resource.k8s.io DeviceClass."""

    gvk = GroupVersionKind(GROUP, "v1", "DeviceClass")
    spec = Part(DeviceClassSpec)

    @property
    def expressions(self) -> list[str]:
        """Return the expressions of its selectors."""
        return [selector.cel.expression for selector in self.spec.selectors]


class PodGroupSpec(Typed):
    """The claims that a group of pods shares."""

    resource_claims = Parts(PodClaim)


class PodGroup(Object):
    """scheduling.k8s.io PodGroup."""

    gvk = GroupVersionKind(SCHEDULING, "v1alpha2", "PodGroup")
    spec = Part(PodGroupSpec)


class WorkloadSpec(Typed):
    """The groups of pods of a workload."""

    pod_group_templates = Parts(PodGroupSpec)


class Workload(Object):
    """scheduling.k8s.io Workload."""

    gvk = GroupVersionKind(SCHEDULING, "v1alpha2", "Workload")
    spec = Part(WorkloadSpec)


class TemplateReference(Typed):
    """The template that the controller of a ComputeDomain creates."""

    name = Text()


class ComputeDomainChannel(Typed):
    """The channel by which pods reach a ComputeDomain."""

    resource_claim_template = Part(TemplateReference)


class ComputeDomainSpec(Typed):
    """The spec of a ComputeDomain."""

    channel = Part(ComputeDomainChannel)


class ComputeDomain(Object):
    """resource.nvidia.com ComputeDomain."""

    gvk = GroupVersionKind("resource.nvidia.com", "v1beta1", "ComputeDomain")
    spec = Part(ComputeDomainSpec)
