"""How much quota the device claims of a pod need, and why Kueue can never count some claims.

Quota counts devices under the names that `deviceClassMappings` in Kueue's Configuration gives to their classes. Kueue
converts requests for the extended resource of a class to this name. An extended resource that is only in limits keeps
its own name.

A mapping with `sources` counts a counter or a capacity of the devices, not the devices themselves. The source, the
DeviceClass and the request select devices of the driver. A pod may get any selected device, so the largest amount
counts.

Source: kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go, pkg/dra/counters.go, pkg/dra/capacity.go and
pkg/dra/extended_resources.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.cel import CostMeter
from webhook.deadline import Deadline
from webhook.errors import CompileError, EvaluationError
from webhook.facts.dra.device_claims import USE_TEMPLATE
from webhook.facts.dra.published_devices import (
    RESOURCE_SLICE,
    DeviceID,
    PooledDevice,
    consumed_capacity,
    limits_of_capacity,
    read_pools,
    rounded_up_units,
)
from webhook.facts.dra.requests import DeviceRequestOfClaim, read_requests
from webhook.facts.dra.selectors import MOST_COST, selector_matches_device
from webhook.facts.dra.types import DeviceClass, ResourceClaimTemplate
from webhook.facts.kueue.configuration import MISSING_CONFIGURATION, CountedSource, KueueConfiguration
from webhook.facts.kueue.groups import KUEUE_NEVER, KUEUE_NOT_NOW
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject, Problem
from webhook.text.caches import IdentityKey
from webhook.text.wording import counted
from webhook.typed.pods import PodTemplate

DEVICES_MISSING: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/devices-missing",
    title="The devices that the claims select do not exist yet",
    why=(
        "Kueue compares the selectors of the claims with the devices that drivers publish, and tries again until there "
        "are enough."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go, pkg/dra/counters.go, pkg/dra/capacity.go",
    function="validateCELSelectorsAgainstDevices",
)
DIRECT_CLAIM: Final = KUEUE_NEVER.rule(
    "kueue-never/direct-claim",
    title="Pods with a queue use a ResourceClaim directly",
    why="Kueue cannot count the devices of a claim that pods share.",
    source="kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go",
    function="countDevicesPerClass",
)
CLAIM_CHOICE: Final = KUEUE_NEVER.rule(
    "kueue-never/claim-choice",
    title="The claim asks for a choice of devices or for all devices, which Kueue cannot count",
    why="Kueue needs the number of devices, and a choice (firstAvailable) or allocationMode All states no number.",
    source="kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go",
    function="countDevicesPerClass",
)
CLAIM_CAPACITY: Final = KUEUE_NEVER.rule(
    "kueue-never/claim-capacity",
    title="The claim asks for more capacity than one request can get",
    why="Kueue counts the capacity that a device gives to one request, and no device gives so much.",
    source="kubernetes-sigs/kueue@ff69552e pkg/dra/capacity.go",
    function="computeCapacityCharge",
)
CLAIMS_OFF: Final = KUEUE_NEVER.rule(
    "kueue-never/claims-off",
    title="Kueue does not admit jobs with device claims",
    why="The feature gate KueueDRAIntegration is off. Until an administrator turns the gate on, the job waits.",
    source="kubernetes-sigs/kueue@ff69552e pkg/dra/extended_resources.go",
)
UNMAPPED_CLASS: Final = KUEUE_NEVER.rule(
    "kueue-never/unmapped-class",
    title="The DeviceClass is missing in Kueue's deviceClassMappings",
    why="Kueue counts only devices of classes that deviceClassMappings lists.",
    source="kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go",
    function="countDevicesPerClass",
    issues=("https://github.com/kubernetes-sigs/kueue/pull/13727",),
)
EXTENDED_SOURCES: Final = KUEUE_NEVER.rule(
    "kueue-never/extended-sources",
    title="The pods request an extended resource that Kueue counts only in device claims",
    why="Kueue counts this class by a counter or a capacity of its devices. Only a claim states how much is needed.",
    source="kubernetes-sigs/kueue@ff69552e pkg/dra/extended_resources.go",
)
_SELECTOR_COST: Final = 10
"""The cost of evaluating one selector on one device, in units of the deadline."""
_MOST_DEVICES: Final = 20_000
"""The largest number of devices that are evaluated for one request. With more devices, the result is unknown."""
Locate: TypeAlias = Callable[[FieldPath], FieldPath]


class ChargedAmount(Struct, frozen=True):
    """The quota that a request needs. If Kueue cannot count the request, `never` or `waits` says why.

    Args:
        amount: the sum for all devices of the request.
        never: what is wrong with the request, so that Kueue can never count the request.
        waits: what the devices of the cluster lack, so that Kueue cannot count the request now.
    """

    amount: int = 0
    never: str = ""
    waits: str = ""


class RequestedDevices(Struct, frozen=True):
    """One request of a claim: a number of devices of a class, with selectors and amounts of capacities."""

    device_class: str
    count: int
    selectors: tuple[str, ...]
    capacities: Mapping[str, JSON]


def charge_of_request(asked: RequestedDevices, source: CountedSource, view: ClusterView) -> ChargedAmount | None:
    """Return the quota that a request needs for one source.

    If the quota is not known, return None and note the reason in the view.
    """
    known = devices_matching_request(asked, view, source)
    if known is None:
        return None
    if len(known) < asked.count:
        match_text = f"matches only {counted(len(known), 'device')} of driver {source.driver}"
        return ChargedAmount(waits=f"asks for {counted(asked.count, 'device')}, but {match_text}")
    return _charge_of_counter(asked, source, known) if source.counter else _charge_of_capacity(asked, source, known)


def devices_matching_request(
    asked: RequestedDevices, view: ClusterView, source: CountedSource | None = None
) -> list[PooledDevice] | None:
    """Return the devices that a request selects. With a source, only devices in complete pools of the driver count.

    Return None if a selector fails, if the DeviceClass or a ResourceSlice may be missing, or if there are too many
    devices.
    """
    device_class = view.find(DeviceClass, asked.device_class, namespaced=False)
    if not device_class:
        return None
    if not view.is_whole(RESOURCE_SLICE):
        view.note_missing(MissingObject(kind=RESOURCE_SLICE.kind, name=asked.device_class))
        return None
    written = (source.selector if source else "", *device_class.expressions, *asked.selectors)
    selectors = [*filter(None, written)]
    deadline = view.deadline
    devices = [
        device
        for pool in view.once(read_pools, lambda: read_pools(view))
        if source is None or (pool.driver == source.driver and pool.is_complete())
        for device in pool.devices()
    ]
    try:
        if len(devices) <= _MOST_DEVICES:
            return [each for each in devices if _is_device_selected(each, selectors, deadline)]
    except (CompileError, EvaluationError) as error:
        deadline.check_clock()  # a timeout is not a failure of the selector
        why = f"not looked up: a selector fails: {error}".partition("\n")[0]
        view.note_missing(MissingObject(kind=RESOURCE_SLICE.kind, name="", why=why))
        return None
    view.note_missing(MissingObject(kind=RESOURCE_SLICE.kind, name="", why="not looked up: there are too many devices"))
    return None


def _is_device_selected(device: PooledDevice, selectors: Sequence[str], deadline: Deadline) -> bool:
    deadline.spend(_SELECTOR_COST * len(selectors) + 1)
    driver, json = device.pool.driver, device.fields.json
    return all(
        selector_matches_device(each, driver, json, CostMeter(limit=MOST_COST, deadline=deadline)) for each in selectors
    )


def _charge_of_counter(
    asked: RequestedDevices, source: CountedSource, matched: Sequence[PooledDevice]
) -> ChargedAmount:
    """Return the largest value of the counter among the devices, times the number of requested devices
    (computeCounterCharges).
    """
    values = [
        value
        for device in matched
        for taken in device.fields.consumes_counters
        if source.counter in taken.counters
        and (value := rounded_up_units(taken.counters[source.counter].value)) is not None
    ]
    if not values:
        return ChargedAmount(
            waits=f"asks for devices of driver {source.driver}, but no such device has counter {source.counter}"
        )
    return ChargedAmount(amount=max(0, *values) * max(1, asked.count))


def _charge_of_capacity(
    asked: RequestedDevices, source: CountedSource, matched: Sequence[PooledDevice]
) -> ChargedAmount:
    """Return the largest amount of the capacity that the request could consume on one device, times the number of
    requested devices (computeCapacityCharge).
    """
    known = [capacities[source.capacity] for each in matched if source.capacity in (capacities := each.fields.capacity)]
    if not known:
        return ChargedAmount(
            waits=f"asks for devices of driver {source.driver}, but no such device has capacity {source.capacity}"
        )
    requested = rounded_up_units(asked.capacities.get(source.capacity))
    values = [value for each in known if (value := consumed_capacity(each, requested)) is not None]
    if not values:
        limits = (limit for each in known for limit in limits_of_capacity(each))
        most = max(limits, key=lambda limit: rounded_up_units(limit) or 0, default="")
        more = f"more of capacity {source.capacity} than any device gives to one request"
        return ChargedAmount(never=f"asks for {more}, which is at most {most}" if most else f"asks for {more}")
    return ChargedAmount(amount=max(0, *values) * max(1, asked.count))


class QuotaDevices(Struct):
    """The devices of one pod, counted under the resource names of the quota.

    Args:
        counts: the amount of each resource.
        refused: the problems of claims and resources that Kueue never counts.
        waiting: the problems of claims that Kueue cannot count until other devices exist.
        missing: templates that do not exist, and where the pod names them.
    """

    counts: dict[str, int] = field(default_factory=dict)
    refused: list[Problem] = field(default_factory=list)
    waiting: list[Problem] = field(default_factory=list)
    missing: list[tuple[FieldPath, MissingObject]] = field(default_factory=list)

    def add(self, resource: str, amount: int) -> None:
        """Add an amount of a quota resource."""
        self.counts[resource] = self.counts.get(resource, 0) + amount


def count_claimed_devices(
    template: PodTemplate, locate: Locate, configuration: KueueConfiguration, view: ClusterView
) -> QuotaDevices:
    """Return the quota that the claims of a pod need; `locate` turns paths of the template into paths of the object."""
    devices = QuotaDevices()
    for claim in template.spec.resource_claims:
        path = locate(claim.at)
        if claim.resource_claim_name:
            devices.refused.append(_direct_claim_problem(path))
        elif name := claim.resource_claim_template_name:
            _TemplateDeviceCounter(name, path, configuration, view, devices).add_devices_of_template()
    return devices


def _direct_claim_problem(path: FieldPath) -> Problem:
    return DIRECT_CLAIM.problem(
        path, "names a ResourceClaim, and Kueue cannot count the devices of a ResourceClaim", USE_TEMPLATE
    )


def refuse_all_claims(template: PodTemplate, locate: Locate) -> QuotaDevices:
    """Return a problem for every claim, because Kueue's feature gate for claims is off."""
    return QuotaDevices(refused=[_claims_off_problem(locate(claim.at)) for claim in template.spec.resource_claims])


