"""Builds the syntax tree of generated Python code. The docstring of each function `…_node` is the code of its tree.

The tree has only literals, generated names and references to bound constants, never the text of an expression. A block
is a run of code without a jump: its cost is added once, at its start. Each operation that can fail has its own line,
which identifies it in an error.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from msgspec import Struct, field

from webhook.cel.types import Type

_AT: dict[str, Any] = {"lineno": 1, "col_offset": 0}
_LOAD, _STORE = ast.Load(), ast.Store()
LIGHT = 20
"""The cost that a loop may add between two checks of the limit."""
_IMMUTABLE = (str, int, float, bool, bytes, type(None), frozenset)

COST, LIMIT, METER, ACTIVATION, STEP = "C", "L", "M", "A", "S"


class ValueCode(Struct):
    """The code of a value.

    Attributes:
        atom: may be written twice.
        raises: can fail.
        sure: the value certainly has the class of its static type.
        raw: for an optional, the variable with its value or ABSENT.
        steps: for an optional, the cost that the last statement adds if the optional has a value; 0 without such a
            statement.
    """

    code: ast.expr
    type: Type
    raises: bool = True
    atom: bool = False
    sure: bool = False
    raw: ast.Name | None = None
    steps: int = 0


class FailurePlace(Struct):
    """The operation on a line of generated code, with its values, and the counted cost to subtract if it fails.

    Attributes:
        cost, arguments: the function for the cost of a failed call, and the variables and constants that this function
            gets. Without a function, a failed call costs 1.
        level: the number of error handlers around the operation.
        kind: what failed, which decides the error (failure.py). For "key", the first argument is the key. For
            "operand", the error names the operation `subject` and the class of the first argument.
    """

    kind: str
    subject: Any = None
    refund: int = 0
    cost: Callable[..., int] | None = None
    arguments: tuple[ast.expr, ...] = ()
    level: int = 0


# ---- nodes


def name_node(identifier: str) -> ast.Name:
    """A variable."""
    return ast.Name(identifier, _LOAD, **_AT)


def constant_node(value: Any) -> ast.Constant:
    """A constant of one of Python's immutable classes."""
    return ast.Constant(value, **_AT)


def call_node(function: ast.expr, *arguments: ast.expr, line: int = 1) -> ast.Call:
    """`function(arguments)`."""
    return ast.Call(function, list(arguments), [], lineno=line, col_offset=0)


def subscript_node(value: ast.expr, key: ast.expr, line: int = 1) -> ast.Subscript:
    """`value[key]`."""
    return ast.Subscript(value, key, _LOAD, lineno=line, col_offset=0)


def attribute_node(value: ast.expr, identifier: str, line: int = 1) -> ast.Attribute:
    """`value.identifier`."""
    return ast.Attribute(value, identifier, _LOAD, lineno=line, col_offset=0)


def comparison_node(left: ast.expr, operator: ast.cmpop, right: ast.expr, line: int = 1) -> ast.Compare:
    """A comparison."""
    return ast.Compare(left, [operator], [right], lineno=line, col_offset=0)


def is_comparison_node(left: ast.expr, right: ast.expr) -> ast.expr:
    """`left is right`; for two constants the result itself, because Python warns about `is` with a literal."""
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        return constant_node(left.value is right.value)
    return comparison_node(left, ast.Is(), right)


def is_not_comparison_node(left: ast.expr, right: ast.expr) -> ast.expr:
    """`left is not right`; for two constants the result itself, because Python warns about `is not` with a literal."""
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        return constant_node(left.value is not right.value)
    return comparison_node(left, ast.IsNot(), right)


def binary_operation_node(left: ast.expr, operator: ast.operator, right: ast.expr, line: int = 1) -> ast.BinOp:
    """A binary operation."""
    return ast.BinOp(left, operator, right, lineno=line, col_offset=0)


def not_node(value: ast.expr) -> ast.UnaryOp:
    """`not value`."""
    return ast.UnaryOp(ast.Not(), value, **_AT)


