"""What Kubernetes refuses of literals once the types are right: mixed lists and maps, bad patterns, times and formats.

The rules are cel-go v0.26's cel/validator.go and the string format validator of ext/formatting.go, which
k8s.io/apiserver v0.36.1 pkg/cel/environment/base.go turns on. Lists and maps inside the arguments of `format` may be
mixed. Only literals are looked at: `duration(dyn('x'))` is folding.py's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cel.inference import is_optional, show
from webhook.cel.library.regex import matcher
from webhook.cel.tree import Call, ListNode, Literal, MapNode, Node, children
from webhook.cel.types import DYN, Type
from webhook.errors import EvaluationError

if TYPE_CHECKING:
    from webhook.cel.checker import Checker

_ANY_TEXT = frozenset(
    {
        "list", "map", "int", "uint", "double", "bool", "string", "bytes", "type", "null_type",
        "google.protobuf.Timestamp", "google.protobuf.Duration",
    }
)  # fmt: skip
_TEXTS = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and"
    " timestamps"
)
_CLAUSES = {
    "s": (_ANY_TEXT, _TEXTS),
    "d": (frozenset({"int", "uint"}), "decimal clause can only be used on integers"),
    "f": (frozenset({"double", "string"}), "fixed-point clause can only be used on doubles"),
    "e": (frozenset({"double", "string"}), "scientific clause can only be used on doubles"),
    "b": (frozenset({"int", "uint", "bool"}), "only integers and bools can be formatted as binary"),
    "x": (
        frozenset({"int", "uint", "string", "bytes"}),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (frozenset({"int", "uint"}), "octal clause can only be used on integers"),
}
_CLAUSES["X"] = _CLAUSES["x"]


def check_literals(checker: Checker) -> None:
    """Report the literals of a well-typed tree that Kubernetes refuses."""
    exempt: set[int] = set()
    if checker.environment.homogeneous:
        for node in checker.order:
            if isinstance(node, Call) and node.function == "format":
                _below(node, exempt)
    for node in checker.order:
        if isinstance(node, Call):
            _check_call(checker, node)
        elif checker.environment.homogeneous and id(node) not in exempt:
            _check_mixture(checker, node)


def _below(node: Node, found: set[int]) -> None:
    pending = list(children(node))
    while pending:
        current = pending.pop()
        found.add(id(current))
        pending.extend(children(current))


def _check_mixture(checker: Checker, node: ListNode | MapNode) -> None:
    if isinstance(node, ListNode):
        _check_same(checker, [(each, index in node.optional) for index, each in enumerate(node.elements)], stop=True)
        return
    _check_same(checker, [(entry.key, False) for entry in node.entries])
    _check_same(checker, [(entry.value, entry.optional) for entry in node.entries])


def _check_same(checker: Checker, parts: list[tuple[Node, bool]], *, stop: bool = False) -> None:
    first: Type | None = None
    for part, optional in parts:
        found = checker.types[id(part)]
        if optional:
            found = found.parameters[0] if is_optional(found) else DYN
        if first is None:
            first = found
        elif found != first:
            checker.report(f"expected type '{show(first)}' but found '{show(found)}'", part)
            if stop:
                return


def _check_call(checker: Checker, node: Call) -> None:
    if node.function == "format":
        _check_format(checker, node)
    elif node.function in ("duration", "timestamp", "matches") and node.arguments:
        argument = node.arguments[0]
        if isinstance(argument, Literal) and not _is_good(checker, node, argument.value):
            checker.report(f"invalid {node.function} argument", argument)


def _is_good(checker: Checker, node: Call, value: object) -> bool:
    try:
        if node.function != "matches":
            checker.overloads[id(node)][0].implementation(value)
        elif isinstance(value, str):
            matcher(value)
    except (EvaluationError, ValueError):
        return False
    return True


def _check_format(checker: Checker, node: Call) -> None:
    target, arguments = node.target, node.arguments
    if not isinstance(target, Literal) or not isinstance(target.value, str):
        return
    if len(arguments) != 1 or not isinstance(arguments[0], ListNode):
        return
    elements = arguments[0].elements
    problem = _format_problem(checker, target.value, elements)
    if isinstance(problem, int):
        if len(elements) <= problem:
            return
        text = f"too many arguments supplied to string.format (expected {problem}, got {len(elements)})"
        checker.report(text, node)
    else:
        text, culprit = problem
        checker.report(text, node if culprit is None else culprit)


def _format_problem(checker: Checker, text: str, elements: tuple[Node, ...]) -> int | tuple[str, Node | None]:
    """The number of clauses in a good format, else what is wrong with it and with which argument."""
    clauses, position = 0, 0
    while (position := text.find("%", position)) >= 0:
        position += 1
        if text[position : position + 1] == "%":
            position += 1
            continue
        if position >= len(text):
            return "unexpected end of string", None
        if clauses >= len(elements):
            return f"index {clauses} out of range", None
        position, fault = _clause(text, position)
        if fault:
            return f"could not parse formatting clause: {fault}", None
        allowed, complaint = _CLAUSES[text[position]]
        culprit = _unfit(checker, elements[clauses], allowed)
        if culprit is not None:
            return f"error during formatting: {complaint}, was given {checker.types[id(culprit)].name}", culprit
        position += 1
        clauses += 1
    return clauses


def _clause(text: str, position: int) -> tuple[int, str]:
    """Where the letter of a clause stands, or what is wrong with the clause."""
    if text[position] == ".":
        start = position = position + 1
        while position < len(text) and text[position] in "0123456789":
            position += 1
        if position >= len(text):
            return position, "error while parsing precision: could not find end of precision specifier"
        digits = text[start:position]
        if not digits or int(digits[-20:]) >= 2**63 or len(digits.lstrip("0")) > 19:
            fault = "invalid syntax" if not digits else "value out of range"
            place = "error while parsing precision: error while converting precision to integer"
            return position, f'{place}: strconv.Atoi: parsing "{digits}": {fault}'
    if text[position] not in _CLAUSES:
        return position, f'unrecognized formatting clause "{text[position]}"'
    return position, ""


def _unfit(checker: Checker, node: Node, allowed: frozenset[str]) -> Node | None:
    """The node whose type a clause cannot show; lists and maps written out are looked into for %s."""
    pending = [node]
    while pending:
        current = pending.pop()
        name = checker.types[id(current)].name
        if name != DYN.name and name not in allowed:
            return current
        if allowed is _ANY_TEXT and isinstance(current, ListNode | MapNode):
            pending.extend(reversed(children(current)))
    return None
