"""Rewrites trees: replaces free names, and replaces named expressions by their definitions.

A named expression (`variables.x`) is evaluated, and can fail, only where an expression reads the variable. The
rewritten expression must not fail in other places. If every evaluation of an expression needs the value of the
variable, the value is bound to a name: `[value].map(name, expression)[0]`. Otherwise the definition replaces the
variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from webhook.cel.syntax.tree import (
    Call,
    FieldEntry,
    Has,
    Ident,
    ListNode,
    Literal,
    Macro,
    MapEntry,
    MapNode,
    Node,
    Select,
    StructNode,
    children,
)

_LOGIC = ("_&&_", "_||_")
_NONE: frozenset[str] = frozenset()
_MOST_VISITED_NODES = 5000
"""Inlining visits at most this number of nodes. Each definition may double the size of earlier definitions."""


class RewriteTooLong(Exception):
    """The rewritten expression would be too long."""


def all_nodes(tree: Node) -> Iterator[Node]:
    """Yield every node of a tree."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(children(node))


def nesting_depth(tree: Node) -> int:
    """Return the depth of a tree."""
    level, deepest = [tree], 0
    while level:
        level, deepest = [child for node in level for child in children(node)], deepest + 1
    return deepest


def all_names(tree: Node) -> frozenset[str]:
    """Return every name in a tree, free or bound."""
    identifiers: set[str] = set()
    for node in all_nodes(tree):
        if isinstance(node, Ident):
            identifiers.add(node.name)
        elif isinstance(node, Macro):
            identifiers.update(node.variables)
    return frozenset(identifiers)


def macro_bound_names(tree: Node) -> frozenset[str]:
    """Return every name that a macro of a tree binds."""
    return frozenset(name for node in all_nodes(tree) if isinstance(node, Macro) for name in node.variables)


def replace_nodes(node: Node, replacement_of: Callable[[Node], Node | None]) -> Node:
    """Return a tree in which results of `replacement_of` replace nodes. Nodes inside a replacement are not replaced."""
    replacement = replacement_of(node)
    if replacement is not None:
        return replacement
    return with_children(node, tuple([replace_nodes(child, replacement_of) for child in children(node)]))


def with_children(node: Node, parts: tuple[Node, ...]) -> Node:
    """Return the node with other children, ordered as `tree.children`."""
    match node:
        case Literal() | Ident():
            return node
        case Select():
            return Select(node.offset, parts[0], node.field, node.optional)
        case Has():
            return Has(node.offset, parts[0], node.field)
        case Call():
            target, arguments = (None, parts) if node.target is None else (parts[0], parts[1:])
            return Call(node.offset, node.function, target, arguments)
        case ListNode():
            return ListNode(node.offset, parts, node.optional)
        case MapNode():
            pairs = zip(node.entries, parts[::2], parts[1::2], strict=True)
            return MapNode(node.offset, tuple([MapEntry(e.offset, key, value, e.optional) for e, key, value in pairs]))
        case StructNode():
            fields = zip(node.entries, parts, strict=True)
            entries = [FieldEntry(each.offset, each.field, value, each.optional) for each, value in fields]
            return StructNode(node.offset, node.name, tuple(entries))
        case Macro():
            return Macro(node.offset, node.name, parts[0], node.variables, parts[1:])


def bind_value_to_name(name: str, value: Node, body: Node) -> Node:
    """Return an expression with a value under a name: `[value].map(name, body)[0]`."""
    mapped = Macro(body.offset, "map", ListNode(body.offset, (value,)), (name,), (body,))
    return Call(body.offset, "_[_]", None, (mapped, Literal(body.offset, 0)))


class VariableInliner:
    """Replaces `variables.x` by the definition of x.

    Args:
        definitions: the expression of each variable, which may read earlier variables.
        local: for each variable, an unused name to which the value of the variable can be bound.
    """

    def __init__(self, definitions: Mapping[str, Node], local: Mapping[str, str]) -> None:
        self._definitions = definitions
        self._local = local
        self._visited = 0
        self._always: dict[str, frozenset[str]] = {}

    def inline(self, node: Node) -> Node:
        """Return the expression without variables.

        Raises:
            RewriteTooLong: the expression would become too long.
        """
        self._visited = 0
        return self._inline_with_bound_names(node, _NONE)

    def _inline_with_bound_names(self, node: Node, bound: frozenset[str]) -> Node:
        # the variables in `bound` are already bound to names
        self._visited += 1
        if self._visited > _MOST_VISITED_NODES:
            raise RewriteTooLong
        needed = self._certainly_needed_variables(node)
        chosen = [name for name in self._definitions if name in needed and name not in bound]
        values = []
        for name in chosen:
            values.append(self._inline_children(self._definitions[name], bound))
            bound |= {name}
        body = self._inline_children(node, bound)
        for name, value in zip(reversed(chosen), reversed(values), strict=True):
            body = bind_value_to_name(self._local[name], value, body)
        return body

    def _inline_children(self, node: Node, bound: frozenset[str]) -> Node:
        name = variable_read_by(node)
        if name in bound:
            return Ident(node.offset, self._local[name])
        lazy = _lazy_child_indexes(node)
        parts = [
            self._inline_with_bound_names(child, bound) if index in lazy else self._inline_children(child, bound)
            for index, child in enumerate(children(node))
        ]
        return with_children(node, tuple(parts))

    def _certainly_needed_variables(self, node: Node) -> frozenset[str]:
        # the variables that every evaluation of the node reads
        name = variable_read_by(node)
        if name in self._definitions:
            if name not in self._always:
                self._always[name] = self._certainly_needed_variables(self._definitions[name]) | {name}
            return self._always[name]
        parts = [self._certainly_needed_variables(child) for child in children(node)]
        if isinstance(node, Call) and node.function in _LOGIC:
            return frozenset.intersection(*parts)
        if isinstance(node, Call) and node.function == "_?_:_":
            return parts[0] | (parts[1] & parts[2])
        lazy = _lazy_child_indexes(node)
        return _NONE.union(*(part for index, part in enumerate(parts) if index not in lazy))


def variable_read_by(node: Node) -> str:
    """Return `x` for `variables.x`; "" for other nodes."""
    if isinstance(node, Select) and not node.optional and isinstance(node.operand, Ident):
        return node.field if node.operand.name == "variables" else ""
    return ""


def _lazy_child_indexes(node: Node) -> range:
    # the children that may not be evaluated, or that may fail because another child absorbs the failure
    count = len(children(node))
    if isinstance(node, Macro):
        return range(1, count)
    if isinstance(node, Call):
        if node.function in _LOGIC:
            return range(count)
        if node.function == "_?_:_" or (node.target is not None and node.function in ("or", "orValue")):
            return range(1, count)
    return range(0)
