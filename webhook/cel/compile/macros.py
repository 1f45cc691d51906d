"""Compiles macros such as all, exists, map, filter, optMap and sortBy to Python loops.

Errors are absorbed by all and exists as by && and ||; the others fail with the first one. Costs are those of cel-go's
expansions (parser/macro.go, ext/comprehensions.go v0.26.0), where the accumulator and the loop's condition count too:

    all         3 each, 1 at the end        map          12 each (2 if the result is constant), 1 at the end
    exists      4 each, 1 at the end        filter       13 each kept, 1 at the end
    exists_one  2 each found, 2 at the end  transformMap  3 each, transformMapEntry 2 each, 1 at the end

A loop's cost is counted before it starts, as if it ran through, and corrected when it ends early (code.Writer
on `exact`). A loop of many rounds so goes beyond the bound that stands for the next look at the clock (cost.py),
asks, and runs over a paced range; the bound is drawn near again when it ends early.
"""

from __future__ import annotations

import ast
from contextlib import nullcontext
from typing import TYPE_CHECKING, Self

from webhook.cel.compile import code
from webhook.cel.compile.calls import Signatures, apply_signatures
from webhook.cel.compile.code import Place, Term
from webhook.cel.compile.logic import attempt_operand, checked_bool, is_bool
from webhook.cel.compile.optional import opt_map
from webhook.cel.compile.tracked import breaking_off
from webhook.cel.library import extended_lists, runtime
from webhook.cel.library.tracking import failed_list
from webhook.cel.syntax.tree import Macro, Node
from webhook.cel.types import BOOL, DYN, INT, Type, list_of
from webhook.cel.values import no_such_overload
from webhook.deadline import STEP as ITERATIONS

if TYPE_CHECKING:
    from webhook.cel.compile.compiler import Compiler


def macro(compiler: Compiler, node: Macro) -> Term:
    """Return the code of a macro."""
    return _MACROS[node.name](compiler, node)


