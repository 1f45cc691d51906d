"""The Configuration of Kueue with the fields that facts and checks need.

Source: kubernetes-sigs/kueue@ff69552e apis/config/v1beta2.
"""

from __future__ import annotations

from webhook.typed.fields import Amounts, Part, Parts, Raw, Text, Texts, Truth, Truths
from webhook.typed.view import Typed


class Integrations(Typed):
    """The kinds that Kueue manages."""

    frameworks = Texts()


class CelSelector(Typed):
    """An expression about devices."""

    expression = Text()


class DeviceSelector(Typed):
    """The devices that count."""

    cel = Part(CelSelector)


class DeviceCounterOrCapacity(Typed):
    """A counter or a capacity of the devices of a driver."""

    name = Text()
    driver = Text()
    device_selector = Part(DeviceSelector)


class DeviceSource(Typed):
    """The part of devices that is counted in place of their number."""

    counter = Part(DeviceCounterOrCapacity)
    capacity = Part(DeviceCounterOrCapacity)


class DeviceClassMapping(Typed):
    """The name under which quota counts the devices of some classes."""

    name = Text()
    device_class_names = Texts()
    sources = Parts(DeviceSource)


class ResourceTransformation(Typed):
    """The resources that a resource is converted to."""

    input = Text()
    strategy = Text()
    outputs = Amounts()
    multiply_by = Text()


class ResourceSettings(Typed):
    """The settings for counting resources."""

    exclude_resource_prefixes = Texts()
    transformations = Parts(ResourceTransformation)
    quota_check_strategy = Text()
    device_class_mappings = Parts(DeviceClassMapping)


class WrittenConfiguration(Typed):
    """config.kueue.x-k8s.io Configuration."""

    manage_jobs_without_queue_name = Truth()
    managed_jobs_namespace_selector = Raw()
    integrations = Part(Integrations)
    resources = Part(ResourceSettings)
    feature_gates = Truths()
