"""Compiles calls: a direct call where types are known, otherwise a table that chooses by the classes of the values.

What a call costs is known by its signature, if the checker left only one, or else by the function's name (cel-go
v0.26.0 interpreter/runtimecost.go costCall; k8s.io/apiserver v0.36.1 pkg/cel/library/cost.go). Costs are counted as 1,
which is what a failed call mostly costs, and the rest when sizes are known. Frequent operators have code of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.cel.compile import code
from webhook.cel.compile import optional as optionals
from webhook.cel.compile.code import Place, Term
from webhook.cel.compile.failure import failed_cost
from webhook.cel.compile.tracked import tracked_operands
from webhook.cel.library import conversions, costs, runtime, standard
from webhook.cel.library.declaration import Cost, Overload
from webhook.cel.library.dispatch import Dispatch, Unary, fitting, is_metered, looks_inside
from webhook.cel.library.tracking import tracked_argument
from webhook.cel.syntax.tree import Call, Node
from webhook.cel.types import BOOL, INT, Type
from webhook.cel.values import INT_MAX, INT_MIN
from webhook.errors import EvaluationError

if TYPE_CHECKING:
    from webhook.cel.compile.compiler import Compiler

COMPARISONS: Mapping[str, tuple[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    "_<_": (ast.Lt, standard.less),
    "_<=_": (ast.LtE, standard.less_equals),
    "_>_": (ast.Gt, standard.greater),
    "_>=_": (ast.GtE, standard.greater_equals),
}
ARITHMETIC: Mapping[str, type[ast.operator]] = {"_+_": ast.Add, "_-_": ast.Sub, "_*_": ast.Mult}
_STOPPING = frozenset(("find", "findAll"))
"""Functions that are not called, if the pattern is constant, when evaluating their text fails."""
PURE = frozenset(("quantity", "ip", "cidr", "url", "semver"))
"""Functions of constants that are evaluated at compile time; one that fails is evaluated at run time, where `||` may
absorb the error.
"""
_CLASSES: Mapping[str, type] = {"string": str, "int": int, "double": float, "bool": bool, "bytes": bytes}
ORDERED = frozenset(("int", "uint", "string", "bytes", "bool"))
"""Types whose values Python orders as CEL does."""


def function(compiler: Compiler, node: Call) -> Term:
    """Return the code of a call."""
    if node.function in COMPARISONS:
        return _comparison(compiler, node)
    if node.function in ARITHMETIC:
        return _arithmetic(compiler, node)
    arguments = _arguments(compiler, node)
    if node.function == "size":
        return _size(compiler, arguments[0])
    if node.function == "matches" and type(compiler.constants.get(id(arguments[1]))) is str:
        return _matches(compiler, node, arguments)
    if node.function == "hasValue":
        compiler.unread.add(id(arguments[0]))
        term = compiler.value(arguments[0])
        return optionals.has_value(compiler, term) or apply(compiler, node, [term])
    return optionals.construction(compiler, node, arguments) or _call(compiler, node, arguments)


def _arguments(compiler: Compiler, node: Call) -> list[Node]:
    if node.target is None or compiler.checked.reference(node) is not None:
        return list(node.arguments)
    return [node.target, *node.arguments]


def _call(compiler: Compiler, node: Call, arguments: Sequence[Node]) -> Term:
    overloads = compiler.overloads(node)
    ahead = _ahead(compiler, node, overloads, arguments)
    if ahead is not None:
        return ahead
    if overloads[0].implementation is conversions.identity and overloads[0].parameters[0].kind == "param":
        compiler.writer.charge(1)  # dyn(x)
        return Term(compiler.value(arguments[0]).code, compiler.checked.type_of(node))
    if tracked_argument(overloads) is not None:
        return apply(compiler, node, tracked_operands(compiler, overloads, arguments))
    if len(arguments) < 3:
        return apply(compiler, node, _operands(compiler, overloads, arguments))
    # cel-go evaluates up to two arguments in any case, but stops at the first of more that fails, and does not call
    terms: list[Term] = []
    with compiler.writer.unreached() as part:
        for each in arguments:
            part()
            terms.append(compiler.value_after(terms, each))
        part()
        compiler.writer.charge(1)
        part()
    compiler.writer.charge(-1)
    return apply(compiler, node, terms)


def _operands(compiler: Compiler, overloads: tuple[Overload, ...], arguments: Sequence[Node]) -> list[Term]:
    """Return the code of a call's arguments. An argument that fails costs the call what a value of size 1 would."""
    places = compiler.writer.places
    terms: list[Term] = []
    starts = [len(places)]
    for each in arguments:
        terms.append(compiler.value_after(terms, each))
        starts.append(len(places))
    cost = cost_of(overloads)
    if cost is None:
        return terms
    if overloads[0].name in _STOPPING and _is_literal_text(terms[1].code):
        for place in places[starts[0] : starts[1]]:
            if place.level == compiler.writer.level:
                place.refund += 1
        return terms
    for position, (first, after) in enumerate(pairwise(starts)):
        others = [each for each in arguments if each is not arguments[position]]
        if all(map(compiler.is_constant, others)):
            values = [compiler.constants.get(id(each)) for each in arguments]
            values[position] = None
            for place in places[first:after]:
                if place.level == compiler.writer.level:
                    place.refund -= failed_cost(cost, values)
    return terms


