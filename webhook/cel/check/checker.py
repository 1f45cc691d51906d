"""The type checker: resolves names, finds the signature of each call, and collects errors.

The rules and the wording are cel-go v0.26's checker/checker.go. What Kubernetes adds is in literals.py (mixed literals,
bad constants); constants that fail only when the program is planned are folding.py's. Types come from inference.py;
macros are typed in comprehensions.py as cel-go's expansion of them would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from webhook.cel.check.comprehensions import check_macro
from webhook.cel.check.inference import UNKNOWN, TypeInference, is_optional, most_general, type_text
from webhook.cel.environment import JSON_PATCH, Environment
from webhook.cel.library.declaration import Overload, Version
from webhook.cel.library.patterns import PatternTable
from webhook.cel.library.refusal import SINGLETONS
from webhook.cel.syntax.issues import IssueList
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
    type_of_type,
)
from webhook.cel.values import UInt
from webhook.errors import EvaluationError

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


class TypeChecker:
    """Checks one tree once. Errors are collected; a failed node has the type ERROR, which fits every other type.

    A handler gives and notes the type of its kind of node, and calls the handlers of the nodes below directly, without
    a function in between: one Python frame per level keeps the deepest tree within Python's default recursion limit.
    """

    def __init__(self, source: str, environment: Environment, patterns: PatternTable) -> None:
        self.patterns = patterns
        self.environment = environment
        self.inference = TypeInference()
        self.issues = IssueList(source)
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

    def report_issue(self, message: str, node_or_offset: Node | int) -> None:
        """Add an issue at the position of a node."""
        offset = node_or_offset if isinstance(node_or_offset, int) else node_or_offset.offset
        self.issues.report(message, offset)

    # Names

    def candidate_full_names(self, name: str) -> tuple[str, ...]:
        """Return the full names that a name may stand for, the innermost container first."""
        if name[0] == ".":
            return (name[1:],)
        container = self.environment.container
        if not container:
            return (name,)
        parts = container.split(".")
        return (*(".".join([*parts[:count], name]) for count in range(len(parts), 0, -1)), name)

    def type_of_name(self, name: str, node: Node) -> Type | None:
        """Return the type of a variable, or type(T) for the name of a type, and note what the node refers to."""
        if self._local_first and name[0] != ".":
            first, dot, _ = name.partition(".")
            local = self._type_of_local_variable(first)
            if local is not None:
                return None if dot else local
        for candidate in self.candidate_full_names(name):
            local = None if self._local_first else self._type_of_local_variable(candidate)
            if local is not None:
                return local
            declared = self.environment.variables.get(candidate)
            if declared is not None:
                self.references[id(node)] = candidate
                self.names.add(candidate)
                return declared
            named = self._type_with_name(candidate)
            if named is not None:
                self.references[id(node)] = candidate
                self.type_names.add(candidate)
                return type_of_type(named)
        return None

    def _type_of_local_variable(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _type_with_name(self, name: str) -> Type | None:
        if self.environment.structure_named(name) is not None:
            return object_type(name)
        return self.environment.type_named(name)

    def overloads_of(self, name: str) -> tuple[str, tuple[Overload, ...]]:
        """Return the full name of a function and its signatures; () when there is no such function."""
        for candidate in self.candidate_full_names(name):
            if overloads := self.environment.overloads_of_function(candidate):
                return candidate, overloads
        return name, ()

    def report_undeclared_name(self, name: str, node: Node) -> Type:
        """Report a name that is not declared, and return ERROR."""
        self.report_issue(f"undeclared reference to '{name}' (in container '{self.environment.container}')", node)
        if not self.environment.strict and isinstance(node, Ident):
            self.references[id(node)] = name
            self.names.add(name)
        return ERROR

    def _type_of_identifier(self, node: Ident) -> Type:
        reference = self.type_of_name(node.name, node)
        self.types[id(node)] = reference = (
            self.report_undeclared_name(node.name, node) if reference is None else reference
        )
        return reference

    # Fields

    def _type_of_selection(self, node: Select) -> Type:
        reference = None
        if not node.optional and (name := qualified_name(node)) is not None:
            reference = self.type_of_name(name, node)
        if reference is None:
            reference = self._type_of_selected_field(
                node, self.handlers[type(node.operand)](self, node.operand), optional=node.optional
            )
        self.types[id(node)] = reference
        return reference

    def _type_of_has_macro(self, node: Has) -> Type:
        self._type_of_selected_field(node, self.handlers[type(node.operand)](self, node.operand), optional=False)
        self.types[id(node)] = BOOL
        return BOOL

    def _type_of_selected_field(self, node: Select | Has, operand: Type, *, optional: bool) -> Type:
        operand = self.inference.resolved_type(operand)
        target = operand.parameters[0] if is_optional(operand) else operand
        result = DYN
        if target.name == "map":
            result = target.parameters[1]
        elif target.kind == "object":
            result = self.type_of_structure_field(target.name, node.field, node.offset)
            self.has_opaque = self.has_opaque or result == DYN
        elif target.kind == "param":
            self.inference.fits(DYN, target)
        elif target.name not in UNKNOWN and target.name != ERROR.name:
            self.report_issue(f"type '{type_text(target)}' does not support field selection", node)
        return self.inference.resolved_type(optional_of(result) if optional or target is not operand else result)

    def type_of_structure_field(self, structure: str, field: str, offset: int) -> Type:
        """Return the type of a structure's field, or report that it has no field of that name."""
        declared = self.environment.structure_named(structure)
        if declared is None:
            self.report_issue(f"unexpected failed resolution of '{structure}'", offset)
            return ERROR
        return self._type_of_declared_field(declared, field, offset)

    def _type_of_declared_field(self, structure: Structure, field: str, offset: int) -> Type:
        declared = structure.fields.get(field)
        if structure is JSON_PATCH and declared is None:
            return Type("")  # it has any field, but no type for those that it does not know
        if declared is None and not structure.open:
            self.report_issue(f"undefined field '{field}'", offset)
            return ERROR
        return DYN if declared is None else declared

    # Calls

    def _type_of_call(self, node: Call) -> Type:
        given = []
        for argument in node.arguments:
            given.append(self.handlers[type(argument)](self, argument))  # noqa: PERF401
        target = node.target
        if target is not None and not self._is_namespace_of_function(node, target):
            given.insert(0, self.handlers[type(target)](self, target))
            resolved = self._type_of_resolved_call(node, node.function, given, member=True)
        elif node.function in ("_&&_", "_||_"):
            resolved = self._type_of_logical_operator(node, given)
        else:
            resolved = self._type_of_resolved_call(node, self.references.get(id(node), node.function), given)
        self.order.append(node)
        self.types[id(node)] = resolved
        return resolved

    def _is_namespace_of_function(self, node: Call, target: Node) -> bool:
        """Return whether the target of a call is the namespace of a function, as `sets` in sets.contains(a, b)."""
        prefix = qualified_name(target)
        if prefix is None:
            return False
        name, overloads = self.overloads_of(f"{prefix}.{node.function}")
        if overloads:
            self.references[id(node)] = name
        return bool(overloads)

    def _type_of_resolved_call(self, node: Call, function: str, given: Sequence[Type], *, member: bool = False) -> Type:
        name, overloads = self.overloads_of(function)
        if not overloads:
            self.overloads[id(node)] = (_overload_of_unknown_function(function, len(given)),)
            return self.report_undeclared_name(function, node)
        return self.type_of_fitting_overload(node, name, overloads, given, member=member)

    def _type_of_logical_operator(self, node: Call, given: Sequence[Type]) -> Type:
        wrong = False
        for argument, actual in zip(node.arguments, given, strict=True):
            if not self.inference.fits(actual, BOOL):
                self.report_issue(
                    f"expected type 'bool' but found '{type_text(self.inference.resolved_type(actual))}'",
                    argument,
                )
                wrong = True
        self.overloads[id(node)] = self.environment.overloads_of_function(node.function)
        return ERROR if wrong else BOOL

    def type_of_fitting_overload(
        self, node: Node, name: str, overloads: Sequence[Overload], given: Sequence[Type], *, member: bool = False
    ) -> Type:
        """Return the type of a call: that of the signature that fits, dyn when several fit with different results."""
        inference, result, kept = self.inference, None, []
        for overload in overloads:
            if overload.hidden or overload.member is not member or len(overload.parameters) != len(given):
                continue
            wanted, returned = inference.instantiate(overload)
            if not inference.all_fit(given, wanted):
                continue
            kept.append(overload)
            static = inference.resolved_type(returned)
            if result is None:
                result = static
            elif result.name not in UNKNOWN and static != result:
                result = DYN
        if result is None:
            if not self.environment.strict:
                fitting = (each for each in overloads if each.member is member and len(each.parameters) == len(given))
                self.overloads[id(node)] = tuple(fitting) or (_overload_of_unknown_function(name, len(given)),)
            return self.report_no_overload(node, name, given, member=member)
        self.overloads[id(node)] = tuple(kept)
        if len(kept) > 1 or name in SINGLETONS:
            self.choices[id(node)] = tuple(each for each in overloads if len(each.parameters) == len(given))
        return result

    def report_no_overload(self, node: Node, name: str, given: Sequence[Type], *, member: bool = False) -> Type:
        """Report a call that fits no signature, and return ERROR."""
        shown = [type_text(self.inference.resolved_type(each, final=True)) for each in given]
        signature = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
        self.report_issue(f"found no matching overload for '{name}' applied to '{signature}'", node)
        return ERROR

    # Literals

    def _type_of_literal(self, node: Literal) -> Type:
        self.types[id(node)] = static = _LITERALS[type(node.value)]
        self.has_opaque = self.has_opaque or static == BYTES
        return static

    def _type_of_list(self, node: ListNode) -> Type:
        joined = None
        for index, element in enumerate(node.elements):
            static = self.handlers[type(element)](self, element)
            if index in node.optional:
                static = self._type_inside_optional(element, static)
            joined = self._join_types(joined, static)
        self.order.append(node)
        self.types[id(node)] = result = list_of(self.inference.new_type_variable() if joined is None else joined)
        return result

    def _type_of_map(self, node: MapNode) -> Type:
        keys, values = None, None
        for entry in node.entries:
            keys = self._join_types(keys, self.handlers[type(entry.key)](self, entry.key))
            static = self.handlers[type(entry.value)](self, entry.value)
            if entry.optional:
                static = self._type_inside_optional(entry.value, static)
            values = self._join_types(values, static)
        if keys is None or values is None:
            keys, values = self.inference.new_type_variable(), self.inference.new_type_variable()
        self.order.append(node)
        self.types[id(node)] = result = map_of(keys, values)
        return result

    def _type_inside_optional(self, node: Node, static: Type) -> Type:
        if is_optional(static):
            return static.parameters[0]
        if static.name not in UNKNOWN:
            self.report_issue(
                f"expected type '{type_text(optional_of(static))}' but found '{type_text(static)}'",
                node,
            )
        return static

    def _join_types(self, joined: Type | None, added: Type) -> Type:
        if joined is None:
            return added
        if added == NULL and self.inference.fits(joined, added):
            return joined
        return most_general(joined, added) if self.inference.fits(joined, added) else DYN

    def _type_of_structure(self, node: StructNode) -> Type:
        reference = self.type_of_name(node.name, node)
        if reference is None:
            self.types[id(node)] = reference = self.report_undeclared_name(node.name, node)
            return reference
        result = self._type_of_constructed_value(node, reference)
        for entry in node.entries:
            given = self.handlers[type(entry.value)](self, entry.value)
            wanted = ERROR
            if result.kind == "object":
                wanted = self.type_of_structure_field(result.name, entry.field, entry.offset)
            if entry.optional:
                given = self._type_inside_optional(entry.value, given)
            if not self.inference.fits(wanted, given):
                names = type_text(wanted), type_text(given)
                text = f"expected type of field '{entry.field}' is '{names[0]}' but provided type is '{names[1]}'"
                self.report_issue(text, entry.offset)
        self.types[id(node)] = result
        return result

    def _type_of_constructed_value(self, node: StructNode, static: Type) -> Type:
        if static.name == ERROR.name:
            return ERROR
        if static.name != "type":
            self.report_issue(f"'{static.name}' is not a type", node)
            return ERROR
        result = static.parameters[0]
        if result.kind != "object":
            self.report_issue(f"'{result.name}' is not a message type", node)
            return ERROR
        return result

    handlers: ClassVar[Mapping[type, Callable[[TypeChecker, Any], Type]]] = {
        Literal: _type_of_literal,
        Ident: _type_of_identifier,
        Select: _type_of_selection,
        Has: _type_of_has_macro,
        Call: _type_of_call,
        ListNode: _type_of_list,
        MapNode: _type_of_map,
        StructNode: _type_of_structure,
        Macro: check_macro,
    }


def _overload_of_unknown_function(name: str, arguments: int) -> Overload:
    """Return a signature for an unchecked call of an unknown function; it fails when it is evaluated."""

    def raise_no_such_overload(*_: object) -> NoReturn:
        raise EvaluationError(f"no such overload: {name}")

    return Overload(name, "unbound", (DYN,) * arguments, DYN, raise_no_such_overload)


def qualified_name(node: Node) -> str | None:
    """Return a.b.c as one name; None when the node is anything else."""
    parts = []
    while isinstance(node, Select) and not node.optional:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join([node.name, *reversed(parts)]) if parts else node.name
