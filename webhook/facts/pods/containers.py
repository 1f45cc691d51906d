"""The containers of a pod template, null-tolerant, each with where it stands.

Ephemeral containers are left out: they cannot have resources (k8s.io/kubernetes v1.36 allowedEphemeralContainerFields).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from webhook.attributes import JSON
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.paths import FieldPath

_LISTS = ("containers", "initContainers")


class Container(NamedTuple):
    """One container. `path` is relative to the template; `init` also of a sidecar, which `restarts` says it is."""

    path: FieldPath
    value: JSON
    init: bool

    @property
    def name(self) -> str:
        """Its name, "" where it has none."""
        return text(self.value.get("name"))

    @property
    def restarts(self) -> bool:
        """An init container that keeps running with the others."""
        return self.init and self.value.get("restartPolicy") == "Always"

    @property
    def words(self) -> list[str]:
        """Its command and arguments."""
        return [text(each) for side in ("command", "args") for each in items(self.value.get(side))]

    def amounts(self, side: str) -> dict[str, JSON]:
        """Its `limits` or `requests`; null values, which the API server drops, are left out."""
        resources = self.value.get("resources")
        amounts = mapping(resources.get(side)) if isinstance(resources, dict) else None
        if not amounts or None not in amounts.values():  # as nearly always: no copy
            return amounts or {}
        return {name: value for name, value in amounts.items() if value is not None}

    def claims(self) -> list[JSON]:
        """Its `resources.claims`."""
        resources = self.value.get("resources")
        return items(resources.get("claims")) if isinstance(resources, dict) else []


def containers(template: JSON, each: Callable[[list[JSON]], Iterable[JSON]] = iter) -> Iterator[Container]:
    """The containers of a template, then its init containers, each in order; `each` walks a list, and may charge it."""
    spec = template.get("spec") if isinstance(template, dict) else None
    for name in _LISTS:
        for index, value in enumerate(each(items(spec.get(name))) if isinstance(spec, dict) else ()):
            if isinstance(value, dict):
                yield Container(("spec", name, index), value, init=name == "initContainers")


def containers_of(subject: Subject) -> tuple[Container, ...]:
    """The same of a Pod, to be asked for with `Subject.once`."""
    return tuple(containers(subject.object, subject.deadline.each))


class Amounts(NamedTuple):
    """A container with its limits and requests, as `Container.amounts` gives them, and the names of all of them."""

    container: Container
    limits: Mapping[str, JSON]
    requests: Mapping[str, JSON]
    names: Collection[str]


def amounts(container: Container) -> Amounts:
    """What a container requests."""
    if not container.value.get("resources"):
        return Amounts(container, _NOTHING, _NOTHING, _NOTHING)
    limits, requests = container.amounts("limits"), container.amounts("requests")
    return Amounts(container, limits, requests, limits if limits.keys() >= requests.keys() else {**limits, **requests})


_NOTHING: Final[Mapping[str, JSON]] = MappingProxyType({})


def amounts_of(subject: Subject) -> tuple[Amounts, ...]:
    """The containers of a Pod with their amounts, to be asked for with `Subject.once`."""
    listed = subject.once(containers_of)
    return tuple([amounts(each) for each in listed])
