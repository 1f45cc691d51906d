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
    """A factor of a count: a field, or the smallest of several fields. `default` is for a first field without a
    value.

    atMost, atLeast: fields that limit the factor if they are set. If they contradict each other, atLeast counts.
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
    """Where an element declares the templates inside it: a list of items, each with a field path and a count."""

    items: str
    path: str
    count: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRule(_StrictModel):
    """What is known of a pod template after its controller merged other fields into it.

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
    """A place of pod templates. `count` is None if the number of pods cannot be known.

    metadata: objects with labels and annotations that the controller gives to the pods, instead of those of the
    template. Later objects override earlier ones. completion: what is known of the pods if the controller
    completes the template.
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

    Paths are those of the object.

    Args:
        name: the name of the pod in messages.
        at: the place of the fields that no other path names.
        container: the name of the container.
        image: the first of these fields that is set gives the image; a map has `repository` and `tag`.
        labels: maps with the labels; later maps override earlier ones.
        annotations: maps with the annotations; later maps override earlier ones.
        resources: the field with the resources of the container.
        resourcesNeed: if this resource is not set, the controller may add others.
        device: the field with the name of a device and its quantity, which become a limit.
        pod: fields of the PodSpec with the paths of the object that set them.
        fields: fields of the container with the paths of the object that set them.
        absent: fields of the PodSpec that the controller never sets.
        absentInContainer: fields of the container that it never sets.
        unless: nothing is known of the pod if one of these is set, has this value (`path=value`), or has a key with
            this prefix (`path{prefix*}`).
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
    """A place of a partial pod template, which a controller merges into the template at `of`: a field path,
    `runtime`, or a kind.
    """

    template: str
    of: str
    embeds: Embeds = "template"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRule(_StrictModel):
    """One place of resources outside the pod templates, which become the resources of a container.

    holds: limits and requests, or a device, which is a name with a quantity. podSet: the pod set with the containers
    that get them; "" if they do not count as devices. The other fields are as in PodSetRule, relative to the object.
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
    """One place of whole objects without apiVersion and kind. They have this kind, and the group of the row.

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
    """A kind that the controller of the row's kind creates, and that creates other objects itself. `makes`: kinds
    that its controller creates, as `Kind.group`.
    """

    kind: str
    makes: tuple[str, ...] = ("Pod",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(_StrictModel):
    """A kind with pods.

    pods: whether its pod templates are whole pods. templates: how a changed pod template is treated. suspend: the field
    that suspends the object. conversion: how the API server converts one version into another. makes: kinds of the
    objects that its controller owns, as `Kind.group`. between: other kinds of objects that it creates and that create
    further objects.
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
        """Return whether objects of this kind may contain other objects."""
        return bool(self.objects) or any(rule.embeds == "object" for rule in self.podSets)
