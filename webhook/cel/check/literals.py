"""Checks literals as Kubernetes does after the types: mixed lists and maps, invalid patterns, times and formats.

The rules are cel-go v0.26's cel/validator.go and the string format validator of ext/formatting.go, which
k8s.io/apiserver v0.36.1 pkg/cel/environment/base.go turns on. Lists and maps inside the arguments of `format` may be
mixed. This module checks only literals. folding.py checks constant calls such as `duration(dyn('x'))`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cel.check.inference import is_optional, type_text
from webhook.cel.library.dispatch import fitting_implementation
from webhook.cel.library.format_string import REFUSALS, FormatProblem, split_into_clauses
from webhook.cel.syntax.tree import Call, ListNode, Literal, MapNode, Node, children
from webhook.cel.types import DYN, Type
from webhook.errors import BudgetExceeded, EvaluationError

if TYPE_CHECKING:
    from webhook.cel.check.checker import TypeChecker

_NUMBERS = frozenset({"int", "uint"})
_ANY_TEXT = frozenset(
    {
        "list", "map", "int", "uint", "double", "bool", "string", "bytes", "type", "null_type",
        "google.protobuf.Timestamp", "google.protobuf.Duration",
    }
)  # fmt: skip
_ALLOWED = {
    "s": _ANY_TEXT,
    "d": _NUMBERS,
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": _NUMBERS | {"bool"},
    "x": _NUMBERS | {"string", "bytes"},
    "o": _NUMBERS,
}
"""The types that each clause of a format accepts; dyn is checked at run time."""


def check_literals(checker: TypeChecker) -> None:
    """Report the literals of a well-typed tree that Kubernetes rejects."""
    exempt: set[int] = set()
    if checker.environment.homogeneous:
        for node in checker.order:
            if isinstance(node, Call) and node.function == "format":
                _add_nodes_below(node, exempt)
    for node in checker.order:
        if isinstance(node, Call):
            _check_call_literals(checker, node)
        elif checker.environment.homogeneous and id(node) not in exempt:
            _check_mixed_types(checker, node)


def _add_nodes_below(node: Node, inside: set[int]) -> None:
    pending = list(children(node))
    while pending:
        current = pending.pop()
        inside.add(id(current))
        pending.extend(children(current))


def _check_mixed_types(checker: TypeChecker, node: ListNode | MapNode) -> None:
    if isinstance(node, ListNode):
        _check_same_type(
            checker, [(each, index in node.optional) for index, each in enumerate(node.elements)], stop=True
        )
        return
    _check_same_type(checker, [(entry.key, False) for entry in node.entries])
    _check_same_type(checker, [(entry.value, entry.optional) for entry in node.entries])


def _check_same_type(checker: TypeChecker, parts: list[tuple[Node, bool]], *, stop: bool = False) -> None:
    first: Type | None = None
    for part, optional in parts:
        static = checker.types[id(part)]
        if optional:
            static = static.parameters[0] if is_optional(static) else DYN
        if first is None:
            first = static
        elif static != first:
            checker.report_issue(f"expected type '{type_text(first)}' but found '{type_text(static)}'", part)
            if stop:
                return


def _check_call_literals(checker: TypeChecker, node: Call) -> None:
    if node.function == "format":
        if "format" not in checker.environment.extensions:
            _check_format_call(checker, node)
    elif node.function in ("duration", "timestamp", "matches") and node.arguments:
        argument = node.arguments[0]
        if isinstance(argument, Literal) and not _is_valid_literal(checker, node, argument.value):
            checker.report_issue(f"invalid {node.function} argument", argument)
    elif any(overload.is_literal for overload in checker.overloads.get(id(node), ())):
        _check_call_requiring_literals(checker, node)


def _check_call_requiring_literals(checker: TypeChecker, node: Call) -> None:
    """Report a call that requires literals but has other arguments. Also report a call that fails with its literals."""
    values = [argument.value for argument in node.arguments if isinstance(argument, Literal)]
    if len(values) < len(node.arguments):
        checker.report_issue(f"{node.function} takes a literal", node)
        return
    try:
        fitting_implementation(checker.overloads[id(node)], tuple(values))(*values)
    except EvaluationError as error:
        checker.report_issue(str(error), node.arguments[0])


def _is_valid_literal(checker: TypeChecker, node: Call, value: object) -> bool:
    try:
        if node.function != "matches":
            fitting_implementation(checker.overloads[id(node)][:1], (value,))(value)
        elif isinstance(value, str):
            checker.patterns.compiled_pattern(value)
    except BudgetExceeded:
        raise  # the argument may be valid: it is too large, or there is no time to check it
    except (EvaluationError, ValueError):
        return False
    return True


def _check_format_call(checker: TypeChecker, node: Call) -> None:
    target, arguments = node.target, node.arguments
    if not isinstance(target, Literal) or not isinstance(target.value, str):
        return
    if len(arguments) != 1 or not isinstance(arguments[0], ListNode):
        return
    elements, used = arguments[0].elements, 0
    try:
        for part in split_into_clauses(target.value, len(elements)):
            if isinstance(part, str):
                continue
            culprit = _node_not_formattable(checker, elements[used], _ALLOWED[part.letter])
            if culprit is not None:
                complaint = REFUSALS[part.letter].format(checker.types[id(culprit)].name)
                checker.report_issue(f"error during formatting: {complaint}", culprit)
                return
            used += 1
    except FormatProblem as problem:
        checker.report_issue(str(problem), node)
        return
    if len(elements) > used:
        text = f"too many arguments supplied to string.format (expected {used}, got {len(elements)})"
        checker.report_issue(text, node)


def _node_not_formattable(checker: TypeChecker, node: Node, allowed: frozenset[str]) -> Node | None:
    """Return a node with a type that a format clause does not accept, or None. For %s this may be an element of a
    literal list or map.
    """
    pending = [node]
    while pending:
        current = pending.pop()
        name = checker.types[id(current)].name
        if name != DYN.name and name not in allowed:
            return current
        if allowed is _ANY_TEXT and isinstance(current, ListNode | MapNode):
            pending.extend(reversed(children(current)))
    return None
