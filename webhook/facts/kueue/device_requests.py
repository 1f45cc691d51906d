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
from webhook.facts.dra.pod_claims import TEMPLATE
from webhook.facts.dra.requests import requests, version_of
from webhook.facts.dra.resolved import CLASS
from webhook.facts.kueue.configuration import Configuration
from webhook.facts.kueue.objects import CONFIGURATION
from webhook.facts.kueue.queues import name_of
from webhook.facts.pods.containers import containers, items, mapping, text
from webhook.facts.same import Same
from webhook.facts.view import View
from webhook.paths import FieldPath, get
from webhook.problem import MissingObject

_CLAIMS: Final = ("spec", "resourceClaims")
_SPEC: Final = ("spec", "spec")


@dataclass(frozen=True, slots=True)
class Refused:
    """A claim that Kueue never counts: the rule that it breaks, where, and what is wrong with it."""

    rule: str
    path: FieldPath
    message: str
    fix: str


@dataclass(slots=True)
class Devices:
    """Devices of one pod by the names of quota, what Kueue refuses of them, and templates that are not there."""

    counts: dict[str, int] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    missing: list[tuple[FieldPath, MissingObject]] = field(default_factory=list)


def claimed(template: JSON, configuration: Configuration, view: View) -> Devices:
    """What the claims of a pod count for."""
    made = Devices()
    for index, entry in enumerate(view.deadline.paced(items(get(template, _CLAIMS)))):
        path, claim = (*_CLAIMS, index), mapping(entry)
        if text(claim.get("resourceClaimName")):
            message = "names a ResourceClaim, whose devices Kueue cannot count"
            made.refused.append(Refused("direct-claim", path, message, "name a ResourceClaimTemplate instead"))
        elif name := text(claim.get("resourceClaimTemplateName")):
            _count(name, path, configuration, view, made)
    return made


def without_claims(template: JSON, deadline: Deadline) -> Devices:
    """Every claim, refused because Kueue's feature gate for claims is off."""
    made = Devices()
    for index, _ in enumerate(deadline.paced(items(get(template, _CLAIMS)))):
        message = "claims devices, which Kueue refuses because its feature gate KueueDRAIntegration is off"
        made.refused.append(Refused("claims-off", (*_CLAIMS, index), message, "ask for the gate, or remove the claim"))
    return made


def _count(name: str, path: FieldPath, configuration: Configuration, view: View, made: Devices) -> None:
    looking = view.unnoted()
    obj = looking.get(TEMPLATE, name)
    if obj is None:
        made.missing.extend((path, each) for listed in looking.missing().values() for each in listed)
        return
    for request in requests(get(obj, _SPEC), _SPEC, version_of(obj), view.deadline):
        if request["adminAccess"]:
            continue
        refused = _refused(request, name, path, configuration)
        if refused is not None:
            made.refused.append(refused)
        elif request["deviceClass"] in configuration.counted_otherwise:
            why = "not looked up: quota counts what its devices consist of"
            view.note(MissingObject(kind="ResourceSlice", name=request["deviceClass"], why=why))
        else:
            counted = configuration.device_classes[request["deviceClass"]]
            made.counts[counted] = made.counts.get(counted, 0) + (request["devices"] or 0)


def _refused(request: JSON, name: str, path: FieldPath, configuration: Configuration) -> Refused | None:
    of = f"request `{request['name']}` of ResourceClaimTemplate `{name}`"
    if request["kind"] == "firstAvailable":
        message = f"leads to {of}, which chooses by firstAvailable, and Kueue cannot count that"
        return Refused("claim-choice", path, message, "ask for exactly one device class")
    if request["allocationMode"] not in ("", "ExactCount"):
        message = f"leads to {of}, whose allocationMode is {request['allocationMode']}, which Kueue cannot count"
        return Refused("claim-choice", path, message, "ask for a count of devices")
    if request["deviceClass"] not in configuration.device_classes:
        message = (
            f"leads to {of}, whose DeviceClass `{request['deviceClass']}` is not in deviceClassMappings of Kueue's"
            " Configuration"
        )
        return Refused("unmapped-class", path, message, "add the class there and restart Kueue, or use a mapped one")
    return None


def extended(template: JSON, amounts: Mapping[str, int], configuration: Configuration, view: View) -> dict[str, int]:
    """Requests under the names of quota: those that a device class gives, by its mapping."""
    classes = _by_resource(Same(view.all(CLASS)))
    given = [name for name in amounts if name in classes]
    if not given:
        return dict(amounts)
    requested = _requested(template, view.deadline)
    if not configuration.is_known and not requested.isdisjoint(given):
        view.note(MissingObject(kind="ConfigMap", name=CONFIGURATION.name, namespace=CONFIGURATION.namespace))
    made: dict[str, int] = {}
    for name, value in amounts.items():
        is_counted = name in classes and name in requested
        key = configuration.device_classes.get(classes[name], name) if is_counted else name
        made[key] = made.get(key, 0) + value
    return made


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
