"""Compares the selectors of claims and classes with the devices that the cluster has now (group resource-slices).

Problems are reported only if the view has all objects of the cluster, and has ResourceSlices. A request is not checked
if the view lacks its class. A claim that a controller created from a template is not checked, because the template is
checked.

As in the scheduler, a device must match the selectors of the class and of the request. If a selector fails with an
error, the scheduler does not allocate the claim. One node must be able to use all devices of a claim. The number of
devices that is computed for a node is an upper bound:

- Devices that are allocated now count as free.
- A device that several nodes can use counts for each node.
- Each shared counter is considered separately.

A device counts only if the request tolerates every taint of the device, and if the device has the requested capacities.
Only `claimgate simulate` compares the constraints of claims with the devices.

Source: k8s.io/dynamic-resource-allocation v0.36.1 structured/internal/experimental/allocator_experimental.go
allocateDevice, checkAvailableCounters, isSelectable, selectorsMatch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Final, NamedTuple

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, get
from webhook.cel import CostMeter, Program
from webhook.cluster.interest import interest_in_fields
from webhook.deadline import Deadline
from webhook.errors import CompileError, EvaluationError, TooLargeToCompile
from webhook.facts.dra import published_devices
from webhook.facts.dra.device_claims_classes import DEVICE_CLASS
from webhook.facts.dra.published_devices import (
    DeviceID,
    PooledDevice,
    TaintRules,
    consumed_capacity,
    models_of_mixed_node,
    read_pools,
    read_taint_rules,
    rounded_up_units,
    untolerated_taint,
)
from webhook.facts.dra.requests import (
    DeviceRequestOfClaim,
    read_requests,
    requests_of_reviewed_claim,
    reviewed_claim,
)
from webhook.facts.dra.selectors import MOST_COST, compile_selector, device_as_cel_value
from webhook.facts.dra.types import RESOURCE_SLICES, DeviceClass, DeviceConstraint, ResourceClaim, ResourceClaimTemplate
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.wording import counted
from webhook.typed.collections import Items
from webhook.typed.fields import Amount

NO_DEVICE: Final = RESOURCE_SLICES.rule(
    "resource-slices/no-device",
    title="No device of the cluster matches the selectors",
    why="The pods stay Pending until a matching device exists.",
    function="isSelectable",
)
TOO_FEW_DEVICES: Final = RESOURCE_SLICES.rule(
    "resource-slices/too-few-devices",
    title="No node has as many devices as are requested",
    why=(
        "The pods stay Pending until one node can give enough devices. Devices with taints that the request does not "
        "tolerate do not count."
    ),
    function="allocateDevice",
)
DIFFERENT_MODELS: Final = RESOURCE_SLICES.rule(
    "resource-slices/different-models",
    title="One request may get devices of different models",
    why="A training is as slow as its slowest device. A request may get a fast and a slow model on one node.",
    source="k8s.io/api v0.36.1 resource/v1 types.go DeviceConstraint",
    severity="low",
    fails="silent",
)
SELECTOR_FAILS: Final = RESOURCE_SLICES.rule(
    "resource-slices/selector-fails",
    title="The selector fails with an error on a device of the cluster",
    why=(
        "A device may lack the attribute that the selector reads. The scheduler then does not allocate the claim on "
        "the node."
    ),
    function="selectorsMatch",
)
DEVICE_LOOKUPS: Final = (
    published_devices.RESOURCE_SLICE_LOOKUP,
    published_devices.TAINT_RULE_LOOKUP,
    interest_in_fields(DEVICE_CLASS, "spec.selectors"),
)
_MOST_EVALUATIONS = 20_000  # evaluations of selectors; this number takes about half a second
_SHOWN: Final = 3
_GENERATED_BY: Final = (
    "resource.kubernetes.io/pod-claim-name",
    "resource.kubernetes.io/extended-resource-claim",
)
"""Annotations of claims that a controller creates from a template."""


class AllocatableDevices(Struct, kw_only=True):
    """The devices that remain for a request, and the number of excluded devices, by reason.

    Args:
        devices: the devices that have enough capacity, and only taints that the request tolerates.
        most: the largest number of devices that the request can get on one node.
        tainted: the number of devices with a taint that the request does not tolerate.
        taint: the first taint that the request does not tolerate.
        small: the number of devices with less capacity than requested.
        is_limited_by_counters: whether shared counters are too low for all devices.
    """

    devices: Sequence[PooledDevice] = ()
    most: int = 0
    tainted: int = 0
    taint: str = ""
    small: int = 0
    is_limited_by_counters: bool = False


class SelectorFailure(NamedTuple):
    """Why a selector fails, and the first device on which it fails."""

    message: str
    device: str


class SelectedDevices(Struct, kw_only=True):
    """The devices that one request, alternative or class selects.

    Args:
        at: the path of the request, alternative or class.
        name: the name of the request, alternative or class.
        alternative_of: for an alternative, the name of the request; otherwise "".
        device_class: the class that the request names.
        expressions: the selectors of the request, without the selectors of the class.
        wanted: the number of requested devices; None if the number is not known.
        asked: the request; None for a class.
        of_class: the number of devices of the class; None if a class is not known, a selector is invalid, or the
            cluster is too large.
        count: the number of devices that all selectors select; None in the same cases as `of_class`.
        is_shared: whether one of the devices may be allocated several times.
        allocatable: the devices that remain for the request.
        failures: why selectors fail.
    """

    at: FieldPath
    name: str = ""
    alternative_of: str = ""
    device_class: str = ""
    expressions: Sequence[str] = ()
    wanted: int | None = None
    asked: DeviceRequestOfClaim | None = None
    of_class: int | None = None
    count: int | None = None
    is_shared: bool = False
    allocatable: AllocatableDevices = field(default_factory=AllocatableDevices)
    failures: Sequence[SelectorFailure] = ()


class DeviceInventory(NamedTuple):
    """The number of devices in the view, and the devices that requests, alternatives or a class select."""

    devices: int
    selections: Items[SelectedDevices]


class _ClusterDevices(Struct, frozen=True):
    """The devices of the view as expressions read them, the classes by name, and the taint rules."""

    devices: Items[tuple[PooledDevice, JSON]]
    classes: Mapping[str, DeviceClass]
    rules: TaintRules
    deadline: Deadline


def find_matching_devices(subject: Subject) -> DeviceInventory:
    """Return the devices that a class selects, or that the requests of a claim or a template select."""
    return _find_selected_devices(partial(_create_selections, subject), subject.cluster_view())


def _find_selected_devices(
    create_selections: Callable[[], Iterable[SelectedDevices]], view: ClusterView
) -> DeviceInventory:
    devices = Items([*_devices_with_json(view)], view.deadline)
    if not devices or not view.is_whole(published_devices.RESOURCE_SLICE_LOOKUP.gvk):
        return DeviceInventory(0, Items((), view.deadline))
    classes = {known.name: known for known in reversed(view.list_visible(DeviceClass))}
    cluster = _ClusterDevices(devices, classes, read_taint_rules(view), view.deadline)
    selections = [*create_selections()]
    for selection in selections:
        _select_devices(selection, cluster)
    return DeviceInventory(len(devices), Items(selections, view.deadline))


def _create_selections(subject: Subject) -> Iterator[SelectedDevices]:
    """Yield a selection without devices for each request and alternative of a claim, or for a class. `_select_devices`
    sets the devices.
    """
    if reviewed_claim(subject) is None:
        spec = subject.typed(DeviceClass)
        yield SelectedDevices(at=spec.spec.path("selectors"), expressions=spec.expressions)
    yield from _create_selections_of_requests(subject.once(requests_of_reviewed_claim))


def _create_selections_of_requests(requests: Iterable[DeviceRequestOfClaim]) -> Iterator[SelectedDevices]:
    for request in requests:
        for choice in request.self_and_alternatives:
            if choice.kind in ("exactly", "choice"):
                yield _create_selection_of_request(choice, request.name if choice.kind == "choice" else "")


def _create_selection_of_request(request: DeviceRequestOfClaim, request_name: str) -> SelectedDevices:
    return SelectedDevices(
        at=request.at,
        name=request.name,
        alternative_of=request_name,
        device_class=request.device_class,
        expressions=[selector.expression for selector in request.selectors],
        wanted=request.devices,
        asked=request,
    )


def _select_devices(selection: SelectedDevices, cluster: _ClusterDevices) -> None:
    """Set the devices that a request, an alternative or a class selects."""
    programs, of_class = _selector_programs(selection, cluster)
    if programs is None or len(programs) * len(cluster.devices) > _MOST_EVALUATIONS:
        return
    selected = cluster.devices.of(_devices_selected_by_all(programs, of_class, selection, cluster))
    selection.count = len(selected)
    asked = selection.asked
    capacities, tolerations = (asked.capacities, asked.tolerations) if asked else ({}, ())
    selection.allocatable = devices_remaining_for_request(selected, capacities, tolerations, cluster.rules)


def _selector_programs(selection: SelectedDevices, cluster: _ClusterDevices) -> tuple[list[Program] | None, int]:
    """Return the selectors of the class, then the selectors of the request, and the number of selectors of the class.

    Return None and 0 if the class is not known, or if a selector is invalid.
    """
    by_class: list[str] = []
    if selection.device_class:
        device_class = cluster.classes.get(selection.device_class)
        if device_class is None:
            return None, 0
        by_class = device_class.expressions
    try:
        written = cluster.devices.of((*by_class, *selection.expressions))
        return [compile_selector(expression, cluster.deadline) for expression in written], len(by_class)
    except CompileError:
        return None, 0


def _devices_selected_by_all(
    programs: Sequence[Program], of_class: int, selection: SelectedDevices, cluster: _ClusterDevices
) -> list[PooledDevice]:
    """Return the devices that all selectors select. Note the failures of selectors in the selection."""
    selected: list[PooledDevice] = []
    failures: dict[str, SelectorFailure] = {}
    selection.of_class = 0
    for device, as_seen in cluster.devices:
        cluster.deadline.spend(10 * len(programs) + 1)  # an evaluation costs as much as several steps of a loop
        taken = 0
        try:
            while taken < len(programs) and programs[taken].evaluate(as_seen, _create_cost_meter(cluster)) is True:
                taken += 1
        except TooLargeToCompile:
            raise
        except EvaluationError as error:
            cluster.deadline.check_clock()  # a timeout is not a failure of the selector
            message = str(error).partition("\n")[0]
            failures.setdefault(message, SelectorFailure(message, f"`{device.name}` of driver `{device.pool.driver}`"))
        selection.of_class += taken >= of_class
        if taken == len(programs):
            selected.append(device)
            selection.is_shared |= as_seen["device"]["allowMultipleAllocations"]
    selection.failures = [*failures.values()][:_SHOWN]
    return selected


def _create_cost_meter(cluster: _ClusterDevices) -> CostMeter:
    return CostMeter(limit=MOST_COST, deadline=cluster.deadline)


def _devices_with_json(view: ClusterView) -> Iterator[tuple[PooledDevice, JSON]]:
    """Yield the devices of the view as expressions read them, except devices that no API server would store."""
    for pool in read_pools(view):
        for device in pool.devices():
            try:
                yield device, {"device": device_as_cel_value(pool.driver, device.fields.json)}
            except EvaluationError:
                continue


def devices_remaining_for_request(
    selected: Items[PooledDevice], capacities: Mapping[str, Amount], tolerations: Sequence[JSON], rules: TaintRules
) -> AllocatableDevices:
    """Return the devices that remain for a request with these capacities and tolerations."""
    left, fit = AllocatableDevices(), []
    for device in selected:
        if taint := untolerated_taint(device, tolerations, rules):
            left.tainted += 1
            left.taint = left.taint or taint
        elif capacities and not _has_requested_capacities(device, capacities):
            left.small += 1
        else:
            fit.append(device)
    left.devices = selected.of(fit)
    by_node = Counter[str]()
    for (node, *_), sharing in _devices_by_shared_counters(left.devices).items():
        within = _count_devices_within_counters(selected.of(sharing))
        left.is_limited_by_counters |= within < len(sharing)
        by_node[node] += within
    of_several_nodes = by_node.pop("", 0)
    left.most = of_several_nodes + max(by_node.values(), default=0)
    return left


def _has_requested_capacities(device: PooledDevice, requested: Mapping[str, Amount]) -> bool:
    """Return whether an unused device has the requested capacities (CmpRequestOverCapacity)."""
    capacities = device.fields.capacity
    for name, amount in requested.items():
        if name not in capacities:
            return False
        needs, available = (
            consumed_capacity(capacities[name], rounded_up_units(amount)),
            rounded_up_units(capacities[name].value),
        )
        if needs is None or (available is not None and needs > available):
            return False
    return True


def _devices_by_shared_counters(devices: Sequence[PooledDevice]) -> Mapping[tuple[str, int, str], list[PooledDevice]]:
    """Return the devices grouped by node, pool and the first set of counters that they use."""
    listed: dict[tuple[str, int, str], list[PooledDevice]] = {}
    for device in devices:
        listed.setdefault((device.node, id(device.pool), next(iter(device.consumed_counters()), "")), []).append(device)
    return listed


def _count_devices_within_counters(devices: Items[PooledDevice]) -> int:
    """Return how many devices the shared counters of their pool allow. Devices with unknown counters always fit."""
    taken: dict[tuple[str, str], list[int]] = {}
    for device in devices:
        for name, counters in device.consumed_counters().items():
            for counter, amount in counters.items():
                taken.setdefault((name, counter), []).append(amount)
    most, shared = len(devices), devices[0].pool.counters() if taken else {}
    for name, counter in devices.of([*taken]):
        amounts = taken[name, counter]
        if (available := shared.get(name, {}).get(counter)) is not None:
            fit = sum(total <= available for total in accumulate(sorted(amounts)))
            most = min(most, len(devices) - len(amounts) + fit)
    return most


def validate_selected_devices(subject: Subject) -> Iterator[Problem]:
    """Report requests with selectors that select no device or too few devices, or that fail on a device."""
    obj = reviewed_claim(subject) or subject.typed(DeviceClass)
    if any(name in obj.metadata.annotations for name in _GENERATED_BY):
        return
    devices = find_matching_devices(subject)
    yield from _problems_of_lacking_devices(devices, subject.cluster_view())
    constrained = _names_of_constrained_requests(subject)
    for selection in devices.selections:
        is_enough = (selection.wanted or 0) > 1 and not _selects_too_few_devices(selection)
        if is_enough and constrained.isdisjoint(_names_of_selection(selection)):
            yield from _check_different_models(selection)


class ClaimOfPods(NamedTuple):
    """A claim, or a template of claims. `pods` is the number of claims that the pods need at the same time."""

    claim: ResourceClaim | ResourceClaimTemplate
    pods: int


def lacking_devices_of_claims(
    claims: Sequence[ClaimOfPods], view: ClusterView, nodes: Collection[str] | None = None
) -> str:
    """Return why the devices of the cluster are not enough for the claims of some pods; "" if they are enough, or if
    this is not known.

    Args:
        claims: the claims of the pods. A claim with allocated devices does not count.
        view: the cluster.
        nodes: the names of the nodes that fit the pods; None if not known.
    """
    needed, usable = 0, set[DeviceID]()
    for claim, pods in claims:
        if get(claim.json, ("status", "allocation")):
            continue
        requests = read_requests(claim.claim_spec, claim.version)
        devices = _find_selected_devices(partial(_create_selections_of_requests, requests), view)
        problem = next(_problems_of_lacking_devices(devices, view), None)
        if problem is not None:
            return f"{claim.gvk.kind} `{claim.name}`: {problem.message}"
        if unmet := _unmet_constraint(claim.claim_spec.devices.constraints, devices.selections, nodes):
            return f"{claim.gvk.kind} `{claim.name}`: {unmet}"
        least = _fewest_devices_of_requests(devices.selections)
        if least is None:
            return ""
        needed += least * pods
        for selection in devices.selections:
            usable.update(each.id for each in selection.allocatable.devices if _is_on(each, nodes))
    if needed > len(usable):
        return f"the pods need {counted(needed, 'device')}, but nodes that fit have {len(usable)} matching devices now"
    return ""


def _unmet_constraint(
    constraints: Iterable[DeviceConstraint], selections: Items[SelectedDevices], nodes: Collection[str] | None
) -> str:
    """Return why no node meets a constraint of a claim, or that the constraint is not compared; "" if a node may meet
    each constraint. Each constraint is considered separately.
    """
    for constraint in constraints:
        attribute = constraint.match_attribute or constraint.distinct_attribute
        names = frozenset(constraint.requests)
        bound = [each for each in selections if not names or not names.isdisjoint(_names_of_selection(each))]
        if not attribute or not bound:
            continue
        if any(each.alternative_of or each.count is None or each.wanted is None for each in bound):
            return f"the constraint on {attribute} is not compared with the devices"
        wanted = sum(each.wanted or 0 for each in bound)
        by_node = _values_on_nodes(bound, attribute, nodes)
        if constraint.match_attribute:
            meets = any(_has_one_value(bound, wanted, values) for values in by_node.values())
            condition = f"with one value of {attribute}"
        else:
            meets = any(len(set(values.values())) >= wanted for values in by_node.values())
            condition = f"with different values of {attribute}"
        if not meets:
            return f"no node that fits has {counted(wanted, 'matching device')} {condition} now"
    return ""


def _values_on_nodes(
    bound: Iterable[SelectedDevices], attribute: str, nodes: Collection[str] | None
) -> Mapping[str, Mapping[DeviceID, str]]:
    """Return the values of an attribute by node and device. A device that several nodes can use counts for each
    node. Devices without the attribute meet no constraint.
    """
    by_node: dict[str, dict[DeviceID, str]] = {"": {}}
    for device in (device for each in bound for device in each.allocatable.devices if _is_on(device, nodes)):
        if value := device.attribute_as_text(attribute):
            by_node.setdefault(device.node, {})[device.id] = value
    of_several_nodes = by_node[""]
    return {node: {**values, **of_several_nodes} for node, values in by_node.items()}


def _has_one_value(bound: Iterable[SelectedDevices], wanted: int, values: Mapping[DeviceID, str]) -> bool:
    """Return whether enough devices of a node have the same value of an attribute, in total and for each request."""
    in_all = Counter(values.values())
    by_request = [
        (each.wanted or 0, Counter(values.get(device.id) for device in each.allocatable.devices)) for each in bound
    ]
    return any(
        count >= wanted and all(counts[value] >= needed for needed, counts in by_request)
        for value, count in in_all.items()
    )


def _is_on(device: PooledDevice, nodes: Collection[str] | None) -> bool:
    return nodes is None or not device.node or device.node in nodes


def _fewest_devices_of_requests(selections: Items[SelectedDevices]) -> int | None:
    """Return how many devices a claim needs at least; None if the number is not known, or if claims may share a
    device.
    """
    if any(each.count is None or each.wanted is None or each.is_shared for each in selections):
        return None
    alternatives: dict[str, int] = {}
    for each in selections:
        if each.alternative_of:
            alternatives[each.alternative_of] = min(
                each.wanted or 0, alternatives.get(each.alternative_of, each.wanted or 0)
            )
    return sum(each.wanted or 0 for each in selections if not each.alternative_of) + sum(alternatives.values())


def _problems_of_lacking_devices(devices: DeviceInventory, view: ClusterView) -> Iterator[Problem]:
    most = _most_devices_of_alternatives(devices.selections)
    for selection in devices.selections:
        if selection.failures:
            yield _failing_selector_problem(selection)
        elif selection.count == 0 and (not selection.alternative_of or most[selection.alternative_of] == 0):
            # an alternative may match no device if another alternative matches a device
            yield _no_device_problem(selection, devices.devices, view)
        if _selects_too_few_devices(selection):
            yield _too_few_devices_problem(selection)


def _selects_too_few_devices(selection: SelectedDevices) -> bool:
    most = selection.allocatable.most
    if not selection.count or selection.alternative_of or (selection.wanted or 0) <= most:
        return False
    return most == 0 or not selection.is_shared


def _names_of_constrained_requests(subject: Subject) -> frozenset[str]:
    """Return the names of requests that constraints list; "" for a constraint on all requests."""
    claim = reviewed_claim(subject)
    constraints = claim.claim_spec.devices.constraints if claim else ()
    return frozenset(name for constraint in constraints for name in constraint.requests or ("",))


def _names_of_selection(selection: SelectedDevices) -> tuple[str, ...]:
    """Return the names by which a constraint may refer to a request."""
    if selection.alternative_of:
        return "", selection.alternative_of, f"{selection.alternative_of}/{selection.name}"
    return "", selection.name


def _most_devices_of_alternatives(selections: Items[SelectedDevices]) -> Mapping[str, int]:
    """Return the number of devices of the largest alternative, by request. An unknown number counts as 1."""
    most: dict[str, int] = {}
    for selection in selections:
        count = 1 if selection.count is None else selection.count
        most[selection.alternative_of] = max(most.get(selection.alternative_of, 0), count)
    return most


def _check_different_models(selection: SelectedDevices) -> Iterator[Problem]:
    mixed = models_of_mixed_node(selection.allocatable.devices)
    if mixed is not None:
        models = " and ".join(f"`{model}`" for model in mixed.models)
        message = (
            f"takes any {selection.wanted} devices that match, but node `{mixed.node}` has the models {models}, so "
            "the slowest device slows all devices"
        )
        fix = f"add a constraint with matchAttribute {mixed.attribute}, or a selector for one model"
        yield DIFFERENT_MODELS.problem(selection.at, message, fix)


def _no_device_problem(selection: SelectedDevices, devices: int, view: ClusterView) -> Problem:
    of_class, wait = (
        view.name_with_file(DeviceClass.gvk, selection.device_class),
        "or wait until matching devices are added",
    )
    fix = f"change the selectors so that they match devices of the cluster, {wait}"
    if not selection.device_class:
        message = f"the selectors match none of the {devices} devices that the cluster has now"
    elif selection.of_class == 0:
        message = f"none of the {devices} devices that the cluster has now is of {of_class}, so the pods stay Pending"
        fix = f"use another DeviceClass, {wait}"
    else:
        taken = f"the selectors match none of the {selection.of_class} devices of {of_class} that the cluster has now"
        message = f"{taken}, so the pods stay Pending"
    return NO_DEVICE.problem(selection.at, message, fix)


def _too_few_devices_problem(selection: SelectedDevices) -> Problem:
    wanted, count, left = selection.wanted or 0, selection.count or 0, selection.allocatable
    supply_text = f"all nodes of the cluster together have {count} matching devices now"
    fix = f"request at most {left.most or count}"
    if wanted <= count:
        devices_text = f"the {counted(count, 'matching device')} that the cluster has now"
        amount_text = f"more than {left.most} of" if left.most else "any of" if count > 1 else ""
        supply_text = f"no node can give {f'{amount_text} {devices_text}'.lstrip()}"
        supply_text, fix = f"{supply_text}{_reasons_in_brackets(left)}", _fix_for_few_devices(left)
    message = f"requests {counted(wanted, 'device')}, but {supply_text}, so the pods stay Pending"
    return TOO_FEW_DEVICES.problem(selection.at, message, fix)


def _reasons_in_brackets(left: AllocatableDevices) -> str:
    """Return a text in brackets with the reasons why a node can give fewer devices than it has."""
    reasons = []
    if left.tainted:
        taint = f"a taint such as `{left.taint}` that the request does not tolerate"
        reasons.append(f"{counted(left.tainted, 'has', 'have')} {taint}")
    if left.small:
        reasons.append(f"{counted(left.small, 'has', 'have')} less capacity than requested")
    if left.is_limited_by_counters:
        reasons.append("the shared counters do not allow more")
    return f" ({'; '.join(reasons)})" if reasons else ""


def _fix_for_few_devices(left: AllocatableDevices) -> str:
    fewer = f"at most {left.most}" if left.most else "fewer devices"
    if left.tainted:
        return "wait until the taint is removed, or tolerate the taint"
    return "request less of each device" if left.small and not left.most else f"request {fewer}"


def _failing_selector_problem(selection: SelectedDevices) -> Problem:
    failure = selection.failures[0]
    message = (
        f"a selector fails on device {failure.device} ({failure.message}), so the scheduler does not use the node of "
        "this device"
    )
    fix = "in the selector, check device.driver first, or check with `in` whether the device has the key"
    return SELECTOR_FAILS.problem(selection.at, message, fix)
