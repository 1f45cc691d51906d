"""The containers of a pod template, null-tolerant, each with where it stands.

Ephemeral containers are left out: they cannot have resources (k8s.io/kubernetes v1.36 allowedEphemeralContainerFields).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.paths import FieldPath
from webhook.same import Same

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


def is_made_by_another(subject: Subject) -> bool:
    """Whether a controller made an object, of another one that was looked at."""
    references = items(mapping(mapping(subject.object).get("metadata")).get("ownerReferences"))
    return bool([each for each in references if mapping(each).get("controller") is True])  # faster than any()


class Variables(NamedTuple):
    """The variables of a container in order: their names, and their values, None where one comes from elsewhere."""

    names: Sequence[str] = ()
    values: Sequence[str | None] = ()

    def pairs(self) -> tuple[tuple[str, str | None], ...]:
        """Each with its value."""
        return tuple(zip(self.names, self.values, strict=True))


def variables_of(container: JSON, deadline: Deadline) -> Variables:
    """The variables of a container; fast where all are of their types, as there may be hundreds."""
    listed = items(container.get("env"))
    deadline.spend(len(listed))
    try:
        names, values = [each["name"] for each in listed], [each.get("value") for each in listed]
    except (KeyError, TypeError, AttributeError):
        names, values = [mapping(each).get("name") for each in listed], [mapping(each).get("value") for each in listed]
    if not (_NAMES.issuperset(map(type, names)) and _VALUES.issuperset(map(type, values))):
        return Variables(list(map(text, names)), [each if isinstance(each, str) else None for each in values])
    return Variables(names, values)


_NAMES: Final = frozenset((str,))
_VALUES: Final = frozenset((str, type(None)))


def environment(container: JSON, subject: Subject) -> Variables:
    """The same, listed once a request: many checks ask."""
    if not container.get("env"):
        return Variables()
    return subject.cluster.once((environment, Same(container)), lambda: variables_of(container, subject.deadline))


def variables(container: JSON, subject: Subject) -> Mapping[str, str | None]:
    """The same by name, of which the last counts."""
    if not container.get("env"):
        return {}
    return subject.cluster.once(
        (variables, Same(container)), lambda: dict(zip(*environment(container, subject), strict=True))
    )