def _claims_off_problem(path: FieldPath) -> Problem:
    message = "claims devices, which Kueue refuses because its feature gate KueueDRAIntegration is off"
    return CLAIMS_OFF.problem(path, message, "remove the claim, or ask the administrator of Kueue to turn the gate on")


class _TemplateDeviceCounter(Struct, frozen=True):
    """Counts the devices of a ResourceClaimTemplate that a pod names at a path."""

    name: str
    path: FieldPath
    configuration: KueueConfiguration
    view: ClusterView
    devices: QuotaDevices

    def add_devices_of_template(self) -> None:
        """Count the devices of all requests of the template."""
        looking = self.view.copy_without_missing_objects()
        template = looking.find(ResourceClaimTemplate, self.name)
        if not template:
            self.devices.missing.extend((self.path, missing) for missing in looking.all_missing_objects())
            return
        taken: set[DeviceID] = set()
        for request in read_requests(template.claim_spec, template.version):
            if not request.has_admin_access and request.kind != "none":  # the API server refuses the kind `none`
                self._add_devices_of_request(request, taken)

    def _add_devices_of_request(self, request: DeviceRequestOfClaim, taken: set[DeviceID]) -> None:
        source_text = f"ResourceClaimTemplate `{self.name}`, whose request `{request.name}`"
        device_class = request.device_class
        refused = self._refused_request_problem(request, source_text)
        if refused is not None:
            self.devices.refused.append(refused)
        elif sources := self.configuration.sources.get(device_class):
            for source in sources:
                self._charge_counters_or_capacities(_requested_devices(request), source, source_text)
        else:
            self.devices.add(self.configuration.device_classes[device_class], request.devices or 0)
            if request.selectors:
                self._reserve_devices(_requested_devices(request), source_text, taken)

    def _refused_request_problem(self, request: DeviceRequestOfClaim, source_text: str) -> Problem | None:
        if request.kind == "firstAvailable":
            message = f"uses {source_text} is a choice (firstAvailable), and Kueue cannot count a choice"
            fix = "in the template, replace firstAvailable with a request for one device class"
            return self._claim_choice_problem(message, fix)
        if request.allocation_mode not in ("", "ExactCount"):
            message = f"uses {source_text} has allocationMode {request.allocation_mode}, which Kueue cannot count"
            return self._claim_choice_problem(message, "in the template, set allocationMode to ExactCount")
        if request.device_class not in self.configuration.device_classes:
            return self._unmapped_class_problem(request.device_class, source_text)
        return None

    def _claim_choice_problem(self, message: str, fix: str) -> Problem:
        return CLAIM_CHOICE.problem(self.path, message, fix)

    def _unmapped_class_problem(self, device_class: str, source_text: str) -> Problem:
        message = (
            f"uses {source_text} asks for DeviceClass `{device_class}`, which is not in deviceClassMappings of Kueue's"
            " Configuration"
        )
        fix = "use another class, or ask the administrator to add the class to the Configuration and to restart Kueue"
        missing = () if self.configuration.is_known else (MISSING_CONFIGURATION,)
        return UNMAPPED_CLASS.problem(self.path, message, fix, missing=missing)

    def _reserve_devices(self, asked: RequestedDevices, source_text: str, taken: set[DeviceID]) -> None:
        """Reserve devices for one request (validateCELSelectorsAgainstDevices). Two requests of a claim never share a
        device.
        """
        matching = devices_matching_request(asked, self.view)
        if matching is None:
            return
        free = [device.id for device in matching if device.id not in taken]
        taken.update(free[: asked.count])
        if len(free) < asked.count:
            match_text = f"matches only {counted(len(free), 'device')} of the ResourceSlices"
            message = f"uses {source_text} asks for {counted(asked.count, 'device')}, but {match_text}"
            self.devices.waiting.append(devices_missing_problem(self.path, message))

    def _charge_counters_or_capacities(self, asked: RequestedDevices, source: CountedSource, source_text: str) -> None:
        """Count a counter or a capacity of the devices.

        If the count is not known, the view notes the missing objects.
        """
        outcome = charge_of_request(asked, source, self.view)
        if outcome is None:
            return
        if outcome.waits:
            self.devices.waiting.append(devices_missing_problem(self.path, f"uses {source_text} {outcome.waits}"))
        elif outcome.never:
            self.devices.refused.append(self._claim_capacity_problem(f"uses {source_text} {outcome.never}"))
        else:
            self.devices.add(source.resource, outcome.amount)

    def _claim_capacity_problem(self, message: str) -> Problem:
        return CLAIM_CAPACITY.problem(self.path, message, "in the template, ask for less of this capacity")


