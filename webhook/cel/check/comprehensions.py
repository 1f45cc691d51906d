"""The types of macros: the type and the errors that cel-go finds for the expansion of a macro.

Expansions: cel-go v0.26 parser/macro.go, ext/comprehensions.go, cel/library.go (optMap, optFlatMap), ext/lists.go
(sortBy). A message about a generated call has the place of the macro and the name of the generated function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from webhook.cel.check.inference import UNKNOWN, is_optional, type_text
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
    from webhook.cel.check.checker import TypeChecker

_SORTABLE = frozenset({BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT})


def check_macro(checker: TypeChecker, node: Macro) -> Type:
    """Check the operand and the arguments of a macro, and return the macro's type."""
    complaints = checker.issues.count
    operand = checker.handlers[type(node.operand)](checker, node.operand)
    if node.name in ("optMap", "optFlatMap"):
        # the expansion holds the operand twice, and cel-go complains of both
        checker.issues.repeat_since(complaints)
    checker.scopes.append(_types_of_macro_variables(checker, node, operand))
    bodies = []
    for argument in node.arguments:
        bodies.append(checker.handlers[type(argument)](checker, argument))  # noqa: PERF401
    checker.scopes.pop()
    result = checker.inference.resolved_type(_RESULTS[node.name](checker, node, bodies))
    checker.types[id(node)] = result
    return result


def _types_of_macro_variables(checker: TypeChecker, node: Macro, operand: Type) -> Mapping[str, Type]:
    operand = checker.inference.resolved_type(operand)
    if node.name == "bind":
        return {node.variables[0]: operand}
    if node.name in ("optMap", "optFlatMap"):
        return {node.variables[0]: _type_inside_optional(checker, node, operand)}
    first, second = _key_and_element_types(checker, node, operand)
    if len(node.variables) == 2:
        return dict(zip(node.variables, (INT if first is None else first, second), strict=True))
    return {node.variables[0]: second if first is None else first}


def _type_inside_optional(checker: TypeChecker, node: Macro, operand: Type) -> Type:
    inside = checker.inference.new_type_variable()
    if checker.inference.fits(optional_of(inside), operand):
        return operand.parameters[0] if is_optional(operand) else inside
    checker.report_no_overload(node, "hasValue", [operand], member=True)
    return checker.report_no_overload(node, "value", [operand], member=True)


def _key_and_element_types(checker: TypeChecker, node: Macro, operand: Type) -> tuple[Type | None, Type]:
    """Return the types of key and value of a map, or None and the type of the elements of a list."""
    if operand.name == "list":
        return None, operand.parameters[0]
    if operand.name == "map":
        return operand.parameters[0], operand.parameters[1]
    if operand.kind == "param" or operand.name in (DYN.name, ERROR.name):
        checker.inference.fits(DYN, operand)
        return DYN, DYN
    text = (
        f"expression of type '{type_text(operand)}' cannot be range of a comprehension (must be list, map, or dynamic)"
    )
    # sortBy runs over a variable that it creates
    checker.report_issue(text, node if node.name == "sortBy" else node.operand)
    return ERROR, ERROR


def _type_of_quantifier(checker: TypeChecker, node: Macro, bodies: Sequence[Type]) -> Type:
    if not checker.inference.fits(bodies[0], BOOL):
        shown = type_text(checker.inference.resolved_type(bodies[0]))
        checker.report_issue(f"expected type 'bool' but found '{shown}'", node.arguments[0])
    return BOOL


def _type_of_exists_one(checker: TypeChecker, node: Macro, bodies: Sequence[Type]) -> Type:
    _type_of_conditional(checker, node, bodies[0], INT, INT)
    return BOOL


def _type_of_map_or_transform_list(checker: TypeChecker, node: Macro, bodies: Sequence[Type]) -> Type:
    listed = checker.inference.new_type_variable()
    checker.inference.fits(listed, bodies[-1])
    result = checker.inference.resolved_type(list_of(listed))
    return _type_after_filter(checker, node, bodies, result)


