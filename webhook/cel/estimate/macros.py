"""Estimates the cost of macros by the loops and bindings that cel-go expands them to (see comprehensions.py for its
sources).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from webhook.cel.estimate.sizes import NOTHING, ONE, Entries, Part, Range, either_entries, exactly
from webhook.cel.library import extended_lists
from webhook.cel.syntax.tree import Ident, Macro, Node
from webhook.cel.types import BOOL, DURATION, INT, NULL, TIMESTAMP, Type

if TYPE_CHECKING:
    from webhook.cel.estimate.estimate import Estimator

_LIST, _MAP = exactly(10), exactly(30)
_NO_BINDING = _LIST
"""The cost of a binding, which is a loop over an empty list."""


@dataclass(frozen=True, slots=True)
class _Fold:
    """The costs of a loop beyond its range and its steps: for its start, its condition and its result.

    The accumulator of a list or map has no entries at first.
    """

    start: Range
    condition: Range
    result: Range


_LISTS = _Fold(_LIST, NOTHING, ONE)
_FOLDS: Mapping[str, _Fold] = {
    "all": _Fold(NOTHING, exactly(2), ONE),
    "exists": _Fold(NOTHING, exactly(3), ONE),
    "exists_one": _Fold(NOTHING, NOTHING, exactly(2)),
    "existsOne": _Fold(NOTHING, NOTHING, exactly(2)),
    "map": _LISTS,
    "filter": _LISTS,
    "transformList": _LISTS,
    "transformMap": _Fold(_MAP, NOTHING, ONE),
    "transformMapEntry": _Fold(_MAP, NOTHING, ONE),
}
_EMPTY = Entries("list", ONE, NOTHING)
_LIST_SO_FAR = Part(Type("list"), ONE, NOTHING, _EMPTY)
_MAP_SO_FAR = Part(Type("map"), ONE, NOTHING, Entries("map", NOTHING, NOTHING))


def macro(estimator: Estimator, node: Macro) -> Part:
    """Return the estimate of a macro by its expansion in cel-go."""
    if node.name in ("optMap", "optFlatMap"):
        return _option(estimator, node)
    if node.name == "bind":
        value = estimator.part(node.operand)
        return _bound(estimator, node, value, node.arguments[0])
    operand = estimator.part(node.operand)
    if node.name == "sortBy":
        return _sort_by(estimator, node, operand)
    return _fold(estimator, node, operand, node.name, estimator.checked.type_of(node))


def _fold(estimator: Estimator, node: Macro, operand: Part, name: str, static: Type) -> Part:
    fold = _FOLDS[name]
    variables = _variables(node, operand)
    step = _STEPS[name](estimator, node, variables)
    count = operand.extent
    cost = operand.cost + fold.start + fold.result + count * (step.cost + fold.condition)
    if fold.start is NOTHING:
        return Part(static, cost, ONE)
    return Part(static, cost, count, step.entries)


def _variables(node: Macro, operand: Part) -> Mapping[str, Part]:
    """Return the estimates of a loop's variables from the entries of its range."""
    entries = operand.entries
    container = entries.container if entries else operand.type.name
    key_path = (*operand.path, "@indices" if container == "list" else "@keys")
    value_path = (*operand.path, "@items" if container == "list" else "@values")
    key = Part(operand.type, ONE, entries.key if entries else None, path=(*operand.path, "@keys"))
    value = Part(operand.type, ONE, entries.value if entries else None, path=value_path)
    if len(node.variables) == 2:
        return dict(zip(node.variables, (replace(key, path=key_path), value), strict=True))
    return {node.variables[0]: value if container == "list" else key}


def _all(estimator: Estimator, node: Macro, variables: Mapping[str, Part]) -> Part:
    """Estimate the step of all and exists: accumulator && test, or accumulator || test."""
    test = estimator.body(node.arguments[0], variables)
    return Part(BOOL, Range(1, (ONE + test.cost).most), ONE)


