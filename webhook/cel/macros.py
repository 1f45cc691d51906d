"""Calls that are macros, made into nodes of their own. Knows their shapes and their complaints, no types.

Wording and order of the checks: cel-go v0.26 parser/macro.go, cel/library.go (optMap), ext/comprehensions.go,
ext/lists.go (sortBy), ext/bindings.go.
"""

from __future__ import annotations

from webhook.cel.tree import Has, Ident, Literal, Macro, MapNode, Node, Select, StructNode

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
    """A macro's arguments do not fit it; offset is where."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def expand(offset: int, name: str, target: Node | None, arguments: tuple[Node, ...]) -> Node | None:
    """The node of a call that has a macro's shape; None when it is an ordinary call after all.

    Raises:
        MacroError: the first argument that does not fit.
    """
    if target is None:
        return _presence(offset, arguments[0])
    if name == "bind" and not (isinstance(target, Ident) and target.name == "cel"):
        return None
    if name == "sortBy" and isinstance(target, Literal | MapNode | StructNode):
        text = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(text, target.offset)
    one = name in _ONE_VARIABLE or (len(arguments) == 2 and not name.startswith("transform"))
    names = tuple(_variable(name, argument) for argument in arguments[: 1 if one else 2])
    if len(names) == 2 and names[0] == names[1]:
        raise MacroError(f"duplicate variable name: {names[0]}", arguments[1].offset)
    if name not in ("optMap", "optFlatMap", "bind"):
        for variable, argument in zip(names, arguments, strict=False):
            if variable == _ACCUMULATOR:
                raise MacroError("iteration variable overwrites accumulator variable", argument.offset)
    if name == "bind":
        return Macro(offset, name, arguments[1], names, arguments[2:])
    return Macro(offset, name, target, names, arguments[len(names) :])


def _presence(offset: int, argument: Node) -> Has:
    if isinstance(argument, Select) and not argument.optional:
        return Has(offset, argument.operand, argument.field)
    raise MacroError("invalid argument to has() macro", argument.offset)


def _variable(macro: str, argument: Node) -> str:
    if isinstance(argument, Ident):
        return argument.name
    raise MacroError(_COMPLAINT.get(macro, "argument must be a simple name"), argument.offset)
