"""The checker gives every expression cel-go's type in Kubernetes, or the same error at the same place."""

import sys

import pytest

from tests.rows import all_rows
from webhook.cel.check.checked import check_tree, parse_and_check
from webhook.cel.environment import Environment
from webhook.cel.syntax.parser import parse
from webhook.cel.syntax.tree import Call, Select
from webhook.cel.types import BOOL, DYN, INT, STRING, Structure, list_of, map_of, object_type, opaque_type
from webhook.errors import CompileError

REQUEST = object_type("kubernetes.AdmissionRequest")
ENVIRONMENT = Environment(
    variables={
        "self": DYN,
        "n": INT,
        "names": list_of(STRING),
        "labels": map_of(STRING, STRING),
        "request": REQUEST,
        "authorizer": opaque_type("kubernetes.authorization.Authorizer"),
        "authorizer.requestResource": opaque_type("kubernetes.authorization.ResourceCheck"),
    },
    structures={
        "kubernetes.AdmissionRequest": Structure(
            "kubernetes.AdmissionRequest", {"name": STRING, "kind": object_type("kubernetes.GroupVersionKind")}
        ),
        "kubernetes.GroupVersionKind": Structure("kubernetes.GroupVersionKind", {"group": STRING, "kind": STRING}),
    },
    mutation=True,
)


def complaint(source, *expects, environment=ENVIRONMENT):
    with pytest.raises(CompileError) as caught:
        parse_and_check(source, environment, expects)
    return str(caught.value)


