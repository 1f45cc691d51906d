"""The types of macros: the type and the errors that cel-go finds for the expansion of a macro.

Expansions: cel-go v0.26 parser/macro.go, ext/comprehensions.go, cel/library.go (optMap, optFlatMap), ext/lists.go
(sortBy). A complaint about a generated call stands at the macro's own place and names the generated function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from webhook.cel.check.inference import UNKNOWN, is_optional, show
from webhook.cel.syntax.tree import Macro
from webhook.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
)

if TYPE_CHECKING:
    from webhook.cel.check.checker import Checker

_SORTABLE = frozenset({BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT})


def check_macro(checker: Checker, node: Macro) -> Type:
    """Check the operand and the arguments of a macro, and return the macro's type."""
    complaints = len(checker.issues)
    operand = checker.handlers[type(node.operand)](checker, node.operand)
    if node.name in ("optMap", "optFlatMap"):
        # the expansion holds the operand twice, and cel-go complains of both
        checker.issues.extend(checker.issues[complaints:])
    checker.scopes.append(_scope(checker, node, operand))
    bodies = []
    for argument in node.arguments:
        bodies.append(checker.handlers[type(argument)](checker, argument))  # noqa: PERF401
    checker.scopes.pop()
    result = checker.inference.resolved(_RESULTS[node.name](checker, node, bodies))
    checker.types[id(node)] = result
    return result


def _scope(checker: Checker, node: Macro, operand: Type) -> Mapping[str, Type]:
    operand = checker.inference.resolved(operand)
    if node.name == "bind":
        return {node.variables[0]: operand}
    if node.name in ("optMap", "optFlatMap"):
        return {node.variables[0]: _value_inside(checker, node, operand)}
    first, second = _range(checker, node, operand)
    if len(node.variables) == 2:
        return dict(zip(node.variables, (INT if first is None else first, second), strict=True))
    return {node.variables[0]: second if first is None else first}


def _value_inside(checker: Checker, node: Macro, operand: Type) -> Type:
    inside = checker.inference.fresh()
    if checker.inference.fits(optional_of(inside), operand):
        return operand.parameters[0] if is_optional(operand) else inside
    checker.no_overload(node, "hasValue", [operand], member=True)
    return checker.no_overload(node, "value", [operand], member=True)


def _range(checker: Checker, node: Macro, operand: Type) -> tuple[Type | None, Type]:
    """Return the types of key and value of a map, or None and the type of the elements of a list."""
    if operand.name == "list":
        return None, operand.parameters[0]
    if operand.name == "map":
        return operand.parameters[0], operand.parameters[1]
    if operand.kind == "param" or operand.name in (DYN.name, ERROR.name):
        checker.inference.fits(DYN, operand)
        return DYN, DYN
    text = f"expression of type '{show(operand)}' cannot be range of a comprehension (must be list, map, or dynamic)"
    # sortBy runs over a variable of its own making
    checker.report(text, node if node.name == "sortBy" else node.operand)
    return ERROR, ERROR


def _quantified(checker: Checker, node: Macro, bodies: Sequence[Type]) -> Type:
    if not checker.inference.fits(bodies[0], BOOL):
        shown = show(checker.inference.resolved(bodies[0]))
        checker.report(f"expected type 'bool' but found '{shown}'", node.arguments[0])
    return BOOL


def _counted(checker: Checker, node: Macro, bodies: Sequence[Type]) -> Type:
    _chosen(checker, node, bodies[0], INT, INT)
    return BOOL


def _listed(checker: Checker, node: Macro, bodies: Sequence[Type]) -> Type:
    listed = checker.inference.fresh()
    checker.inference.fits(listed, bodies[-1])
    result = checker.inference.resolved(list_of(listed))
    return _kept(checker, node, bodies, result)


def _filtered(checker: Checker, node: Macro, bodies: Sequence[Type]) -> Type:
    operand = checker.inference.resolved(checker.types[id(node.operand)])
    element = operand.parameters[0] if operand.name in ("list", "map") else DYN
    _chosen(checker, node, bodies[0], list_of(element), list_of(element))
    return list_of(element)


def _mapped(checker: Checker, node: Macro, bodies: Sequence[Type]) -> Type:
    operand = checker.inference.resolved(checker.types[id(node.operand)])
    key = DYN if operand.kind == "param" or operand.name in (DYN.name, ERROR.name) else ERROR
    if operand.name in ("list", "map"):
        key = INT if operand.name == "list" else operand.parameters[0]
    return _kept(checker, node, bodies, map_of(key, bodies[-1]))


def _merged(checker: Checker, node: Macro, bodies: Sequence[Type]) -> Type:
    entries = map_of(checker.inference.fresh(), checker.inference.fresh())
    if not checker.inference.fits(entries, bodies[-1]):
        checker.no_overload(node, "cel.@mapInsert", [entries, bodies[-1]])
    return _kept(checker, node, bodies, entries)


def _kept(checker: Checker, node: Macro, bodies: Sequence[Type], result: Type) -> Type:
    """Check the filter of a macro, if it has one, and return the type of the accumulator, which is the macro's type."""
    if len(bodies) > 1:
        _chosen(checker, node, bodies[0], result, result)
    return result


def _chosen(checker: Checker, node: Macro, condition: Type, first: Type, second: Type) -> Type:
    _, overloads = checker.overloads_of("_?_:_")
    wanted, result = checker.inference.instance(overloads[0])
    if checker.inference.all_fit((condition, first, second), wanted):
        return checker.inference.resolved(result)
    return checker.no_overload(node, "_?_:_", (condition, first, second))


def _sorted(checker: Checker, node: Macro, bodies: Sequence[Type]) -> Type:
    operand = checker.inference.resolved(checker.types[id(node.operand)])
    key = checker.inference.resolved(bodies[0])
    unknown = key.kind == "param" or key.name in UNKNOWN or key.name in (ERROR.name, NULL.name)
    may_be_list = operand.kind == "param" or operand.name in ("list", DYN.name, ERROR.name)
    if not may_be_list or not (unknown or key in _SORTABLE):
        return checker.no_overload(node, "@sortByAssociatedKeys", [operand, list_of(key)], member=True)
    if operand.name == "list":
        return list_of(operand.parameters[0])
    return DYN if unknown else list_of(checker.inference.fresh())


def _option(checker: Checker, node: Macro, bodies: Sequence[Type]) -> Type:
    empty = optional_of(checker.inference.fresh())
    return _chosen(checker, node, BOOL, optional_of(bodies[0]), empty)


def _flat_option(checker: Checker, node: Macro, bodies: Sequence[Type]) -> Type:
    empty = optional_of(checker.inference.fresh())
    return _chosen(checker, node, BOOL, bodies[0], empty)


_RESULTS: Mapping[str, Callable[[Checker, Macro, Sequence[Type]], Type]] = {
    "all": _quantified,
    "exists": _quantified,
    "exists_one": _counted,
    "existsOne": _counted,
    "map": _listed,
    "filter": _filtered,
    "transformList": _listed,
    "transformMap": _mapped,
    "transformMapEntry": _merged,
    "sortBy": _sorted,
    "optMap": _option,
    "optFlatMap": _flat_option,
    "bind": lambda _checker, _node, bodies: bodies[0],
}
