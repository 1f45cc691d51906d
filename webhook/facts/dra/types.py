"""The groups of rules of this package, the kinds of resource.k8s.io, and the other kinds that name claims.

v1beta1 and v1alpha3 have the fields of an exact request next to the name of the request. v1beta2 and v1 have these
fields under `exactly`. `DeviceRequest.flat_request` reads the old form. v1beta1 has the parts of a published device
under `basic`. v1beta2 and v1 have these parts next to the name of the device. `PublishedDevice.fields` reads both
forms. Other fields have the names of v1, because lookups request v1.

Source: k8s.io/api v0.36.1 resource and resource/*/zz_generated.prerelease-lifecycle.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.facts.removed_versions import releases_of_files
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.rules.rule import BY_POD_VALIDATION, Rule, RuleGroup
from webhook.typed.fields import (
    Amounts,
    AnyPart,
    Number,
    OptionalNumber,
    Part,
    PartMap,
    Parts,
    Raw,
    Text,
    Texts,
    Truth,
    Truths,
    Values,
    part_at,
)
from webhook.typed.objects import Object
from webhook.typed.pods import PodClaim, Toleration
from webhook.typed.view import Typed

DEVICE_CLAIMS: Final = RuleGroup(
    "device-claims",
    refused_by=BY_POD_VALIDATION,
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="controller",
)
"""Rules of Kubernetes about the device claims of pods."""
DEVICE_CLAIMS_ADVICE: Final = RuleGroup(
    "device-claims",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/",
    level="warn",
    fails="silent",
)
"""Rules about claims that Kubernetes accepts, although a container gets no device or a device stays idle."""
RESOURCE_CLAIMS: Final = RuleGroup(
    "resource-claims",
    refused_by="the API server, if it serves the version",
    source="k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go",
    fails="create",
)
"""Rules about ResourceClaims, ResourceClaimTemplates, and the claims of PodGroups and Workloads."""
DEVICE_CLASSES: Final = RuleGroup(
    "device-classes",
    refused_by="the API server, if it serves the version",
    source="k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go",
    fails="create",
    refused_on_updates="pkg/apis/resource/validation/validation.go ValidateDeviceClassUpdate",
)
"""Rules about DeviceClasses and DeviceTaintRules."""
RESOURCE_SLICES: Final = RuleGroup(
    "resource-slices",
    source="k8s.io/dynamic-resource-allocation v0.36.1 structured/internal/experimental/allocator_experimental.go",
    level="warn",
    fails="pending",
)
"""Rules about the devices that the selectors of claims and classes select in the cluster."""
NVIDIA_DEVICE_CONFIG: Final = RuleGroup(
    "nvidia-device-config",
    refused_by="NVIDIA's DRA driver, when it prepares the claim on the node",
    source="kubernetes-sigs/dra-driver-nvidia-gpu@95932046 (0.5) api/nvidia.com/resource/v1beta1",
    fails="start",
)
"""Rules about parameters in claims and classes for NVIDIA's DRA driver. Kubernetes does not check these parameters."""
GROUP: Final = "resource.k8s.io"
SCHEDULING: Final = "scheduling.k8s.io"
POINTERS: Final = ("selectors", "adminAccess", "tolerations", "capacity")
"""Fields of an exact request that count as set when they are present, also with an empty value, as in the API server.
"""
FLAT_VERSIONS: Final = frozenset(("v1alpha3", "v1beta1"))
"""Versions that write the fields of an exact request next to the name of the request."""
_SERVED: Final[Mapping[str, tuple[int, int]]] = {
    "v1": (34, 99),
    "v1beta2": (33, 39),
    "v1beta1": (32, 38),
    "v1alpha3": (31, 34),
    "v1alpha2": (27, 31),
    "v1alpha1": (26, 27),
}
"""Maps an API version to two minor releases of Kubernetes 1: the first release that serves the version, and the first
later release that does not serve the version.
"""
_DEPRECATED: Final[Mapping[str, int]] = {"v1beta1": 35, "v1beta2": 36}
"""Maps a deprecated API version to the first minor release that deprecates the version."""


class CelSelector(Typed):
    """An expression about one device."""

    expression = Text()


class DeviceSelector(Typed):
    """A selector of devices."""

    cel = Part(CelSelector)


class CapacityRequirements(Typed):
    """How much a request needs of each capacity of a device."""

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


class DeviceRequest(Typed):
    """A request of a claim."""

    name = Text()
    exactly = Part(ExactDeviceRequest)
    first_available = Parts(DeviceSubRequest)

    @property
    def flat_request(self) -> ExactDeviceRequest:
        """Return the exact request in the form of v1beta1, with fields next to the name; false if no field is set."""
        asked = ExactDeviceRequest(self.json, self.at, self.reading)
        asked.is_set = asked.has_any_field_set()
        return asked


class DeviceConstraint(Typed):
    """An attribute that must be equal, or different, for the devices of some requests."""

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
    """The devices that a claim requests."""

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


def _has_flat_request(obj: Object) -> bool:
    """Return whether an object is a claim or a template with a request that has its fields next to its name."""
    if obj.version not in FLAT_VERSIONS or not isinstance(obj, ResourceClaim | ResourceClaimTemplate):
        return False
    return any(request.has("deviceClassName") for request in obj.claim_spec.devices.requests)