@all_rows(
    "source, result",
    [
        ("1 + 2", "int"),
        ("self.a.b[0]", "dyn"),
        ("self.a == 1 && n > 2.5", "bool"),
        ("request.kind.group + request.name", "string"),
        ("[1, 2]", "list(int)"),
        ("[]", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("[dyn(1), dyn('a')]", "list(dyn)"),
        ("{'a': [1u]}", "map(string, list(uint))"),
        ("[[], [[]], [[[]]]]", "list(list(list(list(dyn))))"),
        ("[optional.none(), optional.of(1)]", "list(optional_type(int))"),
        ("true ? optional.of(dyn(1)) : optional.of(1)", "optional_type(dyn)"),
        ("has(self.a) ? self.a.b : true", "dyn"),
        ("true ? 1 : dyn(2)", "dyn"),
        ("null", "null_type"),
        ("type(1)", "type(int)"),
        ("type(type(1))", "type(type(int))"),
        ("type(self)", "type(dyn)"),
        ("int", "type(int)"),
        ("type(n) == int", "bool"),
        ("type(timestamp(0)) == google.protobuf.Timestamp", "bool"),
        ("type(ip('::1')) == net.IP", "bool"),
        ("names.map(x, x.size())", "list(int)"),
        ("names.map(x, x != '', [x])", "list(list(string))"),
        ("names.filter(x, x != '')", "list(string)"),
        ("labels.filter(k, k != '')", "list(string)"),
        ("labels.all(k, k == labels[k])", "bool"),
        ("labels.all(k, v, k == v)", "bool"),
        ("names.exists(i, v, i > 0 && v != '')", "bool"),
        ("names.exists_one(x, x == 'a')", "bool"),
        ("names.transformList(i, v, i)", "list(int)"),
        ("names.transformMap(i, v, v)", "map(int, string)"),
        ("names.transformMapEntry(i, v, {v: i})", "map(string, int)"),
        ("self.transformMap(k, v, 1)", "map(dyn, int)"),
        ("names.sortBy(x, x.size())", "list(string)"),
        ("[].map(x, x)[0].foo", "dyn"),
        ("self.?a", "optional_type(dyn)"),
        ("labels.?a", "optional_type(string)"),
        ("{'a': {'b': 1}}.?a.b", "optional_type(int)"),
        ("labels[?'a']", "optional_type(string)"),
        ("labels.?a.optMap(x, x.size())", "optional_type(int)"),
        ("labels.?a.optFlatMap(x, optional.of([x]))", "optional_type(list(string))"),
        ("labels.?a.orValue('b')", "string"),
        ("[?labels.?a, 'b']", "list(string)"),
        ("{?'k': labels.?a}", "map(string, string)"),
        ("Object{spec: Object.status{x: 1}}", "Object"),
        ("Object{}.anything", "dyn"),
        ("[JSONPatch{op: 'add', path: '/a', value: 1}]", "list(JSONPatch)"),
        ("duration('1h') + timestamp('2020-01-01T00:00:00Z')", "google.protobuf.Timestamp"),
        ("quantity('1').add(2)", "kubernetes.Quantity"),
        ("optional.of(1) == null", "bool"),
        ("sets.contains(names, ['a'])", "bool"),
        ("timestamp(self.t) == null", "bool"),
    ],
)
def test_types(source, result):
    assert str(parse_and_check(source, ENVIRONMENT).result) == result


@all_rows(
    "source, message",
    [
        ("x", "1:1: undeclared reference to 'x' (in container '')"),
        ("self.f()", "1:7: undeclared reference to 'f' (in container '')"),
        ("math.abs(1)", "1:1: undeclared reference to 'math' (in container '')"),
        ("[1].map(x, y)", "1:12: undeclared reference to 'y' (in container '')"),
        ("request.namee", "1:8: undefined field 'namee'"),
        ("has(request.kindd)", "1:4: undefined field 'kindd'"),
        ("request.?kindd", "1:8: undefined field 'kindd'"),
        ("'a'.x", "1:4: type 'string' does not support field selection"),
        ("1 == 'a'", "1:3: found no matching overload for '_==_' applied to '(int, string)'"),
        ("1u == 1", "1:4: found no matching overload for '_==_' applied to '(uint, int)'"),
        ("'abc'.split()", "1:12: found no matching overload for 'split' applied to 'string.()'"),
        ("size()", "1:5: found no matching overload for 'size' applied to '()'"),
        ("!n", "1:1: found no matching overload for '!_' applied to '(int)'"),
        ("n && true", "1:1: expected type 'bool' but found 'int'"),
        ("true || true || names", "1:17: expected type 'bool' but found 'list(string)'"),
        ("n ? 1 : 2", "1:3: found no matching overload for '_?_:_' applied to '(int, int, int)'"),
        ("true ? 1 : 'a'", "1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
        ("[1, 'a']", "1:5: expected type 'int' but found 'string'"),
        ("dyn([1, 'a'])", "1:9: expected type 'int' but found 'string'"),
        ("[1, null]", "1:5: expected type 'int' but found 'null'"),
        ("{'a': 1, 'b': 'c', 2: 1}", "1:15: expected type 'int' but found 'string'"),
        ("[?1]", "1:3: expected type 'optional_type(int)' but found 'int'"),
        ("n.all(x, true)", "1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or"),
        ("names.all(x, x)", "1:14: expected type 'bool' but found 'string'"),
        ("names.exists_one(x, x)", "1:17: found no matching overload for '_?_:_' applied to '(string, int, int)'"),
        ("names.filter(x, 1)", "1:13: found no matching overload for '_?_:_' applied to '(int, list(string), list(str"),
        (
            "{}.transformMapEntry(j, k, 'bad', {k: j})",
            "1:21: found no matching overload for '_?_:_' applied to '(string",
        ),
        ("n.optMap(x, x)", "1:9: found no matching overload for 'hasValue' applied to 'int.()'"),
        ("optional.of(1).orValue('a')", "1:23: found no matching overload for 'orValue' applied to 'optional_type(int"),
        ("'abc'.matches('(')", "1:15: invalid matches argument"),
        ("self.duration == duration('1d')", "1:27: invalid duration argument"),
        ("timestamp('2025-12-31T23:59:60Z')", "1:11: invalid timestamp argument"),
        ("Invalid{}", "1:8: undeclared reference to 'Invalid' (in container '')"),
        ("int{}", "1:4: 'int' is not a message type"),
        ("n{}", "1:2: 'int' is not a type"),
        ("JSONPatch{op: 1}", "1:13: expected type of field 'op' is 'string' but provided type is 'int'"),
        ("JSONPatch{wrong: 1}", "1:16: expected type of field 'wrong' is '' but provided type is 'int'"),
        (
            "'%d'.format(['a'])",
            "1:14: error during formatting: decimal clause can only be used on integers, was given s",
        ),
        ("'%s'.format(['a', 1])", "1:12: too many arguments supplied to string.format (expected 1, got 2)"),
        ("'%s %s'.format(['a'])", "1:15: index 1 out of range"),
        ("'%5d'.format([1])", '1:13: could not parse formatting clause: unrecognized formatting clause "5"'),
        (
            "'%.f'.format([1.0])",
            "1:13: could not parse formatting clause: error while parsing precision: error while conve",
        ),
        (
            "'%s'.format([[quantity('1')]])",
            "1:23: error during formatting: string clause can only be used on strings, bo",
        ),
    ],
)
def test_an_ill_typed_expression_gets_this_message(source, message):
    assert complaint(source).startswith(f"ERROR: <input>:{message}")


def test_all_errors_come_together_in_order():
    lines = complaint("names.map(x, y) == 1 ||\n request.foo || z").splitlines()
    assert [line for line in lines if line.startswith("ERROR")] == [
        "ERROR: <input>:1:14: undeclared reference to 'y' (in container '')",
        "ERROR: <input>:1:17: found no matching overload for '_==_' applied to '(list(!error!), int)'",
        "ERROR: <input>:2:9: undefined field 'foo'",
        "ERROR: <input>:2:17: undeclared reference to 'z' (in container '')",
    ]


def test_format_arguments_may_be_mixed():
    assert parse_and_check("'%s %d %s'.format(['a', 1, [2, 'b']])", ENVIRONMENT).result == STRING


def test_mixed_literals_where_they_are_allowed():
    assert str(parse_and_check("[1, 'a']", Environment(homogeneous=False)).result) == "list(dyn)"


def test_the_result_type_is_expected_exactly():
    assert parse_and_check("self.a == 1", ENVIRONMENT, [BOOL]).result == BOOL
    assert complaint("self.a", BOOL) == "must evaluate to bool but got dyn"
    assert complaint("1", STRING, BOOL) == "must evaluate to one of [string bool] but got int"


def test_the_compiler_gets_types_and_overloads():
    tree = parse("authorizer.requestResource == self && sets.contains(names, [x.y, 'a'])", ENVIRONMENT)
    environment = ENVIRONMENT.extended_with(variables={"x.y": STRING})
    checked = check_tree(tree, environment)
    assert checked.names == {"authorizer.requestResource", "self", "names", "x.y"}
    assert isinstance(tree, Call)
    equality, contains = tree.arguments
    assert isinstance(equality, Call)
    assert isinstance(equality.arguments[0], Select)
    assert checked.name_referred_to(equality.arguments[0]) == "authorizer.requestResource"
    assert checked.name_referred_to(contains) == "sets.contains"
    assert [overload.id for overload in checked.overloads[id(contains)]] == ["list_sets_contains_list"]
    assert checked.type_of(contains) == BOOL


def test_names_are_looked_up_in_the_container_first():
    environment = Environment(container="a.b", variables={"a.b.x": INT, "a.x": STRING, "x": BOOL, "y": DYN})
    assert str(parse_and_check("x", environment).result) == "int"
    assert str(parse_and_check(".x", environment).result) == "bool"
    assert parse_and_check("y", environment).names == {"y"}
    assert "undeclared reference to 'z' (in container 'a.b')" in complaint("z", environment=environment)


def test_comprehension_variables_shadow():
    checked = parse_and_check("names.all(n, n != '') && n > 0", ENVIRONMENT)
    assert checked.result == BOOL
    assert checked.names == {"names", "n"}


@pytest.mark.parametrize(
    "source, first",
    [
        ("[1].slice(0, 1)", (1, 34)),
        ("semver('1.0.0').major() == 1", (1, 33)),
        ("format.dns1123Label().validate('a')", (1, 31)),
        ("ip('::1').family() == 4", (1, 30)),
    ],
)
def test_functions_come_with_their_version(source, first):
    before = Environment(version=(1, first[1] - 1))
    assert "undeclared reference" in complaint(source, environment=before)
    parse_and_check(source, Environment(version=first))


def test_the_deepest_expressions_are_checked():
    for source in ("1" + " + 1" * 250, "(" * 249 + "1" + ")" * 249, "[" * 250 + "]" * 250, "self" + ".a" * 250):
        parse_and_check(source, ENVIRONMENT)
    parse_and_check("!dyn(" * 249 + "true" + ")" * 249, ENVIRONMENT)


@pytest.fixture
def usual_depth():
    """Restore Python's recursion limit, which cel-python raises."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("usual_depth")
def test_deeper_than_python_can_follow_is_a_compile_error():
    source = "!dyn(true && " * 249 + "self" + ".a" * 249 + ")" * 249
    assert complaint(source) == "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"