def if_else_node(test: ast.expr, value: ast.expr, other: ast.expr) -> ast.IfExp:
    """`value if test else other`."""
    return ast.IfExp(test, value, other, **_AT)


def and_node(*values: ast.expr) -> ast.BoolOp:
    """`value and value`."""
    return ast.BoolOp(ast.And(), list(values), **_AT)


def or_node(*values: ast.expr) -> ast.BoolOp:
    """`value or value`."""
    return ast.BoolOp(ast.Or(), list(values), **_AT)


def walrus_node(identifier: str, value: ast.expr) -> ast.NamedExpr:
    """`(identifier := value)`."""
    return ast.NamedExpr(ast.Name(identifier, _STORE, **_AT), value, **_AT)


def assignment_node(identifier: str, value: ast.expr) -> ast.Assign:
    """`identifier = value`."""
    return ast.Assign([ast.Name(identifier, _STORE, **_AT)], value, **_AT)


def expression_statement_node(value: ast.expr) -> ast.Expr:
    """A statement that evaluates an expression and ignores the value."""
    return ast.Expr(value, **_AT)


def add_cost_node(value: ast.expr) -> ast.AugAssign:
    """`c += value`, where c is the cost."""
    return ast.AugAssign(ast.Name(COST, _STORE, **_AT), ast.Add(), value, **_AT)


def subtract_cost_node(value: ast.expr) -> ast.AugAssign:
    """`c -= value`, where c is the cost."""
    return ast.AugAssign(ast.Name(COST, _STORE, **_AT), ast.Sub(), value, **_AT)


def if_node(test: ast.expr, body: list[ast.stmt], other: list[ast.stmt] | None = None) -> ast.If:
    """`if test: body`, and `else: other`."""
    return ast.If(test, body, other or [], **_AT)


def for_node(targets: list[str], iterable: ast.expr, body: list[ast.stmt]) -> ast.For:
    """`for targets in iterable: body`."""
    names: list[ast.expr] = [ast.Name(each, _STORE, **_AT) for each in targets]
    target = names[0] if len(names) == 1 else ast.Tuple(names, _STORE, **_AT)
    return ast.For(target, iterable, body, [], **_AT)


def while_once_node(body: list[ast.stmt]) -> ast.While:
    """`while True: body`, where the body must break."""
    return ast.While(constant_node(value=True), body, [], **_AT)


def break_node() -> ast.Break:
    """`break`."""
    return ast.Break(**_AT)


def raise_node(error: ast.expr) -> ast.Raise:
    """`raise error from None`."""
    return ast.Raise(error, constant_node(None), **_AT)


def try_node(body: list[ast.stmt], errors: ast.expr, handler: list[ast.stmt]) -> ast.Try:
    """`try: body` and `except errors as x: handler`."""
    return ast.Try(body, [ast.ExceptHandler(errors, "x", handler, **_AT)], [], [], **_AT)


def return_node(value: ast.expr) -> ast.Return:
    """`return value`."""
    return ast.Return(value, **_AT)


