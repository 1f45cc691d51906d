"""The type checker: resolves names, finds the signature of each call, and collects errors.

The rules and the wording are cel-go v0.26's checker/checker.go. What Kubernetes adds is in literals.py (mixed literals,
bad constants); constants that fail only when the program is planned are folding.py's. Types come from inference.py;
macros are typed in comprehensions.py as cel-go's expansion of them would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from webhook.cel.check.comprehensions import check_macro
from webhook.cel.check.inference import UNKNOWN, Inference, is_optional, most_general, show
from webhook.cel.environment import JSON_PATCH, Environment
from webhook.cel.library.declaration import Overload, Version
from webhook.cel.library.patterns import Patterns
from webhook.cel.library.refusal import SINGLETONS
from webhook.cel.syntax import lexer
from webhook.cel.syntax.tree import Call, Has, Ident, ListNode, Literal, Macro, MapNode, Node, Select, StructNode
from webhook.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Structure,
    Type,
    list_of,
    map_of,
    object_type,
    optional_of,
    type_of,
)
from webhook.cel.values import UInt
from webhook.errors import EvaluationError, Issue

_LOCAL_FIRST: Version = (1, 37)
"""Since cel-go 0.27 a macro's variable hides longer names that begin with it, and `.x` never means one."""

_LITERALS: Mapping[type, Type] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


