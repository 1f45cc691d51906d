"""Defines a row of the workload table: the known facts about one kind with pods.

The fields are those of kinds.yaml; the top of that file explains them. table.py reads rows, and podsets.py applies
them.
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
    """A factor of a count: a field, or the smallest of several fields. If the first field is not set, its value is
    `default`.

    atMost, atLeast: fields that limit the factor if they are set. If they contradict each other, atLeast applies.
    """

    path: str = ""
    least: tuple[str, ...] = ()
    default: int = 1
    less: int = 0
    floor: int = 0
    atLeast: str = ""  # noqa: N815  spelled as in kinds.yaml
    atMost: str = ""  # noqa: N815

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields with the smallest value as the factor."""
        return self.least or (self.path,)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTemplates(_StrictModel):
    """Where an element declares the templates inside it: a list of items, each with a field path and a count."""

    items: str
    path: str
    count: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRule(_StrictModel):
    """The known parts of a pod template after its controller merged other fields into the template.

    A field that the template lacks is not known, unless `absent` names the field.

    Attributes:
        container: the name of the container that the controller completes, by default the first container.
        sets: fields of this container that the controller always sets.
        device: the field with the name and the quantity of a device, which the controller also sets in the container.
        setsInPod: fields of the PodSpec that the controller sets.
        labels: maps of the object that are added to the labels of the template, as in `made`.
        annotations: maps of the object that are added to the annotations of the template.
        nodeSelector: maps of the object that are added to the nodeSelector of the template.
        keeps: lists to which nothing is added, each with the field of the object that would add elements, or "". Other
            lists are not known.
        absent: fields of the PodSpec that the controller never sets.
        unless: conditions as in `made`. If one of them is true, no part of the pod is known.
    """

    container: str = ""
    sets: tuple[str, ...] = ()
    device: str = ""
    setsInPod: tuple[str, ...] = ()  # noqa: N815  spelled as in kinds.yaml
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    nodeSelector: tuple[str, ...] = ()  # noqa: N815
    keeps: Mapping[str, str] = field(default_factory=dict, hash=False)
    absent: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetRule(_StrictModel):
    """A place of pod templates. The top of kinds.yaml explains the other fields.

    Attributes:
        count: the factors of the number of pods; None if the number cannot be known.
        metadata: objects with labels and annotations that the controller gives to the pods, instead of the labels and
            annotations of the template. Later objects override earlier objects.
        completion: the known parts of the pods if the controller completes the template.
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
    """One pod that a controller creates from fields of the object, and the parts of the pod that these fields set.

    All paths are paths in the object.

    Args:
        name: the name of the pod in messages.
        at: the place of the fields that no other path names.
        container: the name of the container.
        image: the first of these fields that is set gives the image; a map has `repository` and `tag`.
        labels: maps with the labels; later maps override earlier maps.
        annotations: maps with the annotations; later maps override earlier maps.
        resources: the field with the resources of the container.
        resourcesNeed: if this resource is not set, the controller may add other resources.
        device: the field with the name of a device and its quantity, which become a limit.
        pod: fields of the PodSpec with the paths of the object that set them.
        fields: fields of the container with the paths of the object that set them.
        absent: fields of the PodSpec that the controller never sets.
        absentInContainer: fields of the container that the controller never sets.
        unless: conditions. If one of them is true, no part of the pod is known. A condition says that a field is set
            (`path`), has a value (`path=value`), or has a key with a prefix (`path{prefix*}`).
    """

    name: str
    at: str
    container: str
    image: tuple[str, ...]
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    resources: str = ""
    resourcesNeed: str = ""  # noqa: N815  spelled as in kinds.yaml
    device: str = ""
    pod: Mapping[str, str] = field(default_factory=dict, hash=False)
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    absent: tuple[str, ...] = ()
    absentInContainer: tuple[str, ...] = ()  # noqa: N815
    unless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialTemplateRule(_StrictModel):
    """A place of a partial pod template, which a controller merges into the template at `of`: a field path,
    `runtime`, or a kind.
    """

    template: str
    of: str
    embeds: Embeds = "template"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRule(_StrictModel):
    """One place of resources outside the pod templates, which become the resources of a container.

    The other fields are as in PodSetRule, and their paths begin at the object.

    Attributes:
        holds: `resources` for limits and requests, `device` for a name with a quantity.
        podSet: the pod set with the containers that get the resources; "" if the resources are not counted among the
            devices of the object.
    """

    path: str
    holds: Literal["resources", "device"] = "resources"
    podSet: str = ""  # noqa: N815  spelled as in kinds.yaml
    container: str = ""
    when: str = ""
    unless: str = ""
    count: tuple[Factor, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRule(_StrictModel):
    """One place of whole objects without apiVersion and kind. The objects have the kind `kind` and the group of the
    row.

    `groups` is as in PodSetRule: the number of these objects that the outer object creates at a time.
    """

    template: str
    kind: str
    groups: tuple[Factor, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSourceReference(_StrictModel):
    """An object that is the source of pods: the field that names it, and its possible kinds in the group of the row.
    The first kind is the default; `kind` is the field that chooses another kind.
    """

    name: str
    kinds: tuple[str, ...]
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeKind(_StrictModel):
    """A kind that the controller of the row creates, and that has a controller of its own.

    Attributes:
        kind: the kind as `Kind.group`.
        makes: the kinds that this second controller creates, as `Kind.group`.
    """

    kind: str
    makes: tuple[str, ...] = ("Pod",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(_StrictModel):
    """A kind with pods.

    Attributes:
        pods: whether the pod templates of the kind are whole pods.
        templates: how a changed pod template is treated.
        suspend: the field that suspends the object.
        makes: kinds of the objects that the controller owns, as `Kind.group`.
        between: other kinds that the controller creates and that create other objects.
        conversion: how the API server converts one version into another.
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
    podSets: tuple[PodSetRule, ...] = ()  # noqa: N815  spelled as in kinds.yaml
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
        """Return whether objects of this kind may contain other objects."""
        return bool(self.objects) or any(rule.embeds == "object" for rule in self.podSets)