def _requested_devices(request: DeviceRequestOfClaim) -> RequestedDevices:
    return RequestedDevices(
        device_class=request.device_class,
        count=request.devices or 0,
        selectors=tuple(selector.expression for selector in request.selectors),
        capacities=request.capacities,
    )


def count_extended_resources(
    template: PodTemplate,
    locate: Locate,
    *,
    amounts: Mapping[str, int],
    configuration: KueueConfiguration,
    view: ClusterView,
    devices: QuotaDevices,
) -> dict[str, int]:
    """Return the requests under the resource names of the quota. deviceClassMappings renames extended resources."""
    classes = _device_classes_by_resource(IdentityKey(view.list_json(DeviceClass.gvk)))
    given = classes.keys() & amounts.keys()
    if not given:
        return dict(amounts)
    requested = {name for container in template.spec.all_containers() for name in container.resources.requests}
    if not configuration.is_known and requested & given:
        view.note_missing(MISSING_CONFIGURATION)
    total: Counter[str] = Counter()
    for name, value in amounts.items():
        is_of_class = name in given and name in requested
        total[configuration.device_classes.get(classes[name], name) if is_of_class else name] += value
        if is_of_class and classes[name] in configuration.sources:
            devices.refused.append(_extended_sources_problem(locate(("spec",)), name, classes[name]))
    return dict(total)


