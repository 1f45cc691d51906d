"""Estimates the lowest and the highest cost of an expression before any input is known.

The model is cel-go v0.26.0's checker/cost.go with the API server's formulas (calls.py), and macros as cel-go expands
them. The API server estimates rules of a CustomResourceDefinition with a schema. For admission policies, the API server
limits only the cost at run time. In admission policies, every object is dyn, and without sizes most loops are
UNBOUNDED.

There are two differences from cel-go. Where Go's arithmetic overflows, cel-go counts a result of unknown size as small;
this module does not. `worst` also counts four costs that cel-go's estimate leaves out: 1 for each field of a dyn value,
the text of startsWith, the longest pattern of formats, and the elements of walked lists. A comparison with a size
limits the size in later operands (guards.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from webhook.cel.check.checked import CheckedTree
from webhook.cel.estimate.calls import OverloadCall, estimate_call, with_result_size
from webhook.cel.estimate.guards import SizeGuards
from webhook.cel.estimate.sizes import (
    NOTHING,
    ONE,
    UNKNOWN,
    EntrySizes,
    NodeEstimate,
    Range,
    Sizes,
    combined_entry_sizes,
    range_of_value,
)
from webhook.cel.library import extended_lists
from webhook.cel.library.declaration import Overload
from webhook.cel.syntax.tree import Call, Has, Ident, ListNode, Literal, Macro, MapNode, Node, Select, StructNode
from webhook.cel.types import BOOL, DOUBLE, DURATION, INT, NULL, TIMESTAMP, UINT, Type

_SCALARS = frozenset(each.name for each in (BOOL, DOUBLE, DURATION, INT, TIMESTAMP, UINT))
_SIZED = frozenset(("string", "bytes", "list", "map", "dyn", "any", "optional_type"))
_LIST, _MAP, _STRUCT = range_of_value(10), range_of_value(30), range_of_value(40)
"""The costs of creating a list, a map and a structure."""


def estimate_cost(checked: CheckedTree, sizes: Sizes | None = None, *, worst: bool = False) -> Range:
    """Return the range of the cost. `sizes.is_bounded` says whether the upper end is a real bound.

    Args:
        checked: the expression.
        sizes: the known sizes of the inputs.
        worst: also count the costs at run time that cel-go's estimate leaves out.
    """
    try:
        return CostEstimator(checked, sizes, worst=worst).estimate_node(checked.node).cost
    except RecursionError:
        return UNKNOWN


class CostEstimator:
    """Estimates one expression; `scope` has the variables of the surrounding macros."""

    def __init__(self, checked: CheckedTree, sizes: Sizes | None, *, worst: bool) -> None:
        self.checked = checked
        self.sizes = sizes
        self.worst = worst
        self.scope: dict[str, NodeEstimate] = {}
        self.guards = SizeGuards()

    def estimate_node(self, node: Node) -> NodeEstimate:
        """Return the cost of a node, with the known properties of its value."""
        estimated: NodeEstimate = _HANDLERS[type(node)](self, node)
        most = self.guards.bound_of(node)
        if most is None or estimated.size_range.most <= most:
            return estimated
        return replace(estimated, size=Range(min(estimated.size_range.least, most), most))

    def estimate_operands(self, operands: Sequence[Node], *, is_true: bool) -> list[NodeEstimate]:
        """Return the estimates of operands. Each operand is evaluated only if all earlier operands are `is_true`."""
        if not self.worst:
            return [self.estimate_node(each) for each in operands]
        before, estimated = self.guards, []
        for each in operands:
            estimated.append(self.estimate_node(each))
            self.guards = self.guards.with_operand_decided(each, is_true=is_true)
        self.guards = before
        return estimated

    def with_known_size(self, part: NodeEstimate) -> NodeEstimate:
        """Return the part with its size, if the sizes of the inputs or the type of the part determine this size."""
        static = part.type
        if self.worst and static.name == "optional_type":
            static = static.parameters[0]
        size = self.sizes(part.path, static) if self.sizes else None
        if size is None and (is_scalar(part.type) or (self.worst and not _has_size(static))):
            size = ONE
        return replace(part, size=size) if size is not None else part

    def estimate_overloads(
        self,
        function: str,
        overloads: Sequence[Overload],
        static: Type,
        arguments: Sequence[NodeEstimate],
        target: NodeEstimate | None = None,
    ) -> NodeEstimate:
        """Return the estimate over all overloads that may apply."""
        cost: Range | None = None
        size: Range | None = None
        path: tuple[str, ...] = ()
        entries: EntrySizes | None = None
        operands = sum((each.cost for each in arguments), NOTHING)
        for overload in overloads:
            call = OverloadCall(function, overload, target, arguments, self.sizes, self.worst)
            call_cost, result_size = estimate_call(call)
            cost = call_cost if cost is None else cost | call_cost
            size = result_size if size is None else size if result_size is None else size | result_size
            if overload.id in _INDEXES:
                path = (*arguments[0].path, _INDEXES[overload.id])
                size = arguments[0].entries.value if arguments[0].entries else None
            elif overload.id.startswith("add_"):
                entries = combined_entry_sizes(arguments[0].entries, arguments[1].entries)
            if size is None:
                size = self.with_known_size(NodeEstimate(static, NOTHING, path=path)).size
        own = (cost or NOTHING) + operands
        whole = NodeEstimate(static, own + target.cost if target else own, size, entries, path)
        if self.worst and overloads:
            return with_result_size(OverloadCall(function, overloads[0], target, arguments, self.sizes), whole)
        return whole

    def estimate_conditional(
        self, static: Type, condition: NodeEstimate, first: NodeEstimate, second: NodeEstimate
    ) -> NodeEstimate:
        cost = condition.cost + (first.cost | second.cost)
        return NodeEstimate(
            static, cost, first.size_range | second.size_range, combined_entry_sizes(first.entries, second.entries)
        )

    def estimate_with_variables(self, node: Node, variables: Mapping[str, NodeEstimate]) -> NodeEstimate:
        """Return the estimate of a node in which a macro declares these variables."""
        before, self.scope = self.scope, {**self.scope, **variables}
        guards, self.guards = self.guards, self.guards.without_names(variables)
        estimated = self.estimate_node(node)
        self.scope, self.guards = before, guards
        return estimated

    def estimate_of_macro_variable(self, name: str) -> NodeEstimate | None:
        """Return the estimate of a macro's variable, or None."""
        return self.scope.get(name)


