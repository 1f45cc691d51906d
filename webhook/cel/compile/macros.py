"""Compiles macros such as all, exists, map, filter, optMap and sortBy to Python loops.

`all` and `exists` absorb errors, as && and || do; other macros fail with the first error. The costs are those of
cel-go's expansions (parser/macro.go, ext/comprehensions.go v0.26.0), and include the accumulator and the condition of
the loop. For each element and for the result:

    all                3, 1                 map                12 (2 if the value is constant), 1
    exists             4, 1                 filter             13 for a chosen element, 1
    exists_one         2 for a match, 2     transformMap       3, 1
                                            transformMapEntry  2, 1

The full cost of a loop is counted before the loop starts, and corrected if the loop ends early (code.CodeWriter,
`exact`). A long loop reads the clock after every hundred elements (cost.ClockCheckingIterator).
"""

from __future__ import annotations

import ast
from contextlib import nullcontext
from typing import Self

from webhook.cel.compile import code
from webhook.cel.compile.calls import CallSignatures, collect_fatal_statements, signatures_call_code
from webhook.cel.compile.code import FailurePlace, ValueCode
from webhook.cel.compile.expression import ExpressionCompiler
from webhook.cel.compile.logic import code_checked_as_bool, is_surely_bool, operand_try_statement
from webhook.cel.compile.optional import opt_map_code
from webhook.cel.library import extended_lists, runtime
from webhook.cel.library.refusal import panic_for_failed_list
from webhook.cel.syntax.tree import Macro, Node
from webhook.cel.types import BOOL, DYN, INT, Type, list_of
from webhook.cel.values import fail_with_no_such_overload
from webhook.deadline import STEP as ITERATIONS