def _extended_sources_problem(path: FieldPath, name: str, device_class: str) -> Problem:
    counted_by = "but Kueue counts a capacity or a counter of this class, which only a claim can ask for"
    message = f"requests {name} of DeviceClass `{device_class}`, {counted_by}"
    fix = "remove the request, and ask for these devices in a ResourceClaimTemplate"
    return EXTENDED_SOURCES.problem(path, message, fix)


@lru_cache(maxsize=4)
def _device_classes_by_resource(classes: IdentityKey) -> Mapping[str, str]:
    """Return the DeviceClass of each extended resource.

    If several classes have the resource, the newest class counts. If these classes are equally old, the first by name
    counts.
    """
    ranked = sorted(_classes_with_extended_resource(classes.value), reverse=True)
    ranked.sort(key=lambda entry: entry[0])
    return {resource: name for _, name, resource in ranked}


def _classes_with_extended_resource(classes: Iterable[JSON]) -> Iterator[tuple[str, str, str]]:
    for obj in classes:
        device_class = DeviceClass.of(obj)
        if resource := device_class.spec.extended_resource_name:
            yield device_class.metadata.creation_timestamp, device_class.name, resource


def devices_missing_problem(path: FieldPath, message: str) -> Problem:
    """Return the problem of a claim for more devices than exist."""
    fix = "in the template, ask for fewer or other devices, or wait until the driver publishes more devices"
    return DEVICES_MISSING.problem(path, message, fix)