_PATHS = ("_[_]", "_[?_]")
_INDEXES = {"index_list": "@items", "index_map": "@values"}


def is_scalar(static: Type) -> bool:
    """Return whether every value of a type has the size 1."""
    if static.name == "optional_type":
        return is_scalar(static.parameters[0])
    return static.name in _SCALARS


def _has_size(static: Type) -> bool:
    return static.name in _SIZED or static.kind in ("object", "param")


# ---- nodes


def _estimate_literal(estimator: CostEstimator, node: Literal) -> NodeEstimate:
    size = len(node.value) if isinstance(node.value, str | bytes) else 1
    constant = node.value if type(node.value) is int else None
    return NodeEstimate(estimator.checked.type_of(node), NOTHING, range_of_value(size), constant=constant)


def _estimate_identifier(estimator: CostEstimator, node: Ident) -> NodeEstimate:
    reference = estimator.checked.name_referred_to(node)
    static = estimator.checked.type_of(node)
    macro_variable = estimator.estimate_of_macro_variable(node.name) if reference is None else None
    if macro_variable is None:
        return estimator.with_known_size(NodeEstimate(static, ONE, path=(reference or node.name,)))
    return estimator.with_known_size(replace(macro_variable, type=static, cost=ONE))


def _estimate_selection(estimator: CostEstimator, node: Select) -> NodeEstimate:
    static = estimator.checked.type_of(node)
    reference = estimator.checked.name_referred_to(node)
    if reference is not None:
        return estimator.with_known_size(NodeEstimate(static, ONE, path=(reference,)))
    operand = estimator.estimate_node(node.operand)
    if node.optional:
        path = (*operand.path, node.field) if estimator.worst else ()
        return estimator.with_known_size(NodeEstimate(static, operand.cost + ONE, path=path))
    has_cost = estimator.worst or operand.type.name == "map" or operand.type.kind == "object"
    cost = operand.cost + ONE if has_cost else operand.cost
    cost += _worst_case_path_cost(estimator, node.operand)
    return estimator.with_known_size(NodeEstimate(static, cost, path=(*operand.path, node.field)))