def check_api_version(obj: Object, subject: Subject, served: Rule, deprecated: Rule) -> Iterator[Problem]:
    """Report an API version that the assumed release of Kubernetes does not serve, or that is deprecated.

    The files may create a cluster of an older release that serves the version, for example with a Cluster of kind.
    """
    version, target = obj.version, subject.assumptions.kubernetes[1]
    if version not in _SERVED:
        return
    (first, end), rule = _SERVED[version], served
    if target < first:
        message = f"is served from Kubernetes 1.{first} on, but Kubernetes 1.{target} is assumed here"
    elif target >= end:
        if any((1, first) <= release < (1, end) for release in releases_of_files(subject)):
            return
        message = f"is not served since Kubernetes 1.{end}, but Kubernetes 1.{target} is assumed here"
    elif target >= _DEPRECATED.get(version, end):
        message, rule = f"is deprecated, and Kubernetes 1.{end} and later do not serve it", deprecated
    else:
        return
    newest = next((name for name, (since, until) in _SERVED.items() if since <= target < until), "")
    fix = f"write the object as resource.k8s.io/{newest}" if newest else ""
    if fix and newest not in FLAT_VERSIONS and _has_flat_request(obj):
        fix = f"{fix}, with the fields of each request under exactly"
    yield rule.problem("apiVersion", message, fix, obj.api_version)


class DeviceTaint(Typed):
    """A taint of a device."""

    key = Text()
    value = Text()
    effect = Text()


class DeviceTaintSelector(Typed):
    """The devices that a rule taints."""

    driver = Text()
    pool = Text()
    device = Text()


class DeviceTaintRuleSpec(Typed):
    """The taint of a DeviceTaintRule, and the devices that get it."""

    device_selector = Part(DeviceTaintSelector)
    taint = Part(DeviceTaint)


class DeviceTaintRule(Object):
    """resource.k8s.io DeviceTaintRule."""

    gvk = GroupVersionKind(GROUP, "v1beta2", "DeviceTaintRule")
    spec = Part(DeviceTaintRuleSpec)


class CounterValue(Typed):
    """The value of a counter."""

    value = Raw()


class CounterSet(Typed):
    """Counters that devices of a pool share."""

    name = Text()
    counters = PartMap(CounterValue)


class CounterConsumption(Typed):
    """The amounts that a device uses of a set of counters."""

    counter_set = Text()
    counters = PartMap(CounterValue)


class CapacityRange(Typed):
    """The amounts of a capacity that a request may use: from `min` to `max`, in steps of `step`."""

    min = Raw()
    max = Raw()
    step = Raw()


class CapacityPolicy(Typed):
    """The policy that decides how much of a capacity a request uses."""

    default = Raw()
    valid_values = Values()
    valid_range = Part(CapacityRange)


class DeviceCapacity(Typed):
    """A capacity of a device."""

    value = Raw()
    request_policy = Part(CapacityPolicy)


class DeviceAttribute(Typed):
    """An attribute of a device."""

    string = Text()


class DeviceAttributes(Typed):
    """The attributes of a device, by name."""

    def string(self, name: str) -> str:
        """Return the text of an attribute; "" if the attribute has no text."""
        return part_at(self, name, DeviceAttribute).string


class DeviceFields(Typed):
    """The attributes, capacities and taints of a device."""

    attributes = Part(DeviceAttributes)
    capacity = PartMap(DeviceCapacity)
    consumes_counters = Parts(CounterConsumption)
    node_name = Text()
    taints = Values()


class PublishedDevice(DeviceFields):
    """A device of a slice."""

    name = Text()

    @property
    def fields(self) -> DeviceFields:
        """Return the fields of the device: under `basic` in v1beta1, and next to the name in later versions."""
        if "basic" not in self.json:
            return self
        basic = V1beta1Device(self.json, self.at, self.reading).basic
        return basic if basic.json else self


class V1beta1Device(Typed):
    """A device of v1beta1."""

    basic = Part(DeviceFields)


class ResourcePool(Typed):
    """The pool that a slice is a part of."""

    name = Text()
    generation = Number()
    resource_slice_count = Number()


class ResourceSliceSpec(Typed):
    """The devices of a slice."""

    driver = Text()
    pool = Part(ResourcePool)
    node_name = Text()
    per_device_node_selection = Truth()
    shared_counters = Parts(CounterSet)
    devices = Parts(PublishedDevice)


class ResourceSlice(Object):
    """resource.k8s.io ResourceSlice."""

    gvk = GroupVersionKind(GROUP, "v1", "ResourceSlice")
    spec = Part(ResourceSliceSpec)


class ChartValues(Typed):
    """The values of a Helm chart that the driver of NVIDIA reads."""

    feature_gates = Truths()


class HelmSource(Typed):
    """The part `spec.source.helm` of an Application of Argo CD."""

    values_object = Part(ChartValues)


class ApplicationSource(Typed):
    """A chart that an Application of Argo CD installs."""

    helm = Part(HelmSource)


class ApplicationSpec(Typed):
    """argoproj.io ApplicationSpec."""

    source = Part(ApplicationSource)
    sources = Parts(ApplicationSource)


class Application(Object):
    """argoproj.io Application."""

    gvk = GroupVersionKind("argoproj.io", "v1alpha1", "Application")
    spec = Part(ApplicationSpec)

    @property
    def all_values(self) -> list[ChartValues]:
        return [each.helm.values_object for each in (self.spec.source, *self.spec.sources)]


class HelmReleaseSpec(Typed):
    """helm.toolkit.fluxcd.io HelmReleaseSpec."""

    values = Part(ChartValues)


class HelmRelease(Object):
    """helm.toolkit.fluxcd.io HelmRelease."""

    gvk = GroupVersionKind("helm.toolkit.fluxcd.io", "v2", "HelmRelease")
    spec = Part(HelmReleaseSpec)
