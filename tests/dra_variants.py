"""Claims, templates, classes and taint rules, right and wrong, each under a sentence: what the judge is asked about.

`tests/e2e/dra_verdicts.py` asks a real kube-apiserver and writes its answers to tests/data/dra/verdicts.tsv;
tests/policies/test_dra_verdicts.py holds the shipped policies to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

JSON = Any
CLASS = "gpu.example.com"
DRIVER = "gpu.example.com"
VERSIONS = ("v1", "v1beta2", "v1beta1")


def exact(name: str = "main", **more: JSON) -> JSON:
    """A request for one device of one class, as v1 writes it; None leaves a field out."""
    asked = {"deviceClassName": CLASS, **more}
    return {"name": name, "exactly": {key: value for key, value in asked.items() if value is not ...}}


def choice(name: str = "first", **more: JSON) -> JSON:
    """One alternative of a request."""
    asked = {"name": name, "deviceClassName": CLASS, **more}
    return {key: value for key, value in asked.items() if value is not ...}


def opaque(parameters: JSON = ..., driver: JSON = DRIVER, **more: JSON) -> JSON:
    """A configuration for a driver."""
    held = {"driver": driver, "parameters": {"a": 1} if parameters is ... else parameters}
    return {"opaque": {key: value for key, value in held.items() if value != "leave out"}, **more}


def cel(expression: JSON) -> JSON:
    return {"cel": {"expression": expression}}


def _wide(count: int) -> str:
    """An expression with nested loops over constants: 10 to the power of the depth."""
    body = "true"
    for index in range(count):
        body = f"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(x{index}, {body})"
    return body


def devices() -> Iterator[tuple[str, JSON]]:
    """`spec.devices` of claims, in the words of v1."""
    yield "nothing", {}
    yield "null lists", {"requests": None, "constraints": None, "config": None}
    yield "one request", {"requests": [exact()]}
    yield "32 requests", {"requests": [exact(f"r{index}") for index in range(32)]}
    yield "33 requests", {"requests": [exact(f"r{index}") for index in range(33)]}
    yield "requests of one name", {"requests": [exact(), exact()]}
    yield "requests that are a map", {"requests": exact()}
    yield "requests that are a text", {"requests": "main"}
    yield "a request that is null", {"requests": [None]}
    yield "a request that is a text", {"requests": ["main"]}
    for name in ("Main", "a.b", "a_b", "-a", "a" * 63, "a" * 64, "", "a/b", "1", "a b"):
        yield f"request name `{name}`", {"requests": [exact(name)]}
    yield "request name null", {"requests": [exact() | {"name": None}]}
    yield "request name a number", {"requests": [exact() | {"name": 1}]}
    yield "no request name", {"requests": [{"exactly": exact()["exactly"]}]}
    yield "neither exactly nor firstAvailable", {"requests": [{"name": "main"}]}
    yield "exactly null", {"requests": [{"name": "main", "exactly": None}]}
    yield "firstAvailable empty", {"requests": [{"name": "main", "firstAvailable": []}]}
    yield "firstAvailable empty beside exactly", {"requests": [exact() | {"firstAvailable": []}]}
    yield "firstAvailable null beside exactly", {"requests": [exact() | {"firstAvailable": None}]}
    yield "both exactly and firstAvailable", {"requests": [exact() | {"firstAvailable": [choice()]}]}
    yield "firstAvailable a map", {"requests": [{"name": "main", "firstAvailable": choice()}]}
    yield "an unknown field in a request", {"requests": [exact(color="red")]}
    yield "an unknown field in devices", {"requests": [exact()], "request": []}
    for value in ("GPU", "a" * 253, "a" * 254, "a..b", "", "gpu.example.com/x", "-a", "a_b"):
        shown = value if len(value) < 30 else f"{len(value)} letters"
        yield f"class `{shown}`", {"requests": [exact(deviceClassName=value)]}
        yield f"class of a choice `{shown}`", {"requests": [_either(choice(deviceClassName=value))]}
    yield "class null", {"requests": [exact(deviceClassName=None)]}
    yield "no class", {"requests": [exact(deviceClassName=..., count=1)]}
    yield "no class in a choice", {"requests": [_either(choice(deviceClassName=...))]}
    yield "class a number", {"requests": [exact(deviceClassName=1)]}
    yield from _amounts()
    yield from _choices()
    yield from _selectors()
    yield from _tolerations()
    yield from _capacities()
    yield from _constraints()
    yield from _configs()


def _either(*choices: JSON, name: str = "main") -> JSON:
    return {"name": name, "firstAvailable": list(choices)}


def _amounts() -> Iterator[tuple[str, JSON]]:
    for mode, count in (
        ("ExactCount", ...), ("ExactCount", 0), ("ExactCount", 1), ("ExactCount", -1), ("ExactCount", 1000), ("All", ...), ("All", 0), ("All", 1),
        ("All", -1), ("all", ...), ("Exact", 1), ("", 2), ("", ...), (None, 2), (..., 2), (..., 0), (..., -3), (..., None), (..., "2"), (..., 1.5),
        (..., 2.0), (1, ...), (..., True), (..., 2**40), (..., 2**63), (..., [1]),
    ):  # fmt: skip
        shown = f"mode {_shown(mode)} with count {_shown(count)}"
        yield shown, {"requests": [exact(allocationMode=mode, count=count)]}
        yield f"choice, {shown}", {"requests": [_either(choice(allocationMode=mode, count=count))]}
    for value in (True, False, None, "true", 1):
        yield f"adminAccess {_shown(value)}", {"requests": [exact(adminAccess=value)]}
        yield f"choice with adminAccess {_shown(value)}", {"requests": [_either(choice(adminAccess=value))]}


def _choices() -> Iterator[tuple[str, JSON]]:
    yield "one choice", {"requests": [_either(choice())]}
    yield "8 choices", {"requests": [_either(*(choice(f"c{index}") for index in range(8)))]}
    yield "9 choices", {"requests": [_either(*(choice(f"c{index}") for index in range(9)))]}
    yield "choices of one name", {"requests": [_either(choice(), choice())]}
    yield "equal names in two requests", {"requests": [_either(choice()), _either(choice(), name="other")]}
    yield "a choice named as its request", {"requests": [_either(choice("main"))]}
    for name in ("A", "a.b", "", "a/b"):
        yield f"choice name `{name}`", {"requests": [_either(choice(name))]}
    yield "no choice name", {"requests": [_either(choice(...))]}
    yield "a choice that is null", {"requests": [_either(None)]}
    yield "a choice that asks exactly", {"requests": [_either(exact("first"))]}


def _selectors() -> Iterator[tuple[str, JSON]]:
    listed: dict[str, JSON] = {
        "none": [],
        "null": None,
        "a map": cel("true"),
        "32": [cel("true")] * 32,
        "33": [cel("true")] * 33,
        "empty": [{}],
        "null entry": [None],
        "cel null": [{"cel": None}],
        "cel null beside its expression": [{"cel": None, "expression": "true"}],
        "cel a text": [{"cel": "true"}],
        "cel empty": [{"cel": {}}],
        "expression empty": [cel("")],
        "expression null": [cel(None)],
        "expression a boolean": [cel(True)],
        "expression beside cel": [{**cel("true"), "expression": "true"}],
    }
    for name, selectors in listed.items():
        yield f"selectors: {name}", {"requests": [exact(selectors=selectors)]}
        yield f"choice, selectors: {name}", {"requests": [_either(choice(selectors=selectors))]}
    for expression in EXPRESSIONS:
        line = expression.replace("\n", "⏎")
        shown = line if len(line) <= 100 else f"{line[:60]}… of {len(line)}"
        yield f"selector {shown}", {"requests": [exact(selectors=[cel(expression)])]}


DOMAIN = 'device.attributes["gpu.example.com"]'
EXPRESSIONS = (
    "true", "false", "1", "?!", "device", "device.driver", 'device.driver == "x"', "device.name == 'x'", "devices.driver == 'x'",
    "object.metadata.name == 'x'", DOMAIN, f"{DOMAIN}.model", f"{DOMAIN}.model == 'a100'", f"{DOMAIN}['model'] == 'a100'", f"{DOMAIN}.model > 0",
    f"{DOMAIN}.model && true", f"!{DOMAIN}.model", f"{DOMAIN}.model.a == 1", f"{DOMAIN}.model['a'] == 1", f"{DOMAIN}.model[0] == 1",
    f"{DOMAIN}.model.exists(x, x > 0)", f"{DOMAIN}.model.size() > 2", f"size({DOMAIN}.model) > 2", f"{DOMAIN}.model.includes('x')",
    f"'x' in {DOMAIN}.model", f"{DOMAIN}.model in ['a', 'b']", f"{DOMAIN}.model in [1, 2]", f"{DOMAIN}.model.matches('[a-z]+')",
    f"{DOMAIN}.model.matches('[')", f"{DOMAIN}.model.split('-').size() > 1", f"{DOMAIN}.model.startsWith('a')", f"{DOMAIN}.model + 'x' == 'ax'",
    f"{DOMAIN}.model + 1 > 2", f"string({DOMAIN}.model) == 'a'", f"int({DOMAIN}.model) == 1", f"dyn({DOMAIN}.model) == 1", f"dyn({DOMAIN}.model)",
    f"type({DOMAIN}.model) == string", f"[{DOMAIN}.model, 'a'].exists(x, x == 'a')", f"[{DOMAIN}.model, 1].size() == 2", f"{DOMAIN}.?model.hasValue()",
    f"{DOMAIN}.?model.orValue('') == 'x'", f"{DOMAIN}[?'model'].orValue(false)", f"has({DOMAIN}.model)", f"has({DOMAIN}.model.x)",
    f"{DOMAIN}.driverVersion.isGreaterThan(semver('1.0.0'))", f"{DOMAIN}.driverVersion.compareTo(semver('1.0.0')) >= 0",
    f"{DOMAIN}.driverVersion.isGreaterThan(semver('1.0'))", f"{DOMAIN}.driverVersion.isGreaterThan(semver('v1.0', true))",
    f"{DOMAIN}.model ? true : false", f"true ? {DOMAIN}.model : false", f"true ? {DOMAIN}.model : 'a'", f"({DOMAIN}.model).lowerAscii() == 'a'",
    f"{DOMAIN}.exists(x, x == 'model')", f"{DOMAIN}.exists(k, v, v == 'a100')", f"{DOMAIN}.all(k, v, v)", f"{DOMAIN}.exists_one(x, x == 'a')",
    "'gpu.example.com' in device.attributes", "device.attributes.exists(d, d == 'x')", "device.attributes.model == 'x'",
    "device.attributes['gpu.example.com/model'] == 'x'", "device.attributes == {}", "device.attributes['x'] == {'a': 1}",
    "device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0", "device.capacity['gpu.example.com'].memory > quantity('1Gi')",
    "device.capacity['gpu.example.com'].memory >= 40", "device.capacity['gpu.example.com'].memory.isGreaterThan('40Gi')",
    "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('40 GB'))", "device.capacity['x'].y.sign() == 1", "device.capacity['x'].y",
    "device.capacity['x'].y.value.sign() == 1", "device.allowMultipleAllocations", "device.allowMultipleAllocations == true",
    "!device.allowMultipleAllocations", "device.allowMultipleAllocation", "has(device.allowMultipleAllocations)",
    f"cel.bind(a, {DOMAIN}, a.model == 'x' && a.other)", f"cel.bind(a, {DOMAIN}.model, a)", "cel.bind(a, 1, a)", "cel.bind(a, 1, a == b)",
    "cel.bind(a.b, 1, true)", "cel.bind(1, 1, true)", "cel.bind(a, cel.bind(b, 1, b + 1), a == 2)", "cel.bind(a, 1)", "cel.bind('a')",
    "cel.bind(x, [1, 2, 3], x.exists(y, cel.bind(z, y * 2, z == 4)))", "cel.block([1], cel.index(0) == 1)", "math.greatest(1, 2) == 2",
    "base64.encode(b'a') == 'YQ=='", "lists.range(3).size() == 3", "'a'.reverse() == 'a'", "[1, 2].reverse() == [2, 1]", "sets.contains([1], [1])",
    "ip('1.2.3.4').family() == 4", "ip('x').family() == 4", "isIP('x')", "url('http://x').getHost() == 'x'", "format.dns1123Label().validate('a').hasValue()",
    "semver('1.2.3').major() == 1", "quantity('1') == quantity('1000m')", "'%s'.format(['a']) == 'a'", "strings.quote('a') == '\"a\"'",
    "authorizer.path('/x').check('get').allowed()", "request.name == 'x'", "namespaceObject.metadata.name == 'x'", "variables.x",
    "duration('1h') > duration('1m')", "duration('x') > duration('1m')", "timestamp('x') > timestamp('y')", "1 == 'a'", "dyn(1) == 'a'", "1 + 'a' == 'b'",
    "{'a': 1}.a == 1", "{'a': 1}.b == 1", "[1][5] == 1", "1 / 0 == 1", "'a' < 'b'", "1 < 2.0", "device.driver.contains('gpu')", "device.driver.size() > 3",
    "device.driver.matches(device.driver)", "device.driver in ['a']", "device.driver == 1", "device.attributes['a']['b']['c'] == 1", "\"\\q\" == 'a'",
    "true // a comment", "true &&\n  true", "", " ", "null", "null == null", "[]", "{}", "'true'", "b'true' == b''", "true || 1", "if true", "device.`driver` == 'x'",
    _wide(3), _wide(4), _wide(5), _wide(6), _wide(7),
    f"{DOMAIN}.all(a, {DOMAIN}.all(b, true))", f"{DOMAIN}.all(a, {DOMAIN}.all(b, {DOMAIN}.all(c, true)))",
    f"{DOMAIN}.all(a, {DOMAIN}.all(b, {DOMAIN}.all(c, {DOMAIN}.all(d, true))))",
    f"device.attributes.all(a, device.attributes[a].all(b, {DOMAIN}.all(c, {DOMAIN}.all(d, {DOMAIN}.all(e, true)))))",
    f"{DOMAIN}.all(a, {DOMAIN}.all(b, {DOMAIN}.all(c, a.matches(b) && b.matches(c))))", f"{DOMAIN}.all(a, {DOMAIN}.all(b, a.matches(b)))",
    f"{DOMAIN}.all(k, v, {DOMAIN}.all(l, w, {DOMAIN}.all(m, u, v == w && u == v)))",
    f"{DOMAIN}.map(a, a + a).map(b, b + b).map(c, c + c).map(d, d + d).all(e, e.matches(e))", f"{DOMAIN}.map(a, {DOMAIN}.map(b, {DOMAIN}.map(c, a + b + c))).size() == 1",
    f"cel.bind(a, {DOMAIN}, a.all(b, a.all(c, a.all(d, a.all(e, true)))))", f"{DOMAIN}.model.split('').all(a, {DOMAIN}.model.split('').all(b, a == b))",
    f"{DOMAIN}.model.split('').all(a, {DOMAIN}.model.split('').all(b, {DOMAIN}.model.split('').all(c, a == b && b == c)))",
    "device.driver.split('').all(a, device.driver.split('').all(b, device.driver.split('').all(c, a == b && b == c)))",
    "lists.range(100).all(a, true)", "lists.range(1000).all(a, lists.range(1000).all(b, true))", "lists.range(100000).all(a, true)",
    "[3, 1, 2].sort() == [1, 2, 3]", f"{DOMAIN}.map(x, x).sort().size() == 1", f"{DOMAIN}.map(x, x).distinct().size() == 1",
    "format.named('x').hasValue()", "semver('1.0.0').compareTo(semver('2.0.0')) < 0", "'" + "a" * 10236 + "' == 'b'"[:7], "true" + " " * 10236, "true" + " " * 10237,
    "'" + "ä" * 5112 + "' == ''", "'" + "ä" * 5117 + "' == ''",
)  # fmt: skip


def _tolerations() -> Iterator[tuple[str, JSON]]:
    listed: dict[str, JSON] = {
        "null": None,
        "a map": {"operator": "Exists"},
        "empty": [{}],
        "null entry": [None],
        "Exists": [{"operator": "Exists"}],
        "Exists with key": [
            {"key": "gpu.example.com/broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
        ],
        "Exists with value": [{"key": "a", "operator": "Exists", "value": "b"}],
        "Exists with empty value": [{"key": "a", "operator": "Exists", "value": ""}],
        "Equal": [{"key": "a", "operator": "Equal", "value": "b"}],
        "Equal without key": [{"operator": "Equal", "value": "b"}],
        "Equal with a long value": [{"key": "a", "operator": "Equal", "value": "b" * 64}],
        "Equal with a value of spaces": [{"key": "a", "operator": "Equal", "value": "b b"}],
        "no operator": [{"key": "a", "value": "b"}],
        "operator empty": [{"key": "a", "operator": "", "value": "b"}],
        "operator null": [{"key": "a", "operator": None, "value": "b"}],
        "operator exists": [{"key": "a", "operator": "exists"}],
        "operator In": [{"key": "a", "operator": "In", "value": "b"}],
        "key with two slashes": [{"key": "a/b/c", "operator": "Exists"}],
        "key with spaces": [{"key": "a b", "operator": "Exists"}],
        "long key": [{"key": "a" * 64, "operator": "Exists"}],
        **{
            f"effect {_shown(effect)}": [{"operator": "Exists", "effect": effect}]
            for effect in ("", None, "None", "NoSchedule", "NoExecute", "PreferNoSchedule", "noSchedule", 1)
        },
        "seconds without NoExecute": [{"operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}],
        "seconds a text": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": "5"}],
        "seconds negative": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -5}],
        "16": [{"key": f"k{index}", "operator": "Exists"} for index in range(16)],
        "17": [{"key": f"k{index}", "operator": "Exists"} for index in range(17)],
        "twice the same": [{"operator": "Exists"}] * 2,
        "an unknown field": [{"operator": "Exists", "seconds": 5}],
    }
    for name, tolerations in listed.items():
        yield f"tolerations: {name}", {"requests": [exact(tolerations=tolerations)]}
        yield f"choice, tolerations: {name}", {"requests": [_either(choice(tolerations=tolerations))]}


def _capacities() -> Iterator[tuple[str, JSON]]:
    listed: dict[str, JSON] = {
        "null": None,
        "a text": "1Gi",
        "empty": {},
        "requests null": {"requests": None},
        "requests a list": {"requests": [{"memory": "1Gi"}]},
        "memory": {"requests": {"memory": "1Gi"}},
        "memory of a domain": {"requests": {"gpu.example.com/memory": "1Gi"}},
        "a number": {"requests": {"memory": 1}},
        "null value": {"requests": {"memory": None}},
        "no quantity": {"requests": {"memory": "1 GB"}},
        "negative": {"requests": {"memory": "-1Gi"}},
        "zero": {"requests": {"memory": "0"}},
        "key with a dash": {"requests": {"gpu-memory": "1Gi"}},
        "key with a dot": {"requests": {"gpu.memory": "1Gi"}},
        "key empty": {"requests": {"": "1Gi"}},
        "key of 32": {"requests": {"m" * 32: "1Gi"}},
        "key of 33": {"requests": {"m" * 33: "1Gi"}},
        "key without domain": {"requests": {"/memory": "1Gi"}},
        "key without name": {"requests": {"gpu.example.com/": "1Gi"}},
        "key with two slashes": {"requests": {"a/b/c": "1Gi"}},
        "key with a bad domain": {"requests": {"GPU_x/memory": "1Gi"}},
        "33 keys": {"requests": {f"m{index}": "1" for index in range(33)}},
        "an unknown field": {"request": {"memory": "1Gi"}},
    }
    for name, capacity in listed.items():
        yield f"capacity: {name}", {"requests": [exact(capacity=capacity)]}
        yield f"choice, capacity: {name}", {"requests": [_either(choice(capacity=capacity))]}


def _constraints() -> Iterator[tuple[str, JSON]]:
    listed: dict[str, JSON] = {
        "null": None,
        "a map": {"matchAttribute": "a.b/c"},
        "null entry": [None],
        "neither attribute": [{"requests": ["main"]}],
        "empty": [{}],
        "null attribute": [{"matchAttribute": None}],
        "match": [{"matchAttribute": "gpu.example.com/model"}],
        "distinct": [{"distinctAttribute": "gpu.example.com/model"}],
        "both": [{"matchAttribute": "gpu.example.com/model", "distinctAttribute": "gpu.example.com/uuid"}],
        "match beside null": [{"matchAttribute": "gpu.example.com/model", "distinctAttribute": None}],
        "a number": [{"matchAttribute": 1}],
        "32": [{"matchAttribute": "a.b/c"}] * 32,
        "33": [{"matchAttribute": "a.b/c"}] * 33,
        "of none": [{"requests": [], "matchAttribute": "a.b/c"}],
        "of null": [{"requests": None, "matchAttribute": "a.b/c"}],
        "of a text": [{"requests": "main", "matchAttribute": "a.b/c"}],
        "of one": [{"requests": ["main"], "matchAttribute": "a.b/c"}],
        "of one twice": [{"requests": ["main", "main"], "matchAttribute": "a.b/c"}],
        "of an unknown one": [{"requests": ["mian"], "matchAttribute": "a.b/c"}],
        "of an empty name": [{"requests": [""], "matchAttribute": "a.b/c"}],
        "of null inside": [{"requests": [None], "matchAttribute": "a.b/c"}],
        "of a number": [{"requests": [1], "matchAttribute": "a.b/c"}],
        "of a choice": [{"requests": ["either/first"], "matchAttribute": "a.b/c"}],
        "of a request with choices": [{"requests": ["either"], "matchAttribute": "a.b/c"}],
        "of a request and its choice": [{"requests": ["either", "either/first"], "matchAttribute": "a.b/c"}],
        "of an unknown choice": [{"requests": ["either/third"], "matchAttribute": "a.b/c"}],
        "of a choice of a request without": [{"requests": ["main/first"], "matchAttribute": "a.b/c"}],
        "of a bare choice": [{"requests": ["first"], "matchAttribute": "a.b/c"}],
        "of three names": [{"requests": ["either/first/x"], "matchAttribute": "a.b/c"}],
        "of a half name": [{"requests": ["either/"], "matchAttribute": "a.b/c"}],
        "an unknown field": [{"matchAttribute": "a.b/c", "request": ["main"]}],
    }
    for attribute in (
        "", "model", "a.b/", "/c", "a.b/c-d", "a.b/c.d", "a.b/C_1", "a.b/1c", "a.b/" + "c" * 32, "a.b/" + "c" * 33, "a/b/c", "A.b/c", "a_b/c", "a" * 63 + "/c",
        "a" * 64 + "/c", "a..b/c", "a.b /c", "resource.kubernetes.io/pcieRoot",
    ):  # fmt: skip
        shown = attribute if len(attribute) < 34 else f"{attribute[:2]}… of {len(attribute)}"
        listed[f"match `{shown}`"] = [{"matchAttribute": attribute}]
        listed[f"distinct `{shown}`"] = [{"distinctAttribute": attribute}]
    for name, constraints in listed.items():
        yield (
            f"constraints: {name}",
            {"requests": [exact(), _either(choice(), choice("second"), name="either")], "constraints": constraints},
        )


def _configs() -> Iterator[tuple[str, JSON]]:
    listed: dict[str, JSON] = {
        "null": None,
        "a map": opaque(),
        "null entry": [None],
        "empty": [{}],
        "opaque null": [{"opaque": None}],
        "opaque empty": [{"opaque": {}}],
        "opaque a text": [{"opaque": "x"}],
        "one": [opaque()],
        "32": [opaque()] * 32,
        "33": [opaque()] * 33,
        "no parameters": [opaque("leave out")],
        "parameters null": [opaque(None)],
        "parameters a list": [opaque([1])],
        "parameters a text": [opaque("a: 1")],
        "parameters a number": [opaque(1)],
        "parameters empty": [opaque({})],
        "parameters of 10 KiB": [opaque({"a": "x" * (10 * 1024 - 8)})],
        "parameters over 10 KiB": [opaque({"a": "x" * (10 * 1024 - 7)})],
        "for none": [opaque(requests=[])],
        "for null": [opaque(requests=None)],
        "for one": [opaque(requests=["main"])],
        "for one twice": [opaque(requests=["main", "main"])],
        "for an unknown one": [opaque(requests=["mian"])],
        "for a choice": [opaque(requests=["either/second"])],
        "for an unknown choice": [opaque(requests=["either/third"])],
        "for a text": [opaque(requests="main")],
        "an unknown field": [{**opaque(), "request": "main"}],
        "an unknown field in opaque": [{"opaque": {**opaque()["opaque"], "params": {}}}],
        "no driver": [opaque(driver="leave out")],
        "driver null": [opaque(driver=None)],
    }
    for driver in (
        "",
        "gpu",
        "GPU.example.com",
        "a_b",
        "-a",
        "a-",
        "a..b",
        ".a",
        "a" * 63,
        "a" * 64,
        "a.b/c",
        "a b",
        "1.2",
    ):
        shown = driver if len(driver) < 30 else f"{len(driver)} letters"
        listed[f"driver `{shown}`"] = [opaque(driver=driver)]
    for name, config in listed.items():
        yield (
            f"config: {name}",
            {"requests": [exact(), _either(choice(), choice("second"), name="either")], "config": config},
        )


def _shown(value: JSON) -> str:
    return "left out" if value is ... else repr(value)


# ---- whole objects


def flat(request: JSON) -> JSON:
    """A request as v1beta1 writes it: what it asks for stands beside its name."""
    if not isinstance(request, dict) or not isinstance(request.get("exactly"), dict):
        return request
    return {key: value for key, value in request.items() if key != "exactly"} | request["exactly"]


def in_version(held: JSON, version: str) -> JSON:
    """`spec.devices` in the words of another version."""
    if version != "v1beta1" or not isinstance(held.get("requests"), list):
        return held
    return held | {"requests": [flat(request) for request in held["requests"]]}


def claim(spec: JSON, version: str = "v1", name: str = "c") -> JSON:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def template(spec: JSON, version: str = "v1", name: str = "t") -> JSON:
    return {**claim(spec, version, name), "kind": "ResourceClaimTemplate"}


def device_class(spec: JSON, version: str = "v1", name: str = CLASS) -> JSON:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def variants() -> Iterator[tuple[str, JSON]]:
    """Every object with the sentence that tells it from the others."""
    for index, (name, held) in enumerate(devices()):
        yield f"claim v1: {name}", claim({"devices": held})
        version = ("v1beta1", "v1beta2")[index % 3 == 2]
        if version == "v1beta1" or index % 2:
            yield f"template {version}: {name}", template({"spec": {"devices": in_version(held, version)}}, version)
    yield from _shapes()
    yield from _templates()
    yield from _classes()
    yield from _rules()
    yield from _groups()


def _shapes() -> Iterator[tuple[str, JSON]]:
    for version in VERSIONS:
        yield f"claim {version}: flat request", claim({"devices": {"requests": [flat(exact())]}}, version)
        yield f"claim {version}: request under exactly", claim({"devices": {"requests": [exact()]}}, version)
        both = exact() | {"deviceClassName": CLASS}
        yield f"claim {version}: request both flat and under exactly", claim({"devices": {"requests": [both]}}, version)
        for field, value in (("count", 2), ("allocationMode", "All"), ("adminAccess", False), ("selectors", []), ("selectors", [cel("true")]),
                             ("tolerations", [{"operator": "Exists"}]), ("capacity", {"requests": {"a": "1"}}), ("deviceClassName", ""), ("count", 0)):  # fmt: skip
            beside = _either(choice()) | {field: value}
            yield (
                f"claim {version}: {field} {value} beside firstAvailable",
                claim({"devices": {"requests": [beside]}}, version),
            )
            alone = {"name": "main", field: value}
            yield (
                f"claim {version}: {field} {value} without a class",
                claim({"devices": {"requests": [alone]}}, version),
            )
        yield f"claim {version}: no spec", {key: value for key, value in claim({}, version).items() if key != "spec"}
        yield f"claim {version}: spec null", claim(None, version)
        yield f"claim {version}: spec a list", claim([], version)
        yield f"claim {version}: devices null", claim({"devices": None}, version)
        yield f"claim {version}: devices a list", claim({"devices": [exact()]}, version)
        yield f"claim {version}: requests one level too high", claim({"requests": [exact()]}, version)
        yield f"claim {version}: a template's depth", claim({"spec": {"devices": {"requests": [exact()]}}}, version)
        yield f"claim {version}: resourceClassName", claim({"resourceClassName": CLASS}, version)
    for name in ("C", "a" * 253, "a" * 254, "a_b", "a.b"):
        shown = name if len(name) < 30 else f"{len(name)} letters"
        yield f"claim named `{shown}`", claim({"devices": {"requests": [exact()]}}, name=name)
        yield f"template named `{shown}`", template({"spec": {"devices": {"requests": [exact()]}}}, name=name)
        yield f"class named `{shown}`", device_class({}, name=name)


def _templates() -> Iterator[tuple[str, JSON]]:
    good = {"devices": {"requests": [exact()]}}
    for name, metadata in (
        ("labels", {"labels": {"a": "b"}}), ("annotations", {"annotations": {"a/b": "any thing"}}), ("null", None), ("empty", {}), ("a list", []),
        ("a name", {"name": "x"}), ("an empty name", {"name": ""}), ("a namespace", {"namespace": "default"}), ("generateName", {"generateName": "x-"}),
        ("finalizers", {"finalizers": ["a.b/c"]}), ("owners", {"ownerReferences": []}), ("creationTimestamp null", {"creationTimestamp": None}),
        ("creationTimestamp", {"creationTimestamp": "2024-01-01T00:00:00Z"}), ("uid", {"uid": "x"}), ("a bad label", {"labels": {"a b": "c"}}),
        ("a bad label value", {"labels": {"a": "b c"}}), ("a label that is a number", {"labels": {"a": 1}}), ("a bad annotation key", {"annotations": {"a b": "c"}}),
        ("labels a list", {"labels": ["a"]}), ("a null label", {"labels": {"a": None}}), ("an upper annotation key", {"annotations": {"A.b/C": "c"}}),
        ("an unknown field", {"label": {"a": "b"}}),
    ):  # fmt: skip
        yield f"template with metadata: {name}", template({"metadata": metadata, "spec": good})
    yield "template with a claim's depth", template(good)
    yield "template without inner spec", template({})
    yield "template with inner spec null", template({"spec": None})
    yield "template with an unknown field", template({"spec": good, "replicas": 1})


def _classes() -> Iterator[tuple[str, JSON]]:
    for version in VERSIONS:
        yield f"class {version}: empty", device_class({}, version)
        yield f"class {version}: selector", device_class({"selectors": [cel('device.driver == "x"')]}, version)
        yield f"class {version}: 33 selectors", device_class({"selectors": [cel("true")] * 33}, version)
        yield f"class {version}: selector without cel", device_class({"selectors": [{}]}, version)
        yield (
            f"class {version}: selector that does not compile",
            device_class({"selectors": [cel("device.x")]}, version),
        )
        yield f"class {version}: selector too complex", device_class({"selectors": [cel(_wide(6))]}, version)
        yield (
            f"class {version}: cel.bind",
            device_class({"selectors": [cel("cel.bind(a, device.driver, a == 'x')")]}, version),
        )
        yield f"class {version}: config", device_class({"config": [opaque()]}, version)
        yield f"class {version}: 33 configs", device_class({"config": [opaque()] * 33}, version)
        yield f"class {version}: config for requests", device_class({"config": [opaque(requests=["main"])]}, version)
        yield f"class {version}: config without opaque", device_class({"config": [{}]}, version)
        yield f"class {version}: parameters a list", device_class({"config": [opaque([])]}, version)
        yield f"class {version}: suitableNodes", device_class({"suitableNodes": {"nodeSelectorTerms": []}}, version)
    yield "class: no spec", {key: value for key, value in device_class({}).items() if key != "spec"}
    yield "class: spec null", device_class(None)
    yield "class: selectors a map", device_class({"selectors": cel("true")})
    yield "class: an unknown field", device_class({"selector": []})
    for name in ("nvidia.com/gpu", "gpu", "", None, "example.com/gpu-1", "kubernetes.io/gpu", "x.kubernetes.io/gpu", "requests.example.com/gpu", "a/b/c", "Example.com/gpu",
                 "example.com/", "/gpu", "example.com/a b", "a" * 244 + "/b", "a" * 245 + "/b", "example.com/" + "b" * 63, "example.com/" + "b" * 64, "cpu",
                 "deviceclass.resource.kubernetes.io/x", 1):  # fmt: skip
        shown = name if not isinstance(name, str) or len(name) < 40 else f"{name[0]}… of {len(name)}"
        yield f"class: extendedResourceName `{shown}`", device_class({"extendedResourceName": name})


def rule(spec: JSON, version: str = "v1alpha3") -> JSON:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": spec,
    }


def _rules() -> Iterator[tuple[str, JSON]]:
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    for version in ("v1alpha3", "v1beta2"):
        for name, selector in (
            ("none", ...), ("null", None), ("empty", {}), ("driver", {"driver": DRIVER}), ("pool", {"pool": "node-1"}), ("pool with slashes", {"pool": "a/b/c"}),
            ("device", {"device": "gpu-0"}), ("all three", {"driver": DRIVER, "pool": "p", "device": "d"}), ("a bad driver", {"driver": "A_b"}),
            ("an empty driver", {"driver": ""}), ("a bad pool", {"pool": "A"}), ("an empty pool", {"pool": ""}), ("a bad device", {"device": "gpu.0"}), ("a long pool", {"pool": "a" * 254}),
            ("an empty device", {"device": ""}), ("deviceClassName", {"deviceClassName": CLASS}), ("selectors", {"selectors": [cel("true")]}), ("null driver", {"driver": None}),
        ):  # fmt: skip
            yield (
                f"rule {version}: selector {name}",
                rule({"taint": taint} | ({} if selector is ... else {"deviceSelector": selector}), version),
            )
        for effect in ("NoSchedule", "NoExecute", "None", "", None, ..., "PreferNoSchedule", "noexecute"):
            held = {"key": "a"} | ({} if effect is ... else {"effect": effect})
            yield (
                f"rule {version}: effect {_shown(effect)}",
                rule({"deviceSelector": {"driver": DRIVER}, "taint": held}, version),
            )
        for key in ("", ..., None, "a/b/c", "a b", "a" * 63, "a" * 64):
            held = {"effect": "NoSchedule"} | ({} if key is ... else {"key": key})
            shown = _shown(key) if not isinstance(key, str) or len(key) < 30 else f"of {len(key)}"
            yield (
                f"rule {version}: key {shown}",
                rule({"deviceSelector": {"driver": DRIVER}, "taint": held}, version),
            )
        for value in ("v", "", None, "a b", "a" * 64):
            held = {**taint, "value": value}
            shown = _shown(value) if not isinstance(value, str) or len(value) < 30 else f"of {len(value)}"
            yield (
                f"rule {version}: value {shown}",
                rule({"deviceSelector": {"driver": DRIVER}, "taint": held}, version),
            )
        yield f"rule {version}: no taint", rule({"deviceSelector": {"driver": DRIVER}}, version)
        yield f"rule {version}: taint null", rule({"taint": None}, version)
        yield f"rule {version}: spec null", rule(None, version)


GROUP = "scheduling.k8s.io/v1alpha2"


def pod_group(claims: JSON, **more: JSON) -> JSON:
    metadata = {"name": "g", "namespace": "default"}
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": claims, **more}
    return {"apiVersion": GROUP, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def workload(*claims: JSON) -> JSON:
    templates = [
        {"name": f"t{index}", "schedulingPolicy": {"basic": {}}, "resourceClaims": each}
        for index, each in enumerate(claims)
    ]
    metadata = {"name": "w", "namespace": "default"}
    return {"apiVersion": GROUP, "kind": "Workload", "metadata": metadata, "spec": {"podGroupTemplates": templates}}


def _groups() -> Iterator[tuple[str, JSON]]:
    one = {"name": "gpu", "resourceClaimTemplateName": "t"}
    listed: dict[str, JSON] = {
        "none": [],
        "null": None,
        "a map": one,
        "one of a template": [one],
        "one of a claim": [{"name": "gpu", "resourceClaimName": "c"}],
        "four": [{**one, "name": f"c{index}"} for index in range(4)],
        "five": [{**one, "name": f"c{index}"} for index in range(5)],
        "twice one name": [one, one],
        "a null": [None],
        "a text": ["gpu"],
        "no name": [{"resourceClaimName": "c"}],
        "a null name": [{"name": None, "resourceClaimName": "c"}],
        "an empty name": [{"name": "", "resourceClaimName": "c"}],
        "a bad name": [{"name": "a.b", "resourceClaimName": "c"}],
        "a name of 64": [{"name": "a" * 64, "resourceClaimName": "c"}],
        "a name that is a number": [{"name": 1, "resourceClaimName": "c"}],
        "no source": [{"name": "gpu"}],
        "null sources": [{"name": "gpu", "resourceClaimName": None, "resourceClaimTemplateName": None}],
        "both sources": [{**one, "resourceClaimName": "c"}],
        "both sources, one empty": [{**one, "resourceClaimName": ""}],
        "one source and a null": [{**one, "resourceClaimName": None}],
        "an empty claim": [{"name": "gpu", "resourceClaimName": ""}],
        "an empty template": [{"name": "gpu", "resourceClaimTemplateName": ""}],
        "a bad claim": [{"name": "gpu", "resourceClaimName": "A_b"}],
        "a bad template": [{"name": "gpu", "resourceClaimTemplateName": "a..b"}],
        "a source that is a number": [{"name": "gpu", "resourceClaimName": 1}],
        "an unknown field": [{**one, "request": "a"}],
    }
    for name, claims in listed.items():
        yield f"pod group: {name}", pod_group(claims)
        yield f"workload: {name}", workload([one], claims)
