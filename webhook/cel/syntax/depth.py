"""Limits the depth of an expression as cel-go's parser does (v0.26 parser/parser.go,
checkAndIncrementRecursionDepth).
"""

from __future__ import annotations

from webhook.cel.syntax.tree import Call, Has, Macro, Node, Select, children

_OPERATORS = frozenset(
    {
        "_?_:_", "_[_]", "_[?_]", "@in", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_",
        "_%_",
    }
)  # fmt: skip


def is_deeper_than(node: Node, limit: int) -> bool:
    """Return whether more than `limit` ternaries, comparisons, arithmetic, selections, methods, indexes are nested."""
    pending = [(node, 0)]
    while pending:
        current, depth = pending.pop()
        if _counts_as_level(current):
            depth += 1
            if depth > limit:
                return True
        pending.extend((child, depth) for child in children(current))
    return False


def _counts_as_level(node: Node) -> bool:
    if isinstance(node, Call):
        return node.target is not None or node.function in _OPERATORS
    return isinstance(node, Select | Has | Macro)
