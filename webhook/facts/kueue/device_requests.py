"""What the devices of a pod count for: claims by templates, and extended resources that device classes give.

Source: kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go and extended_resources.go. Quota counts devices under the names
that `deviceClassMappings` of Kueue's Configuration give their classes. An extended resource counts so only where it is
requested: one in limits alone keeps its own name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.dra.claim_use import USE_TEMPLATE
from webhook.facts.dra.device_pools import DeviceID
from webhook.facts.dra.requests import Request, requests
from webhook.facts.dra.types import DeviceClass, ResourceClaimTemplate
from webhook.facts.kueue.configuration import Configuration, Source
from webhook.facts.kueue.device_sources import Asked, charge, selected
from webhook.facts.kueue.objects import CONFIGURATION
from webhook.facts.kueue.queues import name_of
from webhook.facts.pods.containers import containers
from webhook.facts.values import items, mapping, text
from webhook.facts.view import View
from webhook.paths import FieldPath, get
from webhook.problem import MissingObject
from webhook.same import Same
from webhook.wording import counted

_CLAIMS: Final = ("spec", "resourceClaims")


@dataclass(frozen=True, slots=True)
class Refused:
    """A claim that Kueue never counts: the rule that it breaks, where, and what is wrong with it."""

    rule: str
    path: FieldPath
    message: str
    fix: str


@dataclass(slots=True)
class Devices:
    """Devices of one pod by the names of quota.

    Args:
        counts: how much they count for.
        refused: what Kueue never counts.
        waiting: what it cannot count before there are other devices.
        missing: templates that are not there.
    """

    counts: dict[str, int] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    waiting: list[Refused] = field(default_factory=list)
    missing: list[tuple[FieldPath, MissingObject]] = field(default_factory=list)

    def add(self, resource: str, amount: int) -> None:
        """Count for so much more."""
        self.counts[resource] = self.counts.get(resource, 0) + amount


def claimed(template: JSON, configuration: Configuration, view: View) -> Devices:
    """What the claims of a pod count for."""
    made = Devices()
    for index, entry in enumerate(view.deadline.paced(items(get(template, _CLAIMS)))):
        path, claim = (*_CLAIMS, index), mapping(entry)
        if text(claim.get("resourceClaimName")):
            message = "names a ResourceClaim, whose devices Kueue cannot count"
            made.refused.append(Refused("direct-claim", path, message, USE_TEMPLATE))
        elif name := text(claim.get("resourceClaimTemplateName")):
            _Counting(name, path, configuration, view, made).count()
    return made


def without_claims(template: JSON, deadline: Deadline) -> Devices:
    """Every claim, refused because Kueue's feature gate for claims is off."""
    made = Devices()
    for index, _ in enumerate(deadline.paced(items(get(template, _CLAIMS)))):
        message = "claims devices, which Kueue refuses because its feature gate KueueDRAIntegration is off"
        made.refused.append(
            Refused(
                "claims-off",
                (*_CLAIMS, index),
                message,
                "ask the administrator of Kueue to turn the gate on, or remove the claim",
            )
        )
    return made


@dataclass(frozen=True, slots=True)
class _Counting:
    """How a ResourceClaimTemplate that a pod names at a path is counted."""

    name: str
    path: FieldPath
    configuration: Configuration
    view: View
    made: Devices

    def count(self) -> None:
        """Count its requests."""
        looking = self.view.unnoted()
        template = looking.find(ResourceClaimTemplate, self.name)
        if not template:
            self.made.missing.extend((self.path, each) for each in looking.all_missing())
            return
        taken: set[DeviceID] = set()
        for request in requests(template.claim, template.version):
            if not request.has_admin_access:
                self._count(request, taken)

    def _count(self, request: Request, taken: set[DeviceID]) -> None:
        of = f"ResourceClaimTemplate `{self.name}`, whose request `{request.name}`"
        device_class = request.device_class
        refused = _refused(request, of, self.path, self.configuration)
        if refused is not None:
            self.made.refused.append(refused)
        elif sources := self.configuration.sources.get(device_class):
            for source in sources:
                self._charge(_asked(request), source, of)
        else:
            self.made.add(self.configuration.device_classes[device_class], request.devices or 0)
            if request.selectors:
                self._take(_asked(request), of, taken)

    def _take(self, asked: Asked, of: str, taken: set[DeviceID]) -> None:
        """As validateCELSelectorsAgainstDevices: each device is there for one request of the claim."""
        known = selected(asked, self.view)
        if known is None:
            return
        free = [each.id for each in known if each.id not in taken]
        taken.update(free[: asked.count])
        if len(free) < asked.count:
            has = f"only {counted(len(free), 'device')} of the ResourceSlices"
            self._wait(f"uses {of} asks for {counted(asked.count, 'device')}, but {has} match the request")

    def _wait(self, message: str) -> None:
        fix = "in the template, ask for fewer or other devices, or wait until the driver publishes more devices"
        self.made.waiting.append(Refused("devices-missing", self.path, message, fix))

    def _charge(self, asked: Asked, source: Source, of: str) -> None:
        """Count what the devices consist of; where nobody knows that, the view says so."""
        made = charge(asked, source, self.view)
        if made is None:
            return
        told = f"uses {of} {made.waits or made.never}"
        if made.waits:
            self._wait(told)
        elif made.never:
            self.made.refused.append(
                Refused("claim-capacity", self.path, told, "in the template, ask for less of this capacity")
            )
        else:
            self.made.add(source.resource, made.amount)


