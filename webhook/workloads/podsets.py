"""Finds the pod sets of an object: its pod templates, their places, their numbers of pods, and the effect of a
change.

Any JSON is accepted, because controllers without omitempty store nulls, and fixtures may have any value. Values of
unexpected types have no pods. The numbers count requested pods, not running pods. kinds.yaml explains the values for a
changed template. An object that is suspended before or after an update has no pods with the old template.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.deadline import Deadline
from webhook.workloads.made_pods import PartialTemplate, partial_template
from webhook.workloads.rows import Change, DeclaredTemplates, Embeds, Factor, PodSetRule, Row
from webhook.workloads.table import Table

_DEEPEST = 4  # levels of objects in objects; an object with more levels is useless, and may be an attack


class PodSet(Struct, kw_only=True):
    """One pod template of an object.

    Attributes:
        path: the place of the template.
        template: `{metadata, spec}` as in the object.
        count: the number of pods in a group; None if the number cannot be known.
        groups: the number of groups that the object creates (LeaderWorkerSet replicas).
        bare: whether the object has only a PodSpec at `path`. The template is then built around the PodSpec, and
            `locate` omits the `spec`.
        elsewhere: whether the template is not in the object, such as the merge of a TrainJob with its runtime. `path`
            is then the place of the template's origin.
        is_patch: whether the template is a patch that is merged into a template of another object.
        metadata: the objects that give the pods labels and annotations instead of the template.
        partial: the known parts of the pods if the controller completes the template.
    """

    name: str
    path: FieldPath
    template: JSON
    count: int | None = 1
    groups: int = 1
    bare: bool = False
    elsewhere: bool = False
    is_patch: bool = False
    metadata: tuple[FieldPath, ...] = ()
    partial: PartialTemplate | None = None

    @property
    def pods(self) -> int | None:
        """Return the number of pods of this template that the object creates."""
        return None if self.count is None else self.count * self.groups

    def locate(self, path: FieldPath) -> FieldPath:
        """Return the place of a field of the template in the object: ("spec", "x") -> ("spec", "template", "spec",
        "x").
        """
        if self.elsewhere:
            return self.path
        if self.metadata and path[:1] == ("metadata",):
            return self.metadata[-1] + path[1:]
        if not self.bare:
            return self.path + path
        return self.path + path[1:] if path[:1] == ("spec",) else self.path


class TemplateFragment(Struct, frozen=True, kw_only=True):
    """A partial pod template that a controller merges into the template at `of`: a field path, `runtime`, or a kind."""

    path: FieldPath
    template: JSON
    of: str
    bare: bool = False


class TemplatePlace(NamedTuple):
    """A value at a template path, with the innermost element on the path and the name of that element."""

    path: FieldPath
    value: JSON
    element: JSON
    key: str


def group_kind(obj: JSON) -> tuple[str, str]:
    """Return group and kind of an object: `apps/v1` Deployment -> ("apps", "Deployment"); ("", "") for other values."""
    if not isinstance(obj, dict):
        return "", ""
    version, kind = obj.get("apiVersion"), obj.get("kind")
    group = version.rpartition("/")[0] if isinstance(version, str) else ""
    return group, kind if isinstance(kind, str) else ""


def pod_templates(obj: JSON, table: Table, deadline: Deadline | None = None) -> tuple[PodSet, ...]:
    """Return all pod templates of an object, in the order of its row and then of the object.

    A kind that is not in the table has no templates. Absent templates and nulls are left out.
    """
    row = table.row(*group_kind(obj))
    if row is None:
        return ()
    first = row.podSets[0] if row.podSets else _ITSELF
    if not first.template and row.podSets == (_ITSELF,):
        return (PodSet(name=_ITSELF.name, path=(), template=obj),)
    until = deadline or Deadline()
    return tuple(until.items_with_clock_checks(_podsets_of_row(obj, row, table, until, depth=0)))


_ITSELF = PodSetRule(template="", name="main")
"""The rule for a Pod, which is itself a pod template."""


OF_RUNTIME = "runtime"
"""The target of a fragment that is merged into the runtime of a TrainJob, which is another object."""


def partial_pod_templates(
    obj: JSON, table: Table, deadline: Deadline | None = None, *, of_runtime: bool = True
) -> tuple[TemplateFragment, ...]:
    """Return every partial pod template of an object: TrainJob runtimePatches, BatchSandbox shardPatches."""
    row, until = table.row(*group_kind(obj)), deadline or Deadline()
    if row is None or not row.fragments:
        return ()
    return tuple(
        TemplateFragment(
            path=place.path, template=_as_template(place.value, rule.embeds), of=rule.of, bare=rule.embeds == "podSpec"
        )
        for rule in row.fragments
        if of_runtime or rule.of != OF_RUNTIME
        for place in until.items_with_clock_checks(places_of_path(obj, rule.template, deadline=until))
        if isinstance(place.value, dict)
    )


def patch_templates(obj: JSON, table: Table, deadline: Deadline | None = None) -> tuple[PodSet, ...]:
    """Return the patches of an object for pod templates of a runtime, as templates: TrainJob runtimePatches.

    A fragment that is merged into a template of the same object is checked after the merge.
    """
    return tuple(
        PodSet(
            name=paths.path_as_text(each.path), path=each.path, template=each.template, bare=each.bare, is_patch=True
        )
        for each in (deadline or Deadline()).charge_for_items(partial_pod_templates(obj, table, deadline))
        if each.of == OF_RUNTIME
    )


def _podsets_of_row(obj: JSON, row: Row, table: Table, deadline: Deadline, depth: int) -> Iterator[PodSet]:
    wrapped = 0
    for rule in row.podSets:
        for place in places_of_path(obj, rule.template, rule.named, deadline):
            if not _does_rule_apply(place, rule):
                continue
            if rule.embeds != "object":
                partial = partial_template(obj, rule.completion, deadline) if row.pods == "parts" else None
                yield _podset(place, rule, obj, partial)
                continue
            for inner in _podsets_of_inner_object(place, rule, table, deadline, depth):
                groups = inner.groups * product_of_factors(obj, rule.groups)
                yield replace(inner, name=f"{_name(obj)}-{wrapped}", path=place.path + inner.path, groups=groups)
                wrapped += 1


def _does_rule_apply(place: TemplatePlace, rule: PodSetRule) -> bool:
    if not isinstance(place.value, dict):
        return False
    if rule.when and not is_set(place.element, rule.when):
        return False
    return not rule.unless or not is_set(place.element, rule.unless)


def is_set(element: JSON, path: str) -> bool:
    """Return whether a field below an element exists, and is neither null nor false."""
    value = _field(element, path)
    return value is not None and value is not False


def _podset(place: TemplatePlace, rule: PodSetRule, obj: JSON, partial: PartialTemplate | None) -> PodSet:
    template, metadata = _as_template(place.value, rule.embeds), _metadata_paths(place, rule, obj)
    if metadata:
        template = template_with_metadata(template, obj, metadata)
    return PodSet(
        name="-".join(filter(None, (place.key, rule.name))),
        path=place.path,
        template=template,
        metadata=metadata,
        count=None if rule.count is None else product_of_factors(place.element, rule.count),
        groups=product_of_factors(obj, rule.groups),
        bare=rule.embeds == "podSpec",
        partial=partial,
    )


def _metadata_paths(place: TemplatePlace, rule: PodSetRule, obj: JSON) -> tuple[FieldPath, ...]:
    """Return the places of the metadata that give the pods their labels: the places that exist, otherwise the first
    place.
    """
    below = len(_split_template_path(rule.template)[-1][0])
    element = place.path[: len(place.path) - below]
    every = tuple(element + _steps(path) if path.startswith(".") else _steps(path) for path in rule.metadata)
    return tuple(each for each in every if isinstance(paths.get(obj, each), dict)) or every[:1]


def template_with_metadata(template: JSON, obj: JSON, metadata: Sequence[FieldPath]) -> JSON:
    """Return a template with the labels and annotations that its controller gives to the pods."""
    merged: dict[str, JSON] = {}
    for place in metadata:
        for name in ("labels", "annotations"):
            if isinstance(entries := paths.get(obj, (*place, name)), dict):
                merged[name] = {**merged.get(name, {}), **entries}
    return {**template, "metadata": merged} if merged or "metadata" in template else template


def _as_template(value: JSON, embeds: Embeds) -> JSON:
    return {"spec": value} if embeds == "podSpec" else value


def _podsets_of_inner_object(
    place: TemplatePlace, rule: PodSetRule, table: Table, deadline: Deadline, depth: int
) -> Iterator[PodSet]:
    """Yield the pod sets of an object inside another object: the templates that the element declares, otherwise the pod
    sets of the inner object's row.
    """
    if rule.declared and (items := _field(place.element, rule.declared.items)) and isinstance(items, list):
        yield from _declared_pod_sets(place, rule.declared, deadline.charge_for_items(items))
    elif depth < _DEEPEST and (row := table.row(*group_kind(place.value))):
        yield from _podsets_of_row(place.value, row, table, deadline, depth + 1)


def _declared_pod_sets(place: TemplatePlace, declared: DeclaredTemplates, items: Iterable[JSON]) -> Iterator[PodSet]:
    """Yield the templates that an element declares. The paths in its declaration are relative to the element."""
    for item in items:
        text = _field(item, declared.path)
        try:
            path = paths.parse_path(text) if isinstance(text, str) else ()
        except ValueError:
            continue
        if path[:1] != place.path[-1:]:
            continue
        template = paths.get(place.value, path[1:])
        if isinstance(template, dict):
            yield PodSet(name="", path=path[1:], template=template, count=_number(_field(item, declared.count), 1))


def _name(obj: JSON) -> str:
    metadata = _field(obj, "metadata") or {}
    return _name_of_element(metadata, "name") or _name_of_element(metadata, "generateName")


def places_of_path(
    obj: JSON, template: str, named: str = "", deadline: Deadline | None = None
) -> Iterator[TemplatePlace]:
    """Yield every existing place of a template path."""
    return _walk(TemplatePlace((), obj, obj, ""), _split_template_path(template), named, deadline or Deadline())


def _walk(
    place: TemplatePlace, parts: Sequence[tuple[FieldPath, str]], named: str, deadline: Deadline
) -> Iterator[TemplatePlace]:
    (fields, each), *rest = parts
    value = place.value
    for field in fields:
        if not isinstance(value, dict) or (value := value.get(field)) is None:
            return
    path = place.path + fields
    if not each:
        yield TemplatePlace(path, value, place.element, place.key)
        return
    for inner in _elements(path, value, each, named, deadline):
        yield from _walk(inner, rest, named, deadline)


def _elements(path: FieldPath, value: JSON, step: str, named: str, deadline: Deadline) -> Iterator[TemplatePlace]:
    if step == "[]" and isinstance(value, list):
        for index, element in enumerate(deadline.charge_for_items(value)):
            yield TemplatePlace((*path, index), element, element, _name_of_element(element, named) or str(index))
    elif step == "{}" and isinstance(value, dict):
        for key, element in deadline.charge_for_items(value.items()):
            yield TemplatePlace((*path, key), element, element, key.lower())


def _name_of_element(element: JSON, named: str) -> str:
    """Return the name of an element from its field; "" if the field has a list or an object, which may be long."""
    name = _field(element, named) if named else None
    return "" if not name or isinstance(name, dict | list) else str(name)


@lru_cache(maxsize=1024)
def _split_template_path(path: str) -> tuple[tuple[FieldPath, str], ...]:
    """Split a path: `spec.tasks[].template` -> ((("spec", "tasks"), "[]"), (("template",), ""))."""
    texts = _EACH.split(path)
    return tuple((_steps(text), each) for text, each in zip(texts[::2], [*texts[1::2], ""], strict=True))


_EACH: Final = re.compile(r"(\[\]|\{\})")


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[str, ...]:
    """Split a path into steps: `spec.template` -> ("spec", "template")."""
    return tuple(step for step in path.split(".") if step)


def _field(value: JSON, path: str) -> JSON:
    return paths.get(value, _steps(path))


def product_of_factors(element: JSON, factors: Sequence[Factor]) -> int:
    """Multiply the factors of a count for an element."""
    number = 1
    for factor in factors:
        number *= _factor(element, factor)
    return number


def _factor(element: JSON, factor: Factor) -> int:
    first, *others = factor.fields
    number = _number(_field(element, first), factor.default)
    for path in others:
        if (value := _field(element, path)) is not None:
            number = min(number, _number(value, factor.default))
    number -= factor.less
    if factor.atMost:
        number = min(number, _number(_field(element, factor.atMost), number))
    if factor.atLeast:
        number = max(number, _number(_field(element, factor.atLeast), number))
    return max(0, factor.floor, number)


def _number(value: JSON, default: int) -> int:
    """Return a value if it is an integer; the default for other values, such as texts and booleans."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def change_of_template(obj: JSON, old: JSON, table: Table) -> Change:
    """Return how the controller treats a changed template in an update from `old` to `obj`; mutable by default."""
    row = table.row(*group_kind(obj))
    if row is None or row.templates in ("mutable", "immutable"):
        return row.templates if row else "mutable"
    if row.suspend and any(paths.get(each, paths.parse_path(row.suspend)) is True for each in (obj, old)):
        return "mutable"
    return "later" if row.templates == "later" else "immutable"


def is_template_changed(podset: PodSet, before: PodSet | None) -> bool:
    """Return whether an update changes the PodSpec of a template. `before` is the template of this name in the old
    object.
    """
    if before is None or podset.elsewhere:
        return False
    return bool(podset.template.get("spec") != before.template.get("spec"))
