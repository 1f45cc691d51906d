"""The syntax tree of an expression; offsets are in characters from 0.

Macros stay macro nodes: the compiler makes loops, the checker finds their types, and the cost model counts the cost of
cel-go's expansion.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class Literal(Struct, frozen=True):
    """null, bool, int, uint (values.UInt), double, string or bytes."""

    offset: int
    value: object


class Ident(Struct, frozen=True):
    """A name, with the leading dot of an absolute reference."""

    offset: int
    name: str


class Select(Struct, frozen=True):
    """operand.field, or operand.?field if `optional`; offset is the place of the dot."""

    offset: int
    operand: Node
    field: str
    optional: bool = False


class Has(Struct, frozen=True):
    """has(operand.field): the presence test."""

    offset: int
    operand: Node
    field: str


class Call(Struct, frozen=True):
    """A function or operator. Operators have cel-go's names: `_&&_ _||_ !_ -_ _+_ _[_] _[?_] _?_:_ @in _==_` …

    target is None for global functions. offset is the place of the operator or the opening parenthesis. A chain `a && b
    && c` (or `||`) without parentheses is one call.
    """

    offset: int
    function: str
    target: Node | None
    arguments: tuple[Node, ...]


class ListNode(Struct, frozen=True):
    """[a, ?b]; `optional` has the indices of optional elements."""

    offset: int
    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


class MapEntry(Struct, frozen=True):
    """key: value, or ?key: value."""

    offset: int
    key: Node
    value: Node
    optional: bool = False


class MapNode(Struct, frozen=True):
    """{k: v, ?k: v}."""

    offset: int
    entries: tuple[MapEntry, ...]


class FieldEntry(Struct, frozen=True):
    """field: value inside Name{…}, or ?field: value."""

    offset: int
    field: str
    value: Node
    optional: bool = False


class StructNode(Struct, frozen=True):
    """Name{field: value}: Object{}, Object.spec{}, JSONPatch{}."""

    offset: int
    name: str
    entries: tuple[FieldEntry, ...]


class Macro(Struct, frozen=True):
    """A comprehension macro: all, exists, exists_one, existsOne, map, filter, transformList, transformMap,
    transformMapEntry, optMap, optFlatMap, sortBy; bind (cel.bind, an extension).

    A macro has one or two variables. `arguments` are the expressions after the variables. The first argument of map and
    of the transforms may be a filter. offset is the place of the opening parenthesis. The operand of bind is the value.
    """

    offset: int
    name: str
    operand: Node
    variables: tuple[str, ...]
    arguments: tuple[Node, ...]


Node: TypeAlias = Literal | Ident | Select | Has | Call | ListNode | MapNode | StructNode | Macro


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node, in source order."""
    match node:
        case Literal() | Ident():
            return ()
        case Select() | Has():
            return (node.operand,)
        case Call():
            return node.arguments if node.target is None else (node.target, *node.arguments)
        case ListNode():
            return node.elements
        case MapNode():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value))
        case StructNode():
            return tuple(entry.value for entry in node.entries)
        case Macro():
            return (node.operand, *node.arguments)
