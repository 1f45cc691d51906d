"""The state of an open bracket during parsing: operands that wait for their operators, items, ternaries.

A frame applies the precedence of operators, and builds the node of its bracket.
"""

from __future__ import annotations

from msgspec import Struct, field

from webhook.cel.syntax.tree import Call, FieldEntry, ListNode, MapEntry, MapNode, Node, StructNode

CALC, RELATION, AND, OR = 4, 3, 2, 1
UNARY = 9
BINARY = {
    "||": (OR, "_||_"),
    "&&": (AND, "_&&_"),
    **{sign: (RELATION, f"_{sign}_") for sign in ("==", "!=", "<", "<=", ">", ">=")},
    "in": (RELATION, "@in"),
    "+": (CALC, "_+_"),
    "-": (CALC, "_-_"),
    "*": (CALC + 1, "_*_"),
    "/": (CALC + 1, "_/_"),
    "%": (CALC + 1, "_%_"),
}
"""Each operator's precedence and function."""


class BracketFrame(Struct):
    """The part of one bracket that was read so far.

    Attributes:
        shape: `start` (the whole expression), `group`, `call`, `index`, `list`, `map` or `struct`.
        items: finished expressions; keys and values of a map alternate.
        operators, operands: the stacks of the current expression.
        conditions: the ternaries of the current expression: offset, condition, first branch (None until it is read).
        nesting: the open `relation` and `calc` rules of the grammar, including those of this frame.
    """

    shape: str
    closing: str
    offset: int
    name: str = ""
    target: Node | None = None
    items: list[Node] = field(default_factory=list)
    operands: list[Node] = field(default_factory=list)
    operators: list[tuple[int, str, int]] = field(default_factory=list)
    conditions: list[tuple[int, Node, Node | None]] = field(default_factory=list)
    optional: set[int] = field(default_factory=set)
    colons: list[int] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    nesting: tuple[int, int] = (1, 1)

    def open_rule_counts(self) -> tuple[int, int]:
        """Return how many `relation` and `calc` rules of the grammar are open here."""
        relations, calculations = self.nesting
        for precedence, _, _ in self.operators:
            relations += precedence == RELATION
            calculations += CALC <= precedence < UNARY
        return relations, calculations

    def is_at_item_start(self) -> bool:
        return not (self.operands or self.operators or self.conditions)

    def is_empty(self) -> bool:
        return self.is_at_item_start() and not self.items and not self.optional

    def may_close_without_item(self) -> bool:
        """Return whether the bracket may close before another item: the bracket is empty, or ends with a comma."""
        if not self.is_at_item_start() or len(self.items) in self.optional:
            return False
        return not self.items if self.shape == "call" else self.shape == "list" or self.is_reading_key()

    def is_reading_key(self) -> bool:
        return self.shape == "map" and len(self.items) % 2 == 0

    def is_reading_branch(self) -> bool:
        return bool(self.conditions) and self.conditions[-1][2] is None

    def reduce_operators(self, precedence: int) -> None:
        """Apply the pending operators that bind at least as tightly as `precedence`."""
        operators, operands = self.operators, self.operands
        while operators and operators[-1][0] >= precedence:
            operator, function, offset = operators.pop()
            count = 1 if operator == UNARY else 2
            while operator <= AND and operators and operators[-1][0] == operator:
                offset = operators.pop()[2]
                count += 1
            arguments = tuple(operands[-count:])
            del operands[-count:]
            operands.append(Call(offset, function, None, arguments))

    def finish_item(self) -> int:
        """Combine all parts of the item into one node, and return the number of ternaries in it."""
        self.reduce_operators(0)
        node = self.operands.pop()
        count = len(self.conditions)
        while self.conditions:
            offset, condition, branch = self.conditions.pop()
            assert branch is not None
            node = Call(offset, "_?_:_", None, (condition, branch, node))
        self.items.append(node)
        return count

    def build_node(self) -> Node:
        """Return the node of a closed bracket, with unexpanded macros."""
        items = tuple(self.items)
        match self.shape:
            case "call":
                return Call(self.offset, self.name, self.target, items)
            case "index":
                assert self.target is not None
                return Call(self.offset, self.name, None, (self.target, items[0]))
            case "list":
                return ListNode(self.offset, items, frozenset(self.optional))
            case "map":
                triples = zip(self.colons, items[::2], items[1::2], strict=True)
                pairs = (MapEntry(*each, 2 * index in self.optional) for index, each in enumerate(triples))
                return MapNode(self.offset, tuple(pairs))
            case "struct":
                named = zip(self.colons, self.fields, items, strict=True)
                fields = (FieldEntry(*each, index in self.optional) for index, each in enumerate(named))
                return StructNode(self.offset, self.name, tuple(fields))
            case _:
                return items[0]
