"""Knows the type of the objects of each kind: custom kinds from `data/`, built-in kinds from the table of patch/.

A file of `data/` has `group`, `kinds` (kind, versions, spec, and `group` if it differs) and `types`, which all files
share. A type is written as

    text, int64, int32, float, truth, quantity, intOrText, any      a scalar (types.py)
    core.v1.PodSpec                                          a type of Kubernetes
    TrainJobSpec                                             an entry of `types`
    [TYPE]                                                   a list
    {name: TYPE}                                             an object, whose other fields are kept
    {"*": TYPE}                                              a map

Every object has metadata. The status is not checked, because controllers write it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import get
from webhook.deadline import Deadline
from webhook.patch import schema as kubernetes
from webhook.schema.decode import DecodedValue, decode
from webhook.schema.types import Fields, Items, Scalar, Type, kubernetes_type, type_of_node
from webhook.yamltext import yamlfile

DATA: Final = Path(__file__).with_name("data")
_EACH: Final = "*"
_SCALARS: Final = get_args(Scalar)


class Declarations(Struct):
    """The kinds of the files, and the types that they name. Each type is built on first use."""

    written: dict[str, Any] = field(default_factory=dict)
    kinds: dict[GroupVersionKind, Type] = field(default_factory=dict)
    _resolved: dict[str, Type] = field(default_factory=dict)

    def resolve_type(self, written: Any) -> Type:
        """Return the type of a declaration.

        Raises:
            KeyError: the declaration names an undeclared type.
        """
        if isinstance(written, list):
            return Items(self.resolve_type(written[0]))
        if isinstance(written, dict):
            fields = {name: self.resolve_type(inner) for name, inner in written.items() if name != _EACH}
            return Fields(fields, self.resolve_type(written[_EACH]) if _EACH in written else None)
        if written in _SCALARS:
            scalar: Scalar = written
            return scalar
        return kubernetes_type(written) if "." in written else self._resolve_named_type(written)

    def _resolve_named_type(self, name: str) -> Type:
        resolved = self._resolved.get(name)
        if resolved is None:
            resolved = self._resolved[name] = self.resolve_type(self.written[name])
        return resolved


@cache
def declarations() -> Declarations:
    """Return the declarations of all files of `data/`, read on first use."""
    files = [yamlfile.read(path)[0].value for path in sorted(DATA.glob("*.yaml"))]
    declared = Declarations({name: written for file in files for name, written in file["types"].items()})
    declared.kinds = {
        GroupVersionKind(row.get("group", file["group"]), version, row["kind"]): _type_of_object_with_spec(
            declared.resolve_type(row["spec"])
        )
        for file in files
        for row in file["kinds"]
        for version in row["versions"]
    }
    return declared


def _type_of_object_with_spec(spec: Type) -> Type:
    return Fields(
        {"apiVersion": "text", "kind": "text", "metadata": kubernetes_type("meta.v1.ObjectMeta"), "spec": spec}
    )


def type_of(kind: GroupVersionKind) -> Type | None:
    """Return the type of the objects of a kind; None for an unknown kind."""
    return _type_of_builtin_kind(kind) if kubernetes.is_builtin(kind) else declarations().kinds.get(kind)


@cache
def _type_of_builtin_kind(kind: GroupVersionKind) -> Type:
    return _type_without_status(type_of_node(kubernetes.schema_of_kind(kind)))


def _type_without_status(of: Type) -> Type:
    if not isinstance(of, Fields):
        return of
    return replace(of, fields={name: inner for name, inner in of.fields.items() if name != "status"})


def type_of_defined_kind(definition: JSON, version: str, deadline: Deadline) -> Type | None:
    """Return the type of a version in a CustomResourceDefinition. The deadline is charged for each part of the schema.

    The type is None if the version has no schema or keeps unknown fields.
    """
    known = kubernetes.schema_of_definition(definition, version)
    if known is None or get(definition, ("spec", "preserveUnknownFields")):
        return None
    return _type_of_defined_node(known.node, deadline)


def _type_of_defined_node(node: kubernetes.Node, deadline: Deadline) -> Type:
    """Return the type of a node. If the node allows values of several types, the type is `any`."""
    deadline.spend(1)
    if not isinstance(node, kubernetes.DeclaredSchemaNode):
        return type_of_node(node)
    shape = kubernetes.shape_of_node(node)
    if shape.scalar:
        return "any"
    if shape.list:
        return Items(_type_of_defined_node(shape.list.element, deadline))
    if shape.map is None:
        return "any"
    others = _type_of_defined_node(shape.map.other, deadline) if shape.map.other else None
    fields = {name: _type_of_defined_node(each, deadline) for name, each in shape.map.fields.items()}
    return Fields(fields, others)


def decode_object(obj: JSON, kind: GroupVersionKind, deadline: Deadline | None = None) -> DecodedValue:
    """Decode an object by its kind. An object of an unknown kind is returned unchanged."""
    of = type_of(kind)
    return DecodedValue(obj) if of is None else decode(obj, of, (), deadline)


def type_at_path(of: Type | None, path: tuple[str | int, ...]) -> Type | None:
    """Return the type of the value at a path inside a type; None if undeclared."""
    for step in path:
        if isinstance(of, Items) and isinstance(step, int):
            of = of.item
        elif isinstance(of, Fields) and isinstance(step, str):
            of = of.fields.get(step, of.others)
        else:
            return None
    return of
