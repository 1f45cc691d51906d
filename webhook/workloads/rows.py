"""A row of the workload table: the known facts about one kind with pods.

The fields are those of kinds.yaml; the top of that file explains them. Data only: table.py reads rows, podsets.py
applies them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from webhook.apimachinery.attributes import GroupVersionKind

Embeds: TypeAlias = Literal["template", "podSpec", "object"]
Change: TypeAlias = Literal["mutable", "later", "suspended", "immutable"]


class _StrictModel:
    """A base class for pydantic that rejects unknown fields and does not convert texts to numbers."""

    __slots__ = ()
    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor(_StrictModel):
    """One factor of a count: a field, or the smallest of several; `default` is the first one's value if it is unset.

    atMost, atLeast: fields that bound the factor if they are set; if the bounds contradict each other, the lower bound
    counts.
    """

    path: str = ""
    least: tuple[str, ...] = ()
    default: int = 1
    less: int = 0
    floor: int = 0
    atLeast: str = ""  # noqa: N815  the file's own spelling
    atMost: str = ""  # noqa: N815

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields with the smallest value as the factor."""
        return self.least or (self.path,)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTemplates(_StrictModel):
    """Where an element lists the templates inside it: a list of items, each with a field path and a count."""

    items: str
    path: str
    count: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRule(_StrictModel):
    """What a controller that merges other fields into a pod template leaves as the template has it.

    A field that the template lacks is not known, unless it is `absent`: a field of the PodSpec that the controller
    never sets. container: the name of the container that the controller completes, by default the first. sets: fields
    of that container that the controller sets, whatever the template has. device: the name of a device and its
    quantity, which it sets there too. setsInPod: fields of the PodSpec that it sets. labels, annotations, nodeSelector:
    maps of the object that are added to those of the template, as in `made`. keeps: lists to which nothing is added,
    each with the field of the object that adds elements, "" if there is none; other lists are not known. unless:
    nothing is known of the pod if one of these holds, as in `made`.
    """

    container: str = ""
    sets: tuple[str, ...] = ()
    device: str = ""
    setsInPod: tuple[str, ...] = ()  # noqa: N815  the file's own spelling
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    nodeSelector: tuple[str, ...] = ()  # noqa: N815
    keeps: Mapping[str, str] = field(default_factory=dict, hash=False)
    absent: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetRule(_StrictModel):
    """One place of pod templates. `count` is None if the number of pods cannot be known.

    metadata: objects with labels and annotations that the controller gives to the pods instead of the template's; a
    later one counts. completion: what is known of the pods of a template that is only a part of them.
    """

    template: str
    name: str = ""
    named: str = "name"
    embeds: Embeds = "template"
    when: str = ""
    unless: str = ""
    count: tuple[Factor, ...] | None = ()
    groups: tuple[Factor, ...] = ()
    declared: DeclaredTemplates | None = None
    metadata: tuple[str, ...] = ()
    completion: CompletionRule = CompletionRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePodRule(_StrictModel):
    """One pod that a controller creates from fields of the object, with the parts that these fields set.

    Paths are those of the object. at: the place of the fields that no other path names. container: the name of its
    container. image: the first of these fields that is set; a map has `repository` and `tag`. labels and annotations:
    maps; later maps win. resources: those of the container; device: the name of a device and its quantity, which become
    a limit; resourcesNeed: a resource without which the controller may add others. pod, fields: which fields of the
    PodSpec and of the container are which ones of the object. absent, absentInContainer: fields that the controller
    never sets. unless: nothing is known of the pod if one of these is set, has this value (`path=value`) or a key
    with this prefix (`path{prefix*}`).
    """

    name: str
    at: str
    container: str
    image: tuple[str, ...]
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    resources: str = ""
    resourcesNeed: str = ""  # noqa: N815  the file's own spelling
    device: str = ""
    pod: Mapping[str, str] = field(default_factory=dict, hash=False)
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    absent: tuple[str, ...] = ()
    absentInContainer: tuple[str, ...] = ()  # noqa: N815
    unless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialTemplateRule(_StrictModel):
    """One place of a partial pod template, which a controller merges into the template at `of`: a field path,
    `runtime`, or a kind.
    """

    template: str
    of: str
    embeds: Embeds = "template"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRule(_StrictModel):
    """One place of resources outside the pod templates, which become the resources of a container.

    holds: limits and requests, or a device, which is a name with a quantity. podSet: the pod set with the containers
    that get them; "" if they do not count as devices. Other fields as of pod sets, relative to the object.
    """

    path: str
    holds: Literal["resources", "device"] = "resources"
    podSet: str = ""  # noqa: N815  the file's own spelling
    container: str = ""
    when: str = ""
    unless: str = ""
    count: tuple[Factor, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRule(_StrictModel):
    """One place of whole objects without apiVersion and kind: of this kind, of the row's own group.

    `groups` as of pod sets: how many of it the object makes at a time.
    """

    template: str
    kind: str
    groups: tuple[Factor, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSourceReference(_StrictModel):
    """An object that is the source of pods: the field that names it, and its possible kinds, the first by default.
    Kinds have the group of the row. `kind` is the field that chooses another kind.
    """

    name: str
    kinds: tuple[str, ...]
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeKind(_StrictModel):
    """A kind between a row's and what it makes in the end: its controller makes these, as `Kind.group`."""

    kind: str
    makes: tuple[str, ...] = ("Pod",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(_StrictModel):
    """One kind that carries pods.

    pods: whether its pod templates are whole pods. templates: what becomes of a changed pod template. suspend: the
    field that suspends the object. conversion: how the API server makes one version into another. makes: kinds of the
    objects that its controller owns, as `Kind.group`. between: objects of other kinds that it makes, which make others.
    """

    group: str
    versions: tuple[str, ...]
    kind: str
    resource: str
    namespaced: bool = True
    pods: Literal["whole", "parts"] = "whole"
    templates: Change = "mutable"
    suspend: str = ""
    makes: tuple[str, ...] = ("Pod",)
    between: tuple[MadeKind, ...] = ()
    conversion: Literal["none", "webhook"] = "none"
    podSets: tuple[PodSetRule, ...] = ()  # noqa: N815  the file's own spelling
    made: tuple[MadePodRule, ...] = ()
    fragments: tuple[PartialTemplateRule, ...] = ()
    resources: tuple[ResourceRule, ...] = ()
    objects: tuple[ObjectRule, ...] = ()
    references: tuple[PodSourceReference, ...] = ()

    @property
    def gvk(self) -> GroupVersionKind:
        """Return the kind at its preferred version, the first of the row."""
        return GroupVersionKind(self.group, self.versions[0], self.kind)

    @property
    def holds_objects(self) -> bool:
        """Return whether its objects may hold other objects."""
        return bool(self.objects) or any(rule.embeds == "object" for rule in self.podSets)
