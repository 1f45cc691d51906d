"""Taints of devices: those that a driver publishes, and those that DeviceTaintRules add.

Source: k8s.io/dynamic-resource-allocation v0.36.1 resourceslice/tracker/tracker.go applyPatches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Final, TypeAlias

from webhook.attributes import JSON, GroupVersionKind
from webhook.cluster.interest import reading
from webhook.deadline import Deadline
from webhook.facts.dra.device_pools import Device
from webhook.facts.pods.node_selection import untolerated
from webhook.facts.values import items, mapping, text
from webhook.paths import get

RULE: Final = GroupVersionKind("resource.k8s.io", "v1beta2", "DeviceTaintRule")
LOOKUP: Final = reading(RULE, "spec")
_PARTS: Final = ("driver", "pool", "device")
Rules: TypeAlias = Mapping[tuple[str, ...], Sequence[JSON]]
"""Taints by driver, pool and name of the devices that have them, "" for any."""


def taint_rules(rules: Iterable[JSON], deadline: Deadline) -> Rules:
    """The taints that DeviceTaintRules add; one of v1alpha3 that selects by class or expression is left out."""
    made: dict[tuple[str, ...], list[JSON]] = {}
    for each in deadline.paced(rules):
        selector = mapping(get(each, ("spec", "deviceSelector")))
        if selector.keys() <= set(_PARTS):
            key = tuple(text(selector.get(part)) for part in _PARTS)
            made.setdefault(key, []).append(get(each, ("spec", "taint")))
    return made


def untolerated_taint(device: Device, tolerations: Sequence[JSON], rules: Rules, deadline: Deadline) -> str:
    """The first taint that keeps a device from a request with these tolerations, as `key=value:effect`; "" for none."""
    taints = items(device.fields.get("taints"))
    if rules:
        named = product((device.pool.driver, ""), (device.pool.name, ""), (device.name, ""))
        taints = [*taints, *(taint for key in dict.fromkeys(named) for taint in rules.get(key, ()))]
    taint = untolerated(taints, tolerations, deadline) if taints else None
    if taint is None:
        return ""
    value = text(taint.get("value"))
    return f"{text(taint.get('key'))}{value and f'={value}'}:{text(taint.get('effect'))}"