def function_node(identifier: str, parameters: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    """`def identifier(parameters): body`."""
    arguments = ast.arguments([], [ast.arg(each, None, **_AT) for each in parameters], None, [], [], None, [])
    return ast.FunctionDef(identifier, arguments, body, [], None, **_AT)


def nonlocal_node(names: list[str]) -> ast.Nonlocal:
    """`nonlocal names`."""
    return ast.Nonlocal(names, **_AT)


def list_node(values: list[ast.expr]) -> ast.List:
    """A list."""
    return ast.List(values, _LOAD, **_AT)


def pair_node(first: ast.expr, second: ast.expr) -> ast.Tuple:
    """A tuple of two values."""
    return ast.Tuple([first, second], _LOAD, **_AT)


def dict_node(keys: list[ast.expr], values: list[ast.expr]) -> ast.Dict:
    """A dict."""
    return ast.Dict(list(keys), values, **_AT)


# ---- writing


class CodeWriter(Struct):
    """Collects the generated statements, their cost and the operations that can fail.

    Args:
        exact: a loop counts each iteration when the iteration runs. With False, a loop counts all iterations in
            advance, which is faster. If this count exceeds the limit, the expression is evaluated again with True
            (LoopExceedsLimit).
        lightest: the least cost of an iteration of any loop; None without loops.
        moves: the number of statements that change the cost at run time.
        heavy: the number of these statements that may change the cost by more than LIGHT.
        depth: the number of nested blocks, which Python limits (NESTED_BLOCKS).
        level: the number of error handlers around the code.
    """

    exact: bool = False
    lightest: int | None = None
    body: list[ast.stmt] = field(default_factory=list)
    total: int = 0
    moves: int = 0
    heavy: int = 0
    depth: int = 0
    level: int = 0
    constants: dict[str, Any] = field(default_factory=dict)
    places: list[FailurePlace] = field(default_factory=lambda: [FailurePlace(""), FailurePlace("")])
    _numbers: int = 0
    _bound: dict[int, str] = field(default_factory=dict)

    def append_statement(self, statement: ast.stmt) -> None:
        self.body.append(statement)

    def new_variable_name(self) -> str:
        self._numbers += 1
        return f"v{self._numbers}"

    def new_line_number(self, place: FailurePlace) -> int:
        """Return a line number for an operation that can fail."""
        place.level = self.level
        self.places.append(place)
        return len(self.places) - 1

    def reference_to_object(self, value: Any) -> ast.expr:
        if type(value) in _IMMUTABLE:
            return constant_node(value)
        name = self._bound.get(id(value))
        if name is None:
            name = self._bound[id(value)] = f"k{len(self.constants)}"
            self.constants[name] = value
        return name_node(name)

    def stored_in_variable(self, value: ast.expr) -> ast.Name:
        """Return the value itself if it is a variable, otherwise a new variable with the value."""
        return value if isinstance(value, ast.Name) else self.assign_to_new_variable(value)

    def assign_to_new_variable(self, value: ast.expr) -> ast.Name:
        """Assign a value to a new variable, and return the variable."""
        identifier = self.new_variable_name()
        self.append_statement(assignment_node(identifier, value))
        return name_node(identifier)

    def add_fixed_cost(self, cost: int) -> None:
        """Add a cost that every run of this block has."""
        self.total += cost

    @contextmanager
    def subtract_cost_of_unreached_parts(self) -> Iterator[Callable[[], None]]:
        """For each part of a construct, note the cost of the later parts: a failure in the part subtracts this cost.

        Call the yielded function before each part and once after the last part.
        """
        starts: list[tuple[int, int]] = []
        yield lambda: starts.append((len(self.places), self.total))
        end = starts[-1][1] if starts else 0
        for (first, _), (after, total) in pairwise(starts):
            for place in self.places[first:after]:
                if place.level == self.level:
                    place.refund += end - total

    def note_cost_of_iteration(self, cost: int) -> None:
        """Update `lightest` with the cost of one iteration of a loop."""
        self.lightest = cost if self.lightest is None else min(self.lightest, cost)

    def add_runtime_cost(self, value: ast.expr) -> None:
        """Add a cost that is computed at run time."""
        self.moves += 1
        self.heavy += 1
        self.append_statement(add_cost_node(value))

    @contextmanager
    def collect_nested_statements(self) -> Iterator[list[ast.stmt]]:
        """Collect statements of the same block in a new list, which the caller puts into the code."""
        outer, self.body = self.body, []
        try:
            yield self.body
        finally:
            self.body = outer

    @contextmanager
    def collect_block(self) -> Iterator[list[ast.stmt]]:
        """Collect statements in a new block. The start of the block adds the cost of the block."""
        outer, self.body, total, self.total = self.body, [], self.total, 0
        block = self.body
        try:
            yield block
        finally:
            if self.total:
                block.insert(0, add_cost_node(constant_node(self.total)))
                self.moves += 1
                self.heavy += self.total > LIGHT
            self.body, self.total = outer, total
