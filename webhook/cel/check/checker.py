"""The type checker: resolves names, finds the signature of each call, and collects errors.

Source of the rules and messages: cel-go v0.26 checker/checker.go. node_types.py has a handler for each kind of node,
and inference.py unifies types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from webhook.cel.check.inference import UNKNOWN, TypeInference, type_text
from webhook.cel.environment import JSON_PATCH, Environment
from webhook.cel.library.declaration import Overload, Version
from webhook.cel.library.patterns import PatternTable
from webhook.cel.library.refusal import SINGLETONS
from webhook.cel.syntax.issues import IssueList
from webhook.cel.syntax.tree import Call, Ident, ListNode, MapNode, Node
from webhook.cel.types import (
    DYN,
    ERROR,
    Structure,
    Type,
    object_type,
    type_of_type,
)
from webhook.errors import EvaluationError

_LOCAL_FIRST: Version = (1, 37)
"""The first version with cel-go 0.27. Since then, the variable `x` of a macro hides a declared name such as `x.y`,
unless the name is written with a leading dot."""

Handler: TypeAlias = "Callable[[TypeChecker, Any], Type]"
"""Returns the type of a node, and adds the type to `TypeChecker.types`."""


class TypeChecker:
    """Checks one tree once. A node with an error has the type ERROR, which fits every type.

    Each handler directly calls the handlers of the nodes below its node. So each level of the tree needs one Python
    frame, and the deepest tree stays within the default recursion limit.
    """

    def __init__(
        self, source: str, environment: Environment, patterns: PatternTable, handlers: Mapping[type, Handler]
    ) -> None:
        self.handlers = handlers
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
        offset = node_or_offset if isinstance(node_or_offset, int) else node_or_offset.offset
        self.issues.report(message, offset)

    # Names

    def candidate_full_names(self, name: str) -> tuple[str, ...]:
        """Return the full names that a name may mean, the innermost container first."""
        if name[0] == ".":
            return (name[1:],)
        container = self.environment.container
        if not container:
            return (name,)
        parts = container.split(".")
        return (*(".".join([*parts[:count], name]) for count in range(len(parts), 0, -1)), name)

    def type_of_name(self, name: str, node: Node) -> Type | None:
        """Return the type of a variable, or type(T) for the name of the type T, and record the reference."""
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
        """Return the full name and the signatures of a function; no signatures for an unknown function."""
        for candidate in self.candidate_full_names(name):
            if overloads := self.environment.overloads_of_function(candidate):
                return candidate, overloads
        return name, ()

    def report_undeclared_name(self, name: str, node: Node) -> Type:
        """Report an undeclared name, and return ERROR."""
        self.report_issue(f"undeclared reference to '{name}' (in container '{self.environment.container}')", node)
        if not self.environment.strict and isinstance(node, Ident):
            self.references[id(node)] = name
            self.names.add(name)
        return ERROR

    # Fields

    def type_of_structure_field(self, structure: str, field: str, offset: int) -> Type:
        """Return the type of a structure's field; for an unknown field, report the name and return ERROR."""
        declared = self.environment.structure_named(structure)
        if declared is None:
            self.report_issue(f"unexpected failed resolution of '{structure}'", offset)
            return ERROR
        return self._type_of_declared_field(declared, field, offset)

    def _type_of_declared_field(self, structure: Structure, field: str, offset: int) -> Type:
        declared = structure.fields.get(field)
        if structure is JSON_PATCH and declared is None:
            return Type("")  # any field is accepted, but has no type
        if declared is None and not structure.open:
            self.report_issue(f"undefined field '{field}'", offset)
            return ERROR
        return DYN if declared is None else declared

    # Calls

    def type_of_fitting_overload(
        self,
        node: Node,
        name: str,
        overloads: Sequence[Overload],
        argument_types: Sequence[Type],
        *,
        member: bool = False,
    ) -> Type:
        """Return the result type of the signature that fits; dyn if signatures with several result types fit."""
        inference, result, fitting_overloads = self.inference, None, []
        for overload in overloads:
            if overload.hidden or overload.member is not member or len(overload.parameters) != len(argument_types):
                continue
            parameter_types, returned = inference.instantiate(overload)
            if not inference.all_fit(argument_types, parameter_types):
                continue
            fitting_overloads.append(overload)
            static = inference.resolved_type(returned)
            if result is None:
                result = static
            elif result.name not in UNKNOWN and static != result:
                result = DYN
        if result is None:
            if not self.environment.strict:
                fitting = (
                    each for each in overloads if each.member is member and len(each.parameters) == len(argument_types)
                )
                self.overloads[id(node)] = tuple(fitting) or (overload_of_unknown_function(name, len(argument_types)),)
            return self.report_no_overload(node, name, argument_types, member=member)
        self.overloads[id(node)] = tuple(fitting_overloads)
        if len(fitting_overloads) > 1 or name in SINGLETONS:
            self.choices[id(node)] = tuple(each for each in overloads if len(each.parameters) == len(argument_types))
        return result

    def report_no_overload(
        self, node: Node, name: str, argument_types: Sequence[Type], *, member: bool = False
    ) -> Type:
        """Report a call that fits no signature, and return ERROR."""
        shown = [type_text(self.inference.resolved_type(each, final=True)) for each in argument_types]
        signature = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
        self.report_issue(f"found no matching overload for '{name}' applied to '{signature}'", node)
        return ERROR


def overload_of_unknown_function(name: str, arguments: int) -> Overload:
    """Return a signature for an unchecked call of an unknown function. The call fails at evaluation."""

    def raise_no_such_overload(*_: object) -> NoReturn:
        raise EvaluationError(f"no such overload: {name}")

    return Overload(name, "unbound", (DYN,) * arguments, DYN, raise_no_such_overload)
