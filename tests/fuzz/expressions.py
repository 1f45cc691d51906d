"""Random CEL expressions over a few variables, mostly well-typed. The same seed gives the same expressions."""

from __future__ import annotations

import re
from random import Random

from webhook.cel.types import DYN
from webhook.cel.values import Duration, UInt

BINDINGS = {
    "self": {
        "a": 1,
        "b": "x",
        "c": [1, 2, 3],
        "d": {"k": 1.5},
        "e": None,
        "f": True,
        "g": [{"n": "p", "v": 1}, {"n": "q"}],
    },
    "n": 7,
    "s": "host-1.example",
    "xs": [3, 1, 2],
    "m": {"a": "1", "b": "two"},
    "u": UInt(3),
    "t": Duration(90_000_000_000),
}
VARIABLES = dict.fromkeys(BINDINGS, DYN)

_LITERALS = {
    "int": ["0", "1", "-1", "2", "9223372036854775807", "-9223372036854775808", "0x1f", "n", "self.a", "size(xs)"],
    "uint": ["0u", "1u", "18446744073709551615u", "u"],
    "double": ["0.0", "1.5", "-2.5e3", "1e300", "double('NaN')", "self.d.k"],
    "string": ["''", "'a'", "'é😀'", "'abc'", "r'\\d+'", "'1'", "'1Ki'", "s", "self.b", "'::1'", "'10.0.0.0/8'"],
    "bool": ["true", "false", "self.f", "has(self.a)", "has(self.zz)", "has(m.a)"],
    "list": ["[]", "[1, 2]", "xs", "self.c", "self.g", "['a', 'b']", "[1.0, 2.5]", "lists.range(4)"],
    "map": ["{}", "{'a': 1}", "m", "self", "self.d", "{1: 'a'}", "{true: 1u}"],
    "optional": ["optional.none()", "self.?a", "self.?zz", "m[?'a']", "xs[?9]", "self.?e.x", "xs.first()"],
    "time": ["duration('1h')", "t", "timestamp('2024-02-29T12:30:00Z')", "timestamp(0)"],
    "null": ["null", "self.e", "self.zz"],
    "opaque": ["quantity('1.5Gi')", "ip('10.0.0.1')", "cidr('10.0.0.0/8')", "semver('1.2.3')", "url('https://h/p')"],
}
_PART = re.compile(r"\{(\w+)\}")
_KINDS = (*_LITERALS, "bool", "bool", "int", "string", "list")
_TEMPLATES = {
    "int": [
        "{int} + {int}", "{int} - {int}", "{int} * {int}", "{int} / {int}", "{int} % {int}", "-({int})", "size({list})",
        "{string}.size()", "{list}.sum()", "int({any})", "{string}.indexOf({string})", "{list}[{int}]", "{time}.getHours()",
        "{list}.indexOf({any})", "{bool} ? {int} : {int}", "{optional}.orValue({int})", "{opaque}.major()",
    ],
    "uint": ["{uint} + {uint}", "{uint} * {uint}", "uint({any})", "{uint} % {uint}"],
    "double": ["{double} + {double}", "{double} / {double}", "double({any})", "-({double})", "{double} - {double}"],
    "string": [
        "{string} + {string}", "string({any})", "{string}.lowerAscii()", "{string}.substring({int}, {int})",
        "{string}.replace({string}, {string})", "'%s %d'.format([{any}, {int}])", "{list}.join({string})",
        "{string}.charAt({int})", "{map}[{string}]", "{string}.find({string})", "strings.quote({string})",
        "{string}.split({string})[0]", "{bool} ? {string} : {string}",
    ],
    "bool": [
        "{bool} && {bool}", "{bool} || {bool}", "!({bool})", "{any} == {any}", "{any} != {any}", "{int} < {int}",
        "{double} >= {int}", "{string} < {string}", "{any} in {list}", "{string} in {map}", "{list}.all(x, {bool})",
        "{list}.exists(x, x == {any})", "{map}.all(k, v, {bool})", "{list}.exists_one(x, {bool})", "{string}.matches({string})",
        "{string}.startsWith({string})", "{optional}.hasValue()", "{list}.isSorted()", "has({map}.a)", "type({any}) == int",
        "{bool} ? {bool} : {bool}", "sets.contains({list}, {list})", "{opaque}.isLessThan({opaque})", "isIP({string})",
        "{time} < {time}", "bool({any})",
    ],
    "list": [
        "[{any}, {any}]", "{list} + {list}", "{list}.map(x, {any})", "{list}.filter(x, {bool})", "[?{optional}, {any}]",
        "{list}.transformList(i, v, {any})", "{list}.sort()", "{list}.sortBy(x, {any})", "{list}.distinct()",
        "{list}.slice({int}, {int})", "{list}.flatten()", "{map}.map(k, k)", "{string}.split({string})", "{list}.reverse()",
        "{string}.findAll({string})",
    ],
    "map": ["{{string}: {any}}", "{?{string}: {optional}}", "{map}.transformMap(k, v, {any})", "{{int}: {any}}",
            "Object{a: {any}}", "{list}.transformMapEntry(i, v, {map})"],
    "optional": ["optional.of({any})", "{map}[?{string}]", "{list}[?{int}]", "{map}.?a", "{optional}.optMap(y, {any})",
                 "{optional}.or({optional})", "{optional}.?b", "optional.ofNonZeroValue({any})"],
    "time": ["{time} + {time}", "duration({string})", "timestamp({string})", "{time} - {time}"],
    "null": ["{bool} ? null : {any}"],
    "opaque": ["quantity({string})", "{opaque}.add({opaque})", "ip({string})", "cidr({string}).ip()"],
}  # fmt: skip


class Expressions:
    """Draws expressions. `wrong` is how often a part has another type than its place expects."""

    def __init__(self, seed: int, wrong: float = 0.08) -> None:
        self._random = Random(seed)
        self._wrong = wrong

    def draw(self, depth: int = 4, kind: str = "") -> str:
        return self._of(kind or self._random.choice(_KINDS), depth)

    def _of(self, kind: str, depth: int) -> str:
        random = self._random
        if kind == "any" or random.random() < self._wrong:
            kind = random.choice(_KINDS)
        if depth <= 0 or random.random() < 0.25:
            names = ["x", "v", "k", "y"] if random.random() < 0.05 else _LITERALS[kind]
            return random.choice(names)
        template = random.choice(_TEMPLATES[kind])
        return _PART.sub(lambda part: self._part(part[1], depth - 1), template)

    def _part(self, kind: str, depth: int) -> str:
        text = self._of(kind, depth)
        return f"({text})" if any(sign in text for sign in " ?-") else text
