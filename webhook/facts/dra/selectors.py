"""Device selectors: compiled in the CEL environment of dynamic resource allocation, checked, and evaluated on devices.

As in k8s.io/dynamic-resource-allocation v0.36.1 cel/compile.go, a selector is compiled in the base environment with
`cel.bind` and the variable `device`. The type of the result must be bool, or the unknown type of an attribute. An
expression has at most 10 KiB and an estimated cost of at most 1,000,000. With the feature gate DRAListTypeAttributes
(alpha in 1.36), attributes may be lists.

The scheduler evaluates a selector on a device of a ResourceSlice (DeviceMatches). Names without a domain belong to
the driver's domain. A domain that the device does not have is an empty map. Reading an attribute that the device does
not have is an error, and the scheduler then does not allocate the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from sys import getsizeof
from typing import Any, Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.cel import CostMeter, Engine, Environment, Program, compiled_engine
from webhook.cel.equality import are_equal
from webhook.cel.estimate.sizes import Range
from webhook.cel.library import quantity, semver
from webhook.cel.library.declaration import Overload
from webhook.cel.program import require_time_to_compile
from webhook.cel.types import ANY, BOOL, DYN, STRING, Structure, Type, map_of, object_type, opaque_type
from webhook.cel.values import DictWithEmptyMaps
from webhook.deadline import STEP, Deadline
from webhook.errors import CompileError, EvaluationError
from webhook.text.caches import TwoGenerationCache
from webhook.yamltext.placeholders import has_placeholder_variable

MOST_COST = 1_000_000  # resource/v1 types.go CELSelectorExpressionMaxCost
_LONGEST = 10 * 1024  # CELSelectorExpressionMaxLength, in bytes
_ENTRIES = 32  # ResourceSliceMaxAttributesAndCapacitiesPerDevice
_DOMAIN, _ID, _VALUE = 63, 32, 64  # DeviceMaxDomainLength, DeviceMaxIDLength, DeviceAttributeMaxValueLength
_LISTED = 48  # ResourceSliceMaxAttributeValuesPerDevice


class SelectorErrors(Struct, frozen=True):
    """The errors of an expression; "" without an error.

    `gated` is an error only while the feature gate DRAListTypeAttributes is off.
    """

    problem: str = ""
    gated: str = ""


def check_selector(expression: str, deadline: Deadline) -> SelectorErrors:
    """Return the errors that the API server will report about a selector's expression.

    Raises:
        TooLargeToCompile: compilation needs too much time or memory.
        Exception: the error of the deadline, if no time is left for the compilation.
    """
    deadline.spend(STEP)
    judged = _JUDGED.get(expression, None)
    if judged is None:
        judged = _errors_of_selector(expression, deadline)
        _JUDGED.put(expression, judged, sum(map(getsizeof, (expression, judged.problem, judged.gated))))
    return judged


def compile_selector(expression: str, deadline: Deadline) -> Program:
    """Return the program of a selector; attributes may have any type, also lists.

    Raises:
        CompileError: the expression is refused.
        TooLargeToCompile: compilation needs too much time or memory.
        Exception: the error of the deadline, if no time is left for the compilation.
    """
    deadline.spend(STEP)
    program = _PROGRAMS.get(expression, None)
    if program is None:
        program = _compile_for_attribute_type(expression, DYN, deadline)
        require_time_to_compile(expression, deadline)
        program.compile_now()
        _PROGRAMS.put(expression, program, getsizeof(expression) + program.largest_size_bytes)
    return program


_JUDGED: Final[TwoGenerationCache[str, SelectorErrors | None]] = TwoGenerationCache(2 << 20)
_PROGRAMS: Final[TwoGenerationCache[str, Program | None]] = TwoGenerationCache(4 << 20)


def _errors_of_selector(expression: str, deadline: Deadline) -> SelectorErrors:
    if not expression.strip():
        return SelectorErrors("there is no expression")
    length = len(expression.encode())
    if length > _LONGEST:
        return SelectorErrors(f"the expression has {length} bytes, at most {_LONGEST} are allowed")
    refusal = _compilation_error(expression, deadline, lists=False)
    if refusal and has_placeholder_variable(expression):
        return SelectorErrors()
    return (
        SelectorErrors(gated=refusal)
        if refusal and not _compilation_error(expression, deadline, lists=True)
        else SelectorErrors(refusal)
    )


def _compilation_error(expression: str, deadline: Deadline, *, lists: bool) -> str:
    attribute = DYN if lists else ANY
    try:
        program = _compile_for_attribute_type(expression, attribute, deadline)
    except CompileError as error:
        return f"does not compile: {error.issues[0].message}"
    if program.result not in (BOOL, attribute):
        return f"evaluates to {program.result}, expected bool"
    cost = program.estimated_cost(_size_limit_of_path)[1]
    if cost > MOST_COST:
        return f"may cost {cost}, at most {MOST_COST} is allowed: compare less, with fewer loops inside loops"
    return ""


def _compile_for_attribute_type(expression: str, attribute: Type, deadline: Deadline) -> Program:
    return _cel_engine().compile(expression, _selector_environment(attribute), deadline=deadline)


@cache
def _cel_engine() -> Engine:
    return compiled_engine()


@cache
def _selector_environment(attribute: Type) -> Environment:
    device = Structure(
        "kubernetes.DRADevice",
        {
            "driver": STRING,
            "attributes": map_of(STRING, map_of(STRING, attribute)),
            "capacity": map_of(STRING, map_of(STRING, opaque_type("kubernetes.Quantity"))),
            "allowMultipleAllocations": BOOL,
        },
    )
    return Environment(
        variables={"device": object_type(device.name)},
        structures={device.name: device},
        functions=(_INCLUDES,) if attribute is DYN else (),
        extensions=frozenset({"bindings"}),
    )


def _includes_or_equals(target: Any, item: Any) -> bool:
    """Return whether a list contains an item; for a value that is not a list, whether the value equals the item."""
    if type(target) is not list:
        return bool(are_equal(target, item))
    if len(target) > _LISTED:
        raise EvaluationError(f"'includes' function cannot be applied to lists longer than {_LISTED} values")
    return any(are_equal(each, item) for each in target)


_INCLUDES = Overload("includes", "dra_includes_dyn_dyn", (DYN, DYN), BOOL, _includes_or_equals, member=True)

_SIZES: Mapping[tuple[str, ...], int] = {
    ("device",): 0,
    ("device", "driver"): _DOMAIN,
    ("device", "allowMultipleAllocations"): 1,
    **{("device", kind): _ENTRIES for kind in ("attributes", "capacity")},
    **{("device", kind, "@keys"): _DOMAIN for kind in ("attributes", "capacity")},
    **{("device", kind, "@values"): _ENTRIES for kind in ("attributes", "capacity")},
    **{("device", kind, "@values", "@keys"): _ID for kind in ("attributes", "capacity")},
    ("device", "attributes", "@values", "@values"): _VALUE,
    ("device", "capacity", "@values", "@values"): 0,
}


def _size_limit_of_path(path: tuple[str, ...], _: Type) -> Range | None:
    """Return the range of sizes for the value at a path of the variable `device`."""
    size = _SIZES.get(path)
    if size is None and path[:3] == ("device", "attributes", "@values") and len(path) == 4 and path[3][0] != "@":
        size = _VALUE
    return None if size is None else Range(0, size)


def selector_matches_device(
    expression: str, driver: str, device: Mapping[str, JSON], meter: CostMeter | None = None
) -> bool:
    """Return whether a selector selects a device, given as in `spec.devices[]` of a ResourceSlice of
    resource.k8s.io/v1.

    Raises:
        CompileError: the expression is refused.
        EvaluationError: the expression reads a value that the device lacks, costs too much, or does not return a bool.
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
