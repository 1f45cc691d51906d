"""What the API says about merging: which lists are keyed by what, what is atomic, which fields there are.

Built-in kinds come from one table of facts, listkeys.json, taken from the schema that Kubernetes publishes for apply
configurations; it is read on first use. Custom kinds come from their CustomResourceDefinition, by the rules of
k8s.io/kube-openapi pkg/schemaconv; without one their fields are unknown and anything goes.

A node of the table: a scalar's name, `#type`, or an object with `list` (with `keys`, or `set`, else atomic), `fields`,
`map` (of any other field), `atomic`, `scalar`, `ref`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from webhook.attributes import JSON, GroupVersionKind
from webhook.paths import get

Node: TypeAlias = Any
"""A node of the table; None where no field may be."""


@dataclass(frozen=True, slots=True)
class ListShape:
    """A list: of what, and how its items are told apart. `defaults` stand in for absent keys."""

    element: Node
    is_associative: bool
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class MapShape:
    """An object: its declared fields, what every other field is, whether it is replaced whole."""

    fields: Mapping[str, Node]
    other: Node
    is_atomic: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """What a value may be; None where it may not."""

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


@cache
def _table() -> Any:
    return json.loads((Path(__file__).parent / "listkeys.json").read_text(encoding="utf-8"))


def root(gvk: GroupVersionKind, crd: JSON = None) -> Node:
    """The node of a kind: from the table, else from its CustomResourceDefinition, else an object of unknown fields."""
    table = _table()
    group = table["groups"].get(gvk.group)
    if group and f"{group}.{gvk.version}.{gvk.kind}" in table["types"]:
        return f"#{group}.{gvk.version}.{gvk.kind}"
    for version in get(crd, ("spec", "versions"), []):
        schema = get(version, ("schema", "openAPIV3Schema"))
        if version.get("name") == gvk.version and schema:
            node = _convert(schema, False)
            return node | {"fields": node.get("fields", {}) | _OPEN["fields"]}
    return _OPEN


def resolve(node: Node) -> Shape:
    """The shape that a node describes."""
    return _resolve(node) if isinstance(node, str) else _shape(node)


@cache
def _resolve(name: str) -> Shape:
    if not name.startswith("#"):
        return Shape(scalar=name)
    return resolve(_named(name))


def _named(name: str) -> Node:
    return _SPECIAL.get(name[1:]) or _table()["types"][name[1:]]


def _shape(node: Mapping[str, Node]) -> Shape:
    if "ref" in node:  # a use of a type that says itself whether it is replaced whole
        shape = resolve(f"#{node['ref']}")
        assert shape.map is not None
        return Shape(map=MapShape(shape.map.fields, shape.map.other, bool(node["atomic"])))
    items = None
    if "list" in node:
        keys = tuple(node.get("keys", ()))
        items = ListShape(
            node["list"], bool(keys) or bool(node.get("set")), keys, _defaults(node["list"]) if keys else None
        )
    members = None
    if "fields" in node or "map" in node:
        members = MapShape(node.get("fields", {}), node.get("map"), bool(node.get("atomic")))
    return Shape(node.get("scalar"), items, members)


def _defaults(element: Node) -> Mapping[str, JSON]:
    """The defaults of the fields that serve as keys."""
    if isinstance(element, str):
        element = _named(element) if element.startswith("#") else {}
    defaults: Mapping[str, JSON] = element.get("defaults", {})
    return defaults


_SCALARS: Final = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}


def _convert(schema: JSON, keeps_unknown: bool) -> Node:
    """The node of an OpenAPI schema as a CustomResourceDefinition holds it."""
    keeps_unknown = keeps_unknown or schema.get("x-kubernetes-preserve-unknown-fields") is True
    kind = schema.get("type", "")
    if kind == "object":
        return _members(schema, keeps_unknown)
    if kind == "array":
        return _items(schema, keeps_unknown)
    if kind == "string":
        return "string" if schema.get("format", "") in {"", "byte"} else "untyped"
    if kind in _SCALARS:
        return _SCALARS[kind]
    return {"scalar": "untyped", **_items(schema, keeps_unknown), **_members(schema, keeps_unknown)}


def _members(schema: JSON, keeps_unknown: bool) -> dict[str, Node]:
    properties = schema.get("properties") or {}
    node: dict[str, Node] = {"fields": {name: _convert(inner, keeps_unknown) for name, inner in properties.items()}}
    if schema.get("x-kubernetes-embedded-resource") is True:
        node["fields"] |= _OPEN["fields"]
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        node["map"] = _convert(others, keeps_unknown)
    elif others is True or (others is None and (keeps_unknown or not properties)):
        node["map"] = DEDUCED
    node["defaults"] = {name: inner["default"] for name, inner in properties.items() if "default" in inner}
    return node | ({"atomic": True} if schema.get("x-kubernetes-map-type") == "atomic" else {})


def _items(schema: JSON, keeps_unknown: bool) -> dict[str, Node]:
    node: dict[str, Node] = {"list": _convert(schema["items"], keeps_unknown) if "items" in schema else UNTYPED}
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        node["keys"] = schema.get("x-kubernetes-list-map-keys", [])
    return node | ({"set": True} if kind == "set" else {})
