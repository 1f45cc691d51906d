"""Random validating policies: conditions, variables, validations, messages, annotations, parameters, failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.fuzz.compare import compare, held, is_refused
from tests.fuzz.expressions import Expressions
from tests.fuzz.live import Question, definition, server
from tests.fuzz.server import KIND, OBJECT, SCHEMA, over_an_object

PARAMS: Final = [
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        **data,
    }
    for name, labels, data in (
        ("fuzz-1", {"t": "a"}, {"data": {"k": "v", "n": "3"}}),
        ("fuzz-2", {"t": "a"}, {"data": {"n": "x"}}),
        ("fuzz-3", {"t": "b"}, {}),
    )
]
_BOOLEANS: Final = (
    "true", "false", "object.spec.a == 1", "has(object.spec.zz)", "request.operation == 'CREATE'", "oldObject == null",
    "object.metadata.name.startsWith('f')", "object.spec.c.exists(x, x > 2)", "object.spec.zz == 1",
    "namespaceObject.metadata.name == 'default'", "request.dryRun", "object.spec.m.a == '1'", "1 / (object.spec.a - 1) == 1",
    "object.spec.g.all(x, x.v == 1)", "size(object.spec.xs) == 3", "'x' in object.spec.m", "has(oldObject.spec)",
    "request.userInfo.username.size() > 0", "object.spec.s.matches('^[a-z]')", "object.spec.e == null", "dyn(true)",
    "namespaceObject.metadata.labels.zz == 'x'", "object.spec.n > 5 || object.spec.zz", "request.name == 'fuzzed'",
    "request.namespace == 'default' && request.resource.resource == 'fuzzeds'", "request.kind.kind == 'Fuzzed'",
    "object.spec.zz == 1 || true", "false && object.spec.zz", "object.spec.f", "object.spec.f == true", "1 == 'a'", "1",
)  # fmt: skip
_WITH_PARAMS: Final = (
    "params.data.k == 'v'", "has(params.data) && has(params.data.n)", "int(params.data.n) == 3", "params == null",
    "params.metadata.name != 'fuzz-2'", "params != null && params.data.size() > 0", "params.?data.n.orValue('') != 'x'",
)  # fmt: skip
_STRINGS: Final = (
    "'told: ' + object.metadata.name", "string(object.spec.a)", "object.spec.b", "'  blank  '", "''", "'  '", "'a\\nb'",
    "'%s is %d'.format([object.metadata.name, object.spec.n])", "object.spec.zz", "string(object.spec.zz)", "1", "null",
    "'x'.substring(3)", "object.spec.xs.map(x, string(x)).join(',')", "request.operation", "['a', 'b'][object.spec.n]",
    "has(object.spec.zz) ? 'a' : null", "namespaceObject.metadata.name", "object.spec.f ? 'yes' : 'no'", "'é😀'",
)  # fmt: skip
_REASONS: Final = ("Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge")
_MESSAGES: Final = ("must be so", "  padded  ", "two\nlines", "", 'it\'s "quoted"', "x" * 300)
_ACTIONS: Final = (
    ["Deny"], ["Deny"], ["Deny"], ["Deny"], ["Warn"], ["Audit"], ["Deny", "Audit"], ["Warn", "Audit"], ["Deny", "Warn"],
)  # fmt: skip


class Policies:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._expressions = Expressions(seed, wrong=0.03)

    def draw(self) -> Question:
        """Return a random policy. Nine tenths of the policies that would be refused are drawn again."""
        while is_refused(drawn := self._any_policy(), KIND) and self._random.random() < 0.9:
            pass
        return drawn

    def _any_policy(self) -> Question:
        random = self._random
        has_params = random.random() < 0.35
        variables = [self._variable(name, before) for name, before in self._names()]
        names = [each["name"] for each in variables]
        spec: dict[str, Any] = {
            "failurePolicy": random.choice(["Fail", "Fail", "Ignore"]),
            "variables": variables,
            "matchConditions": [
                {"name": f"c{number}", "expression": self._condition(has_params)} for number in range(self._few(0.3))
            ],
            "validations": [self._validation(names, has_params) for _ in range(1 + self._few(0.5))],
            "auditAnnotations": [
                {"key": f"k{number}", "valueExpression": self._string(names, has_params)}
                for number in range(self._few(0.2))
            ],
        }
        binding: dict[str, Any] = {"validationActions": random.choice(_ACTIONS)}
        if has_params:
            spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
            binding["paramRef"] = self._reference()
        return Question({name: value for name, value in spec.items() if value != []}, binding, self._given())

    def _few(self, likely: float) -> int:
        return sum(self._random.random() < likely for _ in range(2))

    def _names(self) -> list[tuple[str, list[str]]]:
        names = ["va", "vb", "vc"][: self._few(0.5) + self._few(0.1)]
        return [(name, names[:place]) for place, name in enumerate(names)]

    def _variable(self, name: str, before: list[str]) -> dict[str, str]:
        drawn = self._random.choice([self._boolean, self._string, self._any])(before, False)
        return {"name": name, "expression": drawn}

    def _condition(self, has_params: bool) -> str:
        """Return a random condition. Conditions are true more often than validations."""
        return "true" if self._random.random() < 0.3 else self._boolean([], has_params)

    def _validation(self, names: list[str], has_params: bool) -> dict[str, str]:
        random = self._random
        parts: dict[str, Callable[[], str]] = {
            "message": lambda: random.choice(_MESSAGES),
            "messageExpression": lambda: self._string(names, has_params),
            "reason": lambda: random.choice(_REASONS[1:] if random.random() < 0.95 else _REASONS),
        }
        chosen = {name: made() for name, made in parts.items() if random.random() < 0.4}
        return {"expression": self._boolean(names, has_params), **chosen}

    def _boolean(self, names: list[str], has_params: bool) -> str:
        random = self._random
        if names and random.random() < 0.35:
            name = f"variables.{random.choice(names)}"
            return random.choice([f"{name} == true", f"{name} != null", f"string({name}) != ''", f"bool({name})", name])
        if has_params and random.random() < 0.5:
            return random.choice(_WITH_PARAMS)
        if random.random() < 0.25:
            return over_an_object(self._expressions.draw(2, "bool"))
        drawn = random.choice(_BOOLEANS[: -3 if random.random() < 0.9 else None])
        if random.random() < 0.2:
            return f"{drawn} {random.choice(['&&', '||'])} {self._boolean(names, has_params)}"
        return f"!({drawn})" if random.random() < 0.2 else drawn

    def _string(self, names: list[str], has_params: bool) -> str:
        random = self._random
        if names and random.random() < 0.3:
            return f"string(variables.{random.choice(names)})"
        if has_params and random.random() < 0.3:
            return random.choice(["params.data.k", "'p: ' + params.metadata.name", "string(params.data.n)"])
        if random.random() < 0.2:
            return f"string({over_an_object(self._expressions.draw(2, 'string'))})"
        return random.choice(_STRINGS)

    def _any(self, names: list[str], has_params: bool) -> str:
        del names, has_params
        return over_an_object(self._expressions.draw(2))

    def _reference(self) -> dict[str, Any]:
        random = self._random
        action = {"parameterNotFoundAction": random.choice(["Allow", "Deny", "Deny"])}
        if random.random() < 0.3:
            return {"selector": {"matchLabels": {"t": random.choice("aabc")}}, **action}
        name = random.choice(["fuzz-1", "fuzz-1", "fuzz-2", "fuzz-3", "fuzz-9"])
        return {"name": name, **({"namespace": "default"} if random.random() < 0.5 else {}), **action}

    def _given(self) -> dict[str, Any]:
        left_out = self._random.sample(sorted(OBJECT), self._random.choice([0, 0, 0, 1, 3]))
        flat = {**OBJECT["self"], **OBJECT}
        return {name: value for name, value in flat.items() if name not in left_out}


def compare_policies(count: int, seed: int, kubeconfig: str) -> Counter[str]:
    """Return the number of each result."""
    with server(kubeconfig) as remote:
        remote.serve(KIND, SCHEMA)
        for param in PARAMS:
            remote.make("/api/v1/namespaces/default/configmaps", param)
        view = held(definition(KIND, SCHEMA), *PARAMS)
        return compare(remote, KIND, SCHEMA, Policies(seed).draw, count, objects=view)
