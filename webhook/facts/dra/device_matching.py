"""Evaluates a selector on a device of a ResourceSlice, as the scheduler does.

k8s.io/dynamic-resource-allocation v0.36.1 cel/compile.go DeviceMatches: names without a domain belong to the driver's;
a domain that the device does not have is empty, an attribute that it does not have is an error, and the scheduler then
fails the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from webhook.apimachinery.attributes import JSON
from webhook.cel import CostMeter
from webhook.cel.library import quantity, semver
from webhook.cel.values import DictWithEmptyMaps
from webhook.deadline import Deadline
from webhook.errors import EvaluationError
from webhook.facts.dra.selectors import MOST_COST, compile_selector


def selector_matches_device(
    expression: str, driver: str, device: Mapping[str, JSON], meter: CostMeter | None = None
) -> bool:
    """Return whether a selector selects a device, given as in `spec.devices[]` of a ResourceSlice of
    resource.k8s.io/v1.

    Raises:
        CompileError: the expression is refused.
        EvaluationError: it asks for what the device does not have, costs too much, or gives something else than a bool.
    """
    meter = meter or CostMeter(limit=MOST_COST)
    program = compile_selector(expression, meter.deadline or Deadline())
    value = program.evaluate({"device": device_as_cel_value(driver, device)}, meter)
    if type(value) is not bool:
        raise EvaluationError("the result is not a bool")
    return value


def device_as_cel_value(driver: str, device: Mapping[str, JSON]) -> JSON:
    """Return a device as the variable `device` of a selector.

    Raises:
        EvaluationError: an invalid attribute or capacity.
    """
    return {
        "driver": driver,
        "allowMultipleAllocations": device.get("allowMultipleAllocations") is True,
        "attributes": _values_by_domain(driver, device.get("attributes"), _attribute_value),
        "capacity": _values_by_domain(driver, device.get("capacity"), _capacity_value),
    }


def _values_by_domain(driver: str, held: JSON, read: Callable[[JSON], Any]) -> DictWithEmptyMaps:
    domains = DictWithEmptyMaps()
    for name, value in held.items() if isinstance(held, dict) else ():
        domain, slash, id_ = name.partition("/")
        domains.setdefault(domain if slash else driver, {})[id_ if slash else name] = read(value)
    return domains


def _attribute_value(held: JSON) -> Any:
    for kind, value in held.items() if isinstance(held, dict) else ():
        if value is not None:
            return _READERS[kind](value) if kind in _READERS else value
    raise EvaluationError("unsupported attribute value")


def _capacity_value(held: JSON) -> Any:
    return quantity.quantity(str(held.get("value") if isinstance(held, dict) else held))


def _semantic_version(value: JSON) -> Any:
    if not isinstance(value, str):
        raise EvaluationError("unsupported attribute value")
    return semver.parse_strictly(value)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "version": _semantic_version,
    "versions": lambda values: (
        [_semantic_version(each) for each in values] if isinstance(values, list) else _semantic_version(values)
    ),
}