def apply(compiler: Compiler, node: Call, terms: list[Term]) -> Term:
    """Return the code that chooses the fitting signature at run time, calls it and adds its cost."""
    candidates = compiler.candidates(node)
    if node.function in _STOPPING and _is_literal_text(terms[1].code):
        candidates = tuple(replace(each, name="matches") for each in candidates)  # it refuses values as that does
    signatures = Signatures(compiler.overloads(node), candidates)
    return apply_signatures(compiler, signatures, terms, compiler.checked.type_of(node))


def _is_literal_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) is str


class Signatures(NamedTuple):
    """The signatures of a call: those that fit its static types, and those among which it chooses at run time."""

    overloads: tuple[Overload, ...]
    candidates: tuple[Overload, ...]


def apply_signatures(compiler: Compiler, signatures: Signatures, terms: list[Term], static: Type) -> Term:
    """Return the code that calls one of the given signatures and adds its cost."""
    writer = compiler.writer
    overloads, candidates = signatures
    writer.charge(1)
    cost = cost_of(overloads)
    if cost is not None:
        terms = _count_before(compiler, cost, terms)
    direct = len(overloads) == 1 and not looks_inside(overloads[0]) and all(map(_fits, overloads[0].parameters, terms))
    if direct:
        candidates = overloads
    else:
        terms = [compiler.reusable(term) for term in terms]
    values = [term.code for term in terms]
    place = Place("call")
    if cost is not None and cost not in _BEFORE:
        place.cost, place.arguments = cost, tuple(values)
    # whatever implementation is chosen, it gives what its signature says
    sure = bool(candidates) and all(each.result == static for each in candidates)
    result = Term(_target(compiler, candidates, values, place, direct=direct), static, sure=sure)
    if cost is not None and cost not in _BEFORE:
        result = compiler.reusable(result)
        if cost is costs.traverse_target:
            extra = compiler.call(costs.traversal, values[0], compiler.deadline())
        else:
            extra = compiler.call(cost, result.code, *values)
        writer.charge_value(code.binary(extra, ast.Sub(), code.literal(1)))
    return result


def _target(
    compiler: Compiler, overloads: tuple[Overload, ...], values: list[ast.expr], place: Place, *, direct: bool
) -> ast.expr:
    metered = [compiler.deadline()] if is_metered(overloads) else []
    if direct:
        return compiler.call(overloads[0].implementation, *metered, *values, place=place)
    classes: list[ast.expr] = [code.call(compiler.bind(type), value) for value in values]
    if len(values) == 1:
        table = compiler.table(overloads, Unary)
        chosen = code.subscript(compiler.bind(table), classes[0])
        called = code.call(chosen, *metered, values[0], line=compiler.writer.line(place))
        same = [each.parameters[0].name for each in overloads if each.implementation is conversions.identity]
        if len(same) == 1 and same[0] in _CLASSES:  # such as string(text)
            return code.either(code.identical(classes[0], compiler.bind(_CLASSES[same[0]])), values[0], called)
        return called
    table = compiler.table(overloads, Dispatch)
    chosen = code.subscript(compiler.bind(table), ast.Tuple(classes, ast.Load(), lineno=1, col_offset=0))
    return code.call(chosen, *metered, *values, line=compiler.writer.line(place))


