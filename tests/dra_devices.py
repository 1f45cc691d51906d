"""`spec.devices` of valid and invalid claims, in the form of v1, for the claims of tests/dra_variants.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.dra_selectors import EXPRESSIONS

JSON = Any
CLASS = "gpu.example.com"
DRIVER = "gpu.example.com"


def exact(name: str = "main", **more: JSON) -> JSON:
    """Return a request for one device of one class. A field with the value `...` is left out."""
    asked = {"deviceClassName": CLASS, **more}
    return {"name": name, "exactly": {key: value for key, value in asked.items() if value is not ...}}


def choice(name: str = "first", **more: JSON) -> JSON:
    asked = {"name": name, "deviceClassName": CLASS, **more}
    return {key: value for key, value in asked.items() if value is not ...}


def opaque(parameters: JSON = ..., driver: JSON = DRIVER, **more: JSON) -> JSON:
    held = {"driver": driver, "parameters": {"a": 1} if parameters is ... else parameters}
    return {"opaque": {key: value for key, value in held.items() if value != "leave out"}, **more}


def cel(expression: JSON) -> JSON:
    return {"cel": {"expression": expression}}


def devices() -> Iterator[tuple[str, JSON]]:
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
        yield f"class of a choice `{shown}`", {"requests": [either(choice(deviceClassName=value))]}
    yield "class null", {"requests": [exact(deviceClassName=None)]}
    yield "no class", {"requests": [exact(deviceClassName=..., count=1)]}
    yield "no class in a choice", {"requests": [either(choice(deviceClassName=...))]}
    yield "class a number", {"requests": [exact(deviceClassName=1)]}
    yield from _amounts()
    yield from _choices()
    yield from _selectors()
    yield from _tolerations()
    yield from _capacities()
    yield from _constraints()
    yield from _configs()


def either(*choices: JSON, name: str = "main") -> JSON:
    return {"name": name, "firstAvailable": list(choices)}


def _amounts() -> Iterator[tuple[str, JSON]]:
    for mode, count in (
        ("ExactCount", ...), ("ExactCount", 0), ("ExactCount", 1), ("ExactCount", -1), ("ExactCount", 1000), ("All", ...), ("All", 0), ("All", 1),
        ("All", -1), ("all", ...), ("Exact", 1), ("", 2), ("", ...), (None, 2), (..., 2), (..., 0), (..., -3), (..., None), (..., "2"), (..., 1.5),
        (..., 2.0), (1, ...), (..., True), (..., 2**40), (..., 2**63), (..., [1]),
    ):  # fmt: skip
        shown = f"mode {told(mode)} with count {told(count)}"
        yield shown, {"requests": [exact(allocationMode=mode, count=count)]}
        yield f"choice, {shown}", {"requests": [either(choice(allocationMode=mode, count=count))]}
    for value in (True, False, None, "true", 1):
        yield f"adminAccess {told(value)}", {"requests": [exact(adminAccess=value)]}
        yield f"choice with adminAccess {told(value)}", {"requests": [either(choice(adminAccess=value))]}


def _choices() -> Iterator[tuple[str, JSON]]:
    yield "one choice", {"requests": [either(choice())]}
    yield "8 choices", {"requests": [either(*(choice(f"c{index}") for index in range(8)))]}
    yield "9 choices", {"requests": [either(*(choice(f"c{index}") for index in range(9)))]}
    yield "choices of one name", {"requests": [either(choice(), choice())]}
    yield "equal names in two requests", {"requests": [either(choice()), either(choice(), name="other")]}
    yield "a choice named as its request", {"requests": [either(choice("main"))]}
    for name in ("A", "a.b", "", "a/b"):
        yield f"choice name `{name}`", {"requests": [either(choice(name))]}
    yield "no choice name", {"requests": [either(choice(...))]}
    yield "a choice that is null", {"requests": [either(None)]}
    yield "a choice that asks exactly", {"requests": [either(exact("first"))]}


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
        yield f"choice, selectors: {name}", {"requests": [either(choice(selectors=selectors))]}
    for expression in EXPRESSIONS:
        line = expression.replace("\n", "⏎")
        shown = line if len(line) <= 100 else f"{line[:60]}… of {len(line)}"
        yield f"selector {shown}", {"requests": [exact(selectors=[cel(expression)])]}


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
            f"effect {told(effect)}": [{"operator": "Exists", "effect": effect}]
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
        yield f"choice, tolerations: {name}", {"requests": [either(choice(tolerations=tolerations))]}


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
        yield f"choice, capacity: {name}", {"requests": [either(choice(capacity=capacity))]}


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
            {"requests": [exact(), either(choice(), choice("second"), name="either")], "constraints": constraints},
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
            {"requests": [exact(), either(choice(), choice("second"), name="either")], "config": config},
        )


def told(value: JSON) -> str:
    return "left out" if value is ... else repr(value)
