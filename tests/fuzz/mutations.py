"""Random mutations of a custom kind with a known schema: mostly with its types, sometimes with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any, Final

from tests.fuzz.compare import compare, held
from tests.fuzz.live import Question, definition, server

KIND: Final = "Typed"
_TEXT: Final = {"type": "string"}
_INTEGER: Final = {"type": "integer"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _list(items: Any, kind: str = "atomic", *keys: str) -> dict[str, Any]:
    named = {"x-kubernetes-list-map-keys": list(keys)} if keys else {}
    return {"type": "array", "items": items, "x-kubernetes-list-type": kind, **named}


_PORT: Final = _object(port={**_INTEGER, "default": 80}, name=_TEXT, hosts=_list(_TEXT, "set"))
SPEC: Final = _object(
    set=_list(_TEXT, "set"),
    numbers=_list(_INTEGER, "set"),
    keyed=_list({**_object(name=_TEXT, v=_TEXT, l=_list(_TEXT, "set")), "required": ["name"]}, "map", "name"),
    ports=_list({**_PORT, "required": ["name"]}, "map", "name", "port"),
    plain=_list(_TEXT),
    n=_INTEGER,
    f={"type": "number"},
    t=_TEXT,
    when={"type": "string", "format": "date-time"},
    flag={"type": "boolean", "default": True},
    perhaps={"type": "string", "nullable": True},
    either={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    closed=_object(a=_INTEGER, b=_object(c={**_TEXT, "default": "z"}, d=_TEXT)),
    whole={**_object(a=_TEXT), "x-kubernetes-map-type": "atomic"},
    labels={"type": "object", "additionalProperties": _TEXT},
    deep={"type": "object", "additionalProperties": _object(x=_INTEGER, y={**_TEXT, "default": "y"})},
    open={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    part={**_object(k=_INTEGER), "x-kubernetes-preserve-unknown-fields": True},
    inner={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
)
SCHEMA: Final = _object(spec=SPEC)
_WRONG: Final = (
    "1", "'b'", "true", "null", "[]", "{}", "1u", "1.5", "['b']", "[['b']]", "{'a': 'b'}", "''.split(',')", "b'a'",
    "object.spec.?set.orValue([])", "dyn(1)", "duration('90s')", "[1].filter(x, false)", "{'a': []}", "[{'a': 1}]",
    "object.spec.?closed.orValue({})", "object.spec.?keyed.orValue([])", "variables.v", "'a,b'.split(',')", "[[]]",
    "[1] + [2]", "['a'] + object.spec.?set.orValue([])", "object.spec.?open.orValue({})", "['b'].map(x, x)", "[null]",
    "timestamp('2024-01-01T00:00:00Z')", "optional.none()", "type(1)", "quantity('1')", "{'a': {'b': 'c'}}", "{1: 'a'}",
    "[[['a']]]", "['x','y'].slice(0, 1)", "['a', 'b'].sort()", "[['a'], ['b']].flatten()", "'abab'.findAll('a')",
)  # fmt: skip
_SCALARS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("'a'", "'b'", "object.spec.?t.orValue('t')", "''"),
    "integer": ("1", "2", "object.spec.?n.orValue(7)", "80", "int(2.0)"),
    "number": ("1.5", "2.0", "1"),
    "boolean": ("true", "false", "has(object.spec.n)"),
}
_GIVEN: Final[Mapping[str, tuple[Any, ...]]] = {
    "string": ("a", "b", "c"),
    "integer": (1, 2, 80),
    "number": (1, 1.5),
    "boolean": (True, False),
}
_POINTERS: Final = (
    "/spec/n", "/spec/t", "/spec/set", "/spec/set/-", "/spec/set/0", "/spec/keyed", "/spec/keyed/-", "/spec/zz", "/spec",
    "/spec/closed", "/spec/closed/zz", "/spec/closed/b", "/spec/open", "/spec/open/k", "/spec/labels", "/spec/flag",
    "/spec/labels/k", "/spec/deep", "/spec/deep/k", "/spec/perhaps", "/spec/ports/-", "/spec/part", "/spec/part/u",
)  # fmt: skip


class Mutations:
    """Draws mutating policies with the objects that they change. `wrong` is how often a value has another type."""

    def __init__(self, seed: int, wrong: float = 0.08) -> None:
        self._random = Random(seed)
        self._wrong = wrong

    def draw(self) -> Question:
        random = self._random
        policy = {
            "mutations": [self._mutation() for _ in range(random.choice([1, 1, 1, 2, 3]))],
            "reinvocationPolicy": random.choice(["Never", "Never", "IfNeeded"]),
            "failurePolicy": random.choice(["Fail", "Fail", "Fail", "Ignore"]),
            "variables": [{"name": "v", "expression": random.choice(_WRONG[:12])}],
        }
        return Question(policy, {}, self._given(SPEC, 3))

    def _mutation(self) -> dict[str, Any]:
        if self._random.random() < 0.7:
            inside = self._struct("Object.spec", SPEC, 3)
            expression = f"Object{{spec: {inside}}}"
            return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
        operations = ", ".join(self._operation() for _ in range(self._random.choice([1, 1, 2])))
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{operations}]"}}

    def _operation(self) -> str:
        random = self._random
        op, path = random.choice(["add", "add", "add", "replace", "remove", "test", "copy"]), random.choice(_POINTERS)
        if op == "remove":
            return f"JSONPatch{{op: 'remove', path: '{path}'}}"
        if op == "copy":
            return f"JSONPatch{{op: 'copy', from: '{random.choice(_POINTERS)}', path: '{path}'}}"
        known = SPEC["properties"].get(path.split("/")[2]) if path.count("/") > 1 else SPEC
        value = self._value("Object", known, 2) if known and random.random() < 0.6 else random.choice(_WRONG)
        return f"JSONPatch{{op: '{op}', path: '{path}', value: {value}}}"

    def _struct(self, name: str, schema: Mapping[str, Any], depth: int) -> str:
        random, properties = self._random, schema["properties"]
        chosen = random.sample(sorted(properties), min(len(properties), random.choice([1, 1, 2, 3])))
        fields = [f"{each}: {self._value(f'{name}.{each}', properties[each], depth - 1)}" for each in chosen]
        if random.random() < 0.05:
            fields.append(f"zz: {random.choice(_WRONG)}")
        if random.random() < 0.03:
            name += ".wrong"
        return f"{name}{{{', '.join(fields)}}}"

    def _value(self, name: str, schema: Mapping[str, Any], depth: int) -> str:
        random, kind = self._random, schema.get("type")
        if random.random() < self._wrong or depth < 0:
            return random.choice(_WRONG)
        if kind == "object" and "properties" in schema:
            return self._struct(name, schema, depth)
        if kind == "object":
            inner = schema.get("additionalProperties")
            named = random.random() < 0.5  # a structure has a type name, a map has none
            path = f"{name}.k" if named else name
            value = self._value(path, inner, depth - 1) if isinstance(inner, dict) else random.choice(_WRONG)
            return f"{name}{{k: {value}}}" if named else f"{{'k': {value}}}"
        if kind == "array":
            items = [self._value(name, schema["items"], depth - 1) for _ in range(random.choice([0, 1, 1, 2]))]
            return f"[{', '.join(items)}]"
        return random.choice(_SCALARS.get(str(kind), ("1", "'5%'")))

    def _given(self, schema: Mapping[str, Any], depth: int) -> Any:
        random, kind = self._random, schema.get("type")
        if "x-kubernetes-embedded-resource" in schema:
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
        if kind == "object" and "properties" in schema:
            names = sorted(schema["properties"])
            chosen = {*random.sample(names, random.randrange(min(len(names), 7))), *schema.get("required", ())}
            return {name: self._given(schema["properties"][name], depth - 1) for name in sorted(chosen)}
        if kind == "object":
            inner = schema.get("additionalProperties")
            return {
                "k": self._given(inner, depth - 1) if isinstance(inner, dict) else random.choice([1, "x", {"y": [1]}])
            }
        if kind == "array":
            items = [self._given(schema["items"], depth - 1) for _ in range(random.randrange(3))]
            return items if schema["x-kubernetes-list-type"] == "atomic" else _distinct(items, schema)
        if schema.get("format") == "date-time":
            return "2024-01-01T00:00:00Z"
        return random.choice(_GIVEN.get(str(kind), (5, "5%")))


def _distinct(items: list[Any], schema: Mapping[str, Any]) -> list[Any]:
    """Return the items without repeated keys, which an API server refuses."""
    keys = schema.get("x-kubernetes-list-map-keys")
    return list({str([item.get(key, 80) for key in keys] if keys else item): item for item in items}.values())


def compare_mutations(count: int, seed: int, kubeconfig: str) -> Counter[str]:
    """Return the number of each result."""
    with server(kubeconfig) as remote:
        remote.serve(KIND, SCHEMA)
        view = held(definition(KIND, SCHEMA))
        return compare(remote, KIND, SCHEMA, Mutations(seed).draw, count, objects=view)
