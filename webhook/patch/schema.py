"""Knows the merge rules of the API: keys of lists, atomic fields, and declared fields.

Built-in kinds are in the table listkeys.json, from the schema that Kubernetes publishes for apply configurations.
Custom kinds have the rules of their CustomResourceDefinition, as in k8s.io/kube-openapi pkg/schemaconv. Without this
definition, any field is accepted.

A node of the table is the name of a scalar, `#` with the name of a type, or an object. An object has some of the keys
`list`, `keys`, `set`, `fields`, `map`, `atomic`, `scalar` and `ref`. `list` is the node of the items. A list without
`keys` and `set` is atomic. `map` is the node of all fields that `fields` does not name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import get
from webhook.text.caches import IdentityKey

Node: TypeAlias = Any
"""A node of the table; None if no field is allowed."""


class ListShape(Struct, frozen=True):
    """A list: the node of its items, their key fields, and the `defaults` of absent key fields."""

    element: Node
    is_associative: bool
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, JSON] | None = None


class MapShape(Struct, frozen=True):
    """An object: its declared fields, the type of other fields, and whether it is atomic."""

    fields: Mapping[str, Node]
    other: Node
    is_atomic: bool


class Shape(Struct, frozen=True):
    """The kinds of value that a node allows; None for other kinds."""

    scalar: str | None = None
    list: ListShape | None = None
    map: MapShape | None = None


UNTYPED: Final = "#untyped"
DEDUCED: Final = "#deduced"
_METADATA: Final = "#meta.v1.ObjectMeta"
_SPECIAL: Final[Mapping[str, Node]] = {
    "untyped": {"scalar": "untyped", "list": UNTYPED, "map": UNTYPED, "atomic": True},
    "deduced": {"scalar": "untyped", "list": UNTYPED, "map": DEDUCED},
}
_OPEN: Final[Node] = {"fields": {"apiVersion": "string", "kind": "string", "metadata": _METADATA}, "map": DEDUCED}


class _InlineNode(dict[str, Any]):
    """A node inside another node. The shape of the inner node is computed on first use."""

    __slots__ = ("shape",)
    shape: Shape


@cache
def _schema_table() -> Any:
    text = (Path(__file__).parent / "listkeys.json").read_text(encoding="utf-8")
    return json.loads(text, object_hook=_InlineNode)


def schema_of_kind(gvk: GroupVersionKind, crd: JSON = None) -> Node:
    """Return the node of a kind, from the table or the CustomResourceDefinition; otherwise a node with any field."""
    if is_builtin(gvk):
        return f"#{_schema_table()['groups'][gvk.group]}.{gvk.version}.{gvk.kind}"
    declared = schema_of_definition(crd, gvk.version) if crd else None
    return declared.node if declared else _OPEN


def is_builtin(kind: GroupVersionKind) -> bool:
    """Return whether a kind is built-in."""
    table = _schema_table()
    group = table["groups"].get(kind.group)
    return bool(group) and f"{group}.{kind.version}.{kind.kind}" in table["types"]


def is_builtin_group(group: str) -> bool:
    """Return whether an API group is built-in."""
    return group in _schema_table()["groups"]


def shape_of_node(node: Node) -> Shape:
    """Return the shape that a node describes."""
    if isinstance(node, str):
        return _shape_of_name(node)
    if isinstance(node, _InlineNode):
        return _shape_of_inline_node(node)
    return node.shape() if isinstance(node, DeclaredSchemaNode) else _compute_shape(node)


def _shape_of_inline_node(node: _InlineNode) -> Shape:
    try:
        return node.shape
    except AttributeError:
        node.shape = shape = _compute_shape(node)
        return shape


@cache
def _shape_of_name(name: str) -> Shape:
    if not name.startswith("#"):
        return Shape(scalar=name)
    return shape_of_node(_node_of_name(name))


def _node_of_name(name: str) -> Node:
    return _SPECIAL.get(name[1:]) or _schema_table()["types"][name[1:]]


def _compute_shape(node: Mapping[str, Node]) -> Shape:
    if "ref" in node:  # `atomic` of the reference overrides `atomic` of the type
        shape = shape_of_node(f"#{node['ref']}")
        assert shape.map is not None
        return Shape(map=MapShape(shape.map.fields, shape.map.other, bool(node["atomic"])))
    items = None
    if "list" in node:
        keys = tuple(node.get("keys", ()))
        items = ListShape(
            node["list"], bool(keys) or bool(node.get("set")), keys, _defaults_of_keys(node["list"]) if keys else None
        )
    members = None
    if "fields" in node or "map" in node:
        members = MapShape(node.get("fields", {}), node.get("map"), bool(node.get("atomic")))
    return Shape(node.get("scalar"), items, members)


def _defaults_of_keys(element: Node) -> Mapping[str, JSON]:
    if isinstance(element, DeclaredSchemaNode):
        return element.defaults()
    if isinstance(element, str):
        element = _node_of_name(element) if element.startswith("#") else {}
    defaults: Mapping[str, JSON] = element.get("defaults", {})
    return defaults


class DeclaredSchemaNode:
    """A node of a schema in a CustomResourceDefinition. The shape of the node is computed on first use.

    `keeps_unknown`: the outer schema keeps unknown fields.
    """

    __slots__ = ("_is_root", "_keeps_unknown", "_schema", "_shape")

    def __init__(self, schema: JSON, *, keeps_unknown: bool = False, is_root: bool = False) -> None:
        self._schema = schema
        self._keeps_unknown = keeps_unknown or schema.get("x-kubernetes-preserve-unknown-fields") is True
        self._is_root = is_root or schema.get("x-kubernetes-embedded-resource") is True
        self._shape: Shape | None = None

    def shape(self) -> Shape:
        if self._shape is None:
            self._shape = self._compute_shape_of_schema()
        return self._shape

    def defaults(self) -> Mapping[str, JSON]:
        """Return the defaults of fields."""
        properties = self._schema.get("properties") or {}
        return {name: inner["default"] for name, inner in properties.items() if "default" in inner}

    def _compute_shape_of_schema(self) -> Shape:
        kind = self._schema.get("type", "")
        if kind == "object":
            return Shape(map=self._map_shape())
        if kind == "array":
            return Shape(list=self._list_shape())
        if kind == "string":
            return Shape("string" if self._schema.get("format", "") in {"", "byte"} else "untyped")
        if kind in _SCALARS:
            return Shape(_SCALARS[kind])
        return Shape("untyped", self._list_shape(), self._map_shape())

    def _map_shape(self) -> MapShape:
        properties = self._schema.get("properties") or {}
        fields = {name: self._child_node(inner) for name, inner in properties.items()}
        if self._is_root:
            fields |= _OPEN["fields"]
        others, other = self._schema.get("additionalProperties"), None
        if isinstance(others, dict):
            other = self._child_node(others)
        elif others is True or (others is None and (self._keeps_unknown or not properties)):
            other = DEDUCED
        return MapShape(fields, other, self._schema.get("x-kubernetes-map-type") == "atomic")

    def _list_shape(self) -> ListShape:
        element = self._child_node(self._schema["items"]) if "items" in self._schema else UNTYPED
        kind = self._schema.get("x-kubernetes-list-type")
        keys = tuple(self._schema.get("x-kubernetes-list-map-keys", ())) if kind == "map" else ()
        return ListShape(element, bool(keys) or kind == "set", keys, _defaults_of_keys(element) if keys else None)

    def _child_node(self, schema: JSON) -> Node:
        return DeclaredSchemaNode(schema, keeps_unknown=self._keeps_unknown)


_SCALARS: Final = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}


class CrdVersionSchema(Struct, frozen=True):
    """The schema and the node of one version in a CustomResourceDefinition."""

    schema: JSON
    node: Node


def schema_of_definition(crd: JSON, version: str) -> CrdVersionSchema | None:
    """Return the schema of a version; None without a schema. The result is cached for the definition."""
    return _definition_of_version(IdentityKey(crd), version)


@lru_cache(maxsize=64)
def _definition_of_version(crd: IdentityKey, version: str) -> CrdVersionSchema | None:
    for each in get(crd.value, ("spec", "versions"), []):
        schema = get(each, ("schema", "openAPIV3Schema"))
        if each.get("name") == version and schema:
            return CrdVersionSchema(schema, DeclaredSchemaNode(schema, is_root=True))
    return None
