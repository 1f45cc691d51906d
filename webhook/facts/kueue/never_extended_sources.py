"""Converts extended resources of device classes to the resource names of quota.

Source: kubernetes-sigs/kueue@ff69552e pkg/dra/extended_resources.go. An extended resource counts so only where it is
requested: one in limits alone keeps its own name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from webhook.attributes import JSON
from webhook.facts.dra.types import DeviceClass
from webhook.facts.kueue.configuration import MISSING_CONFIGURATION, KueueConfiguration
from webhook.facts.kueue.groups import KUEUE_NEVER
from webhook.facts.kueue.never_claims_and_classes import Locate, QuotaDevices
from webhook.facts.view import ClusterView
from webhook.paths import FieldPath
from webhook.problem import Problem
from webhook.same import IdentityKey
from webhook.typed.pods import PodTemplate

EXTENDED_SOURCES: Final = KUEUE_NEVER.rule(
    "kueue-never/extended-sources",
    title="An extended resource is of a device class whose devices quota counts one by one.",
    why="A request for an extended resource says nothing of counters and capacities, which a claim does.",
    source="kubernetes-sigs/kueue@ff69552e pkg/dra/extended_resources.go",
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
    """Return the requests by resource names of quota; those of a device class are converted by its mapping."""
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
    counted_by = "but Kueue counts this class by a capacity or a counter and not by devices"
    message = f"requests {name} of DeviceClass `{device_class}`, {counted_by}"
    fix = "remove the request, and ask for these devices in a ResourceClaimTemplate"
    return EXTENDED_SOURCES.problem(path, message, fix)


@lru_cache(maxsize=4)
def _device_classes_by_resource(classes: IdentityKey) -> Mapping[str, str]:
    """Return the DeviceClass of each extended resource: the newest, and of equally new ones the first by name."""
    ranked = sorted(_classes_with_extended_resource(classes.held), reverse=True)
    ranked.sort(key=lambda entry: entry[0])
    return {resource: name for _, name, resource in ranked}


def _classes_with_extended_resource(classes: Iterable[JSON]) -> Iterator[tuple[str, str, str]]:
    for obj in classes:
        device_class = DeviceClass.of(obj)
        if resource := device_class.spec.extended_resource_name:
            yield device_class.metadata.creation_timestamp, device_class.name, resource