class _LoopWriter:
    """Writes one loop: its range, its variables, and the cost of its body for each element."""

    def __init__(self, compiler: ExpressionCompiler, node: Macro, *, ends_early: bool = False) -> None:
        self.compiler = compiler
        self.writer = compiler.writer
        self.node = node
        self.ends_early = ends_early
        self.range, self.iterable = self._range_variables()
        self.names = [self.writer.new_variable_name() for _ in node.variables]
        self.remaining = self.writer.new_variable_name()

    def _range_variables(self) -> tuple[ast.Name, ast.Name]:
        # the range, which has a size, and the iterable over the range
        compiler, in_variable = self.compiler, self.writer.stored_in_variable
        operand = compiler.reusable_code(compiler.value_code(self.node.operand))
        is_list = code.is_comparison_node(
            code.call_node(compiler.reference_to_object(type), operand.code), compiler.reference_to_object(list)
        )
        if len(self.node.variables) == 2:
            pairs = compiler.function_call(runtime.iterated_pairs, operand.code, place=FailurePlace("call"))
            if self.ends_early:  # the number of remaining elements must be known
                is_map = code.is_comparison_node(
                    code.call_node(compiler.reference_to_object(type), operand.code), compiler.reference_to_object(dict)
                )
                pairs = code.if_else_node(is_map, code.call_node(code.attribute_node(operand.code, "items")), pairs)
            else:
                pairs = code.if_else_node(
                    is_list, code.call_node(compiler.reference_to_object(enumerate), operand.code), pairs
                )
            return in_variable(operand.code), in_variable(pairs)
        if operand.type.name == "list" and operand.sure:
            value = in_variable(operand.code)
        else:
            slow = compiler.function_call(runtime.iterated_elements, operand.code, place=FailurePlace("call"))
            value = in_variable(code.if_else_node(is_list, operand.code, slow))
        return value, value

    def variable_types(self) -> list[Type]:
        """Return the static types of the loop's variables, from the type of the range."""
        static = self.compiler.checked.type_of(self.node.operand)
        if len(self.names) == 2:
            if static.name == "list":
                return [INT, static.parameters[0]]
            return list(static.parameters) if static.name == "map" else [DYN, DYN]
        return [static.parameters[0]] if static.name in ("list", "map") else [DYN]

    def code_in_loop(self, node: Node) -> ValueCode:
        compiler = self.compiler
        before = compiler.scope
        terms = [
            ValueCode(code.name_node(name), static, raises=False, atom=True, sure=sure)
            for name, static, sure in zip(
                self.names, self.variable_types(), self._certainty_of_variable_classes(), strict=True
            )
        ]
        compiler.scope = {**before, **dict(zip(self.node.variables, terms, strict=True))}
        term = compiler.value_code(node)
        compiler.scope = before
        return term

    def _certainty_of_variable_classes(self) -> list[bool]:
        # the class of an index is certain; the class of an element is certain only in a constant list of strings
        operand = self.node.operand
        constant = self.compiler.constants.get(id(operand))
        texts = type(constant) is list and all(type(each) is str for each in constant)
        places = self.compiler.checked.type_of(operand).name == "list"
        return [texts] if len(self.names) == 1 else [places, texts]

    def write_loop(self, body: list[ast.stmt], iteration_cost: int, result: int = 1) -> None:
        """Write the loop. `iteration_cost` is the cost of one iteration, and `result` the cost of the result."""
        writer, compiler = self.writer, self.compiler
        writer.moves += 1
        elements: ast.expr = self.iterable
        if self.ends_early:
            elements = code.call_node(compiler.reference_to_object(iter), elements)
        writer.append_statement(code.assignment_node(self.remaining, elements))
        iterator = code.call_node(
            code.attribute_node(code.name_node(code.METER), "iterate_with_clock_checks"), code.name_node(self.remaining)
        )
        assignment = code.assignment_node(self.remaining, iterator)
        if iteration_cost and not writer.exact:
            writer.note_cost_of_iteration(iteration_cost)
            writer.append_statement(code.add_cost_node(self._total_cost_code(iteration_cost, result)))
            is_long = code.comparison_node(
                code.call_node(compiler.reference_to_object(len), self.range), ast.Gt(), code.constant_node(ITERATIONS)
            )
            writer.append_statement(
                self.meter_check_statement("check_whole_loop_cost", code.if_node(is_long, [assignment]))
            )
        else:
            writer.append_statement(code.add_cost_node(code.constant_node(result)))
            writer.append_statement(assignment)
            if iteration_cost:
                writer.note_cost_of_iteration(iteration_cost)
                body[:0] = [code.add_cost_node(code.constant_node(iteration_cost)), self.meter_check_statement("check")]
        writer.append_statement(code.for_node(self.names, code.name_node(self.remaining), body))

    def _total_cost_code(self, iteration_cost: int, result: int) -> ast.expr:
        constant = self.compiler.constants.get(id(self.node.operand))
        if type(constant) is list:
            return code.constant_node(len(constant) * iteration_cost + result)
        count = code.call_node(self.compiler.reference_to_object(len), self.range)
        return code.binary_operation_node(
            code.binary_operation_node(count, ast.Mult(), code.constant_node(iteration_cost)),
            ast.Add(),
            code.constant_node(result),
        )

    def meter_check_statement(self, method: str, *more: ast.stmt) -> ast.stmt:
        """Return a statement that gets a new limit from the meter if the cost exceeds the limit."""
        is_over_limit = code.comparison_node(code.name_node(code.COST), ast.Gt(), code.name_node(code.LIMIT))
        arguments = code.name_node(code.COST), code.name_node(code.STEP)
        bound = code.call_node(code.attribute_node(code.name_node(code.METER), method), *arguments)
        return code.if_node(is_over_limit, [code.assignment_node(code.LIMIT, bound), *more])

    def early_end_cost_statements(self, iteration_cost: int, condition: int) -> list[ast.stmt]:
        """Return statements that correct the cost of a loop that ends early.

        cel-go still evaluates the condition of the loop for the next element.
        """
        remaining = code.name_node(self.remaining)
        if self.writer.exact:
            return [
                code.add_cost_node(
                    self.compiler.function_call(
                        runtime.cost_if_element_remains, remaining, code.constant_node(condition)
                    )
                )
            ]
        # all elements were counted in advance; the cost of the remaining elements is subtracted, except one condition
        left = self.writer.new_variable_name()
        hint = code.call_node(code.attribute_node(remaining, "__length_hint__"))
        counted = code.binary_operation_node(code.name_node(left), ast.Mult(), code.constant_node(iteration_cost))
        rest = code.binary_operation_node(counted, ast.Sub(), code.constant_node(condition))
        next_limit = code.binary_operation_node(code.name_node(code.COST), ast.Add(), code.name_node(code.STEP))
        is_limit_higher = code.comparison_node(code.name_node(code.LIMIT), ast.Gt(), next_limit)
        lower_limit = code.if_node(is_limit_higher, [code.assignment_node(code.LIMIT, next_limit)])
        return [code.if_node(code.walrus_node(left, hint), [code.subtract_cost_node(rest), lower_limit])]

    def body_context(self) -> _LoopBodyContext:
        return _LoopBodyContext(self)


