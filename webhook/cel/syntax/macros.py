"""Turns calls of macros into macro nodes.

Sources of the messages and of the order of checks: cel-go v0.26 parser/macro.go, cel/library.go (optMap),
ext/comprehensions.go, ext/lists.go (sortBy), ext/bindings.go.
"""

from __future__ import annotations

from webhook.cel.syntax.tree import Call, Has, Ident, ListNode, Literal, Macro, MapNode, Node, Select, StructNode

_ACCUMULATOR = "__result__"
_COMPLAINT = {
    "map": "argument is not an identifier",
    "filter": "argument is not an identifier",
    "sortBy": "argument is not an identifier",
    "optMap": "optMap() variable name must be a simple identifier",
    "optFlatMap": "optFlatMap() variable name must be a simple identifier",
    "bind": "cel.bind() variable names must be simple identifiers",
}
_ONE_VARIABLE = frozenset({"map", "filter", "sortBy", "optMap", "optFlatMap", "bind"})


class MacroError(Exception):
    """A macro does not accept an argument; `offset` is the place of the argument."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def expand_macro(offset: int, name: str, target: Node | None, arguments: tuple[Node, ...]) -> Node | None:
    """Return the macro node of a call; None if the call is not a macro.

    Raises:
        MacroError: the macro does not accept an argument.
    """
    if target is None:
        return _has_node(offset, arguments[0])
    if name in ("greatest", "least"):
        return _greatest_or_least_call(offset, name, target, arguments)
    if name == "bind" and not (isinstance(target, Ident) and target.name == "cel"):
        return None
    if name == "sortBy" and isinstance(target, Literal | MapNode | StructNode):
        text = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(text, target.offset)
    has_one_variable = name in _ONE_VARIABLE or (len(arguments) == 2 and not name.startswith("transform"))
    names = tuple(_variable_name(name, argument) for argument in arguments[: 1 if has_one_variable else 2])
    if len(names) == 2 and names[0] == names[1]:
        raise MacroError(f"duplicate variable name: {names[0]}", arguments[1].offset)
    if name not in ("optMap", "optFlatMap", "bind"):
        for variable, argument in zip(names, arguments, strict=False):
            if variable == _ACCUMULATOR:
                raise MacroError("iteration variable overwrites accumulator variable", argument.offset)
    if name == "bind":
        return Macro(offset, name, arguments[1], names, arguments[2:])
    return Macro(offset, name, target, names, arguments[len(names) :])


def _has_node(offset: int, argument: Node) -> Has:
    if isinstance(argument, Select) and not argument.optional:
        return Has(offset, argument.operand, argument.field)
    raise MacroError("invalid argument to has() macro", argument.offset)


def _greatest_or_least_call(offset: int, name: str, target: Node, arguments: tuple[Node, ...]) -> Node | None:
    # three and more arguments become a list
    if not (isinstance(target, Ident) and target.name == "math"):
        return None
    if not arguments:
        raise MacroError(f"math.{name}() requires at least one argument", target.offset)
    if len(arguments) == 1:
        values = arguments[0].elements if isinstance(arguments[0], ListNode) else arguments
        if not values or not all(map(_may_be_number, values)):
            raise MacroError(f"math.{name}() invalid single argument value", arguments[0].offset)
        return Call(offset, name, target, arguments)
    for argument in arguments:
        if not _may_be_number(argument):
            raise MacroError(f"math.{name}() simple literal arguments must be numeric", argument.offset)
    return Call(offset, name, target, arguments if len(arguments) == 2 else (ListNode(offset, arguments),))


def _may_be_number(node: Node) -> bool:
    if isinstance(node, Literal):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    return not isinstance(node, ListNode | MapNode | StructNode)


def _variable_name(macro: str, argument: Node) -> str:
    if isinstance(argument, Ident):
        return argument.name
    raise MacroError(_COMPLAINT.get(macro, "argument must be a simple name"), argument.offset)
