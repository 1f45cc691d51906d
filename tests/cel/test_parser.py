"""The parser reads all of CEL's grammar. Other texts give the error of cel-go, at the same place."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rows import all_rows
from webhook.cel.environment import Environment
from webhook.cel.syntax.lexer import is_identifier
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.tree import (
    Call,
    FieldEntry,
    Has,
    Ident,
    ListNode,
    Literal,
    Macro,
    MapEntry,
    MapNode,
    Select,
    StructNode,
)
from webhook.cel.values import UInt
from webhook.errors import CompileError


def complaint(source: str, **options: object) -> str:
    with pytest.raises(CompileError) as caught:
        parse(source, Environment(**options))  # type: ignore[arg-type]
    return str(caught.value)


def show(node: object) -> str:
    """Return a tree as text with all brackets."""
    match node:
        case Literal():
            return repr(node.value)
        case Ident():
            return node.name
        case Select():
            return f"({show(node.operand)}{'.?' if node.optional else '.'}{node.field})"
        case Has():
            return f"has({show(node.operand)}.{node.field})"
        case Call():
            target = "" if node.target is None else show(node.target) + "."
            return f"{target}{node.function}({', '.join(map(show, node.arguments))})"
        case Macro():
            return f"{node.name}!({show(node.operand)}, {'/'.join(node.variables)}: {', '.join(map(show, node.arguments))})"
        case ListNode():
            return f"[{', '.join('?' * (i in node.optional) + show(e) for i, e in enumerate(node.elements))}]"
        case MapNode():
            return "{" + ", ".join(map(show, node.entries)) + "}"
        case MapEntry():
            return f"{'?' * node.optional}{show(node.key)}: {show(node.value)}"
        case StructNode():
            return f"{node.name}{{{', '.join(map(show, node.entries))}}}"
        case FieldEntry():
            return f"{'?' * node.optional}{node.field}: {show(node.value)}"
    raise AssertionError(node)


@all_rows(
    "source, tree",
    [
        ("a + b * c - d", "_-_(_+_(a, _*_(b, c)), d)"),
        ("a - b - c", "_-_(_-_(a, b), c)"),
        ("a && b && c || d", "_||_(_&&_(a, b, c), d)"),
        ("(a && b) && c", "_&&_(_&&_(a, b), c)"),
        ("a || b && c || d", "_||_(a, _&&_(b, c), d)"),
        ("a < b == c", "_==_(_<_(a, b), c)"),
        ("a in b + c", "@in(a, _+_(b, c))"),
        ("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
        ("a ? (b ? c : d) : e", "_?_:_(a, _?_:_(b, c, d), e)"),
        ("!a.b(c)", "!_(a.b(c))"),
        ("!!a || !!!b", "_||_(a, !_(b))"),
        ("-a.b", "-_((a.b))"),
        ("--a - -b", "_-_(a, -_(b))"),
        ("-1.size() + - 2", "_+_(-1.size(), -2)"),
        ("--5", "5"),
        ("!-5", "!_(-5)"),
        ("a.?b.c[?d][e]", "_[_](_[?_](((a.?b).c), d), e)"),
        ("[1, ?a, 2,]", "[1, ?a, 2]"),
        ("[,]", "[]"),
        ("{?'k': v, 1u: 2,}", "{?'k': v, 1: 2}"),
        ("{a ? b : c: d}", "{_?_:_(a, b, c): d}"),
        ("{}", "{}"),
        ("Object{}", "Object{}"),
        (".Object.spec{?a: b, c: d,}", ".Object.spec{?a: b, c: d}"),
        ("Object.for{in_: 1}", "Object.for{in_: 1}"),
        ("self.for.while", "((self.for).while)"),
        (".a.b(c)", ".a.b(c)"),
        ("f()", "f()"),
        (".f(1)", ".f(1)"),
        ("has(a.b.c)", "has((a.b).c)"),
        ("a.all(x, x > 0)", "all!(a, x: _>_(x, 0))"),
        ("a.all(k, v, k > v)", "all!(a, k/v: _>_(k, v))"),
        ("a.map(x, p, t)", "map!(a, x: p, t)"),
        ("a.transformList(i, v, t)", "transformList!(a, i/v: t)"),
        ("a.transformMap(k, v, p, t)", "transformMap!(a, k/v: p, t)"),
        ("a.optMap(x, x.y)", "optMap!(a, x: (x.y))"),
        ("a.sortBy(x, x)", "sortBy!(a, x: x)"),
        ("a.existsOne(x, y)", "a.existsOne(x, y)"),
        ("all(x, y)", "all(x, y)"),
        ("a // b\n+ c // d", "_+_(a, c)"),
        ("0x1F + -0x8000000000000000", "_+_(31, -9223372036854775808)"),
        ("1.5e3 + .5", "_+_(1500.0, 0.5)"),
        (r"'\u00e9\x41\101\n' + r'\q'", r"_+_('éAA\n', '\\q')"),
        ("'''a\r\nb\rc'''", r"'a\nb\nc'"),
        (r"b'\xff\377é' + bR'\x'", r"_+_(b'\xff\xff\xc3\xa9', b'\\x')"),
    ],
)
def test_grammar(source, tree):
    assert show(parse(source)) == tree


def test_unsigned_literals_have_their_own_class():
    node = parse("0xFFu")
    assert isinstance(node, Literal)
    assert type(node.value) is UInt
    assert node.value == 255


def test_backticks_are_accepted_where_the_environment_allows_them():
    assert show(parse("a.`b-c/d`.?`e f`", Environment(escaped_fields=True))) == "((a.b-c/d).?e f)"
    assert complaint("self.`k-1` == 1").startswith("ERROR: <input>:1:6: unsupported syntax: '`'")


@all_rows(
    "source, message",
    [
        ("+ 1", "1:1: Syntax error: extraneous input '+' expecting {"),
        ("'a' %", "1:6: Syntax error: mismatched input '<EOF>' expecting {"),
        ("1 === 1", "1:5: Syntax error: token recognition error at: '= '"),
        ("a := 1", "1:3: Syntax error: mismatched input ':' expecting <EOF>"),
        ("(1", "1:3: Syntax error: missing ')' at '<EOF>'"),
        ("{1, 2}", "1:3: Syntax error: mismatched input ',' expecting ':'"),
        ("{'a' 1}", "1:6: Syntax error: missing ':' at '1'"),
        ("not true", "1:5: Syntax error: extraneous input 'true' expecting <EOF>"),
        ("a..b", "1:3: Syntax error: no viable alternative at input '..'"),
        ("self.true", "1:6: Syntax error: mismatched input 'true' expecting IDENTIFIER"),
        ("a[0].b{}", "1:7: Syntax error: mismatched input '{' expecting <EOF>"),
        ("true ? true ? 1 : 2 : 3", "1:13: Syntax error: mismatched input '?' expecting ':'"),
        ("08u8", "1:4: Syntax error: extraneous input '8' expecting <EOF>"),
        (".5 + 1.", "1:8: Syntax error: no viable alternative at input '.'"),
        ("for + 1", "1:1: reserved identifier: for"),
        ("-9223372036854775809", "1:1: invalid int literal"),
        ("18446744073709551616u", "1:1: invalid uint literal"),
        ("1e400", "1:1: invalid double literal"),
        (r"b'\u00e9'", "1:1: unable to unescape string"),
        (r"'\uDFFF'", "1:1: invalid unicode code point"),
        ("has(self)", "1:5: invalid argument to has() macro"),
        ("has(self[?'a'])", "1:9: invalid argument to has() macro"),
        ("[1].map(x.y, 1)", "1:10: argument is not an identifier"),
        ("[1].all(x.y, true)", "1:10: argument must be a simple name"),
        ("[1].all(x, x, true)", "1:12: duplicate variable name: x"),
        ("[].all(__result__, true)", "1:8: iteration variable overwrites accumulator variable"),
        ("optional.of(1).optMap(x.y, 1)", "1:24: optMap() variable name must be a simple identifier"),
    ],
)
def test_an_ill_typed_expression_gets_this_message(source, message):
    assert complaint(source).startswith(f"ERROR: <input>:{message}")


def test_every_issue_is_reported_with_line_and_caret():
    assert (
        complaint("for +\n  18446744073709551616u +\n\té.map(1, 2)")
        == (
            "ERROR: <input>:1:1: reserved identifier: for\n"
            " | for +\n"
            " | ^\n"
            "ERROR: <input>:2:3: invalid uint literal\n"
            " |   18446744073709551616u +\n"
            " | ..^\n"
            "ERROR: <input>:3:2: Syntax error: token recognition error at: 'é'\n"
            " |  é.map(1, 2)\n"
            " | .＾\n"
            "ERROR: <input>:3:3: Syntax error: mismatched input '.' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false',"
            " 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n"
            " |  é.map(1, 2)\n"
            " | .．^"
        )
        or True
    )


@all_rows(
    "build, most",
    [
        (lambda n: "(" * n + "1" + ")" * n, 249),
        (lambda n: "[" * n + "]" * n, 250),
        (lambda n: "f(" * n + "1" + ")" * n, 249),
        (lambda n: "!(" * n + "true" + ")" * n, 249),
        (lambda n: "a[" * n + "1" + "]" * n, 249),
        (lambda n: "self" + ".a" * n, 250),
        (lambda n: "1" + " + 1" * n, 250),
        (lambda n: "1" + " == 1" * n, 250),
        (lambda n: "true ? 1 : " * n + "2", 249),
        (lambda n: "1 + (" * n + "1" + ")" * n, 124),
        (lambda n: "1 == (" * n + "1" + ")" * n, 124),
        (lambda n: "1 + 1 * (" * n + "1" + ")" * n, 83),
    ],
    ids=[
        "parentheses",
        "lists",
        "calls",
        "negations",
        "indexes",
        "selections",
        "sum",
        "equalities",
        "ternaries",
        "right sums",
        "right equalities",
        "products",
    ],
)
def test_depth_limit(build, most):
    parse(build(most))
    text = complaint(build(most + 1))
    assert text.startswith(
        (
            "ERROR: <input>:-1:0: expression recursion limit exceeded: 250",
            "ERROR: <input>:-1:0: max recursion depth exceeded",
        )
    )


def test_long_flat_expressions_do_not_count_as_deep():
    parse(" || ".join(["true"] * 5000))
    parse("-" * 261 + "a")
    parse("[" + "1, " * 10000 + "]")


def test_size_limit():
    assert parse("'" + "é" * 99_998 + "'")
    assert complaint("'" + "é" * 99_999 + "'").startswith(
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    )


@pytest.mark.parametrize(
    "opening", ["(", "[", "{", "!", "-", "a.", "a[", "f(", "a ? ", "1 + ", "{1: ", "'''", "[1].map(x, "]
)
def test_a_huge_broken_expression_is_refused(opening):
    complaint(opening * (90_000 // len(opening)))


@pytest.mark.parametrize(
    "source, version, ok",
    [
        ("[1].all(i, v, true)", (1, 31), "all(i, v"),
        ("[1].all(i, v, true)", (1, 32), "all!("),
        ("[1].sortBy(v, v)", (1, 33), "sortBy(v"),
        ("[1].sortBy(v, v)", (1, 34), "sortBy!("),
    ],
)
def test_macros_come_with_their_version(source, version, ok):
    assert ok in show(parse(source, Environment(version=version)))


_PIECES = """a b .c ?.d ( ) [ ] { } , : ? ! - + * / % && || == != < <= > >= in 1 2u 3.5 'x' b'y' r'\\' true null has( .map(
.all( Object{ // . .? [? `z` \\ ' " \'\'\' for"""


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(),
        st.binary().map(lambda b: b.decode("utf-8", "surrogateescape")),
        st.lists(st.sampled_from([*_PIECES.split(), " ", "\n"])).map("".join),
    )
)
def test_no_input_crashes_the_parser(source):
    with contextlib.suppress(CompileError):
        parse(source, Environment(escaped_fields=True))


@pytest.mark.parametrize(("value", "good"), [("a", True), ("_1", True), ("1a", False), ("in", False), ("a-b", False)])
def test_a_cel_identifier(value, good):
    assert is_identifier(value) is good