class _LoopBodyContext:
    """A loop's body: `with` collects its statements and cost; `after` has the statements at the end of an iteration."""

    def __init__(self, loop: _LoopWriter) -> None:
        self.loop = loop
        self.statements: list[ast.stmt] = []
        self.after: list[ast.stmt] = []
        self.iteration_cost = 0

    def __enter__(self) -> Self:
        writer = self.loop.writer
        self._outer = writer.body, writer.total, writer.heavy
        writer.body, writer.total = self.statements, 0
        writer.depth += 2
        writer.level += 1
        return self

    def __exit__(self, *_: object) -> None:
        writer = self.loop.writer
        self.iteration_cost = writer.total
        heavy = writer.heavy != self._outer[2]
        writer.body, writer.total = self._outer[0], self._outer[1]
        writer.depth -= 2
        writer.level -= 1
        if heavy:
            # the cost depends on the data, so each iteration is checked
            self.after.append(self.loop.meter_check_statement("check" if writer.exact else "check_whole_loop_cost"))


# ---- macros with a loop


def macro_code(compiler: ExpressionCompiler, node: Macro) -> ValueCode:
    """Return the code of a macro."""
    return _MACROS[node.name](compiler, node)


def _quantifier_code(compiler: ExpressionCompiler, node: Macro, *, decides: bool, condition: int) -> ValueCode:
    writer = compiler.writer
    loop = _LoopWriter(compiler, node, ends_early=True)
    result, error = writer.new_variable_name(), writer.new_variable_name()
    with loop.body_context() as body:
        writer.add_fixed_cost(condition + 1)
        term = loop.code_in_loop(node.arguments[0])
        raises = bool(body.statements) or term.raises or not is_surely_bool(term)
        value = term.code if is_surely_bool(term) else compiler.reusable_code(term).code
    iteration_cost = body.iteration_cost
    leave = [
        code.assignment_node(result, code.constant_node(decides)),
        *loop.early_end_cost_statements(iteration_cost, condition),
        code.break_node(),
    ]
    tests: list[ast.stmt]
    if is_surely_bool(term):
        tests = [code.if_node(value if decides else code.not_node(value), leave)]
    else:
        other = code.is_not_comparison_node(value, code.constant_node(not decides))
        wrong: list[ast.stmt] = [
            code.expression_statement_node(
                compiler.function_call(fail_with_no_such_overload, place=FailurePlace("call"))
            )
        ]
        decided = code.is_comparison_node(value, code.constant_node(decides))
        tests = [code.if_node(decided, leave, [code.if_node(other, wrong)])]
    statements = [*body.statements, *tests]
    if raises:
        statements = [operand_try_statement(compiler, statements, error)]
        writer.append_statement(code.assignment_node(error, code.constant_node(None)))
    statements += body.after
    writer.append_statement(code.assignment_node(result, code.constant_node(not decides)))
    loop.write_loop(statements, iteration_cost)
    if raises:
        pending = code.is_not_comparison_node(code.name_node(error), code.constant_node(None))
        undecided = code.is_comparison_node(code.name_node(result), code.constant_node(not decides))
        writer.append_statement(
            code.if_node(code.and_node(pending, undecided), [code.raise_node(code.name_node(error))])
        )
    return ValueCode(code.name_node(result), BOOL, raises=False, atom=True, sure=True)


