"""Finds the known parts of pods that a controller creates from fields of an object, or from a pod template and other
fields.

kinds.yaml names the fields (`made`, `completion`). Fields of the pod that kinds.yaml does not name count as unknown,
and not as absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.deadline import Deadline
from webhook.workloads.rows import CompletionRule, MadePodRule, Row

_PART: Final = re.compile(r"([^{=]*)(?:=(.*)|\{(!?)(.*)\*\})?")
"""Matches a path: alone, with a value (`path=value`), with a prefix of keys (`path{prefix*}`), or with a prefix of
excluded keys (`path{!prefix*}`).
"""


class MadePod(Struct, frozen=True, kw_only=True):
    """The parts of one pod that are known from an object.

    Attributes:
        name: the name of the pod in messages.
        at: the origin of fields that `origins` does not name.
        pod: a Pod with the known fields.
        known_in_spec: the known fields of the PodSpec, including fields that are known to be absent.
        known_in_container: the known fields of the container, including fields that are known to be absent.
        hidden_limits: the limits of the container that are not known.
        origins: the field of the object that sets a field of the pod. The longest path that matches is used.
    """

    name: str
    at: FieldPath
    pod: JSON
    known_in_spec: frozenset[str]
    known_in_container: frozenset[str]
    hidden_limits: frozenset[str] = frozenset()
    origins: Mapping[FieldPath, FieldPath] = {}

    def locate(self, path: FieldPath) -> FieldPath:
        """Return the field of the object that sets a field of the pod."""
        for length in range(len(path), 0, -1):
            if (origin := self.origins.get(path[:length])) is not None:
                return origin + path[length:]
        return self.at


class PartialTemplate(Struct, frozen=True, kw_only=True):
    """The known parts of the pods of a template that a controller completes.

    Attributes:
        container: the name of the main container, which the controller completes; "" for the first container.
        hidden: paths of fields of the main container that may differ from the template.
        hidden_in_pod: paths of fields of the PodSpec that may differ from the template.
        labels: labels that replace entries of the template.
        annotations: annotations that replace entries of the template.
        node_selector: entries of the nodeSelector that replace entries of the template.
        whole_lists: the lists to which nothing is added. Other lists are not known.
        absent: fields of the PodSpec that only the template sets.
        is_unknown: whether nothing is known.
    """

    container: str = ""
    hidden: frozenset[str] = frozenset()
    hidden_in_pod: frozenset[str] = frozenset()
    labels: Mapping[str, JSON] = {}
    annotations: Mapping[str, JSON] = {}
    node_selector: Mapping[str, JSON] = {}
    whole_lists: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    is_unknown: bool = False

    def index_of_main_container(self, containers: Sequence[JSON]) -> int:
        """Return the index of the container that the controller completes."""
        names = (each.get("name") for each in containers)
        return next((index for index, name in enumerate(names) if self.container and name == self.container), 0)


def partial_template(obj: JSON, rule: CompletionRule, deadline: Deadline) -> PartialTemplate:
    """Return the known parts of the pods of a template that the controller of an object completes."""
    device = paths.get(obj, _steps(rule.device)) if rule.device else None
    name = device.get("name") if isinstance(device, dict) else None
    sides = [f"resources.{side}.{name}" for side in ("limits", "requests")] if isinstance(name, str) else []
    return PartialTemplate(
        container=rule.container,
        hidden=frozenset((*rule.sets, *sides)),
        hidden_in_pod=frozenset(rule.setsInPod),
        labels=_merged_entries(obj, rule.labels, deadline),
        annotations=_merged_entries(obj, rule.annotations, deadline),
        node_selector=_merged_entries(obj, rule.nodeSelector, deadline),
        absent=frozenset(rule.absent),
        whole_lists=frozenset(
            (
                *rule.absent,
                *(each for each, source in rule.keeps.items() if not source or not does_hold(obj, source, deadline)),
            )
        ),
        is_unknown=any(does_hold(obj, condition, deadline) for condition in rule.unless),
    )


def made_pods(obj: JSON, row: Row, deadline: Deadline) -> tuple[MadePod, ...] | None:
    """Return the pods that a controller creates from fields of an object; None unless all of the pods are known."""
    if not row.made or any(does_hold(obj, condition, deadline) for rule in row.made for condition in rule.unless):
        return None
    pods = [_made_pod(obj, rule, deadline) for rule in row.made if isinstance(paths.get(obj, _steps(rule.at)), dict)]
    return None if not pods or None in pods else tuple(filter(None, pods))


def does_hold(obj: JSON, condition: str, deadline: Deadline) -> bool:
    """Return whether a field meets a condition: it is set, has a certain value, or has a key with a prefix."""
    path, value, _, prefix = _match(condition)
    field_value = paths.get(obj, _steps(path))
    if value is not None:
        return bool(field_value == value)
    if prefix is not None:
        return isinstance(field_value, dict) and any(
            key.startswith(prefix) for key in deadline.charge_for_items(field_value)
        )
    return field_value not in (None, False, "", [], {})


def _made_pod(obj: JSON, rule: MadePodRule, deadline: Deadline) -> MadePod | None:
    """Return the pod of a rule; None if its image or its resources are not known."""
    image, image_path = _image(obj, rule.image)
    if image is None:
        return None
    main: FieldPath = ("spec", "containers", 0)
    container: dict[str, JSON] = {"name": rule.container, "image": image}
    origins: dict[FieldPath, FieldPath] = {(*main, "image"): image_path}
    metadata: dict[str, JSON] = {}
    for name, places in (("labels", rule.labels), ("annotations", rule.annotations)):
        if entries := _merged_entries(obj, places, deadline):
            metadata[name] = entries
        if places:
            origins["metadata", name] = _steps(_match(places[-1])[0])
    resources = _resources(obj, rule)
    known = {"name", "image", *rule.fields, *rule.absentInContainer}
    if resources is not None:
        container |= {"resources": resources} if resources else {}
        known.add("resources")
    if rule.resources:
        origins[*main, "resources"] = _steps(rule.resources)
    elif rule.device:
        origins[*main, "resources"] = _steps(rule.device)
    spec: dict[str, JSON] = {"containers": [container]}
    for target, fields, at in ((spec, rule.pod, ("spec",)), (container, rule.fields, main)):
        for field, path in fields.items():
            origins[*at, field] = _steps(path)
            if (value := paths.get(obj, _steps(path))) not in (None, "", [], {}):
                target[field] = value
    return MadePod(
        name=rule.name,
        at=_steps(rule.at),
        pod={"metadata": metadata, "spec": spec},
        known_in_spec=frozenset(("containers", *rule.pod, *rule.absent)),
        known_in_container=frozenset(known),
        hidden_limits=frozenset(("cpu", "memory")) if rule.device else frozenset(),
        origins=origins,
    )


def _image(obj: JSON, places: Sequence[str]) -> tuple[str | None, FieldPath]:
    for place in places:
        value = paths.get(obj, _steps(place))
        if isinstance(value, dict):
            repository, tag = value.get("repository"), value.get("tag")
            if isinstance(repository, str) and isinstance(tag, str):
                return f"{repository}:{tag}", _steps(place)
        elif isinstance(value, str) and value:
            return value, _steps(place)
    return None, ()


def _merged_entries(obj: JSON, places: Sequence[str], deadline: Deadline) -> dict[str, JSON]:
    """Return the entries of several maps; later maps override earlier maps."""
    return {key: value for place in places for key, value in _entries(obj, place, deadline)}


def _entries(obj: JSON, place: str, deadline: Deadline) -> Iterator[tuple[str, JSON]]:
    """Yield the entries of a map, without keys that have the excluded prefix."""
    path, _, _, excluded = _match(place)
    value = paths.get(obj, _steps(path))
    for key, each in deadline.charge_for_items(value.items()) if isinstance(value, dict) else ():
        if excluded is None or not key.startswith(excluded):
            yield key, each


def _resources(obj: JSON, rule: MadePodRule) -> JSON:
    """Return the resources of the container; None if they are not set, or if the controller may add other resources."""
    if rule.device:
        device = paths.get(obj, _steps(rule.device))
        name, quantity = (device.get("name"), device.get("quantity")) if isinstance(device, dict) else (None, None)
        return {"limits": {name: quantity}} if isinstance(name, str) and name and quantity else {"limits": {}}
    value = paths.get(obj, _steps(rule.resources))
    if not isinstance(value, dict):
        return None
    sides = {side: value[side] for side in ("limits", "requests") if isinstance(value.get(side), dict)}
    needed = rule.resourcesNeed
    return sides if not needed or any(needed in side for side in sides.values()) else None


def _match(text: str) -> tuple[str, str | None, str | None, str | None]:
    match = _PART.fullmatch(text)
    assert match is not None
    return match[1], match[2], match[3], match[4]


def _steps(path: str) -> FieldPath:
    return tuple(path.split("."))
