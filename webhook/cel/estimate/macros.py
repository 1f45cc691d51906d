"""Estimates the cost of macros by the loops and bindings that cel-go expands them to (see comprehensions.py for its
sources).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from webhook.cel.estimate.sizes import (
    NOTHING,
    ONE,
    EntrySizes,
    NodeEstimate,
    Range,
    combined_entry_sizes,
    range_of_value,
)
from webhook.cel.library import extended_lists
from webhook.cel.syntax.tree import Ident, Macro, Node
from webhook.cel.types import BOOL, DURATION, INT, NULL, TIMESTAMP, Type

if TYPE_CHECKING:
    from webhook.cel.estimate.estimate import CostEstimator

_LIST, _MAP = range_of_value(10), range_of_value(30)
_NO_BINDING = _LIST
"""The cost of a binding, which is a loop over an empty list."""


class _LoopCosts(Struct, frozen=True):
    """The costs of a loop beyond its range and its steps: for its start, its condition and its result.

    The accumulator of a list or map has no entries at first.
    """

    start: Range
    condition: Range
    result: Range


_LISTS = _LoopCosts(_LIST, NOTHING, ONE)
_FOLDS: Mapping[str, _LoopCosts] = {
    "all": _LoopCosts(NOTHING, range_of_value(2), ONE),
    "exists": _LoopCosts(NOTHING, range_of_value(3), ONE),
    "exists_one": _LoopCosts(NOTHING, NOTHING, range_of_value(2)),
    "existsOne": _LoopCosts(NOTHING, NOTHING, range_of_value(2)),
    "map": _LISTS,
    "filter": _LISTS,
    "transformList": _LISTS,
    "transformMap": _LoopCosts(_MAP, NOTHING, ONE),
    "transformMapEntry": _LoopCosts(_MAP, NOTHING, ONE),
}
_EMPTY = EntrySizes("list", ONE, NOTHING)
_LIST_SO_FAR = NodeEstimate(Type("list"), ONE, NOTHING, _EMPTY)
_MAP_SO_FAR = NodeEstimate(Type("map"), ONE, NOTHING, EntrySizes("map", NOTHING, NOTHING))


def estimate_macro(estimator: CostEstimator, node: Macro) -> NodeEstimate:
    """Return the estimate of a macro by its expansion in cel-go."""
    if node.name in ("optMap", "optFlatMap"):
        return _estimate_opt_map(estimator, node)
    if node.name == "bind":
        value = estimator.estimate_node(node.operand)
        return _estimate_body_with_bound_value(estimator, node, value, node.arguments[0])
    operand = estimator.estimate_node(node.operand)
    if node.name == "sortBy":
        return _estimate_sort_by(estimator, node, operand)
    return _estimate_loop(estimator, node, operand, node.name, estimator.checked.type_of(node))


def _estimate_loop(
    estimator: CostEstimator, node: Macro, operand: NodeEstimate, name: str, static: Type
) -> NodeEstimate:
    fold = _FOLDS[name]
    variables = _loop_variable_estimates(node, operand)
    step = _STEPS[name](estimator, node, variables)
    count = operand.size_range
    cost = operand.cost + fold.start + fold.result + count * (step.cost + fold.condition)
    if fold.start is NOTHING:
        return NodeEstimate(static, cost, ONE)
    return NodeEstimate(static, cost, count, step.entries)


def _loop_variable_estimates(node: Macro, operand: NodeEstimate) -> Mapping[str, NodeEstimate]:
    """Return the estimates of a loop's variables from the entries of its range."""
    entries = operand.entries
    container = entries.container if entries else operand.type.name
    key_path = (*operand.path, "@indices" if container == "list" else "@keys")
    value_path = (*operand.path, "@items" if container == "list" else "@values")
    key = NodeEstimate(operand.type, ONE, entries.key if entries else None, path=(*operand.path, "@keys"))
    value = NodeEstimate(operand.type, ONE, entries.value if entries else None, path=value_path)
    if len(node.variables) == 2:
        return dict(zip(node.variables, (replace(key, path=key_path), value), strict=True))
    return {node.variables[0]: value if container == "list" else key}


def _estimate_quantifier_step(
    estimator: CostEstimator, node: Macro, variables: Mapping[str, NodeEstimate]
) -> NodeEstimate:
    """Estimate the step of all and exists: accumulator && test, or accumulator || test."""
    test = estimator.estimate_with_variables(node.arguments[0], variables)
    return NodeEstimate(BOOL, Range(1, (ONE + test.cost).most), ONE)


def _estimate_exists_one_step(
    estimator: CostEstimator, node: Macro, variables: Mapping[str, NodeEstimate]
) -> NodeEstimate:
    """Estimate the step of exists_one: test ? accumulator + 1 : accumulator."""
    test = estimator.estimate_with_variables(node.arguments[0], variables)
    return NodeEstimate(INT, test.cost + Range(1, 2), ONE)