def _all_code(compiler: ExpressionCompiler, node: Macro) -> ValueCode:
    return _quantifier_code(compiler, node, decides=False, condition=2)


def _exists_code(compiler: ExpressionCompiler, node: Macro) -> ValueCode:
    return _quantifier_code(compiler, node, decides=True, condition=3)


def _exists_one_code(compiler: ExpressionCompiler, node: Macro) -> ValueCode:
    writer = compiler.writer
    loop = _LoopWriter(compiler, node)
    count = writer.new_variable_name()
    with loop.body_context() as body:
        test = code_checked_as_bool(compiler, loop.code_in_loop(node.arguments[0]))
        counted = code.binary_operation_node(code.name_node(count), ast.Add(), code.constant_node(1))
        writer.append_statement(code.if_node(test, [code.assignment_node(count, counted)]))
    writer.append_statement(code.assignment_node(count, code.constant_node(0)))
    _write_full_loop(
        compiler, loop, body, 2, code.binary_operation_node(code.name_node(count), ast.Mult(), code.constant_node(2))
    )
    return ValueCode(
        code.comparison_node(code.name_node(count), ast.Eq(), code.constant_node(1)), BOOL, raises=False, sure=True
    )


def _write_full_loop(
    compiler: ExpressionCompiler, loop: _LoopWriter, body: _LoopBodyContext, result: int, chosen_cost: ast.expr | None
) -> None:
    """Write a loop that visits all elements, and then fails with the first error of its body, as in cel-go.

    `chosen_cost` is the cost of the chosen elements, which is known after the loop.
    """
    writer = compiler.writer
    error = writer.new_variable_name()
    writer.append_statement(code.assignment_node(error, code.constant_node(None)))
    statements = [operand_try_statement(compiler, body.statements, error), *body.after]
    loop.write_loop(statements, body.iteration_cost, result)
    if chosen_cost is not None:
        writer.add_runtime_cost(chosen_cost)
    failed = code.is_not_comparison_node(code.name_node(error), code.constant_node(None))
    writer.append_statement(code.if_node(failed, [code.raise_node(code.name_node(error))]))


def _filter_code(compiler: ExpressionCompiler, node: Macro) -> ValueCode:
    writer = compiler.writer
    loop = _LoopWriter(compiler, node)
    result = code.name_node(writer.new_variable_name())
    with loop.body_context() as body:
        test = code_checked_as_bool(compiler, loop.code_in_loop(node.arguments[0]))
        keep = code.call_node(code.attribute_node(result, "append"), code.name_node(loop.names[0]))
        writer.append_statement(code.if_node(test, [code.expression_statement_node(keep)]))
    writer.append_statement(code.assignment_node(result.id, code.list_node([])))
    length = code.call_node(compiler.reference_to_object(len), result)
    _write_full_loop(compiler, loop, body, 1, code.binary_operation_node(length, ast.Mult(), code.constant_node(13)))
    return ValueCode(result, compiler.checked.type_of(node), raises=False, atom=True, sure=True)


def _collecting_macro_code(compiler: ExpressionCompiler, node: Macro, step: int) -> ValueCode:
    # the last argument of the macro is the value of each element; a filter may be the argument before
    writer = compiler.writer
    loop = _LoopWriter(compiler, node)
    result = code.name_node(writer.new_variable_name())
    with loop.body_context() as body:
        if len(node.arguments) == 2:
            test = code_checked_as_bool(compiler, loop.code_in_loop(node.arguments[0]))
            with writer.collect_block() as chosen:
                _write_append(compiler, loop, result, step)
            writer.append_statement(code.if_node(test, chosen))
        else:
            _write_append(compiler, loop, result, step)
    merges = node.name == "transformMapEntry"
    writer.append_statement(code.assignment_node(result.id, code.dict_node([], []) if merges else code.list_node([])))
    _write_full_loop(compiler, loop, body, 1, None)
    static = compiler.checked.type_of(node)
    if node.name in ("transformMap", "transformMapEntry"):
        finish = runtime.map_of_inserted_entries if merges else runtime.map_of_pairs
        return ValueCode(
            compiler.function_call(finish, compiler.deadline_code(), result, place=FailurePlace("call")),
            static,
            sure=True,
        )
    return ValueCode(result, static, raises=False, atom=True, sure=True)


