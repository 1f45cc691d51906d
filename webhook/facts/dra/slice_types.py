"""The kinds of resource.k8s.io that publish and taint devices, with the fields that are read.

v1beta1 has the parts of a device under `basic`, v1beta2 and v1 next to its name: `PublishedDevice.fields` reads both.
Source: k8s.io/api v0.36.1 resource.
"""

from __future__ import annotations

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.facts.dra.types import GROUP
from webhook.typed.fields import Number, Part, PartMap, Parts, Raw, Text, Truth, Values, part_at
from webhook.typed.objects import Object
from webhook.typed.view import Typed


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
    """The amounts of a capacity that a request may use: from `min` to `max`, in steps."""

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
    """The attributes of a device by their names; expressions read them as JSON."""

    def string(self, name: str) -> str:
        """Return the text of an attribute, "" if it has none."""
        return part_at(self, name, DeviceAttribute).string


class DeviceFields(Typed):
    """The attributes, capacities and taints of a device; expressions see its JSON."""

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
        """Return the attributes and the capacity of the device, whichever version its slice has."""
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
