"""Computes how much of a capacity of a device one request uses.

Source: k8s.io/dynamic-resource-allocation v0.36.1 structured/internal/experimental/consumable_capacity.go
calculateConsumedCapacity, violatesPolicy; kubernetes-sigs/kueue@ff69552e pkg/dra/capacity.go does the same.
"""

from __future__ import annotations

from webhook import quantity
from webhook.attributes import JSON
from webhook.facts.dra.slice_types import DeviceCapacity


def consumed_capacity(capacity: DeviceCapacity, asks: int | None) -> int | None:
    """Return the requested amount, the default or the whole capacity, rounded up by the policy; None if that is too
    much.

    Args:
        capacity: `capacity.<name>` of a device.
        asks: what the request asks for, in whole units; None where it says nothing.
    """
    policy = capacity.request_policy
    given = (asks, rounded_up_units(policy.default), rounded_up_units(capacity.value))
    value = next((amount for amount in given if amount is not None), 0)
    valid = [rounded_up_units(amount) for amount in policy.valid_values]
    if valid:
        return next((amount for amount in valid if amount is not None and amount >= value), None)
    bounds = policy.valid_range
    least, most, step = rounded_up_units(bounds.min), rounded_up_units(bounds.max), rounded_up_units(bounds.step)
    if least is not None:
        value = max(value, least)
        if step is not None and step > 0:
            value = least + -(-(value - least) // step) * step
    return None if most is not None and value > most else value


def rounded_up_units(amount: JSON) -> int | None:
    """Return a quantity in whole units, rounded up; None if it is not set."""
    read = quantity.read_quantity_or_none(amount)
    return None if read is None else read.value()
