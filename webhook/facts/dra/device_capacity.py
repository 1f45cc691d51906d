"""How much of a capacity of a device one request uses.

Source: k8s.io/dynamic-resource-allocation v0.36.1 structured/internal/experimental/consumable_capacity.go
calculateConsumedCapacity, violatesPolicy; kubernetes-sigs/kueue@ff69552e pkg/dra/capacity.go does the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from webhook import quantity
from webhook.attributes import JSON
from webhook.facts.values import items, mapping


def used(capacity: Mapping[str, JSON], asks: int | None) -> int | None:
    """What is asked for, or the default, or all of it, rounded up as the policy says; None for too much.

    Args:
        capacity: `capacity.<name>` of a device.
        asks: what the request asks for, in whole units; None where it says nothing.
    """
    policy = mapping(capacity.get("requestPolicy"))
    value = next(
        (each for each in (asks, whole(policy.get("default")), whole(capacity.get("value"))) if each is not None), 0
    )
    valid = [whole(each) for each in items(policy.get("validValues"))]
    if valid:
        return next((each for each in valid if each is not None and each >= value), None)
    bounds = mapping(policy.get("validRange"))
    least, most, step = (whole(bounds.get(name)) for name in ("min", "max", "step"))
    if least is not None:
        value = max(value, least)
        if step is not None and step > 0:
            value = least + -(-(value - least) // step) * step
    return None if most is not None and value > most else value


def whole(given: JSON) -> int | None:
    """A quantity in whole units, rounded up; None for none."""
    read = quantity.read(given)
    return None if read is None else read.value()
