"""Finds the variables, and the paths in them, that at least one evaluation of an expression reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from webhook.cel.check.checked import CheckedTree
from webhook.cel.syntax.tree import Call, Has, Macro, Node, Select, children

WHOLE: Final = ""
"""In `fields_by_variable`, the mark of a variable that is read as a whole."""
_FIRST_ALONE: Final = frozenset(("_&&_", "_||_", "_?_:_"))
"""Operators with a first operand that decides whether later operands are evaluated."""

Path: TypeAlias = tuple[str, ...]


class ReadPaths(Struct, frozen=True):
    """The variables and paths that an expression reads.

    Args:
        paths: the paths of values that are read as a whole, such as ("object", "spec").
        always: the variables that every evaluation reads.
    """

    paths: frozenset[Path]
    always: frozenset[str]

    @property
    def fields_by_variable(self) -> Mapping[str, frozenset[str]]:
        """Return the fields that are selected from each variable: {"a": {"b", "c"}} for `a.b == a.c[0]`."""
        selected: dict[str, set[str]] = {}
        for name, *steps in self.paths:
            selected.setdefault(name, set()).add(steps[0] if steps else WHOLE)
        return {name: frozenset(fields) for name, fields in selected.items()}


def paths_read_by(checked: CheckedTree) -> ReadPaths:
    """Return the variables and paths that an expression reads."""
    paths: set[Path] = set()
    always: set[str] = set()
    pending = [(checked.node, True)]
    while pending:
        node, is_certain = pending.pop()
        if path := _path_of_node(checked, node):
            paths.add(path)
            always |= {path[0]} if is_certain else set()
        else:
            pending += _children_with_certainty(node, is_certain)
    return ReadPaths(frozenset(paths), frozenset(always))


def _path_of_node(checked: CheckedTree, node: Node) -> Path:
    fields: list[str] = []
    while True:
        name = checked.name_referred_to(node)
        if name is not None and name in checked.names:
            return (name, *reversed(fields))
        if not isinstance(node, Select | Has):
            return ()
        fields.append(node.field)
        node = node.operand


def _children_with_certainty(node: Node, is_certain: bool) -> Iterator[tuple[Node, bool]]:
    # True if every evaluation reaches the child
    is_choice = isinstance(node, Macro) or (isinstance(node, Call) and node.function in _FIRST_ALONE)
    for index, each in enumerate(children(node)):
        yield each, is_certain and (index == 0 or not is_choice)
