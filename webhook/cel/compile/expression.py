"""The ExpressionCompiler: the constants, the scope and the writer of one expression.

The other modules of this folder write the code of a node, and call the ExpressionCompiler for the nodes below that
node. compiler.py lists the functions of these modules.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec.structs import replace

from webhook.cel.check.checked import CheckedTree
from webhook.cel.check.folding import fold_constants
from webhook.cel.compile import code
from webhook.cel.compile.code import CodeWriter, FailurePlace, ValueCode
from webhook.cel.compile.failure import FailurePlaces
from webhook.cel.library.declaration import Overload
from webhook.cel.library.dispatch import DispatchTable, UnaryDispatchTable
from webhook.cel.syntax.tree import Call, Ident, Macro, Node, Select, children
from webhook.cel.types import Type
from webhook.deadline import Deadline

Handler: TypeAlias = "Callable[[ExpressionCompiler, Any], ValueCode]"
"""Returns the code of a node, and counts its cost."""

NESTED_BLOCKS = 13
"""The number of nested blocks from which on a construct gets its own function. CPython allows 20 nested blocks in a
function. A construct opens up to two blocks, and error handlers open two more."""


class ExpressionCompiler:
    """Compiles the nodes of one expression; `handlers` has a function for each class of nodes."""

    def __init__(self, checked: CheckedTree, source: str, handlers: Mapping[type, Handler], *, exact: bool) -> None:
        self.handlers = handlers
        self.checked = checked
        self.constants = fold_constants(checked, source)
        self.writer = CodeWriter(exact=exact)
        self.scope: dict[str, ValueCode] = {}
        self.unread: set[int] = set()  # ids of optionals that only .hasValue() uses, so their value is not read
        self.never = Deadline()
        failures = FailurePlaces(self.writer.places)
        self.refund_for, self.failure = failures.cost_to_refund, failures.cel_error

    # ---- nodes

    def value_code(self, node: Node) -> ValueCode:
        """Return the code of a node, and count its cost."""
        if id(node) in self.constants:
            return self.constant_code(self.constants[id(node)], self.checked.type_of(node))
        if self.writer.depth > NESTED_BLOCKS and _needs_nested_blocks(self, node):
            return self._inner_function_call(node)
        return self.handlers[type(node)](self, node)

    def value_codes(self, nodes: Iterable[Node]) -> list[ValueCode]:
        """Return the code of several values. If several values fail, the first error is reported."""
        terms: list[ValueCode] = []
        for node in nodes:
            terms.append(self.value_code_after(terms, node))
        return terms

    def value_code_after(self, before: list[ValueCode], node: Node) -> ValueCode:
        """Return the code of a value that is evaluated after other values.

        Earlier values that may fail are evaluated before the statements of this value.
        """
        body = self.writer.body
        start = len(body)
        term = self.value_code(node)
        if len(body) > start:
            late = [place for place, each in enumerate(before) if each.raises and not each.atom]
            for offset, place in enumerate(late):
                name = self.writer.new_variable_name()
                body.insert(start + offset, code.assignment_node(name, before[place].code))
                before[place] = replace(before[place], code=code.name_node(name), raises=False, atom=True)
        return term

    def value_code_without_attribute_cost(self, node: Node) -> ValueCode:
        """Return the code of a branch of `? :` or of an index. In these places, cel-go counts no extra 1 for a path."""
        term = self.value_code(node)
        if id(node) not in self.constants and is_attribute(node) and path_costs_one_extra(self, node):
            self.writer.add_fixed_cost(-1)
        return term

    def constant_code(self, value: Any, static: Type) -> ValueCode:
        return ValueCode(self.writer.reference_to_object(value), static, raises=False, atom=True, sure=True)

    def is_constant(self, node: Node) -> bool:
        return id(node) in self.constants

    def _inner_function_call(self, node: Node) -> ValueCode:
        # Python limits nested blocks
        writer = self.writer
        identifier = writer.new_variable_name()
        depth, writer.depth = writer.depth, 0
        with writer.collect_nested_statements() as body:
            writer.append_statement(code.nonlocal_node([code.COST, code.LIMIT]))
            term = self.value_code(node)
            writer.append_statement(code.return_node(term.code))
        writer.depth = depth
        writer.moves += 1
        writer.append_statement(code.function_node(identifier, [], body))
        return self.reusable_code(ValueCode(code.call_node(code.name_node(identifier)), term.type, sure=term.sure))

    # ---- terms

    def reusable_code(self, term: ValueCode) -> ValueCode:
        """Return code that may be used several times, although the value is evaluated once."""
        if term.atom:
            return term
        return ValueCode(self.writer.stored_in_variable(term.code), term.type, raises=False, atom=True, sure=term.sure)

    def first_and_later_use(self, term: ValueCode) -> tuple[ast.expr, ast.expr]:
        """Return the code for the first use of a value, and for later uses. The first use may assign the value to a
        variable.
        """
        if term.atom:
            return term.code, term.code
        identifier = self.writer.new_variable_name()
        return code.walrus_node(identifier, term.code), code.name_node(identifier)

    def reference_to_object(self, value: Any) -> ast.expr:
        return self.writer.reference_to_object(value)

    def function_call(
        self, function: Callable[..., Any], *arguments: ast.expr, place: FailurePlace | None = None
    ) -> ast.expr:
        """Return the code of a call of a Python function."""
        line = 1 if place is None else self.writer.new_line_number(place)
        return code.call_node(self.writer.reference_to_object(function), *arguments, line=line)

    def deadline_code(self) -> ast.expr:
        """Return the code of the Deadline of the evaluation. Without a deadline, return the code of a Deadline that
        never passes.
        """
        deadline = code.attribute_node(code.name_node(code.METER), "deadline")
        return code.or_node(deadline, self.reference_to_object(self.never))

    def overloads_fitting_static_types(self, node: Node) -> tuple[Overload, ...]:
        return self.checked.overloads.get(id(node), ())

    def overloads_chosen_at_run_time(self, node: Node) -> tuple[Overload, ...]:
        """Return the signatures among which a call chooses by the classes of its values."""
        return self.checked.candidates.get(id(node)) or self.overloads_fitting_static_types(node)

    def dispatch_table(
        self, overloads: tuple[Overload, ...], kind: type[UnaryDispatchTable | DispatchTable]
    ) -> UnaryDispatchTable | DispatchTable:
        """Return the table that chooses among signatures by the classes of the values, shared by all programs."""
        return _cached_dispatch_table(overloads, kind)


@lru_cache(maxsize=1024)
def _cached_dispatch_table(
    overloads: tuple[Overload, ...], kind: type[UnaryDispatchTable | DispatchTable]
) -> UnaryDispatchTable | DispatchTable:
    return kind(overloads)


def _needs_nested_blocks(compiler: ExpressionCompiler, node: Node) -> bool:
    # loops and exception handlers are nested blocks
    pending = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, Macro) or (isinstance(at, Call) and at.function in ("_&&_", "_||_")):
            return True
        pending.extend(() if compiler.is_constant(at) else children(at))
    return False


# ---- paths


def is_attribute(node: Node) -> bool:
    """Return whether cel-go evaluates a node as an attribute: a variable, or an access to a value."""
    if isinstance(node, Call):
        return node.function in ("_[_]", "_[?_]")
    return isinstance(node, Ident | Select)


def path_costs_one_extra(compiler: ExpressionCompiler, node: Node) -> bool:
    """Return whether cel-go counts 1 for a path besides its steps: always, unless the path starts with `? :`."""
    return not is_conditional_expression(path_steps_and_start(compiler, node)[1])


def is_conditional_expression(node: Node) -> bool:
    """Return whether a node is `? :`, or a macro that expands to `? :`."""
    if isinstance(node, Macro):
        return node.name in ("optMap", "optFlatMap")
    return isinstance(node, Call) and node.function == "_?_:_"


def path_steps_and_start(compiler: ExpressionCompiler, node: Node) -> tuple[list[Select | Call], Node]:
    """Return the steps of a path in order, and the node at which the path starts."""
    steps: list[Select | Call] = []
    while not compiler.is_constant(node):
        if isinstance(node, Select):
            if compiler.checked.name_referred_to(node) is not None:
                break
            steps.append(node)
            node = node.operand
        elif isinstance(node, Call) and node.function in ("_[_]", "_[?_]"):
            steps.append(node)
            node = node.arguments[0]
        else:
            break
    steps.reverse()
    return steps, node
