"""Defines types of JSON values, from declarations and from the table of built-in types.

A type is the name of a scalar, `Items` or `Fields`. A built-in type has the name of Kubernetes' OpenAPI documents
without the prefix, such as `core.v1.PodTemplateSpec`. It comes from the table of the patch package (k8s.io/client-go
v0.36.1 applyconfigurations/internal) on first use. No type contains itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON
from webhook.patch import schema as kubernetes

Scalar: TypeAlias = Literal["any", "text", "number", "int64", "int32", "float", "truth", "quantity", "intOrText"]
"""`number` is a whole number as Go decodes it. `int64` and `int32` are whole numbers as in a
CustomResourceDefinition, where 2.0 is the same as 2. `float` is any number. `intOrText` is a whole number or a text.

A `quantity` may be any value here. Kubernetes has a separate decoder for amounts, which reads null as 0 and calls every
other value an invalid quantity. A rule checks amounts.
"""
Type: TypeAlias = "Scalar | Items | Fields"

EXPECTED: Final[Mapping[str, str]] = {
    "text": "a string",
    "number": "a whole number",
    "int64": "a whole number",
    "int32": "a whole number of 32 bits",
    "float": "a number",
    "truth": "true or false",
    "intOrText": "a whole number or a string",
}
"""The words for each scalar type in messages. `any` and `quantity` accept all values, so they need no words."""
_GO_ENCODING: Final = Path(__file__).with_name("go_encoding.json")
"""How Go encodes the types of k8s.io/api v0.36, by name. `always` are the fields that Go always writes, with their
empty values: structures, and fields without `omitempty`. `kept` are pointers to scalars, which Go writes if they are
set, even to an empty value.
"""
_SCALARS: Final[Mapping[str | None, Scalar]] = {"string": "text", "numeric": "number", "boolean": "truth"}
_SPECIAL: Final[Mapping[str, Scalar]] = {
    "#api.resource.Quantity": "quantity",
    "#util.intstr.IntOrString": "intOrText",
    "#runtime.RawExtension": "any",
    "#deduced": "any",
}


class Items(Struct, frozen=True, eq=False):
    """A list of values of one type."""

    item: Type


class Fields(Struct, frozen=True, eq=False):
    """An object with the types of its fields, and for a map the type of all other entries.

    An entry without a type is kept unchanged.

    Attributes:
        name: the name of a type of Kubernetes, such as `core.v1.Pod`.
        always: fields that an API server writes even if unset, with the written values.
        kept: fields that an API server writes even if set to empty values.
    """

    fields: Mapping[str, Type]
    others: Type | None = None
    name: str = ""
    always: Mapping[str, JSON] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()


def kubernetes_type(name: str) -> Type:
    """Return a type of Kubernetes by its name, such as `core.v1.PodTemplateSpec`.

    Raises:
        KeyError: Kubernetes has no type of this name.
    """
    return type_of_node(f"#{name}")


@cache
def _type_of_name(name: str) -> Type:
    of = _type_of_shape(kubernetes.shape_of_node(name))
    if not isinstance(of, Fields) or not of.fields:
        return of
    name = name.removeprefix("#")
    encoding = _encoding_by_type().get(name, {})
    return replace(of, name=name, always=encoding.get("always", {}), kept=frozenset(encoding.get("kept", ())))


@cache
def _encoding_by_type() -> Mapping[str, Any]:
    encoding: Mapping[str, Any] = json.loads(_GO_ENCODING.read_text())
    return encoding


def type_of_node(node: kubernetes.Node) -> Type:
    """Return the type of a node in the table of the patch package. A node without a type is `any`."""
    if isinstance(node, str):
        return _SPECIAL.get(node) or _type_of_name(node)
    return _type_of_shape(kubernetes.shape_of_node(node)) if node else "any"


def _type_of_shape(shape: kubernetes.Shape) -> Type:
    if shape.scalar:
        return _SCALARS.get(shape.scalar, "any")
    if shape.list:
        return Items(type_of_node(shape.list.element))
    if shape.map is None:
        return "any"
    others = type_of_node(shape.map.other) if shape.map.other else None
    return Fields({name: type_of_node(each) for name, each in shape.map.fields.items()}, others)