def _estimate_map_or_filter_step(
    estimator: CostEstimator, node: Macro, variables: Mapping[str, NodeEstimate]
) -> NodeEstimate:
    """Estimate the step of map and filter: accumulator + [value], or with a filter test ? accumulator + [value] :
    accumulator.
    """
    if node.name == "filter":
        value = estimator.estimate_with_variables(Ident(node.offset, node.variables[0]), variables)
    else:
        value = estimator.estimate_with_variables(node.arguments[-1], variables)
    listed = NodeEstimate(Type("list"), value.cost + _LIST, ONE, EntrySizes("list", ONE, value.size_range))
    step = NodeEstimate(listed.type, listed.cost + range_of_value(2), ONE, combined_entry_sizes(_EMPTY, listed.entries))
    if node.name != "filter" and len(node.arguments) == 1:
        return step
    test = estimator.estimate_with_variables(node.arguments[0], variables)
    return estimator.estimate_conditional(step.type, test, step, _LIST_SO_FAR)


def _estimate_transform_map_step(
    estimator: CostEstimator, node: Macro, variables: Mapping[str, NodeEstimate]
) -> NodeEstimate:
    """Estimate the step of transformMap and transformMapEntry; the first one evaluates the key once more."""
    value = estimator.estimate_with_variables(node.arguments[-1], variables)
    step = NodeEstimate(Type("map"), value.cost + range_of_value(3 if node.name == "transformMap" else 2))
    if len(node.arguments) == 1:
        return step
    return estimator.estimate_conditional(
        step.type, estimator.estimate_with_variables(node.arguments[0], variables), step, _MAP_SO_FAR
    )


_STEPS: Mapping[str, Callable[[CostEstimator, Macro, Mapping[str, NodeEstimate]], NodeEstimate]] = {
    "all": _estimate_quantifier_step,
    "exists": _estimate_quantifier_step,
    "exists_one": _estimate_exists_one_step,
    "existsOne": _estimate_exists_one_step,
    "map": _estimate_map_or_filter_step,
    "filter": _estimate_map_or_filter_step,
    "transformList": _estimate_map_or_filter_step,
    "transformMap": _estimate_transform_map_step,
    "transformMapEntry": _estimate_transform_map_step,
}


def _estimate_body_with_bound_value(
    estimator: CostEstimator, node: Macro, value: NodeEstimate, body: Node
) -> NodeEstimate:
    estimated = estimator.estimate_with_variables(body, {node.variables[0]: replace(value, cost=ONE, constant=None)})
    return replace(estimated, cost=value.cost + _NO_BINDING + estimated.cost, path=(), constant=None)


def _estimate_opt_map(estimator: CostEstimator, node: Macro) -> NodeEstimate:
    """Estimate target.hasValue() ? optional.of(body with target.value()) : optional.none()."""
    static = estimator.checked.type_of(node)
    target = estimator.estimate_node(node.operand)
    inside = target.type.parameters[0] if target.type.parameters else target.type
    value = NodeEstimate(inside, target.cost + ONE)
    if estimator.worst:
        value = replace(value, size=target.size, entries=target.entries, path=target.path)
    value = estimator.with_known_size(value)
    estimated = _estimate_body_with_bound_value(estimator, node, value, node.arguments[0])
    if node.name == "optMap":
        present = NodeEstimate(static, estimated.cost + ONE)
        estimated = (
            replace(estimated, type=static, cost=present.cost)
            if estimator.worst
            else estimator.with_known_size(present)
        )
    none = (
        NodeEstimate(static, ONE, Range(0, 1))
        if estimator.worst
        else estimator.with_known_size(NodeEstimate(static, ONE))
    )
    return estimator.estimate_conditional(static, NodeEstimate(BOOL, target.cost + ONE), estimated, none)


def _estimate_sort_by(estimator: CostEstimator, node: Macro, operand: NodeEstimate) -> NodeEstimate:
    """Estimate sortBy: a binding of the operand, map() for the keys, and the sort."""
    static = estimator.checked.type_of(node)
    again = estimator.with_known_size(replace(operand, cost=ONE, constant=None))
    keys = _estimate_loop(estimator, node, again, "map", Type("list"))
    key = estimator.checked.type_of(node.arguments[-1])
    every = [each for each in extended_lists.FUNCTIONS if each.name == "@sortByAssociatedKeys"]
    fitting = (DURATION, TIMESTAMP) if key == NULL else (key,)
    overloads = [each for each in every if each.parameters[1].parameters[0] in fitting] or every
    sorted_ = estimator.estimate_overloads("@sortByAssociatedKeys", overloads, static, [keys], again)
    return replace(sorted_, cost=operand.cost + _NO_BINDING + sorted_.cost)