class _Loop:
    """Writes one loop: its range, its variables, and the cost of its body for each element."""

    def __init__(self, compiler: Compiler, node: Macro, *, ends_early: bool = False) -> None:
        self.compiler = compiler
        self.writer = compiler.writer
        self.node = node
        self.ends_early = ends_early
        self.range, self.iterable = self._range()
        self.names = [self.writer.temporary() for _ in node.variables]
        self.remaining = self.writer.temporary()

    def _range(self) -> tuple[ast.Name, ast.Name]:
        """Return two variables: the range itself, for its size, and what the loop iterates over."""
        compiler, in_variable = self.compiler, self.writer.in_variable
        operand = compiler.reusable(compiler.value(self.node.operand))
        is_list = code.identical(code.call(compiler.bind(type), operand.code), compiler.bind(list))
        if len(self.node.variables) == 2:
            pairs = compiler.call(runtime.pairs, operand.code, place=Place("call"))
            if self.ends_early:  # which needs to know how many are left
                is_map = code.identical(code.call(compiler.bind(type), operand.code), compiler.bind(dict))
                pairs = code.either(is_map, code.call(code.attribute(operand.code, "items")), pairs)
            else:
                pairs = code.either(is_list, code.call(compiler.bind(enumerate), operand.code), pairs)
            return in_variable(operand.code), in_variable(pairs)
        if operand.type.name == "list" and operand.sure:
            value = in_variable(operand.code)
        else:
            slow = compiler.call(runtime.elements, operand.code, place=Place("call"))
            value = in_variable(code.either(is_list, operand.code, slow))
        return value, value

    def types(self) -> list[Type]:
        """Return the static types of the loop's variables, as far as the type of the range tells them."""
        static = self.compiler.checked.type_of(self.node.operand)
        if len(self.names) == 2:
            if static.name == "list":
                return [INT, static.parameters[0]]
            return list(static.parameters) if static.name == "map" else [DYN, DYN]
        return [static.parameters[0]] if static.name in ("list", "map") else [DYN]

    def bound(self, node: Node) -> Term:
        """Return the code of an expression that sees the loop's variables."""
        compiler = self.compiler
        before = compiler.scope
        terms = [
            Term(code.name(name), static, raises=False, atom=True, sure=sure)
            for name, static, sure in zip(self.names, self.types(), self._sure(), strict=True)
        ]
        compiler.scope = {**before, **dict(zip(self.node.variables, terms, strict=True))}
        term = compiler.value(node)
        compiler.scope = before
        return term

    def _sure(self) -> list[bool]:
        """Return for each loop variable whether its class is known: indexes of a list, and texts of a constant list."""
        operand = self.node.operand
        constant = self.compiler.constants.get(id(operand))
        texts = type(constant) is list and all(type(each) is str for each in constant)
        places = self.compiler.checked.type_of(operand).name == "list"
        return [texts] if len(self.names) == 1 else [places, texts]

    def emit(self, body: list[ast.stmt], each: int, result: int = 1) -> None:
        """Write the loop with the cost of one iteration and of the result."""
        writer, compiler = self.writer, self.compiler
        writer.moves += 1
        elements: ast.expr = self.iterable
        if self.ends_early:
            elements = code.call(compiler.bind(iter), elements)
        writer.emit(code.assign(self.remaining, elements))
        paced = code.call(code.attribute(code.name(code.METER), "paced"), code.name(self.remaining))
        pace = code.assign(self.remaining, paced)
        if each and not writer.exact:
            writer.loop_of(each)
            writer.emit(code.add_cost(self._whole(each, result)))
            is_long = code.compare(code.call(compiler.bind(len), self.range), ast.Gt(), code.literal(ITERATIONS))
            writer.emit(self.ask("probe", code.branch(is_long, [pace])))
        else:
            writer.emit(code.add_cost(code.literal(result)))
            writer.emit(pace)
            if each:
                writer.loop_of(each)
                body[:0] = [code.add_cost(code.literal(each)), self.ask("check")]
        writer.emit(code.loop(self.names, code.name(self.remaining), body))

    def _whole(self, each: int, result: int) -> ast.expr:
        """Return the code of the cost of all iterations and of the result."""
        constant = self.compiler.constants.get(id(self.node.operand))
        if type(constant) is list:
            return code.literal(len(constant) * each + result)
        count = code.call(self.compiler.bind(len), self.range)
        return code.binary(code.binary(count, ast.Mult(), code.literal(each)), ast.Add(), code.literal(result))

    def ask(self, method: str, *more: ast.stmt) -> ast.stmt:
        """Return a statement that asks the meter for a new limit when the cost exceeds the present one."""
        over = code.compare(code.name(code.COST), ast.Gt(), code.name(code.LIMIT))
        arguments = code.name(code.COST), code.name(code.STEP)
        bound = code.call(code.attribute(code.name(code.METER), method), *arguments)
        return code.branch(over, [code.assign(code.LIMIT, bound), *more])

    def end_early(self, each: int, condition: int) -> list[ast.stmt]:
        """Return statements that correct the cost of a loop that ends early: only the next condition is still
        evaluated.
        """
        remaining = code.name(self.remaining)
        if self.writer.exact:
            return [code.add_cost(self.compiler.call(runtime.pending, remaining, code.literal(condition)))]
        # the elements left, each of which was counted, less the next one's condition
        left = self.writer.temporary()
        hint = code.call(code.attribute(remaining, "__length_hint__"))
        counted = code.binary(code.name(left), ast.Mult(), code.literal(each))
        rest = code.binary(counted, ast.Sub(), code.literal(condition))
        near = code.binary(code.name(code.COST), ast.Add(), code.name(code.STEP))
        is_far = code.compare(code.name(code.LIMIT), ast.Gt(), near)
        draw_near = code.branch(is_far, [code.assign(code.LIMIT, near)])
        return [code.branch(code.walrus(left, hint), [code.subtract_cost(rest), draw_near])]

    def body(self) -> _Body:
        """Return a context in which the loop's body is written."""
        return _Body(self)


class _Body:
    """The body of a loop: `with` collects its statements and its cost; `after` holds the statements after each
    iteration.
    """

    def __init__(self, loop: _Loop) -> None:
        self.loop = loop
        self.statements: list[ast.stmt] = []
        self.after: list[ast.stmt] = []
        self.each = 0

    def __enter__(self) -> Self:
        writer = self.loop.writer
        self._outer = writer.body, writer.total, writer.heavy
        writer.body, writer.total = self.statements, 0
        writer.depth += 2
        writer.level += 1
        return self

    def __exit__(self, *_: object) -> None:
        writer = self.loop.writer
        self.each = writer.total
        heavy = writer.heavy != self._outer[2]
        writer.body, writer.total = self._outer[0], self._outer[1]
        writer.depth -= 2
        writer.level -= 1
        if heavy:
            # what the body costs depends on the data: ask each time around
            self.after.append(self.loop.ask("check" if writer.exact else "probe"))


