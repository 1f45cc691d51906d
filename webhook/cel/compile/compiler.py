"""Compiles a checked tree to a Python function.

An expression becomes one flat function over the activation that works on plain JSON values. What a node means is in the
modules beside this one, one per kind of construct; here is what holds them together: the dispatch, scopes, nesting and
the frame of the function. Shape of the result:

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
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from webhook.cel.check.folding import fold
from webhook.cel.compile import access, calls, code, literals, logic, macros, membership, optional
from webhook.cel.compile.code import Place, Term, Writer
from webhook.cel.compile.failure import CODE_NAME, ERRORS, Failures
from webhook.cel.library.declaration import Overload
from webhook.cel.library.dispatch import Dispatch, Unary
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
from webhook.errors import CompileError, Issue

if TYPE_CHECKING:
    from webhook.cel.check.checked import Checked
    from webhook.cel.cost import Meter

Handler: TypeAlias = "Callable[[Compiler, Any], Term]"

LEAST_STEP = 1_000
"""The least cost between two looks at the clock: a hundred iterations that do something, or some hundreds that do next
to nothing. More frequent looks would take more than a hundredth of the time of a short loop.
"""
NO_LOOP = 2**63
"""The step of an expression without loops, which never looks at the clock."""
NESTED_BLOCKS = 13
"""CPython allows 20 blocks inside each other in one function; a construct opens up to two at once, and handlers two."""


class Function(Protocol):
    """A compiled expression. `limit` is the cost at which it first looks at the clock."""

    step: int

    def __call__(self, activation: Mapping[str, Any], limit: int, meter: Meter, /) -> Any:
        """Return the value of the expression."""
        ...


def compile_tree(checked: Checked, source: str, *, exact: bool = False) -> Function:
    """Compile a checked expression to a function.

    Raises:
        CompileError: a constant fails (folding.py), or the expression is nested deeper than Python can compile.
    """
    try:
        return Compiler(checked, source, exact=exact).compile()
    except RecursionError:
        # a thread of its own begins with an empty stack
        return _in_thread(checked, source, exact=exact)


def _in_thread(checked: Checked, source: str, *, exact: bool) -> Function:
    results: list[Function] = []

    def run() -> None:
        try:
            results.append(Compiler(checked, source, exact=exact).compile())
        except (RecursionError, MemoryError):
            results.clear()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if not results:
        raise CompileError(source, (Issue("expression is nested too deeply to be compiled", 1, 0),))
    return results[0]


class Compiler:
    """Compiles one expression."""

    def __init__(self, checked: Checked, source: str, *, exact: bool) -> None:
        self.checked = checked
        self.constants = fold(checked, source)
        self.writer = Writer(exact=exact)
        self.scope: dict[str, Term] = {}
        self.unread: set[int] = set()  # the nodes of optionals of which only the presence counts
        self.never = Deadline()
        failures = Failures(self.writer.places)
        self.refund_for, self.failure = failures.refund_for, failures.failure

    # ---- nodes

    def value(self, node: Node) -> Term:
        """Return the code of a node's value, and count its cost."""
        if id(node) in self.constants:
            return self.constant(self.constants[id(node)], self.checked.type_of(node))
        if self.writer.depth > NESTED_BLOCKS and _opens_blocks(self, node):
            return self._inner_function(node)
        return HANDLERS[type(node)](self, node)

    def values(self, nodes: Iterable[Node]) -> list[Term]:
        """Return the code of several values; if several fail, the error of the first one is reported."""
        terms: list[Term] = []
        for node in nodes:
            terms.append(self.value_after(terms, node))
        return terms

    def value_after(self, before: list[Term], node: Node) -> Term:
        """Return the code of a value that is evaluated after others; if it needs statements, earlier values that may
        fail are evaluated before them.
        """
        body = self.writer.body
        start = len(body)
        term = self.value(node)
        if len(body) > start:
            late = [place for place, each in enumerate(before) if each.raises and not each.atom]
            for offset, place in enumerate(late):
                name = self.writer.temporary()
                body.insert(start + offset, code.assign(name, before[place].code))
                before[place] = replace(before[place], code=code.name(name), raises=False, atom=True)
        return term

    def without_attribute_cost(self, node: Node) -> Term:
        """Return the code of a branch of `? :` or of an index, where cel-go does not count the 1 of an attribute."""
        term = self.value(node)
        if id(node) not in self.constants and is_attribute(node) and access.has_a_cost(self, node):
            self.writer.charge(-1)
        return term

    def constant(self, value: Any, static: Type) -> Term:
        """Return the code of a constant."""
        return Term(self.writer.bind(value), static, raises=False, atom=True, sure=True)

    def is_constant(self, node: Node) -> bool:
        """Return whether a node is a constant."""
        return id(node) in self.constants

    def _inner_function(self, node: Node) -> Term:
        """Return the code of a node as a call of a new inner function, because Python limits nested blocks."""
        writer = self.writer
        identifier = writer.temporary()
        depth, writer.depth = writer.depth, 0
        with writer.nested() as body:
            writer.emit(code.nonlocals([code.COST, code.LIMIT]))
            term = self.value(node)
            writer.emit(code.answer(term.code))
        writer.depth = depth
        writer.moves += 1
        writer.emit(code.function(identifier, [], body))
        return self.reusable(Term(code.call(code.name(identifier)), term.type, sure=term.sure))

    # ---- terms

    def reusable(self, term: Term) -> Term:
        """Return code for the value that may be written several times and evaluates it once."""
        if term.atom:
            return term
        return Term(self.writer.in_variable(term.code), term.type, raises=False, atom=True, sure=term.sure)

    def first_and_later(self, term: Term) -> tuple[ast.expr, ast.expr]:
        """Return the code for the first use of a value in an expression, and the code for later uses."""
        if term.atom:
            return term.code, term.code
        identifier = self.writer.temporary()
        return code.walrus(identifier, term.code), code.name(identifier)

    def bind(self, value: Any) -> ast.expr:
        """Return the code that refers to a Python object."""
        return self.writer.bind(value)

    def call(self, function: Callable[..., Any], *arguments: ast.expr, place: Place | None = None) -> ast.expr:
        """Return the code of a call of a Python function."""
        line = 1 if place is None else self.writer.line(place)
        return code.call(self.writer.bind(function), *arguments, line=line)

    def deadline(self) -> ast.expr:
        """Return the code of the evaluation's Deadline; without one it is a deadline that never comes."""
        given = code.attribute(code.name(code.METER), "deadline")
        return code.disjunction(given, self.bind(self.never))

    def overloads(self, node: Node) -> tuple[Overload, ...]:
        """Return the signatures that fit the static types of a call."""
        return self.checked.overloads.get(id(node), ())

    def candidates(self, node: Node) -> tuple[Overload, ...]:
        """Return the signatures among which a call chooses by the classes of its values."""
        return self.checked.candidates.get(id(node)) or self.overloads(node)

    def table(self, overloads: tuple[Overload, ...], kind: type[Unary | Dispatch]) -> Unary | Dispatch:
        """Return the table that chooses among signatures by the classes of the values; all programs share it."""
        return _table(overloads, kind)

    # ---- the frame

    def compile(self) -> Function:
        """Compile the whole expression."""
        writer = self.writer
        term = self.value(self.checked.node)
        cost = code.attribute(code.name(code.METER), "cost")
        book = ast.Assign([_stored(cost)], code.name(code.COST), lineno=1, col_offset=0)
        attempted = [*writer.body, book, code.answer(term.code)]
        handler = [
            book,
            code.subtract_cost(code.call(self.bind(self.refund_for), code.name("x"))),
            book,
            code.fail(code.call(self.bind(self.failure), code.name("x"))),
        ]
        body: list[ast.stmt] = [
            code.assign(code.COST, code.literal(writer.total)),
            code.attempt(attempted, self.bind(ERRORS), handler),
        ]
        step = NO_LOOP
        if writer.lightest is not None:
            step = max(ITERATIONS * writer.lightest, LEAST_STEP)
            body.insert(0, code.assign(code.STEP, code.literal(step)))
        inner = code.function("f", [code.ACTIVATION, code.LIMIT, code.METER], body)
        built = _build(inner, writer.constants)
        built.step = step
        return built


