"""Is a patched native object still an object of its kind: what Go's strict decoder says when it is not.

Only what a patch changed is looked at; the rest has been decoded before. Custom resources are not typed and never
refused here. Source: sigs.k8s.io/json as k8s.io/apimachinery v0.36 pkg/runtime/serializer/json uses it; the fields of
kinds are those of the patch room's schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.attributes import JSON, GroupVersionKind
from webhook.errors import PatchError
from webhook.patch.schema import Node, resolve, root

_INT64 = frozenset(
    (
        *("activeDeadlineSeconds", "deletionGracePeriodSeconds", "generation", "gracePeriodSeconds"),
        *("observedGeneration", "terminationGracePeriodSeconds", "expirationSeconds", "tolerationSeconds"),
        *("fsGroup", "runAsGroup", "runAsUser", "supplementalGroups", "healthCheckNodePortSeconds"),
    )
)
"""Numbers that are int64 in k8s.io/api v0.36; all other integers of the kinds in use are int32."""
_WORDS = {str: "string", bool: "bool", list: "array", dict: "object"}


class Undecodable(PatchError):
    """The patched object cannot be decoded; the API server fails the request whatever the failurePolicy says."""


def decode(patched: JSON, before: JSON, kind: GroupVersionKind) -> None:
    """Check what a patch changed.

    Raises:
        Undecodable: a value of the wrong type, or unknown fields.

    """
    node = root(kind)
    if not isinstance(node, str):
        return
    wrong = list(_wrong_types(patched, before, node, kind.kind, ""))
    if wrong:
        raise Undecodable(wrong[0])
    unknown = [f'unknown field "{path}"' for path in _unknown(patched, before, node, "")]
    if unknown:
        raise Undecodable(f"strict decoding error: {', '.join(unknown)}")


def _wrong_types(value: JSON, before: JSON, node: Node, struct: str, path: str) -> Iterator[str]:
    """The first line of each complaint of Go's decoder. `struct` is the Go type around the field."""
    if value is before or value is None or node is None:
        return
    shape = resolve(node)
    if shape.map and isinstance(value, dict):
        own = _struct(node) or struct
        for name, item in value.items():
            inner = shape.map.fields.get(name, shape.map.other)
            inside = f"{path}.{name}" if name in shape.map.fields else path
            yield from _wrong_types(item, _get(before, name), inner, own, inside)
    elif shape.list and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _wrong_types(item, _item(before, index), shape.list.element, struct, path)
    elif expected := _expected(value, node, path):
        yield f"json: cannot unmarshal {_shown(value)} into Go struct field {struct}{path} of type {expected}"


def _expected(value: JSON, node: Node, path: str) -> str:
    """The Go type that a value does not fit, or "" when it fits."""
    shape = resolve(node)
    if shape.scalar == "untyped" and not isinstance(value, dict | list):
        return ""
    fits = {"string": str, "boolean": bool}
    if shape.scalar in fits:
        return "" if isinstance(value, fits[shape.scalar]) else _go_type(node, path)
    if shape.scalar == "numeric":
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return "" if is_whole else _go_type(node, path)
    return _go_type(node, path) if shape.map or shape.list else ""


def _go_type(node: Node, path: str) -> str:
    shape = resolve(node)
    if shape.scalar:
        name = path.rpartition(".")[2]
        return {"string": "string", "boolean": "bool"}.get(shape.scalar, "int64" if name in _INT64 else "int32")
    if shape.list:
        return f"[]{_go_type(shape.list.element, path)}"
    if named := _struct(node):
        return f"{node[1:].split('.')[1]}.{named}" if isinstance(node, str) else named
    return f"map[string]{_go_type(shape.map.other, path)}" if shape.map and shape.map.other else "map[string]string"


def _struct(node: Node) -> str:
    """The name of the Go struct that a node describes: PodSpec of `#core.v1.PodSpec`."""
    name = node.get("ref", "") if isinstance(node, dict) else node.removeprefix("#") if node.startswith("#") else ""
    return str(name).rpartition(".")[2]


def _shown(value: JSON) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"number {value}" if isinstance(value, float) else "number"
    return _WORDS[type(value)]


def _unknown(value: JSON, before: JSON, node: Node, path: str) -> Iterator[str]:
    if value is before or node is None:
        return
    shape = resolve(node)
    if shape.map and isinstance(value, dict):
        for name, item in value.items():
            where = f"{path}.{name}" if path else name
            inner = shape.map.fields.get(name, shape.map.other)
            if inner is None:
                yield where
            else:
                yield from _unknown(item, _get(before, name), inner, where)
    elif shape.list and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, _item(before, index), shape.list.element, f"{path}[{index}]")


def _get(value: JSON, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _item(value: JSON, index: int) -> Any:
    return value[index] if isinstance(value, list) and index < len(value) else None