def _quantifier(compiler: Compiler, node: Macro, *, decides: bool, condition: int) -> Term:
    writer = compiler.writer
    loop = _Loop(compiler, node, ends_early=True)
    result, error = writer.temporary(), writer.temporary()
    with loop.body() as body:
        writer.charge(condition + 1)
        term = loop.bound(node.arguments[0])
        raises = bool(body.statements) or term.raises or not is_bool(term)
        value = term.code if is_bool(term) else compiler.reusable(term).code
    each = body.each
    leave = [code.assign(result, code.literal(decides)), *loop.end_early(each, condition), code.leave()]
    tests: list[ast.stmt]
    if is_bool(term):
        tests = [code.branch(value if decides else code.negation(value), leave)]
    else:
        other = code.different(value, code.literal(not decides))
        wrong: list[ast.stmt] = [code.expression(compiler.call(no_such_overload, place=Place("call")))]
        decided = code.identical(value, code.literal(decides))
        tests = [code.branch(decided, leave, [code.branch(other, wrong)])]
    statements = [*body.statements, *tests]
    if raises:
        statements = [attempt_operand(compiler, statements, error)]
        writer.emit(code.assign(error, code.literal(None)))
    statements += body.after
    writer.emit(code.assign(result, code.literal(not decides)))
    loop.emit(statements, each)
    if raises:
        pending = code.different(code.name(error), code.literal(None))
        undecided = code.identical(code.name(result), code.literal(not decides))
        writer.emit(code.branch(code.conjunction(pending, undecided), [code.fail(code.name(error))]))
    return Term(code.name(result), BOOL, raises=False, atom=True, sure=True)


def _all(compiler: Compiler, node: Macro) -> Term:
    return _quantifier(compiler, node, decides=False, condition=2)


def _exists(compiler: Compiler, node: Macro) -> Term:
    return _quantifier(compiler, node, decides=True, condition=3)


def _exists_one(compiler: Compiler, node: Macro) -> Term:
    writer = compiler.writer
    loop = _Loop(compiler, node)
    count = writer.temporary()
    with loop.body() as body:
        test = checked_bool(compiler, loop.bound(node.arguments[0]))
        counted = code.binary(code.name(count), ast.Add(), code.literal(1))
        writer.emit(code.branch(test, [code.assign(count, counted)]))
    writer.emit(code.assign(count, code.literal(0)))
    _run(compiler, loop, body, 2, code.binary(code.name(count), ast.Mult(), code.literal(2)))
    return Term(code.compare(code.name(count), ast.Eq(), code.literal(1)), BOOL, raises=False, sure=True)


def _run(compiler: Compiler, loop: _Loop, body: _Body, result: int, kept: ast.expr | None) -> None:
    """Write a loop that visits all elements and then fails with the first error of its body, as cel-go does.

    kept: the cost of what was kept, known afterwards.
    """
    writer = compiler.writer
    error = writer.temporary()
    writer.emit(code.assign(error, code.literal(None)))
    statements = [attempt_operand(compiler, body.statements, error), *body.after]
    loop.emit(statements, body.each, result)
    if kept is not None:
        writer.charge_value(kept)
    failed = code.different(code.name(error), code.literal(None))
    writer.emit(code.branch(failed, [code.fail(code.name(error))]))


def _filter(compiler: Compiler, node: Macro) -> Term:
    writer = compiler.writer
    loop = _Loop(compiler, node)
    result = code.name(writer.temporary())
    with loop.body() as body:
        test = checked_bool(compiler, loop.bound(node.arguments[0]))
        keep = code.call(code.attribute(result, "append"), code.name(loop.names[0]))
        writer.emit(code.branch(test, [code.expression(keep)]))
    writer.emit(code.assign(result.id, code.listing([])))
    length = code.call(compiler.bind(len), result)
    _run(compiler, loop, body, 1, code.binary(length, ast.Mult(), code.literal(13)))
    return Term(result, compiler.checked.type_of(node), raises=False, atom=True, sure=True)