def _count(estimator: Estimator, node: Macro, variables: Mapping[str, Part]) -> Part:
    """Estimate the step of exists_one: test ? accumulator + 1 : accumulator."""
    test = estimator.body(node.arguments[0], variables)
    return Part(INT, test.cost + Range(1, 2), ONE)


def _collect(estimator: Estimator, node: Macro, variables: Mapping[str, Part]) -> Part:
    """Estimate the step of map and filter: accumulator + [value], or with a filter test ? accumulator + [value] :
    accumulator.
    """
    if node.name == "filter":
        value = estimator.body(Ident(node.offset, node.variables[0]), variables)
    else:
        value = estimator.body(node.arguments[-1], variables)
    listed = Part(Type("list"), value.cost + _LIST, ONE, Entries("list", ONE, value.extent))
    step = Part(listed.type, listed.cost + exactly(2), ONE, either_entries(_EMPTY, listed.entries))
    if node.name != "filter" and len(node.arguments) == 1:
        return step
    test = estimator.body(node.arguments[0], variables)
    return estimator.conditional(step.type, test, step, _LIST_SO_FAR)


def _insert(estimator: Estimator, node: Macro, variables: Mapping[str, Part]) -> Part:
    """Estimate the step of transformMap and transformMapEntry; the first one evaluates the key once more."""
    value = estimator.body(node.arguments[-1], variables)
    step = Part(Type("map"), value.cost + exactly(3 if node.name == "transformMap" else 2))
    if len(node.arguments) == 1:
        return step
    return estimator.conditional(step.type, estimator.body(node.arguments[0], variables), step, _MAP_SO_FAR)


_STEPS: Mapping[str, Callable[[Estimator, Macro, Mapping[str, Part]], Part]] = {
    "all": _all,
    "exists": _all,
    "exists_one": _count,
    "existsOne": _count,
    "map": _collect,
    "filter": _collect,
    "transformList": _collect,
    "transformMap": _insert,
    "transformMapEntry": _insert,
}


def _bound(estimator: Estimator, node: Macro, value: Part, body: Node) -> Part:
    estimated = estimator.body(body, {node.variables[0]: replace(value, cost=ONE, constant=None)})
    return replace(estimated, cost=value.cost + _NO_BINDING + estimated.cost, path=(), constant=None)


def _option(estimator: Estimator, node: Macro) -> Part:
    """Estimate target.hasValue() ? optional.of(body with target.value()) : optional.none()."""
    static = estimator.checked.type_of(node)
    target = estimator.part(node.operand)
    inside = target.type.parameters[0] if target.type.parameters else target.type
    value = Part(inside, target.cost + ONE)
    if estimator.worst:
        value = replace(value, size=target.size, entries=target.entries, path=target.path)
    value = estimator.with_size(value)
    estimated = _bound(estimator, node, value, node.arguments[0])
    if node.name == "optMap":
        present = Part(static, estimated.cost + ONE)
        estimated = (
            replace(estimated, type=static, cost=present.cost) if estimator.worst else estimator.with_size(present)
        )
    none = Part(static, ONE, Range(0, 1)) if estimator.worst else estimator.with_size(Part(static, ONE))
    return estimator.conditional(static, Part(BOOL, target.cost + ONE), estimated, none)


def _sort_by(estimator: Estimator, node: Macro, operand: Part) -> Part:
    """Estimate sortBy: a binding of the operand, map() for the keys, and the sort."""
    static = estimator.checked.type_of(node)
    again = estimator.with_size(replace(operand, cost=ONE, constant=None))
    keys = _fold(estimator, node, again, "map", Type("list"))
    key = estimator.checked.type_of(node.arguments[-1])
    every = [each for each in extended_lists.FUNCTIONS if each.name == "@sortByAssociatedKeys"]
    fitting = (DURATION, TIMESTAMP) if key == NULL else (key,)
    overloads = [each for each in every if each.parameters[1].parameters[0] in fitting] or every
    sorted_ = estimator.call("@sortByAssociatedKeys", overloads, static, [keys], again)
    return replace(sorted_, cost=operand.cost + _NO_BINDING + sorted_.cost)