@lru_cache(maxsize=1024)
def _table(overloads: tuple[Overload, ...], kind: type[Unary | Dispatch]) -> Unary | Dispatch:
    return kind(overloads)


def _stored(target: ast.Attribute) -> ast.Attribute:
    return ast.Attribute(target.value, target.attr, ast.Store(), lineno=1, col_offset=0)


def _build(inner: ast.FunctionDef, constants: Mapping[str, Any]) -> Function:
    outer = code.function("g", list(constants), [inner, code.answer(code.name("f"))])
    namespace: dict[str, Any] = {"__builtins__": {}}
    exec(compile(ast.Module([outer], []), CODE_NAME, "exec", dont_inherit=True), namespace)  # noqa: S102
    built: Function = namespace["g"](*constants.values())
    return built


def is_attribute(node: Node) -> bool:
    """Return whether cel-go evaluates a node as an attribute: a variable, or an access to a value."""
    if isinstance(node, Call):
        return node.function in ("_[_]", "_[?_]")
    return isinstance(node, Ident | Select)


def _opens_blocks(compiler: Compiler, node: Node) -> bool:
    """Return whether the code of a node has loops or exception handlers."""
    pending = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, Macro) or (isinstance(at, Call) and at.function in ("_&&_", "_||_")):
            return True
        pending.extend(() if compiler.is_constant(at) else children(at))
    return False


def _literal(compiler: Compiler, node: Literal) -> Term:
    return compiler.constant(node.value, compiler.checked.type_of(node))


def _call(compiler: Compiler, node: Call) -> Term:
    return OPERATORS.get(node.function, calls.function)(compiler, node)


HANDLERS: Mapping[type, Handler] = {
    Literal: _literal,
    Ident: access.variable,
    Select: access.access,
    Has: access.presence,
    Call: _call,
    ListNode: literals.list_of,
    MapNode: literals.map_of,
    StructNode: literals.structure_of,
    Macro: macros.macro,
}

OPERATORS: Mapping[str, Handler] = {
    "_&&_": logic.conjunction,
    "_||_": logic.disjunction,
    "_?_:_": logic.conditional,
    "!_": logic.negation,
    "_==_": logic.equality,
    "_!=_": logic.equality,
    "_[_]": access.access,
    "_[?_]": access.access,
    "@in": membership.membership,
    "or": optional.alternative,
    "orValue": optional.alternative,
}
