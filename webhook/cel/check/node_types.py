"""Finds the type and the errors of each kind of node.

Source of the rules and messages: cel-go v0.26 checker/checker.go. A macro has the type and errors of cel-go's expansion
(parser/macro.go, ext/comprehensions.go, cel/library.go optMap and optFlatMap, ext/lists.go sortBy). A message about a
generated call has the place of the macro and the generated name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from webhook.cel.check.checker import Handler, TypeChecker, overload_of_unknown_function
from webhook.cel.check.inference import UNKNOWN, is_optional, most_general, type_text
from webhook.cel.syntax.tree import Call, Has, Ident, ListNode, Literal, Macro, MapNode, Node, Select, StructNode
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
from webhook.cel.values import UInt


def _type_of_identifier(checker: TypeChecker, node: Ident) -> Type:
    reference = checker.type_of_name(node.name, node)
    checker.types[id(node)] = reference = (
        checker.report_undeclared_name(node.name, node) if reference is None else reference
    )
    return reference


def _type_of_selection(checker: TypeChecker, node: Select) -> Type:
    reference = None
    if not node.optional and (name := _qualified_name(node)) is not None:
        reference = checker.type_of_name(name, node)
    if reference is None:
        reference = _type_of_selected_field(
            checker, node, checker.handlers[type(node.operand)](checker, node.operand), optional=node.optional
        )
    checker.types[id(node)] = reference
    return reference


def _type_of_has_macro(checker: TypeChecker, node: Has) -> Type:
    _type_of_selected_field(checker, node, checker.handlers[type(node.operand)](checker, node.operand), optional=False)
    checker.types[id(node)] = BOOL
    return BOOL


def _type_of_selected_field(checker: TypeChecker, node: Select | Has, operand: Type, *, optional: bool) -> Type:
    operand = checker.inference.resolved_type(operand)
    target = operand.parameters[0] if is_optional(operand) else operand
    result = DYN
    if target.name == "map":
        result = target.parameters[1]
    elif target.kind == "object":
        result = checker.type_of_structure_field(target.name, node.field, node.offset)
        checker.has_opaque = checker.has_opaque or result == DYN
    elif target.kind == "param":
        checker.inference.fits(DYN, target)
    elif target.name not in UNKNOWN and target.name != ERROR.name:
        checker.report_issue(f"type '{type_text(target)}' does not support field selection", node)
    return checker.inference.resolved_type(optional_of(result) if optional or target is not operand else result)


# ---- calls


def _type_of_call(checker: TypeChecker, node: Call) -> Type:
    argument_types = []
    for argument in node.arguments:
        argument_types.append(checker.handlers[type(argument)](checker, argument))  # noqa: PERF401
    target = node.target
    if target is not None and not _is_namespace_of_function(checker, node, target):
        argument_types.insert(0, checker.handlers[type(target)](checker, target))
        resolved = _type_of_resolved_call(checker, node, node.function, argument_types, member=True)
    elif node.function in ("_&&_", "_||_"):
        resolved = _type_of_logical_operator(checker, node, argument_types)
    else:
        resolved = _type_of_resolved_call(
            checker, node, checker.references.get(id(node), node.function), argument_types
        )
    checker.order.append(node)
    checker.types[id(node)] = resolved
    return resolved


def _is_namespace_of_function(checker: TypeChecker, node: Call, target: Node) -> bool:
    # `sets` in sets.contains(a, b) is a namespace
    prefix = _qualified_name(target)
    if prefix is None:
        return False
    name, overloads = checker.overloads_of(f"{prefix}.{node.function}")
    if overloads:
        checker.references[id(node)] = name
    return bool(overloads)


def _type_of_resolved_call(
    checker: TypeChecker, node: Call, function: str, argument_types: Sequence[Type], *, member: bool = False
) -> Type:
    name, overloads = checker.overloads_of(function)
    if not overloads:
        checker.overloads[id(node)] = (overload_of_unknown_function(function, len(argument_types)),)
        return checker.report_undeclared_name(function, node)
    return checker.type_of_fitting_overload(node, name, overloads, argument_types, member=member)


def _type_of_logical_operator(checker: TypeChecker, node: Call, argument_types: Sequence[Type]) -> Type:
    wrong = False
    for argument, actual in zip(node.arguments, argument_types, strict=True):
        if not checker.inference.fits(actual, BOOL):
            checker.report_issue(
                f"expected type 'bool' but found '{type_text(checker.inference.resolved_type(actual))}'",
                argument,
            )
            wrong = True
    checker.overloads[id(node)] = checker.environment.overloads_of_function(node.function)
    return ERROR if wrong else BOOL


# ---- literals


_LITERALS: Mapping[type, Type] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


def _type_of_literal(checker: TypeChecker, node: Literal) -> Type:
    checker.types[id(node)] = static = _LITERALS[type(node.value)]
    checker.has_opaque = checker.has_opaque or static == BYTES
    return static


def _type_of_list(checker: TypeChecker, node: ListNode) -> Type:
    joined = None
    for index, element in enumerate(node.elements):
        static = checker.handlers[type(element)](checker, element)
        if index in node.optional:
            static = _type_inside_optional_entry(checker, element, static)
        joined = _join_types(checker, joined, static)
    checker.order.append(node)
    checker.types[id(node)] = result = list_of(checker.inference.new_type_variable() if joined is None else joined)
    return result


def _type_of_map(checker: TypeChecker, node: MapNode) -> Type:
    keys, values = None, None
    for entry in node.entries:
        keys = _join_types(checker, keys, checker.handlers[type(entry.key)](checker, entry.key))
        static = checker.handlers[type(entry.value)](checker, entry.value)
        if entry.optional:
            static = _type_inside_optional_entry(checker, entry.value, static)
        values = _join_types(checker, values, static)
    if keys is None or values is None:
        keys, values = checker.inference.new_type_variable(), checker.inference.new_type_variable()
    checker.order.append(node)
    checker.types[id(node)] = result = map_of(keys, values)
    return result


def _type_inside_optional_entry(checker: TypeChecker, node: Node, static: Type) -> Type:
    if is_optional(static):
        return static.parameters[0]
    if static.name not in UNKNOWN:
        checker.report_issue(
            f"expected type '{type_text(optional_of(static))}' but found '{type_text(static)}'",
            node,
        )
    return static


def _join_types(checker: TypeChecker, joined: Type | None, added: Type) -> Type:
    if joined is None:
        return added
    if added == NULL and checker.inference.fits(joined, added):
        return joined
    return most_general(joined, added) if checker.inference.fits(joined, added) else DYN


def _type_of_structure(checker: TypeChecker, node: StructNode) -> Type:
    reference = checker.type_of_name(node.name, node)
    if reference is None:
        checker.types[id(node)] = reference = checker.report_undeclared_name(node.name, node)
        return reference
    result = _type_of_constructed_value(checker, node, reference)
    for entry in node.entries:
        value_type = checker.handlers[type(entry.value)](checker, entry.value)
        field_type = ERROR
        if result.kind == "object":
            field_type = checker.type_of_structure_field(result.name, entry.field, entry.offset)
        if entry.optional:
            value_type = _type_inside_optional_entry(checker, entry.value, value_type)
        if not checker.inference.fits(field_type, value_type):
            names = type_text(field_type), type_text(value_type)
            text = f"expected type of field '{entry.field}' is '{names[0]}' but provided type is '{names[1]}'"
            checker.report_issue(text, entry.offset)
    checker.types[id(node)] = result
    return result


def _type_of_constructed_value(checker: TypeChecker, node: StructNode, static: Type) -> Type:
    if static.name == ERROR.name:
        return ERROR
    if static.name != "type":
        checker.report_issue(f"'{static.name}' is not a type", node)
        return ERROR
    result = static.parameters[0]
    if result.kind != "object":
        checker.report_issue(f"'{result.name}' is not a message type", node)
        return ERROR
    return result


def _qualified_name(node: Node) -> str | None:
    # None for a node that is not a name such as `a.b`
    parts = []
    while isinstance(node, Select) and not node.optional:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join([node.name, *reversed(parts)]) if parts else node.name


# ---- macros


_SORTABLE = frozenset({BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT})


def _type_of_macro(checker: TypeChecker, node: Macro) -> Type:
    complaints = checker.issues.count
    operand = checker.handlers[type(node.operand)](checker, node.operand)
    if node.name in ("optMap", "optFlatMap"):
        # cel-go's expansion has the operand twice, so its errors are reported twice
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
    # the types of the keys and values of a map; for a list, None and the type of the elements
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
    # sortBy loops over a variable that it creates
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
    item_type = checker.inference.new_type_variable()
    checker.inference.fits(item_type, bodies[-1])
    result = checker.inference.resolved_type(list_of(item_type))
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
    # the macro's type is that of the accumulator
    if len(bodies) > 1:
        _type_of_conditional(checker, node, bodies[0], result, result)
    return result


def _type_of_conditional(checker: TypeChecker, node: Macro, condition: Type, first: Type, second: Type) -> Type:
    _, overloads = checker.overloads_of("_?_:_")
    parameter_types, result = checker.inference.instantiate(overloads[0])
    if checker.inference.all_fit((condition, first, second), parameter_types):
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


HANDLERS: Mapping[type, Handler] = {
    Literal: _type_of_literal,
    Ident: _type_of_identifier,
    Select: _type_of_selection,
    Has: _type_of_has_macro,
    Call: _type_of_call,
    ListNode: _type_of_list,
    MapNode: _type_of_map,
    StructNode: _type_of_structure,
    Macro: _type_of_macro,
}
