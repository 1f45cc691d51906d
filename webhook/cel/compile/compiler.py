"""Compiles a checked tree to a Python function.

An expression becomes one flat function over the activation that works on plain JSON values. The other modules of this
folder compile the nodes, one module for each kind of construct. This module has their common parts: the dispatch,
scopes, nesting and the frame of the function. Shape of the result:

    def f(A, L, M):                     activation, cost up to which it may run without asking, meter
        S = 300                         cost of a hundred iterations, between two looks at the clock
        C = 5                           cost of the first block
        try:
            …
            M.cost = C
            return …
        except E as x:
            C -= refund_for(x)          cost counted for what came after the failure
            M.cost = C
            raise failure(x)

KeyError, TypeError, IndexError and AttributeError of plain subscripts and methods are CEL errors; their texts are made
only when they surface (failure.py).
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec.structs import replace

from webhook.cel.check.folding import fold_constants
from webhook.cel.compile import access, calls, code, literals, logic, macros, membership, optional
from webhook.cel.compile.code import CodeWriter, FailurePlace, ValueCode
from webhook.cel.compile.failure import CODE_NAME, ERRORS, FailurePlaces
from webhook.cel.library.declaration import Overload
from webhook.cel.library.dispatch import DispatchTable, UnaryDispatchTable
from webhook.cel.syntax.tree import (
    Call,
    Has,
    Ident,
    ListNode,
    Literal,
    Macro,
    MapNode,
    Node,
    Select,
    StructNode,
    children,
)
from webhook.cel.types import Type
from webhook.deadline import STEP as ITERATIONS
from webhook.deadline import Deadline
from webhook.errors import CompileError, CompileIssue

if TYPE_CHECKING:
    from webhook.cel.check.checked import CheckedTree
    from webhook.cel.cost import CostMeter

Handler: TypeAlias = "Callable[[ExpressionCompiler, Any], ValueCode]"

LEAST_STEP = 1_000
"""The least cost between two looks at the clock: a hundred iterations that do something, or some hundreds that do next
to nothing. More frequent looks would take more than a hundredth of the time of a short loop.
"""
NO_LOOP = 2**63
"""The step of an expression without loops, which never looks at the clock."""
NESTED_BLOCKS = 13
"""CPython allows 20 blocks inside each other in one function; a construct opens up to two at once, and handlers two."""


class CompiledFunction(Protocol):
    """A compiled expression. `limit` is the cost at which it first looks at the clock."""

    step: int

    def __call__(self, activation: Mapping[str, Any], limit: int, meter: CostMeter, /) -> Any:
        """Return the value of the expression."""
        ...


def compile_tree(checked: CheckedTree, source: str, *, exact: bool = False) -> CompiledFunction:
    """Compile a checked expression to a function.

    Raises:
        CompileError: a constant fails (folding.py), or the expression is nested deeper than Python can compile.
    """
    try:
        return ExpressionCompiler(checked, source, exact=exact).compile()
    except RecursionError:
        # a new thread begins with an empty stack
        return _compile_in_thread(checked, source, exact=exact)


def _compile_in_thread(checked: CheckedTree, source: str, *, exact: bool) -> CompiledFunction:
    results: list[CompiledFunction] = []

    def compile_and_store() -> None:
        try:
            results.append(ExpressionCompiler(checked, source, exact=exact).compile())
        except (RecursionError, MemoryError):
            results.clear()

    thread = threading.Thread(target=compile_and_store)
    thread.start()
    thread.join()
    if not results:
        raise CompileError(source, (CompileIssue("expression is nested too deeply to be compiled", 1, 0),))
    return results[0]


class ExpressionCompiler:
    """Compiles one expression."""

    def __init__(self, checked: CheckedTree, source: str, *, exact: bool) -> None:
        self.checked = checked
        self.constants = fold_constants(checked, source)
        self.writer = CodeWriter(exact=exact)
        self.scope: dict[str, ValueCode] = {}
        self.unread: set[int] = set()  # the nodes of optionals with only their presence needed
        self.never = Deadline()
        failures = FailurePlaces(self.writer.places)
        self.refund_for, self.failure = failures.cost_to_refund, failures.cel_error

    # ---- nodes

    def value_code(self, node: Node) -> ValueCode:
        """Return the code of a node's value, and count its cost."""
        if id(node) in self.constants:
            return self.constant_code(self.constants[id(node)], self.checked.type_of(node))
        if self.writer.depth > NESTED_BLOCKS and _needs_nested_blocks(self, node):
            return self._inner_function_call(node)
        return HANDLERS[type(node)](self, node)

    def value_codes(self, nodes: Iterable[Node]) -> list[ValueCode]:
        """Return the code of several values; if several fail, the error of the first one is reported."""
        terms: list[ValueCode] = []
        for node in nodes:
            terms.append(self.value_code_after(terms, node))
        return terms

    def value_code_after(self, before: list[ValueCode], node: Node) -> ValueCode:
        """Return the code of a value that is evaluated after others; if it needs statements, earlier values that may
        fail are evaluated before them.
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
        """Return the code of a branch of `? :` or of an index, where cel-go does not count the 1 of an attribute."""
        term = self.value_code(node)
        if id(node) not in self.constants and is_attribute(node) and access.path_costs_one_extra(self, node):
            self.writer.add_fixed_cost(-1)
        return term

    def constant_code(self, value: Any, static: Type) -> ValueCode:
        """Return the code of a constant."""
        return ValueCode(self.writer.reference_to_object(value), static, raises=False, atom=True, sure=True)

    def is_constant(self, node: Node) -> bool:
        """Return whether a node is a constant."""
        return id(node) in self.constants

    def _inner_function_call(self, node: Node) -> ValueCode:
        """Return the code of a node as a call of a new inner function, because Python limits nested blocks."""
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
        """Return code for the value that may be written several times and evaluates it once."""
        if term.atom:
            return term
        return ValueCode(self.writer.stored_in_variable(term.code), term.type, raises=False, atom=True, sure=term.sure)

    def first_and_later_use(self, term: ValueCode) -> tuple[ast.expr, ast.expr]:
        """Return the code for the first use of a value in an expression, and the code for later uses."""
        if term.atom:
            return term.code, term.code
        identifier = self.writer.new_variable_name()
        return code.walrus_node(identifier, term.code), code.name_node(identifier)

    def reference_to_object(self, value: Any) -> ast.expr:
        """Return the code that refers to a Python object."""
        return self.writer.reference_to_object(value)

    def function_call(
        self, function: Callable[..., Any], *arguments: ast.expr, place: FailurePlace | None = None
    ) -> ast.expr:
        """Return the code of a call of a Python function."""
        line = 1 if place is None else self.writer.new_line_number(place)
        return code.call_node(self.writer.reference_to_object(function), *arguments, line=line)

    def deadline_code(self) -> ast.expr:
        """Return the code of the evaluation's Deadline; the default is a deadline that never passes."""
        given = code.attribute_node(code.name_node(code.METER), "deadline")
        return code.or_node(given, self.reference_to_object(self.never))

    def overloads_fitting_static_types(self, node: Node) -> tuple[Overload, ...]:
        """Return the signatures that fit the static types of a call."""
        return self.checked.overloads.get(id(node), ())

    def overloads_chosen_at_run_time(self, node: Node) -> tuple[Overload, ...]:
        """Return the signatures among which a call chooses by the classes of its values."""
        return self.checked.candidates.get(id(node)) or self.overloads_fitting_static_types(node)

    def dispatch_table(
        self, overloads: tuple[Overload, ...], kind: type[UnaryDispatchTable | DispatchTable]
    ) -> UnaryDispatchTable | DispatchTable:
        """Return the table that chooses among signatures by the classes of the values; all programs share it."""
        return _cached_dispatch_table(overloads, kind)

    # ---- the frame

    def compile(self) -> CompiledFunction:
        """Compile the whole expression."""
        writer = self.writer
        term = self.value_code(self.checked.node)
        cost = code.attribute_node(code.name_node(code.METER), "cost")
        book = ast.Assign([_attribute_as_target(cost)], code.name_node(code.COST), lineno=1, col_offset=0)
        attempted = [*writer.body, book, code.return_node(term.code)]
        handler = [
            book,
            code.subtract_cost_node(code.call_node(self.reference_to_object(self.refund_for), code.name_node("x"))),
            book,
            code.raise_node(code.call_node(self.reference_to_object(self.failure), code.name_node("x"))),
        ]
        body: list[ast.stmt] = [
            code.assignment_node(code.COST, code.constant_node(writer.total)),
            code.try_node(attempted, self.reference_to_object(ERRORS), handler),
        ]
        step = NO_LOOP
        if writer.lightest is not None:
            step = max(ITERATIONS * writer.lightest, LEAST_STEP)
            body.insert(0, code.assignment_node(code.STEP, code.constant_node(step)))
        inner = code.function_node("f", [code.ACTIVATION, code.LIMIT, code.METER], body)
        built = _build_function(inner, writer.constants)
        built.step = step
        return built