def _worst_case_path_cost(estimator: CostEstimator, operand: Node) -> Range:
    # 1 in the worst case for a path that does not start with a variable
    is_path = isinstance(operand, Ident | Select) or (isinstance(operand, Call) and operand.function in _PATHS)
    return ONE if estimator.worst and not is_path else NOTHING


def _estimate_has(estimator: CostEstimator, node: Has) -> NodeEstimate:
    return NodeEstimate(
        BOOL, estimator.estimate_node(node.operand).cost + _worst_case_path_cost(estimator, node.operand), ONE
    )


def _estimate_call_node(estimator: CostEstimator, node: Call) -> NodeEstimate:
    static = estimator.checked.type_of(node)
    reference = estimator.checked.name_referred_to(node)
    if node.function in ("_&&_", "_||_"):
        operands = estimator.estimate_operands(node.arguments, is_true=node.function == "_&&_")
        most = sum((each.cost for each in operands), NOTHING).most
        return NodeEstimate(BOOL, Range(operands[0].cost.least, most), ONE)
    arguments = [estimator.estimate_node(each) for each in node.arguments]
    target = estimator.estimate_node(node.target) if node.target is not None and reference is None else None
    if node.function == "_?_:_":
        return estimator.estimate_conditional(static, *arguments)
    if node.function == "dyn" and target is None:
        return replace(arguments[0], type=static, cost=arguments[0].cost + ONE, path=(), constant=None)
    overloads = estimator.checked.overloads.get(id(node), ())
    whole = estimator.estimate_overloads(reference or node.function, overloads, static, arguments, target)
    if node.function in _PATHS and estimator.worst:
        path = whole.path or (*arguments[0].path, "@items")
        whole = replace(whole, cost=whole.cost + _worst_case_path_cost(estimator, node.arguments[0]), path=path)
        return whole if whole.size is not None else estimator.with_known_size(whole)
    return whole


def _estimate_list(estimator: CostEstimator, node: ListNode) -> NodeEstimate:
    parts = [estimator.estimate_node(each) for each in node.elements]
    entries = EntrySizes("list", ONE, _joint_size_range(parts))
    cost = sum((each.cost for each in parts), _LIST)
    return NodeEstimate(estimator.checked.type_of(node), cost, range_of_value(len(parts)), entries)


def _estimate_map(estimator: CostEstimator, node: MapNode) -> NodeEstimate:
    keys = [estimator.estimate_node(each.key) for each in node.entries]
    values = [estimator.estimate_node(each.value) for each in node.entries]
    entries = EntrySizes("map", _joint_size_range(keys), _joint_size_range(values))
    cost = sum((each.cost for each in (*keys, *values)), _MAP)
    return NodeEstimate(estimator.checked.type_of(node), cost, range_of_value(len(keys)), entries)


def _joint_size_range(parts: Sequence[NodeEstimate]) -> Range:
    if not parts:
        return NOTHING
    return Range(min(each.size_range.least for each in parts), max(each.size_range.most for each in parts))


def _estimate_structure(estimator: CostEstimator, node: StructNode) -> NodeEstimate:
    cost = sum((estimator.estimate_node(each.value).cost for each in node.entries), _STRUCT)
    return estimator.with_known_size(NodeEstimate(estimator.checked.type_of(node), cost))


