"""Finds expressions that make kube-apiserver 1.36 panic when a policy is created or evaluated.

The panics are bugs of the API server; claimgate evaluates such expressions. There are three:

- An optional entry of the type dyn has no type parameter, but checkCreateList and checkCreateMap read the parameter
  (cel-go v0.26.0 checker.go).
- cel-go builds a constant map in advance, also with keys that a Go map cannot have (interpreter/decorators.go).
- An `Object{…}` becomes a structpb.Struct, but a list or map can only hold a structpb.Value (k8s.io/apiserver v0.36
  pkg/cel/mutation/dynamic/objects.go).

Observed on kube-apiserver v1.36.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.cel.check.checked import CheckedTree
from webhook.cel.check.folding import fold_constants
from webhook.cel.syntax.text import source_text
from webhook.cel.syntax.tree import ListNode, MapNode, Node, StructNode, children
from webhook.cel.types import DYN, optional_of

_PATCH: Final = "JSONPatch"
_OPTIONAL: Final = optional_of(DYN).name


def find_api_server_panics(checked: CheckedTree, text: str) -> Iterator[str]:
    """Yield a sentence for each part that makes the API server panic."""
    constants = fold_constants(checked, text)
    waiting: list[Node] = [checked.node]
    while waiting:
        node = waiting.pop()
        waiting += children(node)
        for value in _values_of_optional_entries(node):
            if checked.type_of(value).name != _OPTIONAL:
                yield (
                    f"the optional entry `?{source_text(value)}` has the type dyn: write"
                    f" `?optional.of(…)`, or `.?` in place of `[?…]`"
                )
        if isinstance(node, MapNode) and id(node) not in constants and _is_constant_map(node, constants):
            yield f"`{source_text(node)}` has a key that no map can have: use a string"
        for nested in _find_objects_nested_in_patch_value(node):
            refused = source_text(nested)
            yield f'`{refused}` must not be inside a list or a map of a JSONPatch value: write `{{"field": …}}`'


def _values_of_optional_entries(node: Node) -> Iterator[Node]:
    if isinstance(node, ListNode):
        yield from (node.elements[index] for index in sorted(node.optional))
    if isinstance(node, MapNode):
        yield from (entry.value for entry in node.entries if entry.optional)


def _find_objects_nested_in_patch_value(node: Node) -> Iterator[Node]:
    # finds objects inside a list or a map
    if not isinstance(node, StructNode) or node.name != _PATCH:
        return
    waiting = [entry.value for entry in node.entries if entry.field == "value"]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ListNode | MapNode):
            values = node.elements if isinstance(node, ListNode) else [entry.value for entry in node.entries]
            yield from (each for each in values if isinstance(each, StructNode) and each.name != _PATCH)
            waiting += values


def _is_constant_map(node: MapNode, constants: Mapping[int, Any]) -> bool:
    has_optional = any(entry.optional for entry in node.entries)
    return not has_optional and all(id(part) in constants for part in children(node))