@lru_cache(maxsize=1024)
def _cached_dispatch_table(
    overloads: tuple[Overload, ...], kind: type[UnaryDispatchTable | DispatchTable]
) -> UnaryDispatchTable | DispatchTable:
    return kind(overloads)


def _attribute_as_target(target: ast.Attribute) -> ast.Attribute:
    return ast.Attribute(target.value, target.attr, ast.Store(), lineno=1, col_offset=0)


def _build_function(inner: ast.FunctionDef, constants: Mapping[str, Any]) -> CompiledFunction:
    outer = code.function_node("g", list(constants), [inner, code.return_node(code.name_node("f"))])
    namespace: dict[str, Any] = {"__builtins__": {}}
    exec(compile(ast.Module([outer], []), CODE_NAME, "exec", dont_inherit=True), namespace)  # noqa: S102
    built: CompiledFunction = namespace["g"](*constants.values())
    return built


def is_attribute(node: Node) -> bool:
    """Return whether cel-go evaluates a node as an attribute: a variable, or an access to a value."""
    if isinstance(node, Call):
        return node.function in ("_[_]", "_[?_]")
    return isinstance(node, Ident | Select)


def _needs_nested_blocks(compiler: ExpressionCompiler, node: Node) -> bool:
    """Return whether the code of a node has loops or exception handlers."""
    pending = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, Macro) or (isinstance(at, Call) and at.function in ("_&&_", "_||_")):
            return True
        pending.extend(() if compiler.is_constant(at) else children(at))
    return False


def _literal_code(compiler: ExpressionCompiler, node: Literal) -> ValueCode:
    return compiler.constant_code(node.value, compiler.checked.type_of(node))


def _operator_or_call_code(compiler: ExpressionCompiler, node: Call) -> ValueCode:
    return OPERATORS.get(node.function, calls.call_code)(compiler, node)


HANDLERS: Mapping[type, Handler] = {
    Literal: _literal_code,
    Ident: access.variable_code,
    Select: access.path_code,
    Has: access.code_of_has_macro,
    Call: _operator_or_call_code,
    ListNode: literals.list_code,
    MapNode: literals.map_code,
    StructNode: literals.structure_code,
    Macro: macros.macro_code,
}

OPERATORS: Mapping[str, Handler] = {
    "_&&_": logic.and_code,
    "_||_": logic.or_code,
    "_?_:_": logic.conditional_code,
    "!_": logic.not_code,
    "_==_": logic.equality_code,
    "_!=_": logic.equality_code,
    "_[_]": access.path_code,
    "_[?_]": access.path_code,
    "@in": membership.membership_code,
    "or": optional.optional_or_code,
    "orValue": optional.optional_or_code,
}
