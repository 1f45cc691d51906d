"""Finds the sizes that a comparison implies for later operands: after `x.size() > 8 || …`, x has a size of at most 8.

An evaluation stops at the first operand that decides the result. So a later operand of `||` is evaluated only if the
earlier operands are false or fail. If size() fails, the value has no size that could exceed the limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from webhook.cel.syntax.tree import Call, Has, Ident, ListNode, Literal, Macro, Node, Select, children

_MOST_IF_FALSE: Final[Mapping[str, int]] = {"_>_": 0, "_>=_": -1}
_MOST_IF_TRUE: Final[Mapping[str, int]] = {"_<=_": 0, "_<_": -1}
"""For each comparison, the number to add to its right side to get the largest size of the left side."""
_MIRRORED: Final[Mapping[str, str]] = {"_>_": "_<_", "_>=_": "_<=_", "_<_": "_>_", "_<=_": "_>=_"}


class SizeGuards(Struct):
    """The largest sizes of parts of an expression.

    `most` has the sizes and `names` the identifiers of each part, by the number of the part (`_number`). Inside a macro
    that declares one of the identifiers, the size does not apply.
    """

    most: dict[int, int] = field(default_factory=dict)
    names: dict[int, frozenset[str]] = field(default_factory=dict)
    _numbers: dict[object, int] = field(default_factory=dict)
    _number_of_node: dict[int, int] = field(default_factory=dict)

    def bound_of(self, node: Node) -> int | None:
        """Return the largest size of a part, or None."""
        return self.most.get(self._number(node)) if self.most else None

    def with_operand_decided(self, operand: Node, *, is_true: bool) -> SizeGuards:
        """Return the guards for the operands that are evaluated only if this operand has the value `is_true`."""
        most, names = dict(self.most), dict(self.names)
        for part, size in _sizes_known(operand, is_true=is_true):
            number = self._number(part)
            most[number] = min(size, most.get(number, size))
            names[number] = _identifiers(part)
        return SizeGuards(most, names, self._numbers, self._number_of_node)

    def without_names(self, declared: Collection[str]) -> SizeGuards:
        """Return the guards inside a macro that declares these variables."""
        most = {number: size for number, size in self.most.items() if self.names[number].isdisjoint(declared)}
        return SizeGuards(most, self.names, self._numbers, self._number_of_node)

    def _number(self, node: Node) -> int:
        # parts with the same text share a number; each node gets its number once
        number = self._number_of_node.get(id(node))
        if number is None:
            identity = (type(node), _own_text(node), *[self._number(each) for each in children(node)])
            number = self._number_of_node[id(node)] = self._numbers.setdefault(identity, len(self._numbers))
        return number


def _own_text(node: Node) -> object:
    # maps, structures and lists with optional elements are different from every other node
    match node:
        case Literal():
            return type(node.value), repr(node.value)
        case Ident():
            return node.name
        case Select() | Has():
            return node.field, isinstance(node, Select) and node.optional
        case Call():
            return node.function, node.target is None
        case Macro():
            return node.name, node.variables
        case ListNode() if not node.optional:
            return len(node.elements)
        case _:
            return id(node)


def _sizes_known(operand: Node, *, is_true: bool) -> Iterator[tuple[Node, int]]:
    # the sizes that follow if the operand has the value `is_true`
    if not isinstance(operand, Call):
        return
    if operand.function == "!_":
        yield from _sizes_known(operand.arguments[0], is_true=not is_true)
    elif operand.function == ("_&&_" if is_true else "_||_"):
        for each in operand.arguments:
            yield from _sizes_known(each, is_true=is_true)
    elif operand.function in _MIRRORED:
        left, right = operand.arguments
        function = operand.function
        if isinstance(left, Literal):
            left, right, function = right, left, _MIRRORED[function]
        measured = _measured_part(left)
        added = (_MOST_IF_TRUE if is_true else _MOST_IF_FALSE).get(function)
        if measured is not None and added is not None and isinstance(right, Literal) and type(right.value) is int:
            yield measured, max(right.value + added, 0)


def _measured_part(node: Node) -> Node | None:
    # x of `x.size()` or `size(x)`
    if not isinstance(node, Call) or node.function != "size":
        return None
    measured = node.arguments if node.target is None else (node.target, *node.arguments)
    return measured[0] if len(measured) == 1 else None


def _identifiers(node: Node) -> frozenset[str]:
    names: set[str] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        waiting.extend(children(each))
        if isinstance(each, Ident):
            names.add(each.name.removeprefix("."))
    return frozenset(names)