class Checker:
    """Checks one tree once. Errors are collected; a failed node has the type ERROR, which fits every other type.

    A handler gives and notes the type of its kind of node, and calls the handlers of the nodes below directly, without
    a function in between: one Python frame per level keeps the deepest tree within Python's default recursion limit.
    """

    def __init__(self, source: str, environment: Environment, patterns: Patterns) -> None:
        self.source = source
        self.patterns = patterns
        self.environment = environment
        self.inference = Inference()
        self.issues: list[Issue] = []
        self.types: dict[int, Type] = {}
        self.references: dict[int, str] = {}
        self.overloads: dict[int, tuple[Overload, ...]] = {}
        self.choices: dict[int, tuple[Overload, ...]] = {}
        self.names: set[str] = set()
        self.type_names: set[str] = set()
        self.order: list[Call | ListNode | MapNode] = []
        self.has_opaque = False
        self.scopes: list[Mapping[str, Type]] = []
        self._local_first = environment.version >= _LOCAL_FIRST

    def report(self, message: str, node_or_offset: Node | int) -> None:
        """Add an issue at the position of a node."""
        offset = node_or_offset if isinstance(node_or_offset, int) else node_or_offset.offset
        self.issues.append(Issue(message, *lexer.position(self.source, offset)))

    # Names

    def candidates(self, name: str) -> tuple[str, ...]:
        """Return the full names that a name may stand for, the innermost container first."""
        if name[0] == ".":
            return (name[1:],)
        container = self.environment.container
        if not container:
            return (name,)
        parts = container.split(".")
        return (*(".".join([*parts[:count], name]) for count in range(len(parts), 0, -1)), name)

    def look_up(self, name: str, node: Node) -> Type | None:
        """Return the type of a variable, or type(T) for the name of a type, and note what the node refers to."""
        if self._local_first and name[0] != ".":
            first, dot, _ = name.partition(".")
            local = self._local(first)
            if local is not None:
                return None if dot else local
        for candidate in self.candidates(name):
            local = None if self._local_first else self._local(candidate)
            if local is not None:
                return local
            declared = self.environment.variables.get(candidate)
            if declared is not None:
                self.references[id(node)] = candidate
                self.names.add(candidate)
                return declared
            named = self._type_named(candidate)
            if named is not None:
                self.references[id(node)] = candidate
                self.type_names.add(candidate)
                return type_of(named)
        return None

    def _local(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _type_named(self, name: str) -> Type | None:
        if self.environment.structure(name) is not None:
            return object_type(name)
        return self.environment.type_named(name)

    def overloads_of(self, name: str) -> tuple[str, tuple[Overload, ...]]:
        """Return the full name of a function and its signatures; () when there is no such function."""
        for candidate in self.candidates(name):
            if overloads := self.environment.overloads(candidate):
                return candidate, overloads
        return name, ()

    def undeclared(self, name: str, node: Node) -> Type:
        """Report a name that is not declared, and return ERROR."""
        self.report(f"undeclared reference to '{name}' (in container '{self.environment.container}')", node)
        if not self.environment.strict and isinstance(node, Ident):
            self.references[id(node)] = name
            self.names.add(name)
        return ERROR

    def _ident(self, node: Ident) -> Type:
        reference = self.look_up(node.name, node)
        self.types[id(node)] = reference = self.undeclared(node.name, node) if reference is None else reference
        return reference

    # Fields

    def _select(self, node: Select) -> Type:
        reference = None
        if not node.optional and (name := qualified_name(node)) is not None:
            reference = self.look_up(name, node)
        if reference is None:
            reference = self._field(node, self.handlers[type(node.operand)](self, node.operand), optional=node.optional)
        self.types[id(node)] = reference
        return reference

    def _has(self, node: Has) -> Type:
        self._field(node, self.handlers[type(node.operand)](self, node.operand), optional=False)
        self.types[id(node)] = BOOL
        return BOOL

    def _field(self, node: Select | Has, operand: Type, *, optional: bool) -> Type:
        operand = self.inference.resolved(operand)
        target = operand.parameters[0] if is_optional(operand) else operand
        result = DYN
        if target.name == "map":
            result = target.parameters[1]
        elif target.kind == "object":
            result = self.field_type(target.name, node.field, node.offset)
            self.has_opaque = self.has_opaque or result == DYN
        elif target.kind == "param":
            self.inference.fits(DYN, target)
        elif target.name not in UNKNOWN and target.name != ERROR.name:
            self.report(f"type '{show(target)}' does not support field selection", node)
        return self.inference.resolved(optional_of(result) if optional or target is not operand else result)

    def field_type(self, structure: str, field: str, offset: int) -> Type:
        """Return the type of a structure's field, or report that it has no field of that name."""
        declared = self.environment.structure(structure)
        if declared is None:
            self.report(f"unexpected failed resolution of '{structure}'", offset)
            return ERROR
        return self._declared(declared, field, offset)

    def _declared(self, structure: Structure, field: str, offset: int) -> Type:
        declared = structure.fields.get(field)
        if structure is JSON_PATCH and declared is None:
            return Type("")  # it has any field, but no type for those that it does not know
        if declared is None and not structure.open:
            self.report(f"undefined field '{field}'", offset)
            return ERROR
        return DYN if declared is None else declared

    # Calls

    def _call(self, node: Call) -> Type:
        given = []
        for argument in node.arguments:
            given.append(self.handlers[type(argument)](self, argument))  # noqa: PERF401
        target = node.target
        if target is not None and not self._is_namespaced(node, target):
            given.insert(0, self.handlers[type(target)](self, target))
            resolved = self._resolved(node, node.function, given, member=True)
        elif node.function in ("_&&_", "_||_"):
            resolved = self._logical(node, given)
        else:
            resolved = self._resolved(node, self.references.get(id(node), node.function), given)
        self.order.append(node)
        self.types[id(node)] = resolved
        return resolved

    def _is_namespaced(self, node: Call, target: Node) -> bool:
        """Return whether the target of a call is the namespace of a function, as `sets` in sets.contains(a, b)."""
        prefix = qualified_name(target)
        if prefix is None:
            return False
        name, overloads = self.overloads_of(f"{prefix}.{node.function}")
        if overloads:
            self.references[id(node)] = name
        return bool(overloads)

    def _resolved(self, node: Call, function: str, given: Sequence[Type], *, member: bool = False) -> Type:
        name, overloads = self.overloads_of(function)
        if not overloads:
            self.overloads[id(node)] = (_missing(function, len(given)),)
            return self.undeclared(function, node)
        return self.resolve(node, name, overloads, given, member=member)

    def _logical(self, node: Call, given: Sequence[Type]) -> Type:
        wrong = False
        for argument, actual in zip(node.arguments, given, strict=True):
            if not self.inference.fits(actual, BOOL):
                self.report(f"expected type 'bool' but found '{show(self.inference.resolved(actual))}'", argument)
                wrong = True
        self.overloads[id(node)] = self.environment.overloads(node.function)
        return ERROR if wrong else BOOL

    def resolve(
        self, node: Node, name: str, overloads: Sequence[Overload], given: Sequence[Type], *, member: bool = False
    ) -> Type:
        """Return the type of a call: that of the signature that fits, dyn when several fit with different results."""
        inference, result, kept = self.inference, None, []
        for overload in overloads:
            if overload.hidden or overload.member is not member or len(overload.parameters) != len(given):
                continue
            wanted, returned = inference.instance(overload)
            if not inference.all_fit(given, wanted):
                continue
            kept.append(overload)
            static = inference.resolved(returned)
            if result is None:
                result = static
            elif result.name not in UNKNOWN and static != result:
                result = DYN
        if result is None:
            if not self.environment.strict:
                fitting = (each for each in overloads if each.member is member and len(each.parameters) == len(given))
                self.overloads[id(node)] = tuple(fitting) or (_missing(name, len(given)),)
            return self.no_overload(node, name, given, member=member)
        self.overloads[id(node)] = tuple(kept)
        if len(kept) > 1 or name in SINGLETONS:
            self.choices[id(node)] = tuple(each for each in overloads if len(each.parameters) == len(given))
        return result

    def no_overload(self, node: Node, name: str, given: Sequence[Type], *, member: bool = False) -> Type:
        """Report a call that fits no signature, and return ERROR."""
        shown = [show(self.inference.resolved(each, final=True)) for each in given]
        signature = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
        self.report(f"found no matching overload for '{name}' applied to '{signature}'", node)
        return ERROR

    # Literals

    def _literal(self, node: Literal) -> Type:
        self.types[id(node)] = static = _LITERALS[type(node.value)]
        self.has_opaque = self.has_opaque or static == BYTES
        return static

    def _list(self, node: ListNode) -> Type:
        joined = None
        for index, element in enumerate(node.elements):
            static = self.handlers[type(element)](self, element)
            if index in node.optional:
                static = self._inside(element, static)
            joined = self._join(joined, static)
        self.order.append(node)
        self.types[id(node)] = result = list_of(self.inference.fresh() if joined is None else joined)
        return result

    def _map(self, node: MapNode) -> Type:
        keys, values = None, None
        for entry in node.entries:
            keys = self._join(keys, self.handlers[type(entry.key)](self, entry.key))
            static = self.handlers[type(entry.value)](self, entry.value)
            if entry.optional:
                static = self._inside(entry.value, static)
            values = self._join(values, static)
        if keys is None or values is None:
            keys, values = self.inference.fresh(), self.inference.fresh()
        self.order.append(node)
        self.types[id(node)] = result = map_of(keys, values)
        return result

    def _inside(self, node: Node, static: Type) -> Type:
        if is_optional(static):
            return static.parameters[0]
        if static.name not in UNKNOWN:
            self.report(f"expected type '{show(optional_of(static))}' but found '{show(static)}'", node)
        return static

    def _join(self, joined: Type | None, added: Type) -> Type:
        if joined is None:
            return added
        if added == NULL and self.inference.fits(joined, added):
            return joined
        return most_general(joined, added) if self.inference.fits(joined, added) else DYN

    def _struct(self, node: StructNode) -> Type:
        reference = self.look_up(node.name, node)
        if reference is None:
            self.types[id(node)] = reference = self.undeclared(node.name, node)
            return reference
        result = self._constructed(node, reference)
        for entry in node.entries:
            given = self.handlers[type(entry.value)](self, entry.value)
            wanted = ERROR
            if result.kind == "object":
                wanted = self.field_type(result.name, entry.field, entry.offset)
            if entry.optional:
                given = self._inside(entry.value, given)
            if not self.inference.fits(wanted, given):
                text = (
                    f"expected type of field '{entry.field}' is '{show(wanted)}' but provided type is '{show(given)}'"
                )
                self.report(text, entry.offset)
        self.types[id(node)] = result
        return result

    def _constructed(self, node: StructNode, static: Type) -> Type:
        if static.name == ERROR.name:
            return ERROR
        if static.name != "type":
            self.report(f"'{static.name}' is not a type", node)
            return ERROR
        result = static.parameters[0]
        if result.kind != "object":
            self.report(f"'{result.name}' is not a message type", node)
            return ERROR
        return result

    handlers: ClassVar[Mapping[type, Callable[[Checker, Any], Type]]] = {
        Literal: _literal,
        Ident: _ident,
        Select: _select,
        Has: _has,
        Call: _call,
        ListNode: _list,
        MapNode: _map,
        StructNode: _struct,
        Macro: check_macro,
    }


def _missing(name: str, arguments: int) -> Overload:
    """Return a signature for an unchecked call of an unknown function; it fails when it is evaluated."""

    def unbound(*_: object) -> NoReturn:
        raise EvaluationError(f"no such overload: {name}")

    return Overload(name, "unbound", (DYN,) * arguments, DYN, unbound)


def qualified_name(node: Node) -> str | None:
    """Return a.b.c as one name; None when the node is anything else."""
    parts = []
    while isinstance(node, Select) and not node.optional:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join([node.name, *reversed(parts)]) if parts else node.name
