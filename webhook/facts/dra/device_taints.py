"""The taints of devices: those that a driver publishes, and those that DeviceTaintRules add.

Source: k8s.io/dynamic-resource-allocation v0.36.1 resourceslice/tracker/tracker.go applyPatches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final, TypeAlias

from webhook.attributes import JSON
from webhook.cluster.interest import interest_in_fields
from webhook.facts.dra.device_pools import PooledDevice
from webhook.facts.dra.slice_types import DeviceTaint, DeviceTaintRule
from webhook.facts.pods.node_selection import first_untolerated_taint
from webhook.facts.view import ClusterView

LOOKUP: Final = interest_in_fields(DeviceTaintRule.gvk, "spec")
_PARTS: Final = frozenset(("driver", "pool", "device"))
TaintRules: TypeAlias = Mapping[tuple[str, str, str], Sequence[JSON]]
"""Taints by driver, pool and name of the devices that have them; "" stands for any."""


def read_taint_rules(view: ClusterView) -> TaintRules:
    """Return the taints that DeviceTaintRules add; v1alpha3 rules that select by class or expression are left out."""
    taints: dict[tuple[str, str, str], list[JSON]] = {}
    for rule in view.list_visible(DeviceTaintRule):
        selector = rule.spec.device_selector
        if selector.json.keys() <= _PARTS:
            taints.setdefault((selector.driver, selector.pool, selector.device), []).append(rule.spec.taint.json)
    return taints


def untolerated_taint(device: PooledDevice, tolerations: Sequence[JSON], rules: TaintRules) -> str:
    """Return the first taint of a device that is not tolerated, as `key=value:effect`; "" if there is none."""
    fields, taints = device.fields, [*device.fields.taints]
    if rules:
        named = product((device.pool.driver, ""), (device.pool.name, ""), (device.name, ""))
        taints += (taint for key in dict.fromkeys(named) for taint in rules.get(key, ()))
    first = first_untolerated_taint(taints, tolerations, fields.reading.deadline) if taints else None
    if first is None:
        return ""
    taint = DeviceTaint(first, (), fields.reading)
    return f"{taint.key}{taint.value and f'={taint.value}'}:{taint.effect}"