def _write_append(compiler: ExpressionCompiler, loop: _LoopWriter, result: ast.Name, step: int) -> None:
    writer, node = compiler.writer, loop.node
    value = node.arguments[-1]
    writer.add_fixed_cost(step)
    if step == _MAP_STEP and compiler.is_constant(value):
        writer.add_fixed_cost(-10)  # a list of constants is a constant
    term = loop.code_in_loop(value)
    if node.name == "transformMapEntry":
        appending = compiler.function_call(
            runtime.insert_entries, compiler.deadline_code(), result, term.code, place=FailurePlace("call")
        )
    elif node.name == "transformMap":
        appending = code.call_node(
            code.attribute_node(result, "append"), code.pair_node(code.name_node(loop.names[0]), term.code)
        )
    else:
        appending = code.call_node(code.attribute_node(result, "append"), term.code)
    writer.append_statement(code.expression_statement_node(appending))


_MAP_STEP = 12


def _map_code(compiler: ExpressionCompiler, node: Macro) -> ValueCode:
    return _collecting_macro_code(compiler, node, _MAP_STEP)


def _transform_map_code(compiler: ExpressionCompiler, node: Macro) -> ValueCode:
    return _collecting_macro_code(compiler, node, 3)


def _transform_map_entry_code(compiler: ExpressionCompiler, node: Macro) -> ValueCode:
    return _collecting_macro_code(compiler, node, 2)


# ---- macros without a loop


def _bind_code(compiler: ExpressionCompiler, node: Macro) -> ValueCode:
    # cel.bind(name, value, body)
    value = compiler.reusable_code(compiler.value_code(node.operand))
    before = compiler.scope
    compiler.scope = {**before, node.variables[0]: value}
    bound = compiler.value_code(node.arguments[0])
    compiler.scope = before
    return bound


def _sort_by_code(compiler: ExpressionCompiler, node: Macro) -> ValueCode:
    # computes the keys as map() does, then sorts
    static = compiler.checked.type_of(node)
    sorted_by = list_of(compiler.checked.type_of(node.arguments[-1]))
    all_overloads = tuple(each for each in extended_lists.FUNCTIONS if each.name == "@sortByAssociatedKeys")
    fitting = tuple(each for each in all_overloads if each.parameters[1] == sorted_by)
    compiler.writer.add_fixed_cost(2)
    with collect_fatal_statements(compiler, panic_for_failed_list) if fitting else nullcontext():
        items, keys = _write_sort_keys(compiler, node)
    terms = [
        ValueCode(items, static, raises=False, atom=True, sure=True),
        ValueCode(keys, sorted_by, raises=False, atom=True, sure=True),
    ]
    return signatures_call_code(compiler, CallSignatures(fitting or all_overloads, all_overloads), terms, static)


def _write_sort_keys(compiler: ExpressionCompiler, node: Macro) -> tuple[ast.Name, ast.Name]:
    # returns the list and its keys
    loop = _LoopWriter(compiler, node)
    keys = code.name_node(compiler.writer.new_variable_name())
    with loop.body_context() as body:
        _write_append(compiler, loop, keys, _MAP_STEP)
    compiler.writer.append_statement(code.assignment_node(keys.id, code.list_node([])))
    _write_full_loop(compiler, loop, body, 1, None)
    return loop.range, keys


_MACROS = {
    "all": _all_code,
    "exists": _exists_code,
    "exists_one": _exists_one_code,
    "existsOne": _exists_one_code,
    "filter": _filter_code,
    "map": _map_code,
    "transformList": _map_code,
    "transformMap": _transform_map_code,
    "transformMapEntry": _transform_map_entry_code,
    "optMap": opt_map_code,
    "optFlatMap": opt_map_code,
    "bind": _bind_code,
    "sortBy": _sort_by_code,
}
