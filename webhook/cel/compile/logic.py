"""Compiles `&&`, `||`, `!`, `? :`, `==` and `!=`.

Every operand of a chain of && or || stands under the condition that none before it has decided, and in a try of its own
if it can fail; the first error is raised only if no later operand decides (cel-go v0.26.0 interpreter/interpretable.go
evalAnd, evalOr). In Python 3.11 a try costs nothing until something is raised.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from webhook.cel.compile import code
from webhook.cel.compile import optional as optionals
from webhook.cel.compile.code import Place, Term
from webhook.cel.compile.failure import ERRORS
from webhook.cel.compile.membership import may_be_opaque
from webhook.cel.equality import equal, equal_quietly
from webhook.cel.library import runtime
from webhook.cel.library.conversions import type_value
from webhook.cel.library.refusal import refuse
from webhook.cel.syntax.tree import Call, Node
from webhook.cel.types import BOOL, NULL, Type
from webhook.cel.values import TYPE_NAMES, Map, TypeValue, UInt, no_such_overload

if TYPE_CHECKING:
    from webhook.cel.compile.compiler import Compiler

_SIZED = frozenset(("string", "bytes", "list", "map", "dyn", "any", "optional_type"))
Equals: TypeAlias = "Callable[..., bool]"
_EXACT = 2**53
"""Below this every int is exactly a double, so that Python's exact comparison and cel-go's agree."""


def conjunction(compiler: Compiler, node: Call) -> Term:
    """Return the code of a && b && …"""
    return _chain(compiler, node, decides=False)


def disjunction(compiler: Compiler, node: Call) -> Term:
    """Return the code of a || b || …"""
    return _chain(compiler, node, decides=True)


def _operands(node: Call) -> list[Node]:
    operands: list[Node] = []
    pending: list[Node] = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, Call) and at.function == node.function:
            pending.extend(reversed(at.arguments))
        else:
            operands.append(at)
    return operands


def _chain(compiler: Compiler, node: Call, *, decides: bool) -> Term:
    writer = compiler.writer
    result, error = writer.temporary(), writer.temporary()
    operands = _operands(node)
    is_long = len(operands) > _NESTED
    writer.depth += 1 + is_long
    bodies: list[list[ast.stmt]] = []
    fails = False
    for position, operand in enumerate(operands):
        last = position == len(operands) - 1
        writer.level += not last
        with writer.nested() if position == 0 else writer.block() as body:
            term = compiler.value(operand)
            raises = bool(body) or term.raises or not is_bool(term)
            writer.emit(code.assign(result, term.code))
            if not is_bool(term):
                require_bool(compiler, code.name(result))
        writer.level -= not last
        if raises and (fails or not last):
            body = [attempt_operand(compiler, body, error)]
            fails = True
        bodies.append(body)
    writer.depth -= 1 + is_long
    if fails:
        writer.emit(code.assign(error, code.literal(None)))
        writer.emit(code.assign(result, code.literal(not decides)))
        bodies.append(_surface(error))
    join = _in_a_row if is_long else _inside_each_other
    writer.body.extend(join(code.name(result), bodies, decides=decides))
    return Term(code.name(result), BOOL, raises=False, atom=True, sure=True)


_NESTED = 8
"""How many operands of a chain are nested; Python cannot compile much deeper code."""


def _inside_each_other(result: ast.Name, bodies: list[list[ast.stmt]], *, decides: bool) -> list[ast.stmt]:
    """Return statements in which each operand is nested in the condition that those before it have not decided."""
    undecided = code.different(result, code.literal(decides))
    inner: list[ast.stmt] = []
    for body in reversed(bodies):
        inner = [*body, code.branch(undecided, inner)] if inner else body
    return inner


def _in_a_row(result: ast.Name, bodies: list[list[ast.stmt]], *, decides: bool) -> list[ast.stmt]:
    """Return a loop that runs once, evaluates one operand after the other, and ends when one has decided."""
    decided = code.branch(code.identical(result, code.literal(decides)), [code.leave()])
    row = [statement for body in bodies for statement in (*body, decided)]
    return [code.once([*row, code.leave()])]


def attempt_operand(compiler: Compiler, body: list[ast.stmt], error: str) -> ast.stmt:
    """Return a statement that runs `body` and stores its error unless an earlier one is stored."""
    refund_for = code.call(compiler.bind(compiler.refund_for), code.name("x"))
    keep = code.branch(code.identical(code.name(error), code.literal(None)), [code.assign(error, code.name("x"))])
    compiler.writer.moves += 1
    return code.attempt(body, compiler.bind(ERRORS), [code.subtract_cost(refund_for), keep])


def _surface(error: str) -> list[ast.stmt]:
    pending = code.different(code.name(error), code.literal(None))
    return [code.branch(pending, [code.fail(code.name(error))])]


def is_bool(term: Term) -> bool:
    """Return whether a value is certain to be a bool."""
    return term.sure and term.type.name == "bool"


def require_bool(compiler: Compiler, value: ast.expr, operator: str = "") -> None:
    """Write a statement that fails unless the value is a bool; the error names `operator` if one is given."""
    wrong = code.conjunction(
        code.different(value, code.literal(value=True)), code.different(value, code.literal(value=False))
    )
    refused = compiler.call(no_such_overload, place=Place("call"))
    if operator:
        refused = compiler.call(refuse, code.literal(operator), value, place=Place("call"))
    compiler.writer.emit(code.branch(wrong, [code.expression(refused)]))


def checked_bool(compiler: Compiler, term: Term, operator: str = "") -> ast.expr:
    """Return the code of a value as a bool, after writing a check where it might be something else."""
    if is_bool(term):
        return term.code
    reusable = compiler.reusable(term)
    require_bool(compiler, reusable.code, operator)
    return reusable.code


def negation(compiler: Compiler, node: Call) -> Term:
    """Return the code of !a."""
    compiler.writer.charge(1)
    term = compiler.value(node.arguments[0])
    return Term(code.negation(checked_bool(compiler, term, "!_")), BOOL, raises=term.raises, sure=True)


def conditional(compiler: Compiler, node: Call) -> Term:
    """Return the code of a ? b : c. Only the chosen branch is evaluated, and the condition's error is the result's."""
    writer = compiler.writer
    test = checked_bool(compiler, compiler.value(node.arguments[0]))
    result = code.name(writer.temporary())
    terms: list[Term] = []
    bodies: list[list[ast.stmt]] = []
    for branch in node.arguments[1:]:
        with writer.block() as body:
            terms.append(compiler.without_attribute_cost(branch))
        bodies.append(body)
    raw = [term.raw for term in terms if term.raw is not None]
    values = raw if len(raw) == len(terms) else [term.code for term in terms]
    for body, value in zip(bodies, values, strict=True):
        body.append(code.assign(result.id, value))
    writer.emit(code.branch(test, *bodies))
    value = optionals.conditional_value(compiler, node, result, is_raw=values is raw)
    if value is not result:
        writer.emit(code.assign(result.id, value))
    if values is raw:
        return optionals.optional_of_variable(compiler, result, compiler.checked.type_of(node))
    sure = terms[0].sure and terms[1].sure and terms[0].type == terms[1].type
    return Term(result, compiler.checked.type_of(node), raises=False, atom=True, sure=sure)


# ---- equality


def equality(compiler: Compiler, node: Call) -> Term:
    """Return the code of a == b or a != b, which compares values of any types; it costs 1 for every 10 of the smaller
    size.
    """
    left, right = node.arguments
    if compiler.is_constant(left) and not compiler.is_constant(right):
        left, right = right, left
    compiler.writer.charge(1)
    # only an opaque value on the left refuses to be compared
    equals = equal_quietly if node.function == "_!=_" or left is not node.arguments[0] else equal
    if _is_type(left, compiler) and type(compiler.constants.get(id(right))) is TypeValue:
        result = _with_type(compiler, left, compiler.constants[id(right)].name)
    else:
        first, second = compiler.values((left, right))
        if compiler.is_constant(right):
            result = _with_constant(compiler, first, second, compiler.constants[id(right)], equals)
        else:
            result = _with_value(compiler, first, second, equals)
    if node.function == "_!=_":
        result.code, result.atom = code.negation(result.code), False
    return result


def _is_type(node: Node, compiler: Compiler) -> TypeGuard[Call]:
    """Return whether a node is type(x)."""
    overloads = compiler.overloads(node) if isinstance(node, Call) else ()
    return len(overloads) == 1 and overloads[0].implementation is type_value and not compiler.is_constant(node)


def _with_type(compiler: Compiler, node: Call, name: str) -> Term:
    """Return the code of type(x) == name, which compares the class of x without creating a type value."""
    compiler.writer.charge(1)
    term = compiler.value(node.arguments[0])
    if name in _ONLY and term.type.kind != "object":
        is_one = code.identical(code.call(compiler.bind(type), term.code), compiler.bind(_ONLY[name]))
        return Term(is_one, BOOL, raises=term.raises, sure=True)
    first, again = compiler.first_and_later(term) if name == "map" else (term.code, term.code)
    line = compiler.writer.line(Place("call"))
    named = code.subscript(compiler.bind(TYPE_NAMES), code.call(compiler.bind(type), again), line)
    test: ast.expr = code.compare(named, ast.Eq(), code.literal(name))
    if name == "map":
        test = code.disjunction(code.identical(code.call(compiler.bind(type), first), compiler.bind(dict)), test)
    return Term(test, BOOL, sure=True)


_ONLY: dict[str, type] = {
    "bool": bool,
    "int": int,
    "uint": UInt,
    "double": float,
    "string": str,
    "bytes": bytes,
    "list": list,
    "null_type": type(None),
}
"""Types whose values have exactly one Python class."""


def _with_constant(compiler: Compiler, term: Term, constant: Term, value: Any, equals: Equals) -> Term:
    writer = compiler.writer
    kind = type(value)
    raises = term.raises
    if kind in (str, list, bytes, dict, Map):
        if not value:
            writer.charge(-1)  # the smaller size is 0
            return Term(_equals_constant(compiler, term, value, equals), BOOL, raises=raises, sure=True)
        if kind is not str:
            return _with_value(compiler, term, constant, equals)
        if len(value) > 10 and not may_be_opaque(compiler, term):
            return _with_long_text(compiler, term, value)
    if may_be_sized(term.type):
        term = compiler.reusable(term)
        writer.moves += 1
        empty = compiler.call(runtime.empty, term.code)
        writer.emit(code.branch(code.negation(term.code), [code.subtract_cost(empty)]))
    return Term(_equals_constant(compiler, term, value, equals), BOOL, raises=raises, sure=True)


def _with_long_text(compiler: Compiler, term: Term, value: str) -> Term:
    reusable = compiler.reusable(term)
    result = compiler.writer.in_variable(code.compare(reusable.code, ast.Eq(), code.literal(value)))
    compiler.writer.charge(tenths(len(value)) - 1)
    compiler.writer.moves += 1
    compiler.writer.emit(code.branch(code.negation(result), _shortfall(compiler, reusable.code, len(value))))
    return Term(result, BOOL, raises=False, atom=True, sure=True)


def tenths(length: int) -> int:
    """Return a tenth of a length, rounded up."""
    return (length + 9) // 10


def _shortfall(compiler: Compiler, value: ast.expr, length: int) -> list[ast.stmt]:
    """Return statements that subtract the cost of the characters by which a value is shorter than the text it is
    compared with.
    """
    size = code.name(compiler.writer.temporary())
    is_text = code.identical(code.call(compiler.bind(type), value), compiler.bind(str))
    other = compiler.call(runtime.measure, value)
    measured = code.either(is_text, code.call(compiler.bind(len), value), other)
    rounded = code.binary(code.binary(size, ast.Add(), code.literal(9)), ast.FloorDiv(), code.literal(10))
    less = code.subtract_cost(code.binary(code.literal(tenths(length)), ast.Sub(), rounded))
    is_shorter = code.compare(size, ast.Lt(), code.literal(length))
    return [code.assign(size.id, measured), code.branch(is_shorter, [less])]


def _equals_constant(compiler: Compiler, term: Term, value: Any, equals: Equals) -> ast.expr:
    if may_be_opaque(compiler, term) and value is not None:
        return compiler.call(equals, term.code, compiler.bind(value), place=Place("call"))
    if value is None or value is True or value is False:
        return code.identical(term.code, code.literal(value))
    kind = type(value)
    plain = kind is str or (kind is int and abs(value) < _EXACT and value not in (0, 1))
    plain = plain or (kind is float and abs(value) < _EXACT and value not in (0.0, 1.0))
    # true == 1 in Python, so 0 and 1 need to know that the other side is no bool
    if plain or (kind is int and abs(value) < _EXACT and term.sure and term.type.name == "int"):
        return code.compare(term.code, ast.Eq(), code.literal(value))
    if kind is int and abs(value) < _EXACT:
        first, again = compiler.first_and_later(term)
        is_int = code.identical(code.call(compiler.bind(type), first), compiler.bind(int))
        quick = code.compare(again, ast.Eq(), code.literal(value))
        return code.either(is_int, quick, compiler.call(equals, again, code.literal(value), place=Place("call")))
    return compiler.call(equals, term.code, compiler.bind(value), place=Place("call"))


def _count_sizes(compiler: Compiler, left: ast.expr, right: ast.expr) -> None:
    """Write a statement that adds the cost of comparing two values by their sizes; short texts add nothing."""
    writer = compiler.writer
    is_text = code.identical(code.call(compiler.bind(type), left), compiler.bind(str))
    length = code.call(compiler.bind(len), left)
    short = ast.Compare(code.literal(0), [ast.Lt(), ast.Lt()], [length, code.literal(11)], lineno=1, col_offset=0)
    count = code.add_cost(compiler.call(runtime.equality, left, right))
    writer.moves += 1
    writer.heavy += 1
    writer.emit(code.branch(code.negation(code.conjunction(is_text, right, short)), [count]))


def may_be_sized(static: Type) -> bool:
    """Return whether a value of this static type may have a size, and so be empty."""
    return static.name in _SIZED or static.kind == "object"


def _with_value(compiler: Compiler, left: Term, right: Term, equals: Equals) -> Term:
    raises = left.raises or right.raises
    if may_be_sized(left.type) and may_be_sized(right.type) and NULL not in (left.type, right.type):
        left, right = compiler.reusable(left), compiler.reusable(right)
        _count_sizes(compiler, left.code, right.code)
    elif may_be_sized(left.type) or may_be_sized(right.type):
        left, right = compiler.reusable(left), compiler.reusable(right)
        sized = left if may_be_sized(left.type) else right
        compiler.writer.moves += 1
        empty = compiler.call(runtime.empty, sized.code)
        compiler.writer.emit(code.branch(code.negation(sized.code), [code.subtract_cost(empty)]))
    if left.type.name == right.type.name and left.type.name in ("string", "bool") and (left.sure or right.sure):
        return Term(code.compare(left.code, ast.Eq(), right.code), BOOL, raises=raises, sure=True)
    left, right = compiler.reusable(left), compiler.reusable(right)
    is_text = code.identical(code.call(compiler.bind(type), left.code), compiler.bind(str))
    quick = code.compare(left.code, ast.Eq(), right.code)
    slow = compiler.call(equals, left.code, right.code, compiler.deadline(), place=Place("call"))
    return Term(code.either(is_text, quick, slow), BOOL, raises=raises, sure=True)