def _collect(compiler: Compiler, node: Macro, step: int) -> Term:
    """Return the code of map, transformList, transformMap or transformMapEntry: an optional filter, then the value of
    each element.
    """
    writer = compiler.writer
    loop = _Loop(compiler, node)
    result = code.name(writer.temporary())
    with loop.body() as body:
        if len(node.arguments) == 2:
            test = checked_bool(compiler, loop.bound(node.arguments[0]))
            with writer.block() as chosen:
                _append(compiler, loop, result, step)
            writer.emit(code.branch(test, chosen))
        else:
            _append(compiler, loop, result, step)
    merges = node.name == "transformMapEntry"
    writer.emit(code.assign(result.id, code.mapping([], []) if merges else code.listing([])))
    _run(compiler, loop, body, 1, None)
    static = compiler.checked.type_of(node)
    if node.name in ("transformMap", "transformMapEntry"):
        finish = runtime.collected if merges else runtime.map_of
        return Term(compiler.call(finish, compiler.deadline(), result, place=Place("call")), static, sure=True)
    return Term(result, static, raises=False, atom=True, sure=True)


def _append(compiler: Compiler, loop: _Loop, result: ast.Name, step: int) -> None:
    writer, node = compiler.writer, loop.node
    value = node.arguments[-1]
    writer.charge(step)
    if step == _MAP_STEP and compiler.is_constant(value):
        writer.charge(-10)  # a list of constants is a constant
    term = loop.bound(value)
    if node.name == "transformMapEntry":
        appending = compiler.call(runtime.insert, compiler.deadline(), result, term.code, place=Place("call"))
    elif node.name == "transformMap":
        appending = code.call(code.attribute(result, "append"), code.pair(code.name(loop.names[0]), term.code))
    else:
        appending = code.call(code.attribute(result, "append"), term.code)
    writer.emit(code.expression(appending))


_MAP_STEP = 12


def _map(compiler: Compiler, node: Macro) -> Term:
    return _collect(compiler, node, _MAP_STEP)


def _transform_map(compiler: Compiler, node: Macro) -> Term:
    return _collect(compiler, node, 3)


def _transform_map_entry(compiler: Compiler, node: Macro) -> Term:
    return _collect(compiler, node, 2)


# ---- macros without a loop


def _bind(compiler: Compiler, node: Macro) -> Term:
    """Return the code of cel.bind(name, value, body)."""
    value = compiler.reusable(compiler.value(node.operand))
    before = compiler.scope
    compiler.scope = {**before, node.variables[0]: value}
    bound = compiler.value(node.arguments[0])
    compiler.scope = before
    return bound


def _sort_by(compiler: Compiler, node: Macro) -> Term:
    """Return the code of sortBy: it computes the keys as map() does, then sorts the list by them."""
    static = compiler.checked.type_of(node)
    sorted_by = list_of(compiler.checked.type_of(node.arguments[-1]))
    every = tuple(each for each in extended_lists.FUNCTIONS if each.name == "@sortByAssociatedKeys")
    known = tuple(each for each in every if each.parameters[1] == sorted_by)
    compiler.writer.charge(2)
    with breaking_off(compiler, failed_list) if known else nullcontext():
        items, keys = _keys(compiler, node)
    terms = [
        Term(items, static, raises=False, atom=True, sure=True),
        Term(keys, sorted_by, raises=False, atom=True, sure=True),
    ]
    return apply_signatures(compiler, Signatures(known or every, every), terms, static)


def _keys(compiler: Compiler, node: Macro) -> tuple[ast.Name, ast.Name]:
    """Write the loop that computes the keys of sortBy; return the list and its keys."""
    loop = _Loop(compiler, node)
    keys = code.name(compiler.writer.temporary())
    with loop.body() as body:
        _append(compiler, loop, keys, _MAP_STEP)
    compiler.writer.emit(code.assign(keys.id, code.listing([])))
    _run(compiler, loop, body, 1, None)
    return loop.range, keys


_MACROS = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_map_entry,
    "optMap": opt_map,
    "optFlatMap": opt_map,
    "bind": _bind,
    "sortBy": _sort_by,
}