# ---- macros: cel-go expands them to loops and bindings, which are estimated (check/node_types.py names the sources)


_BINDING = _LIST
"""The cost of a binding. cel-go expands a binding to a loop over an empty list."""


class _LoopCosts(Struct, frozen=True):
    """The costs of a loop's start, condition and result. `start` is the cost of an empty list or map to collect in."""

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
    """Return the estimate of a macro's expansion in cel-go."""
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
    # a variable has the size of the keys or values of the list or map
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
    # accumulator && test, or accumulator || test
    test = estimator.estimate_with_variables(node.arguments[0], variables)
    return NodeEstimate(BOOL, Range(1, (ONE + test.cost).most), ONE)


def _estimate_exists_one_step(
    estimator: CostEstimator, node: Macro, variables: Mapping[str, NodeEstimate]
) -> NodeEstimate:
    # test ? accumulator + 1 : accumulator
    test = estimator.estimate_with_variables(node.arguments[0], variables)
    return NodeEstimate(INT, test.cost + Range(1, 2), ONE)


def _estimate_map_or_filter_step(
    estimator: CostEstimator, node: Macro, variables: Mapping[str, NodeEstimate]
) -> NodeEstimate:
    # accumulator + [value], or test ? accumulator + [value] : accumulator
    if node.name == "filter":
        value = estimator.estimate_with_variables(Ident(node.offset, node.variables[0]), variables)
    else:
        value = estimator.estimate_with_variables(node.arguments[-1], variables)
    list_estimate = NodeEstimate(Type("list"), value.cost + _LIST, ONE, EntrySizes("list", ONE, value.size_range))
    step = NodeEstimate(
        list_estimate.type,
        list_estimate.cost + range_of_value(2),
        ONE,
        combined_entry_sizes(_EMPTY, list_estimate.entries),
    )
    if node.name != "filter" and len(node.arguments) == 1:
        return step
    test = estimator.estimate_with_variables(node.arguments[0], variables)
    return estimator.estimate_conditional(step.type, test, step, _LIST_SO_FAR)


def _estimate_transform_map_step(
    estimator: CostEstimator, node: Macro, variables: Mapping[str, NodeEstimate]
) -> NodeEstimate:
    # transformMap also evaluates the key
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
    return replace(estimated, cost=value.cost + _BINDING + estimated.cost, path=(), constant=None)


def _estimate_opt_map(estimator: CostEstimator, node: Macro) -> NodeEstimate:
    # target.hasValue() ? optional.of(body with target.value()) : optional.none()
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
    # a binding of the operand, map() for the keys, and the sort
    static = estimator.checked.type_of(node)
    of_known_size = estimator.with_known_size(replace(operand, cost=ONE, constant=None))
    keys = _estimate_loop(estimator, node, of_known_size, "map", Type("list"))
    key = estimator.checked.type_of(node.arguments[-1])
    all_overloads = [each for each in extended_lists.FUNCTIONS if each.name == "@sortByAssociatedKeys"]
    fitting = (DURATION, TIMESTAMP) if key == NULL else (key,)
    overloads = [each for each in all_overloads if each.parameters[1].parameters[0] in fitting] or all_overloads
    sorted_ = estimator.estimate_overloads("@sortByAssociatedKeys", overloads, static, [keys], of_known_size)
    return replace(sorted_, cost=operand.cost + _BINDING + sorted_.cost)


_Handler: TypeAlias = Callable[[CostEstimator, Any], NodeEstimate]
_HANDLERS: Mapping[type, _Handler] = {
    Literal: _estimate_literal,
    Ident: _estimate_identifier,
    Select: _estimate_selection,
    Has: _estimate_has,
    Call: _estimate_call_node,
    ListNode: _estimate_list,
    MapNode: _estimate_map,
    StructNode: _estimate_structure,
    Macro: estimate_macro,
}