def _type_of_filter(checker: TypeChecker, node: Macro, bodies: Sequence[Type]) -> Type:
    operand = checker.inference.resolved_type(checker.types[id(node.operand)])
    element = operand.parameters[0] if operand.name in ("list", "map") else DYN
    _type_of_conditional(checker, node, bodies[0], list_of(element), list_of(element))
    return list_of(element)


def _type_of_transform_map(checker: TypeChecker, node: Macro, bodies: Sequence[Type]) -> Type:
    operand = checker.inference.resolved_type(checker.types[id(node.operand)])
    key = DYN if operand.kind == "param" or operand.name in (DYN.name, ERROR.name) else ERROR
    if operand.name in ("list", "map"):
        key = INT if operand.name == "list" else operand.parameters[0]
    return _type_after_filter(checker, node, bodies, map_of(key, bodies[-1]))


def _type_of_transform_map_entry(checker: TypeChecker, node: Macro, bodies: Sequence[Type]) -> Type:
    entries = map_of(checker.inference.new_type_variable(), checker.inference.new_type_variable())
    if not checker.inference.fits(entries, bodies[-1]):
        checker.report_no_overload(node, "cel.@mapInsert", [entries, bodies[-1]])
    return _type_after_filter(checker, node, bodies, entries)


def _type_after_filter(checker: TypeChecker, node: Macro, bodies: Sequence[Type], result: Type) -> Type:
    """Check the filter of a macro, if it has one, and return the type of the accumulator, which is the macro's type."""
    if len(bodies) > 1:
        _type_of_conditional(checker, node, bodies[0], result, result)
    return result


def _type_of_conditional(checker: TypeChecker, node: Macro, condition: Type, first: Type, second: Type) -> Type:
    _, overloads = checker.overloads_of("_?_:_")
    wanted, result = checker.inference.instantiate(overloads[0])
    if checker.inference.all_fit((condition, first, second), wanted):
        return checker.inference.resolved_type(result)
    return checker.report_no_overload(node, "_?_:_", (condition, first, second))


def _type_of_sort_by(checker: TypeChecker, node: Macro, bodies: Sequence[Type]) -> Type:
    operand = checker.inference.resolved_type(checker.types[id(node.operand)])
    key = checker.inference.resolved_type(bodies[0])
    unknown = key.kind == "param" or key.name in UNKNOWN or key.name in (ERROR.name, NULL.name)
    may_be_list = operand.kind == "param" or operand.name in ("list", DYN.name, ERROR.name)
    if not may_be_list or not (unknown or key in _SORTABLE):
        return checker.report_no_overload(node, "@sortByAssociatedKeys", [operand, list_of(key)], member=True)
    if operand.name == "list":
        return list_of(operand.parameters[0])
    return DYN if unknown else list_of(checker.inference.new_type_variable())


def _type_of_opt_map(checker: TypeChecker, node: Macro, bodies: Sequence[Type]) -> Type:
    empty = optional_of(checker.inference.new_type_variable())
    return _type_of_conditional(checker, node, BOOL, optional_of(bodies[0]), empty)


def _type_of_opt_flat_map(checker: TypeChecker, node: Macro, bodies: Sequence[Type]) -> Type:
    empty = optional_of(checker.inference.new_type_variable())
    return _type_of_conditional(checker, node, BOOL, bodies[0], empty)


_RESULTS: Mapping[str, Callable[[TypeChecker, Macro, Sequence[Type]], Type]] = {
    "all": _type_of_quantifier,
    "exists": _type_of_quantifier,
    "exists_one": _type_of_exists_one,
    "existsOne": _type_of_exists_one,
    "map": _type_of_map_or_transform_list,
    "filter": _type_of_filter,
    "transformList": _type_of_map_or_transform_list,
    "transformMap": _type_of_transform_map,
    "transformMapEntry": _type_of_transform_map_entry,
    "sortBy": _type_of_sort_by,
    "optMap": _type_of_opt_map,
    "optFlatMap": _type_of_opt_flat_map,
    "bind": lambda _checker, _node, bodies: bodies[0],
}
