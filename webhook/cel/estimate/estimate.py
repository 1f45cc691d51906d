"""Estimates the least and the most that an expression may cost before any input is known.

The model is cel-go v0.26.0's checker/cost.go with the API server's formulas (calls.py). It walks over the tree once,
with macros as cel-go expands them. The API server asks for such estimates if a CustomResourceDefinition has a
schema; for admission policies it has no sizes, as every object is dyn, and only limits what is spent when they run. So
without sizes most loops are UNBOUNDED. Two differences: results without a known size do not count as small where Go's
arithmetic wraps around; and `worst` gives the cost of an evaluation where cel-go's estimate is below it: 1 for each
field of a dyn value, the text of startsWith, the longest pattern of formats, the elements of walked lists. Elements of
elements are taken in one level deep. Comparisons of a size bound the operands behind them (guards.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from webhook.cel.estimate.calls import OverloadCall, estimate_call
from webhook.cel.estimate.guards import SizeGuards
from webhook.cel.estimate.macros import estimate_macro
from webhook.cel.estimate.results import with_result_size
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
from webhook.cel.library.declaration import Overload
from webhook.cel.syntax.tree import Call, Has, Ident, ListNode, Literal, Macro, MapNode, Node, Select, StructNode
from webhook.cel.types import BOOL, DOUBLE, DURATION, INT, TIMESTAMP, UINT, Type

if TYPE_CHECKING:
    from webhook.cel.check.checked import CheckedTree

_SCALARS = frozenset(each.name for each in (BOOL, DOUBLE, DURATION, INT, TIMESTAMP, UINT))
_SIZED = frozenset(("string", "bytes", "list", "map", "dyn", "any", "optional_type"))
_LIST, _MAP, _STRUCT = range_of_value(10), range_of_value(30), range_of_value(40)
"""The costs of creating a list, a map and a structure."""
_STANDARD_STRUCTURES = frozenset(
    ("kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL", "kubernetes.NamedFormat")
)


def estimate_cost(checked: CheckedTree, sizes: Sizes | None = None, *, worst: bool = False) -> Range:
    """Return the range of the cost of a checked expression; `bounded` says whether its upper end is a real bound.

    Args:
        checked: the expression.
        sizes: what is known of the inputs.
        worst: where cel-go's estimate is below what is counted when it runs, give what is counted.

    An expression that is nested too deeply to be walked over gets no bounds.
    """
    try:
        return CostEstimator(checked, sizes, worst=worst).estimate_node(checked.node).cost
    except RecursionError:
        return UNKNOWN


class CostEstimator:
    """Estimates one expression. `scope` holds the variables of the macros around the current node."""

    def __init__(self, checked: CheckedTree, sizes: Sizes | None, *, worst: bool) -> None:
        self.checked = checked
        self.sizes = sizes
        self.worst = worst
        self.scope: dict[str, NodeEstimate] = {}
        self.guards = SizeGuards()

    def estimate_node(self, node: Node) -> NodeEstimate:
        """Return the estimated cost of a node and what is known of its value."""
        estimated: NodeEstimate = _HANDLERS[type(node)](self, node)
        most = self.guards.bound_of(node)
        if most is None or estimated.size_range.most <= most:
            return estimated
        return replace(estimated, size=Range(min(estimated.size_range.least, most), most))

    def estimate_operands(self, operands: Sequence[Node], *, is_true: bool) -> list[NodeEstimate]:
        """Return the estimates of operands, each of which is evaluated if those before it are true, or false."""
        if not self.worst:
            return [self.estimate_node(each) for each in operands]
        before, estimated = self.guards, []
        for each in operands:
            estimated.append(self.estimate_node(each))
            self.guards = self.guards.with_operand_decided(each, is_true=is_true)
        self.guards = before
        return estimated

    def with_known_size(self, part: NodeEstimate) -> NodeEstimate:
        """Return the part with its size, if the sizes of inputs or its type tell it."""
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
        """Return the estimate of a call over all overloads that may apply."""
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
        """Return the estimate of condition ? first : second, which costs nothing itself."""
        cost = condition.cost + (first.cost | second.cost)
        return NodeEstimate(
            static, cost, first.size_range | second.size_range, combined_entry_sizes(first.entries, second.entries)
        )

    def estimate_with_variables(self, node: Node, variables: Mapping[str, NodeEstimate]) -> NodeEstimate:
        """Return the estimate of a node that sees more variables."""
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
    counts = estimator.worst or operand.type.name == "map" or operand.type.kind == "object"
    cost = operand.cost + ONE if counts else operand.cost
    cost += _worst_case_path_cost(estimator, node.operand)
    return estimator.with_known_size(NodeEstimate(static, cost, path=(*operand.path, node.field)))


def _worst_case_path_cost(estimator: CostEstimator, operand: Node) -> Range:
    """Return 1 in the worst case for a path that does not start with a variable, else nothing."""
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
