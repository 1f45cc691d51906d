"""Values are decoded for a type. Messages name the parts that do not fit."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.rows import all_rows
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.schema import decode, has_undeclared_field, kubernetes_type
from webhook.schema.decode import create_type_check
from webhook.schema.kinds import Declarations
from webhook.yamltext.unread import Unread

UNREAD = Unread("1e999", "the number is too large for a double")
NOT_READ = "not a value that is not read because the number is too large for a double"
THING = Declarations({"Part": {"id": "text", "size": "number"}}).resolve_type(
    {
        "name": "text",
        "on": "truth",
        "count": "number",
        "long": "int64",
        "small": "int32",
        "share": "float",
        "amount": "quantity",
        "port": "intOrText",
        "free": "any",
        "words": ["text"],
        "parts": ["Part"],
        "pairs": [{"name": "text", "value": "text", "from": {}}],
        "labels": {"*": "text"},
        "limits": {"*": "quantity"},
        "groups": {"*": "Part"},
        "inner": {"deep": {"x": "text"}},
    }
)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"name": "", "on": False, "count": -1, "small": 0, "amount": 1, "port": "http", "free": [None]},
        {
            "amount": "1Gi",
            "port": 80,
            "unknown": {"a": None},
            "words": [],
            "labels": {},
            "limits": {"a": 1.5, "b": "1"},
        },
        {"parts": [{"id": "a"}, {"size": 1, "other": 1}, {}, {"id": "b"}], "groups": {"a": {"id": "b"}}, "inner": {}},
        {"pairs": [{"name": "a", "value": "b"}] * 5},
        {"pairs": [{"name": "a", "value": "b"}] * 5 + [{"name": "c", "from": {"x": 1}}]},
        {"share": 0.5},
        {"share": -1},
        {"amount": [True], "limits": {"a": {}, "b": None}},
        {"name": "${NAME}", "amount": "$N", "port": "{{ .port }}"},
        {"free": UNREAD, "unknown": [UNREAD], "amount": UNREAD, "limits": {"a": UNREAD}},
    ],
)
def test_a_valid_value_is_returned_without_a_copy(value: Any) -> None:
    found = decode(value, THING)
    assert found.value is value
    assert (found.mismatches, found.unfilled) == ((), ())


@all_rows(
    ("value", "path", "message"),
    [
        ({"name": 4}, "spec.name", "must be a string, not the number 4"),
        ({"name": {"a": 1}}, "spec.name", "must be a string, not an object"),
        ({"on": "true"}, "spec.on", 'must be true or false, not the string `"true"`'),
        ({"on": 1}, "spec.on", "must be true or false, not the number 1"),
        ({"share": "0.5"}, "spec.share", 'must be a number, not the string `"0.5"`'),
        ({"share": True}, "spec.share", "must be a number, not true"),
        ({"count": "4"}, "spec.count", 'must be a whole number, not the string `"4"`'),
        ({"count": 1.5}, "spec.count", "must be a whole number, not the number 1.5"),
        ({"count": 2.0}, "spec.count", "must be a whole number, not the number 2.0"),
        ({"count": True}, "spec.count", "must be a whole number, not true"),
        ({"count": 1 << 63}, "spec.count", "must be a whole number, not the number 9223372036854775808"),
        ({"small": 1 << 31}, "spec.small", "must be a whole number of 32 bits, not the number 2147483648"),
        ({"port": 1.5}, "spec.port", "must be a whole number or a string, not the number 1.5"),
        ({"words": "a b"}, "spec.words", "must be a list, not the string `a b`"),
        ({"words": ["a", 1]}, "spec.words[1]", "must be a string, not the number 1"),
        ({"parts": {"id": "a"}}, "spec.parts", "must be a list, not an object"),
        ({"parts": [{"id": "a"}, 7]}, "spec.parts[1]", "must be an object, not the number 7"),
        ({"pairs": [{"name": "a"}] * 5 + [{"name": 1}]}, "spec.pairs[5].name", "must be a string, not the number 1"),
        ({"pairs": [{"name": "a"}] * 5 + ["b"]}, "spec.pairs[5]", "must be an object, not the string `b`"),
        ({"labels": {"a/b": 1}}, 'spec.labels["a/b"]', "must be a string, not the number 1"),
        ({"groups": {"a": []}}, "spec.groups.a", "must be an object, not a list"),
        ({"inner": {"deep": {"x": None, "y": 1}, "z": 1} | {"deep": 1}}, "spec.inner.deep", "must be an object, not the number 1"),
        ([], "spec", "must be an object, not a list"),
        (UNREAD, "spec", f"must be an object, {NOT_READ}"),
        ({"inner": UNREAD}, "spec.inner", f"must be an object, {NOT_READ}"),
        ({"parts": [UNREAD]}, "spec.parts[0]", f"must be an object, {NOT_READ}"),
        ({"parts": [{}] * 9 + [UNREAD]}, "spec.parts[9]", f"must be an object, {NOT_READ}"),
        ({"groups": {"a": UNREAD}}, "spec.groups.a", f"must be an object, {NOT_READ}"),
        ({"labels": UNREAD}, "spec.labels", f"must be an object, {NOT_READ}"),
        ({"words": UNREAD}, "spec.words", f"must be a list, {NOT_READ}"),
        ({"name": UNREAD}, "spec.name", f"must be a string, {NOT_READ}"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_named(value: Any, path: str, message: str) -> None:
    (found,) = decode(value, THING, ("spec",)).mismatches
    assert (found.path, found.message) == (path, message)


@pytest.mark.parametrize(
    ("value", "decoded"),
    [
        ({"name": None, "unknown": None, "on": True}, {"on": True}),
        ({"words": ["a", None], "parts": [None, {"id": "a"}]}, {"words": ["a", ""], "parts": [{}, {"id": "a"}]}),
        ({"labels": {"a": None}, "limits": {"a": None}, "groups": {"a": None}}, {"labels": {}, "limits": {"a": None}, "groups": {}}),
        ({"inner": {"deep": None}, "free": None}, {"inner": {}}),
        ({"long": 2.0, "small": 3.0}, {"long": 2, "small": 3}),
        ({"parts": [{"id": 1}, "x", {"id": "c"}], "words": ["a", 2]}, {"parts": [{}, {}, {"id": "c"}], "words": ["a", ""]}),
        ({"limits": {"a": [], "b": 1}, "name": 4}, {"limits": {"a": [], "b": 1}}),
    ],
)  # fmt: skip
def test_values_of_a_wrong_type_are_left_out(value: Any, decoded: Any) -> None:
    assert decode(value, THING).value == decoded


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"name": 1, "free": {"a": 1}, "labels": {"a": 1}, "pairs": [{"from": {"x": 1}}], "parts": "x"}, False),
        ({"other": 1}, True),
        ({"parts": [{}, {"other": None}]}, True),
        ({"groups": {"a": {"other": 1}}}, True),
        ({"inner": {"deep": {"y": 1}}}, True),
        ([], False),
    ],
)
def test_a_field_that_a_type_does_not_declare_is_noticed(value: Any, expected: bool) -> None:
    assert has_undeclared_field(value, THING, Deadline()) is expected


def test_null_is_not_an_object() -> None:
    assert decode(None, THING).value is None
    assert decode("x", THING).value is None


def test_a_placeholder_may_become_a_value_of_any_type() -> None:
    written = {"count": "${N}", "words": "{{ .words }}", "parts": ["$PART", {"id": "a", "size": "$S"}]}
    found = decode(written, THING)
    assert found.value == {"parts": [{}, {"id": "a"}]}
    assert found.mismatches == ()
    assert found.unfilled == (("count",), ("words",), ("parts", 0), ("parts", 1, "size"))


def test_nothing_is_changed_in_place() -> None:
    value = {"parts": [{"id": None}], "labels": {"a": "b"}}
    found = decode(value, THING).value
    assert value == {"parts": [{"id": None}], "labels": {"a": "b"}}
    assert found["labels"] is value["labels"]


class Counted(Deadline):
    def __init__(self) -> None:
        super().__init__(math.inf)
        self.work = 0

    def spend(self, work: int) -> None:
        self.work += work


def test_the_clock_is_read_before_what_cannot_be_interrupted() -> None:
    with pytest.raises(BudgetExceeded):
        decode({}, THING, (), Deadline(0.0))


@pytest.mark.parametrize("field", ["words", "parts", "pairs", "labels", "groups", "unknown"])
def test_work_is_charged_as_it_grows(field: str) -> None:
    def work(size: int) -> int:
        entry = {"words": "a", "parts": {"size": 1}, "pairs": {"name": "a"}}.get(field, {"id": "a"})
        plain = "a" if field == "labels" else entry
        value: Any = [entry] * size if field in ("words", "parts", "pairs") else {str(i): plain for i in range(size)}
        whole = value if field == "unknown" else {field: value}
        deadline = Counted()
        decode(whole | {"name": 1}, THING, (), deadline)
        return deadline.work

    assert 900 <= work(1000) <= work(2000) / 1.5 <= 8000


TEMPLATE = kubernetes_type("core.v1.PodTemplateSpec")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"containers": {"name": "a"}}, "spec.containers"),
        ({"containers": [{"resources": "2 GPUs"}]}, "spec.containers[0].resources"),
        ({"containers": [{"env": [{"name": "N", "value": 4}]}]}, "spec.containers[0].env[0].value"),
        ({"containers": [{"ports": [{"containerPort": "80"}]}]}, "spec.containers[0].ports[0].containerPort"),
        ({"overhead": []}, "spec.overhead"),
        ({"resourceClaims": [{"name": 1}]}, "spec.resourceClaims[0].name"),
    ],
)
def test_a_pod_template_has_the_types_of_kubernetes(spec: Any, path: str) -> None:
    assert [each.path for each in decode({"spec": spec}, TEMPLATE).mismatches] == [path]


def test_types_of_kubernetes_are_created_once() -> None:
    assert kubernetes_type("core.v1.PodTemplateSpec") is TEMPLATE
    assert create_type_check(kubernetes_type("core.v1.PodSpec")) is create_type_check(
        kubernetes_type("core.v1.PodSpec")
    )
    with pytest.raises(KeyError):
        kubernetes_type("core.v1.Nothing")