def _fits(parameter: Type, term: Term) -> bool:
    if parameter.kind == "param" or parameter.name == "dyn":
        return True
    return term.sure and parameter.name == term.type.name


def _ahead(compiler: Compiler, node: Call, overloads: tuple[Overload, ...], arguments: Sequence[Node]) -> Term | None:
    """Evaluate a call whose arguments are constants, and return its result; None when it must run later."""
    if node.function not in PURE or not all(map(compiler.is_constant, arguments)) or len(overloads) != 1:
        return None
    values = [compiler.constants[id(each)] for each in arguments]
    try:
        result = fitting(overloads, tuple(values))(*values)
    except EvaluationError:
        return None
    cost = cost_of(overloads)
    compiler.writer.charge(1 if cost is None else cost(result, *values))
    return compiler.constant(result, compiler.checked.type_of(node))


# ---- costs


def cost_of(overloads: tuple[Overload, ...]) -> Cost | None:
    """Return the function that computes a call's cost beyond 1; None when there is no such cost."""
    if not overloads:
        return None
    if len(overloads) == 1:
        return overloads[0].resolved_cost or overloads[0].cost
    return overloads[0].cost


def _count_before(compiler: Compiler, cost: Cost, terms: list[Term]) -> list[Term]:
    count = _BEFORE.get(cost)
    if count is None:
        return [compiler.reusable(term) for term in terms]
    return count(compiler, terms)


def _nothing(_: Compiler, terms: list[Term]) -> list[Term]:
    return terms


def _tenth(compiler: Compiler, terms: list[Term]) -> list[Term]:
    """Add the cost of walking over the first argument, beyond 1, before the call."""
    target = compiler.reusable(terms[0])
    if not (target.sure and target.type.name == "string"):
        is_text = code.identical(code.call(compiler.bind(type), target.code), compiler.bind(str))
        slow = compiler.call(_walk_beyond, target.code)
        compiler.writer.charge_value(code.either(is_text, _tenth_of(compiler, target.code), slow))
    else:
        compiler.writer.charge_value(_tenth_of(compiler, target.code))
    return [target, *terms[1:]]


def _tenth_of(compiler: Compiler, value: ast.expr) -> ast.expr:
    """Return the code of (len(value) - 1) // 10: a tenth of the length, rounded up, less 1."""
    length = code.call(compiler.bind(len), value, line=compiler.writer.line(Place("call")))
    return code.binary(code.binary(length, ast.Sub(), code.literal(1)), ast.FloorDiv(), code.literal(10))


def _walk_beyond(value: Any) -> int:
    return costs.walk(value) - 1


_BEFORE: dict[Cost, Callable[[Compiler, list[Term]], list[Term]]] = {
    costs.one: _nothing,
    costs.walk_target: _tenth,
}
"""Cost functions whose value is computed by generated code before the call."""


# ---- frequent functions


def _size(compiler: Compiler, argument: Node) -> Term:
    compiler.writer.charge(1)
    term = compiler.value(argument)
    if term.type.name in ("list", "string", "bytes", "map"):
        term = term if term.sure else compiler.reusable(term)
        line = compiler.writer.line(Place("operand", "size", arguments=(term.code,)))
        return Term(code.call(compiler.bind(len), term.code, line=line), INT, raises=term.raises, sure=True)
    term = compiler.reusable(term)
    kind = code.call(compiler.bind(type), term.code)
    known = code.disjunction(code.identical(kind, compiler.bind(list)), code.identical(kind, compiler.bind(str)))
    quick = code.call(compiler.bind(len), term.code)
    slow = compiler.call(runtime.size_of, term.code, place=Place("call", "size"))
    return Term(code.either(known, quick, slow), INT, sure=True)


