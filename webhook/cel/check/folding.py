"""Finds the parts of an expression that cel-go evaluates as constants when it plans a program.

Literals, lists and maps of constants, names of types, conversions of a constant, and membership in an empty list are
computed once and cost nothing. A constant fails if it has a bad conversion, an invalid pattern, or a key of a wrong
type. The failure is an error of the whole expression, even in an operand of `||`. Other calls, such as
`quantity('zzz')`, fail at evaluation. Source: cel-go v0.26.0 interpreter/decorators.go decOptimize and planner.go,
which the API server turns on (OptOptimize).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from webhook.cel.check.checked import CheckedTree
from webhook.cel.library.dispatch import fitting_implementation
from webhook.cel.library.refusal import go_type_name
from webhook.cel.syntax.issues import IssueList
from webhook.cel.syntax.tree import Call, Ident, ListNode, Literal, MapNode, Node, Select, children
from webhook.cel.values import TypeValue, UInt, make_map, type_name
from webhook.errors import CompileError, EvaluationError, EvaluationPanic

CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"))
_PRIMITIVES = frozenset(("bool", "string", "int", "uint", "double"))
_PATTERNS = frozenset(("matches", "find", "findAll"))
_KEYS = frozenset((bool, int, UInt, float, str))


def fold_constants(checked: CheckedTree, source: str) -> Mapping[int, Any]:
    """Return the values of all constant nodes by `id(node)`.

    Raises:
        CompileError: a constant fails.
    """
    folding = _ConstantFolder(checked, source)
    for node in _nodes_bottom_up(checked.node):
        folding.fold_node(node)
    if folding.issues and checked.planned:
        raise CompileError(source, tuple(folding.issues.kept), folding.issues.count)
    return folding.values


def _nodes_bottom_up(root: Node) -> list[Node]:
    order, pending = [], [root]
    while pending:
        node = pending.pop()
        order.append(node)
        pending.extend(children(node))
    order.reverse()
    return order


class _ConstantFolder:
    def __init__(self, checked: CheckedTree, source: str) -> None:
        self.checked = checked
        self.values: dict[int, Any] = {}
        self.issues = IssueList(source)

    def fold_node(self, node: Node) -> None:
        values = self.values
        match node:
            case Literal():
                values[id(node)] = node.value
            case Ident() | Select():
                reference = self.checked.name_referred_to(node)
                if reference is not None and reference in self.checked.type_names:
                    values[id(node)] = TypeValue(reference)
            case ListNode() if not node.optional and all(id(each) in values for each in node.elements):
                values[id(node)] = [values[id(each)] for each in node.elements]
            case MapNode() if not any(entry.optional for entry in node.entries):
                if all(id(part) in values for part in children(node)):
                    # a map with a key that Go cannot hash fails at evaluation, and folding it crashes cel-go
                    with suppress(EvaluationPanic):
                        values[id(node)] = make_map((values[id(e.key)], values[id(e.value)]) for e in node.entries)
            case Call() if node.arguments:
                self._fold_call(node)

    def _fold_call(self, node: Call) -> None:
        values, last = self.values, node.arguments[-1]
        if node.function in _PATTERNS:
            pattern = values.get(id(node.arguments[1 if node.target is None else 0]))
            if type(pattern) is str:
                self._compile_constant_pattern(node, pattern)
            return
        if id(last) not in values:
            return
        value = values[id(last)]
        if node.function == "@in" and value == []:
            values[id(node)] = False
        elif node.function in ("_[_]", "_[?_]") and type(value) not in _KEYS:
            self._report_issue(node, f"invalid qualifier type: {go_type_name(type(value))}")
        elif node.target is None and node.function.lstrip(".") in CONVERSIONS and len(node.arguments) == 1:
            self._fold_conversion(node, value)

    def _fold_conversion(self, node: Call, value: Any) -> None:
        try:
            self.values[id(node)] = fitting_implementation(self.checked.overloads.get(id(node), ()), (value,))(value)
        except EvaluationError as error:
            self._report_issue(node, str(error))

    def _compile_constant_pattern(self, node: Call, pattern: str) -> None:
        try:
            self.checked.patterns.compiled_pattern(pattern)
        except ValueError as error:
            self._report_issue(node, str(error))

    def _report_issue(self, node: Node, message: str) -> None:
        self.issues.report(f"program instantiation failed: {message}", node.offset)


def is_turned_into_set(values: list[Any]) -> bool:
    """Return whether cel-go makes a set of a constant list for `in`. A lookup in the set costs nothing."""
    return all(type_name(value) in _PRIMITIVES for value in values)