def _asked(request: Request) -> Asked:
    return Asked(
        device_class=request.device_class,
        count=request.devices or 0,
        selectors=tuple(selector.expression for selector in request.selectors),
        capacities=request.capacities,
    )


def _refused(request: Request, of: str, path: FieldPath, configuration: Configuration) -> Refused | None:
    if request.kind == "firstAvailable":
        message = f"uses {of} is a choice (firstAvailable), and Kueue cannot count a choice"
        return Refused(
            "claim-choice", path, message, "in the template, replace firstAvailable with a request for one device class"
        )
    if request.allocation_mode not in ("", "ExactCount"):
        message = f"uses {of} has allocationMode {request.allocation_mode}, which Kueue cannot count"
        return Refused("claim-choice", path, message, "in the template, set allocationMode to ExactCount")
    if request.device_class not in configuration.device_classes:
        message = (
            f"uses {of} asks for DeviceClass `{request.device_class}`, which is not in deviceClassMappings of Kueue's"
            " Configuration"
        )
        return Refused(
            "unmapped-class",
            path,
            message,
            "use another class, or ask the administrator to add the class to the Configuration and to restart Kueue",
        )
    return None


def extended(
    template: JSON, amounts: Mapping[str, int], configuration: Configuration, view: View, devices: Devices
) -> dict[str, int]:
    """Requests under the names of quota: those that a device class gives, by its mapping."""
    classes = _by_resource(Same(view.all(DeviceClass.gvk)))
    given = [name for name in amounts if name in classes]
    if not given:
        return dict(amounts)
    requested = _requested(template, view.deadline)
    if not configuration.is_known and not requested.isdisjoint(given):
        view.note(MissingObject(kind="ConfigMap", name=CONFIGURATION.name, namespace=CONFIGURATION.namespace))
    made: dict[str, int] = {}
    for name, value in amounts.items():
        key = name
        if name in classes and name in requested:
            key = configuration.device_classes.get(classes[name], name)
            if classes[name] in configuration.sources:
                devices.refused.append(_of_sources(name, classes[name]))
        made[key] = made.get(key, 0) + value
    return made


def _of_sources(name: str, device_class: str) -> Refused:
    counted_by = "but Kueue counts this class by a capacity or a counter and not by devices"
    message = f"requests {name} of DeviceClass `{device_class}`, {counted_by}"
    fix = "remove the request, and ask for these devices in a ResourceClaimTemplate"
    return Refused("extended-sources", ("spec",), message, fix)


def _requested(template: JSON, deadline: Deadline) -> frozenset[str]:
    listed = deadline.paced(containers(template))
    return frozenset(name for each in listed for name in each.amounts("requests"))


@lru_cache(maxsize=4)
def _by_resource(classes: Same) -> Mapping[str, str]:
    """The DeviceClass of each extended resource: the newest, and of two as new the first by name."""
    ranked = sorted(_named(classes.held), reverse=True)
    ranked.sort(key=lambda each: each[0])
    return {resource: name for _, name, resource in ranked}


def _named(classes: Iterable[JSON]) -> Iterator[tuple[str, str, str]]:
    for each in classes:
        if resource := text(get(each, ("spec", "extendedResourceName"))):
            yield text(get(each, ("metadata", "creationTimestamp"))), name_of(each), resource
