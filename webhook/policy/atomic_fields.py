"""Finds atomic lists and maps, which are replaced as a whole, in ApplyConfigurations, where they must not be set.

The API server accepts such a policy, and answers every request that reaches the mutation with "may not mutate atomic
arrays, maps or structs" (k8s.io/apiserver v0.36 pkg/admission/plugin/policy/mutating/patch/smd.go). Knows only the
kinds of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.tree import Call, FieldEntry, ListNode, Macro, MapNode, Node, StructNode, children
from webhook.patch import schema
from webhook.policy.compiled import Policy
from webhook.policy.field_names import named_kinds

_LISTS: Final = frozenset(("map", "filter", "transformList", "sortBy"))
_MAPS: Final = frozenset(("transformMap", "transformMapEntry"))


def sentences_about_atomic_fields(policy: Policy) -> Iterator[str]:
    """Yield a sentence for each atomic list or map that an ApplyConfiguration of the policy sets."""
    told: dict[str, None] = {}
    for kind in filter(None, named_kinds(policy)):
        root = schema.schema_of_kind(kind)
        for change in policy.changes:
            if change.kind == "ApplyConfiguration":
                told.update(dict.fromkeys(_sentences_about_node(parse(change.expression.source), root)))
    yield from told


def _sentences_about_node(node: Node, root: schema.Node) -> Iterator[str]:
    if isinstance(node, StructNode) and (place := _shape_of_object_literal(node, root)) is not None:
        yield from (text for entry in node.entries if (text := _sentence_about_entry(node.name, entry, place)))
    for each in children(node):
        yield from _sentences_about_node(each, root)


def _shape_of_object_literal(node: StructNode, root: schema.Node) -> schema.Shape | None:
    """Return the schema of `Object.spec.containers`; of an item if the path leads into a list."""
    first, *path = node.name.split(".")
    if first != "Object":
        return None
    shape = schema.shape_of_node(root)
    for name in path:
        if shape.map is None or name not in shape.map.fields:
            return None
        shape = schema.shape_of_node(shape.map.fields[name])
        while shape.list is not None and shape.map is None:
            shape = schema.shape_of_node(shape.list.element)
    return shape


def _sentence_about_entry(name: str, entry: FieldEntry, shape: schema.Shape) -> str:
    """Return a sentence about one field of a literal; "" if it may be set."""
    if entry.optional or shape.map is None or entry.field not in shape.map.fields:
        return ""
    of = schema.shape_of_node(shape.map.fields[entry.field])
    what = "list" if of.list and not of.list.is_associative and _is_list_expression(entry.value) else ""
    what = what or ("map" if of.map and of.map.is_atomic and _is_map_expression(entry.value) else "")
    if not what:
        return ""
    fix = "set it with a JSONPatch"
    return f"`{name}.{entry.field}` is an atomic {what}, which an ApplyConfiguration may not set: {fix}"


def _is_list_expression(node: Node) -> bool:
    if isinstance(node, Call) and node.function == "_+_":
        return any(map(_is_list_expression, node.arguments))
    return isinstance(node, ListNode) or (isinstance(node, Macro) and node.name in _LISTS)


def _is_map_expression(node: Node) -> bool:
    return isinstance(node, MapNode | StructNode) or (isinstance(node, Macro) and node.name in _MAPS)
