"""Writes the Python loops of macros: their range, their variables, and the cost of their bodies.

A loop's cost is counted before it starts, as if it ran through, and corrected when it ends early (code.CodeWriter on
`exact`). So a loop of many rounds raises the bound for the next look at the clock (cost.py), reserves its time, and
runs over a range that checks the clock; the bound is lowered again if the loop ends early.
"""

from __future__ import annotations

import ast
from typing import Self

from webhook.cel.compile import code
from webhook.cel.compile.code import FailurePlace, ValueCode
from webhook.cel.compile.expression import ExpressionCompiler
from webhook.cel.library import runtime
from webhook.cel.syntax.tree import Macro, Node
from webhook.cel.types import DYN, INT, Type
from webhook.deadline import STEP as ITERATIONS


class LoopWriter:
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
        """Return two variables: the range itself, for its size, and what the loop iterates over."""
        compiler, in_variable = self.compiler, self.writer.stored_in_variable
        operand = compiler.reusable_code(compiler.value_code(self.node.operand))
        is_list = code.is_comparison_node(
            code.call_node(compiler.reference_to_object(type), operand.code), compiler.reference_to_object(list)
        )
        if len(self.node.variables) == 2:
            pairs = compiler.function_call(runtime.iterated_pairs, operand.code, place=FailurePlace("call"))
            if self.ends_early:  # which needs to know how many are left
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
        """Return the static types of the loop's variables, as far as they follow from the type of the range."""
        static = self.compiler.checked.type_of(self.node.operand)
        if len(self.names) == 2:
            if static.name == "list":
                return [INT, static.parameters[0]]
            return list(static.parameters) if static.name == "map" else [DYN, DYN]
        return [static.parameters[0]] if static.name in ("list", "map") else [DYN]

    def code_in_loop(self, node: Node) -> ValueCode:
        """Return the code of an expression that sees the loop's variables."""
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
        """Return for each loop variable whether its class is known: indexes of a list, and texts of a constant list."""
        operand = self.node.operand
        constant = self.compiler.constants.get(id(operand))
        texts = type(constant) is list and all(type(each) is str for each in constant)
        places = self.compiler.checked.type_of(operand).name == "list"
        return [texts] if len(self.names) == 1 else [places, texts]

    def write_loop(self, body: list[ast.stmt], each: int, result: int = 1) -> None:
        """Write the loop with the cost of one iteration and of the result."""
        writer, compiler = self.writer, self.compiler
        writer.moves += 1
        elements: ast.expr = self.iterable
        if self.ends_early:
            elements = code.call_node(compiler.reference_to_object(iter), elements)
        writer.append_statement(code.assignment_node(self.remaining, elements))
        paced = code.call_node(
            code.attribute_node(code.name_node(code.METER), "iterate_with_clock_checks"), code.name_node(self.remaining)
        )
        pace = code.assignment_node(self.remaining, paced)
        if each and not writer.exact:
            writer.note_cost_of_iteration(each)
            writer.append_statement(code.add_cost_node(self._total_cost_code(each, result)))
            is_long = code.comparison_node(
                code.call_node(compiler.reference_to_object(len), self.range), ast.Gt(), code.constant_node(ITERATIONS)
            )
            writer.append_statement(self.meter_check_statement("check_whole_loop_cost", code.if_node(is_long, [pace])))
        else:
            writer.append_statement(code.add_cost_node(code.constant_node(result)))
            writer.append_statement(pace)
            if each:
                writer.note_cost_of_iteration(each)
                body[:0] = [code.add_cost_node(code.constant_node(each)), self.meter_check_statement("check")]
        writer.append_statement(code.for_node(self.names, code.name_node(self.remaining), body))

    def _total_cost_code(self, each: int, result: int) -> ast.expr:
        """Return the code of the cost of all iterations and of the result."""
        constant = self.compiler.constants.get(id(self.node.operand))
        if type(constant) is list:
            return code.constant_node(len(constant) * each + result)
        count = code.call_node(self.compiler.reference_to_object(len), self.range)
        return code.binary_operation_node(
            code.binary_operation_node(count, ast.Mult(), code.constant_node(each)),
            ast.Add(),
            code.constant_node(result),
        )

    def meter_check_statement(self, method: str, *more: ast.stmt) -> ast.stmt:
        """Return a statement that asks the meter for a new limit when the cost exceeds the present one."""
        over = code.comparison_node(code.name_node(code.COST), ast.Gt(), code.name_node(code.LIMIT))
        arguments = code.name_node(code.COST), code.name_node(code.STEP)
        bound = code.call_node(code.attribute_node(code.name_node(code.METER), method), *arguments)
        return code.if_node(over, [code.assignment_node(code.LIMIT, bound), *more])

    def early_end_cost_statements(self, each: int, condition: int) -> list[ast.stmt]:
        """Return statements that correct the cost of a loop that ends early: only the next condition is still
        evaluated.
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
        # the remaining elements, which were all counted, less the condition of the next element
        left = self.writer.new_variable_name()
        hint = code.call_node(code.attribute_node(remaining, "__length_hint__"))
        counted = code.binary_operation_node(code.name_node(left), ast.Mult(), code.constant_node(each))
        rest = code.binary_operation_node(counted, ast.Sub(), code.constant_node(condition))
        near = code.binary_operation_node(code.name_node(code.COST), ast.Add(), code.name_node(code.STEP))
        is_far = code.comparison_node(code.name_node(code.LIMIT), ast.Gt(), near)
        draw_near = code.if_node(is_far, [code.assignment_node(code.LIMIT, near)])
        return [code.if_node(code.walrus_node(left, hint), [code.subtract_cost_node(rest), draw_near])]

    def body_context(self) -> LoopBodyContext:
        """Return a context in which the loop's body is written."""
        return LoopBodyContext(self)


class LoopBodyContext:
    """The body of a loop: `with` collects its statements and its cost; `after` holds the statements after each
    iteration.
    """

    def __init__(self, loop: LoopWriter) -> None:
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
            self.after.append(self.loop.meter_check_statement("check" if writer.exact else "check_whole_loop_cost"))