def _matches(compiler: Compiler, node: Call, arguments: list[Node]) -> Term:
    """Return the code of matches() with a constant pattern, which is compiled once; its cost is the text's times the
    pattern's.
    """
    pattern = compiler.constants[id(arguments[1])]
    measured = compiler.overloads(node)[0].resolved_cost is not None
    each = (len(pattern) + 3) // 4 if measured else 1

    def place(term: Term) -> Place:
        return Place("operand", "matches", arguments=(term.code,))

    with compiler.writer.unreached() as part:
        part()
        term = compiler.value(arguments[0])
        part()
        compiler.writer.charge(each)
        part()
    if measured:
        term = compiler.reusable(term)
        length = code.call(compiler.bind(len), term.code, line=compiler.writer.line(place(term)))
        beyond = code.binary(length, ast.FloorDiv(), code.literal(10))
        if each:
            compiler.writer.charge_value(code.binary(beyond, ast.Mult(), code.literal(each)))
    else:
        term = compiler.reusable(term)
    is_in = compiler.checked.patterns.pattern(pattern).is_in
    return Term(compiler.call(is_in, term.code, place=place(term)), BOOL, sure=True)


# ---- operators


def _comparison(compiler: Compiler, node: Call) -> Term:
    operator, slow = COMPARISONS[node.function]
    left, right = compiler.values(node.arguments)
    overloads = compiler.overloads(node)
    compiler.writer.charge(1)
    if len(overloads) == 1 and overloads[0].parameters[0].name in ("string", "bytes"):
        left, right = compiler.reusable(left), compiler.reusable(right)
        compiler.writer.charge_value(compiler.call(_comparing, left.code, right.code))
    known = left.type.name if left.type.name == right.type.name and left.sure and right.sure else ""
    if known in ORDERED:
        raises = left.raises or right.raises
        return Term(code.compare(left.code, operator(), right.code), BOOL, raises=raises, sure=True)
    if "int" in (left.type.name, right.type.name) and known != "double":
        left, right = compiler.reusable(left), compiler.reusable(right)
        checks = [
            code.identical(code.call(compiler.bind(type), side.code), compiler.bind(int))
            for side in (left, right)
            if not (side.sure and side.type.name == "int")
        ]
        quick = code.compare(left.code, operator(), right.code)
        other = compiler.call(slow, left.code, right.code, place=Place("call"))
        return Term(code.either(_all(checks), quick, other), BOOL, sure=True)
    return Term(compiler.call(slow, left.code, right.code, place=Place("call")), BOOL, sure=True)


def _comparing(left: Any, right: Any) -> int:
    return -(-min(costs.size(left), costs.size(right)) // 10) - 1


def _all(checks: list[ast.expr]) -> ast.expr:
    if not checks:
        return code.literal(value=True)
    return checks[0] if len(checks) == 1 else code.conjunction(*checks)


def _arithmetic(compiler: Compiler, node: Call) -> Term:
    terms = compiler.values(node.arguments)
    overloads = compiler.overloads(node)
    static = compiler.checked.type_of(node)
    if len(overloads) == 1 and overloads[0].id == "add_string" and any(map(_is_text, terms)):
        return _concatenation(compiler, terms, static)
    if static.name == "int" and len(overloads) == 1 and all(term.sure and term.type.name == "int" for term in terms):
        return _int_operation(compiler, node, terms, overloads[0])
    return apply(compiler, node, terms)


def _is_text(term: Term) -> bool:
    return term.sure and term.type.name == "string"


def _int_operation(compiler: Compiler, node: Call, terms: list[Term], overload: Overload) -> Term:
    compiler.writer.charge(1)
    left, right = (compiler.reusable(term) for term in terms)
    raw = code.binary(left.code, ARITHMETIC[node.function](), right.code)
    result = compiler.writer.temporary()
    fits = ast.Compare(
        code.literal(INT_MIN),
        [ast.LtE(), ast.LtE()],
        [code.walrus(result, raw), code.literal(INT_MAX)],
        lineno=1,
        col_offset=0,
    )
    over = compiler.call(overload.implementation, left.code, right.code, place=Place("call"))
    return Term(code.either(fits, code.name(result), over), INT, sure=True)


def _concatenation(compiler: Compiler, terms: list[Term], static: Type) -> Term:
    """Return the code of text + text; Python refuses to add another value to a text."""
    writer = compiler.writer
    writer.charge(1)
    left, right = terms
    left = left if left.sure else compiler.reusable(left)
    line = writer.line(Place("operand", "_+_", arguments=(left.code,)))
    result = writer.in_variable(code.binary(left.code, ast.Add(), right.code, line))
    writer.charge_value(_tenth_of(compiler, result))
    return Term(result, static, raises=False, atom=True, sure=True)
