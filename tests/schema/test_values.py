"""The declarations of a data file about the value of a field, and the message for each violation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rows import all_rows
from webhook.apimachinery.paths import path_as_text
from webhook.deadline import Deadline
from webhook.facts.dra import breaches, nvidia_device_config
from webhook.facts.shapes import object_shape
from webhook.schema.kinds import declarations
from webhook.schema.types import Fields, Items, Type
from webhook.schema.values import FORMS, ValueDeclarations, read_data_file
from webhook.text.wording import shown

OBJECTS = {
    "Thing": {
        "name": {"text": "label", "required": True},
        "mode": {"one": ["All", "Some"], "empty": True},
        "size": {"number": True, "least": 1, "most": 9},
        "on": {"flag": True},
        "memory": {"quantity": True, "least": "1Mi"},
        "parts": {"list": {"object": {"v1": "Part", "v2": "NewPart"}}, "most": 2, "unique": "id"},
        "tags": {"list": {"text": "text"}, "unique": True},
        "labels": {"map": {"text": "labelValue"}, "keys": "labelKey"},
        "amounts": {"map": {"quantity": True}, "keys": "capacity", "otherwise": "noCapacity"},
        "old": {"forbidden": "it is gone"},
        "some": {"any": True, "with": {"mode": "Some"}},
        "whole": {"object": "Part", "required": True, "expected": "a part"},
        "moved": {"colour": "labels"},
    },
    "Part": {"id": {"text": "text"}},
    "NewPart": {"key": {"text": "text"}, "open": True},
}
GOOD = {"name": "a", "whole": {}}


def notes(value: object, version: str = "v1") -> list[tuple[str, str, str, str, str]]:
    found = ValueDeclarations(OBJECTS, version).breaches(value, "Thing", (), Deadline())
    return [(b.what, path_as_text(b.at), shown(b.given) if b.given != "" else "", b.expected, b.nearest) for b in found]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"mode": "All", "size": 9, "on": False, "memory": "1Mi", "tags": ["a", "b"], "labels": {"a/b": "c"}},
        {"mode": "", "memory": 2e6, "parts": [{"id": "a"}, {"id": "b"}], "amounts": {"x.y/memory": 1}, "old": "", "some": 1},
        {"mode": None, "size": None, "on": None, "memory": None, "parts": None, "labels": {"a": None}, "old": None, "odd": None},
        {"mode": "${MODE}", "name": "{{ .Values.name }}", "memory": "$MEMORY", "labels": {"$KEY": "$VALUE"}, "some": 1},
        {"mode": "Some", "some": [1]},
        {"parts": [None, None]},
    ],
)  # fmt: skip
def test_a_valid_value_gets_no_note(value: dict) -> None:
    assert notes(GOOD | value) == []


@all_rows(
    ("value", "note"),
    [
        ({"name": None}, ("missing", "name", "", FORMS["label"][1], "")),
        ({"name": ""}, ("missing", "name", "", FORMS["label"][1], "")),
        ({"whole": None}, ("missing", "whole", "", "a part", "")),
        ({"name": "A"}, ("badName", "name", "A", FORMS["label"][1], "")),
        ({"name": 1}, ("wrongType", "name", "1", "a string", "")),
        ({"mode": "all"}, ("notOneOf", "mode", "all", "All, Some", "All")),
        ({"mode": "Somme"}, ("notOneOf", "mode", "Somme", "All, Some", "Some")),
        ({"size": 0}, ("outOfRange", "size", "0", "1 to 9", "")),
        ({"size": "1"}, ("wrongType", "size", '"1"', "a whole number", "")),
        ({"size": 1.0}, ("wrongType", "size", "1.0", "a whole number", "")),
        ({"size": True}, ("wrongType", "size", "true", "a whole number", "")),
        ({"size": 2**63}, ("wrongType", "size", str(2**63), "a whole number", "")),
        ({"on": "yes"}, ("wrongType", "on", "yes", "true or false", "")),
        ({"memory": "1Ki"}, ("outOfRange", "memory", "1Ki", "at least 1Mi", "")),
        ({"memory": "lots"}, ("notQuantity", "memory", "lots", "a quantity such as 1, 500m or 4Gi", "")),
        ({"memory": True}, ("notQuantity", "memory", "true", "a quantity such as 1, 500m or 4Gi", "")),
        ({"parts": {}}, ("wrongType", "parts", "{}", "a list", "")),
        ({"parts": [{}, {}, {}]}, ("tooMany", "parts", "3", "2", "")),
        ({"parts": [{"id": "a"}, {"id": "a"}]}, ("duplicate", "parts[1]", "a", "0", "")),
        ({"parts": ["a"]}, ("wrongType", "parts[0]", "a", "an object", "")),
        ({"parts": [{"idd": "a"}]}, ("unknownField", "parts[0].idd", "idd", "", "")),
        ({"tags": ["a", "b", "a"]}, ("duplicate", "tags[2]", "a", "0", "")),
        ({"tags": [{"a": 1}]}, ("wrongType", "tags[0]", '{"a": 1}', "a string", "")),
        ({"labels": ["a"]}, ("wrongType", "labels", '["a"]', "an object", "")),
        ({"labels": {"a b": "c"}}, ("badName", 'labels["a b"]', "a b", FORMS["labelKey"][1], "")),
        ({"amounts": {"a-b": 1}}, ("noCapacity", "amounts.a-b", "a-b", FORMS["capacity"][1], "")),
        ({"old": "x"}, ("forbidden", "old", "x", "it is gone", "")),
        ({"mode": "All", "some": 1}, ("excluded", "some", "mode All", "mode Some", "")),
        ({"colour": "red"}, ("unknownField", "colour", "colour", "labels", "")),
        ({"memry": 1}, ("unknownField", "memry", "memry", "", "memory")),
        ({"moved": 1}, ("unknownField", "moved", "moved", "", "")),
    ],
)
def test_a_violation_is_noted_once(value: dict, note: tuple[str, ...]) -> None:
    assert notes(GOOD | value) == [note]


def test_versions_have_their_own_shapes() -> None:
    assert notes(GOOD | {"parts": [{"key": "a", "anything": 1}]}, "v2") == []
    assert [what for what, *_ in notes(GOOD | {"parts": [{"key": 1}]}, "v2")] == ["wrongType"]


def test_a_value_that_is_not_an_object_has_no_fields() -> None:
    assert notes("a\nvery " + "long" * 20) == [("wrongType", "", "a very " + "long" * 12 + "lo...", "an object", "")]


@pytest.mark.parametrize(("file", "group"), [("values.yaml", "trainer.kubeflow.org"), ("volcano.yaml", "volcano.sh")])
def test_values_of_decoded_objects_are_of_the_types_of_their_kinds(file: str, group: str) -> None:
    objects = read_data_file(Path(object_shape.__file__).with_name(file))["objects"]
    kinds = {kind.kind: of for kind, of in declarations().kinds.items() if kind.group.endswith(group)}
    judged = kinds.keys() & objects.keys()
    assert len(judged) >= 3
    assert [at for kind in judged for at in differences({"object": kind}, kinds[kind], objects, (kind,))] == []


_TYPES = {"object": Fields, "map": Fields, "list": Items, "text": {"text"}, "one": {"text"}, "flag": {"truth"}} | {
    "number": {"number", "int64", "int32"}
}


def differences(declaration: dict, of: Type | None, objects: dict, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    key = next((key for key in declaration if key in _TYPES), None)
    if key is None:
        return
    wanted = _TYPES[key]
    if not (isinstance(of, wanted) if isinstance(wanted, type) else of in wanted):
        yield (*at, key)
    elif key == "object":
        for name, inner in objects[declaration["object"]].items():
            if name not in ("open", "moved", "metadata", "status"):
                yield from differences(inner, of.fields.get(name, of.others), objects, (*at, name))
    elif key in ("list", "map"):
        yield from differences(declaration[key], of.item if key == "list" else of.others, objects, (*at, key))


@pytest.mark.parametrize("file", [breaches.FILE, nvidia_device_config.FILE], ids=lambda file: str(file.name))
def test_every_named_object_is_declared(file: Path) -> None:
    objects = read_data_file(file)["objects"]
    pending, seen = [*objects.values()], 0
    while pending:
        held = pending.pop()
        if not isinstance(held, dict):
            continue
        pending.extend(held.values())
        if "object" in held:
            seen += 1
            of = held["object"]
            assert {of} <= set(objects) if isinstance(of, str) else set(of.values()) <= set(objects)
        if "text" in held and isinstance(held["text"], str):
            assert held["text"] in FORMS
    assert seen


@all_rows(
    ("form", "good", "bad"),
    [
        ("label", "a-1", "a.b"),
        ("subdomain", "a.b", "a_b"),
        ("driver", "GPU.example.com", "a" * 64),
        ("attribute", "a.b/c_1", "a.b/1"),
        ("attribute", "a/b/c", "model"),
        ("capacity", "memory", "gpu-memory"),
        ("capacity", "a.b/memory", "/memory"),
        ("extendedResource", "nvidia.com/gpu", "kubernetes.io/gpu"),
        ("extendedResource", "a" * 244 + "/b", "a" * 245 + "/b"),
        ("pool", "a/b", "a//b"),
        ("labelKey", "a.b/C", "a b"),
        ("annotationKey", "A.b/C", "A b"),
        ("labelValue", "", "a b"),
        ("nvidiaDevice", "0", "-1"),
        ("nvidiaDevice", "MIG-GPU-1/0/1", "first"),
        ("text", "", None),
        ("some", "a", ""),
    ],
)
def test_names_have_these_forms(form: str, good: str, bad: str | None) -> None:
    is_good, words = FORMS[form]
    assert is_good(good)
    assert bad is None or not is_good(bad)
    assert words[0].islower()
