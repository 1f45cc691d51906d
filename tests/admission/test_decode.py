"""Reading AdmissionReviews: the decoded fields, and the message of each refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rows import all_rows
from tests.test_charged_walks import Looks
from webhook.admission.decode import (
    decode_request,
    decode_request_without_objects,
    decode_review,
    decode_review_bytes,
    takes_long_to_decode,
)
from webhook.apimachinery.attributes import GroupVersionKind, GroupVersionResource, Operation, UserInfo
from webhook.apimachinery.paths import MAX_DEPTH
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, CallError
from webhook.yamltext.unread import Unread

REVIEWS = sorted((Path(__file__).parents[1] / "data" / "reviews").glob("*.json"))


def request(**changes: Any) -> dict[str, Any]:
    base = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
        "oldObject": None,
    }
    return {key: value for key, value in {**base, **changes}.items() if value is not ...}


def review(**changes: Any) -> dict[str, Any]:
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request(**changes)}


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


REFUSED = {
    "empty body": (b"", "the body is not JSON: expecting value: line 1 column 1 (char 0); expected apiVersion"),
    "text": (b"hello", "the body is not JSON: expecting value: line 1 column 1"),
    "half a body": (b'{"apiVersion":"admission.k8s.io/v1"', "the body is not JSON: "),
    "two values": (b"{}{}", "the body is not JSON: "),
    "bytes that are not UTF-8": (b'{"kind":"\xff"}', "found apiVersion `` and kind `\ufffd`"),
    "a list": (b"[]", "the body: expected an object, found a list"),
    "an empty object": (
        b"{}",
        "the body is not an AdmissionReview: found apiVersion `` and kind ``, expected apiVersion",
    ),
    "a pod": (body({"apiVersion": "v1", "kind": "Pod"}), "found apiVersion `v1` and kind `Pod`"),
    "another group": (body({**review(), "apiVersion": "x.io/v1"}), "found apiVersion `x.io/v1`"),
    "v1beta1": (
        body({**review(), "apiVersion": "admission.k8s.io/v1beta1"}),
        "`admission.k8s.io/v1beta1` is not served, expected `admission.k8s.io/v1`; list `v1` in admissionReviewVersions",
    ),
    "v2": (body({**review(), "apiVersion": "admission.k8s.io/v2"}), "apiVersion: `admission.k8s.io/v2` is not served"),
    "no request": (body({**review(), "request": None}), "request: expected an object, found none"),
    "a list as request": (body({**review(), "request": []}), "request: expected an object, found a list"),
    "no uid": (body(review(uid=...)), "request.uid: expected a string, found none"),
    "empty uid": (body(review(uid="")), "request.uid: expected a string, found none"),
    "a number as uid": (body(review(uid=7)), "request.uid: expected a string, found an integer"),
    "no operation": (
        body(review(operation=...)),
        "request.operation: expected one of CREATE, UPDATE, DELETE, CONNECT, found none",
    ),
    "unknown operation": (body(review(operation="PATCH")), "found `PATCH`"),
    "no kind": (body(review(kind=None)), "request.kind: expected group, version and kind, found none"),
    "half a resource": (body(review(resource={"resource": "pods"})), "request.resource: expected group, version and"),
    "long namespace": (
        body(review(namespace="n" * 254)),
        "request.namespace: expected at most 253 characters in a name",
    ),
    "long resource": (
        body(review(resource={"group": "", "version": "v1", "resource": "p" * 100_000})),
        "request.resource: expected at most 253 characters in a name, found 100000",
    ),
    "long kind": (
        body(review(requestKind={"group": "", "version": "v1", "kind": "P" * 254})),
        "request.requestKind: expected at most 253 characters in a name, found 254",
    ),
    "a string as object": (body(review(object="pod")), "request.object: expected an object, found a string"),
    "a list as an entry of groups": (
        body(review(userInfo={"groups": ["a", 3]})),
        "request.userInfo.groups[1]: expected a string, found an integer",
    ),
    "wrong extra": (
        body(review(userInfo={"extra": {"k": "v"}})),
        "request.userInfo.extra[...]: expected a list, found",
    ),
    "a string as dryRun": (body(review(dryRun="no")), "request.dryRun: expected true or false, found a string"),
    "a number that JSON does not have": (
        body(review()).replace(b'"name"', b'"n": NaN, "name"'),
        "the body is not JSON: ",
    ),
    "a number that JSON does not have, in a deep body": (
        body(review(object={"x": "deep"})).replace(b'"deep"', b"[" * 300 + b"NaN" + b"]" * 300),
        "the body is not JSON: ",
    ),
    "a control character": (body(review()).replace(b'"name"', b'"n\x01": 1, "name"'), "the body is not JSON: "),
    "very many opening brackets": (b"[" * 100_000, "the body is not JSON: "),
    "brackets that do not match": (
        b'{"a":' + b"[]," * 300 + b"]]",
        "the body is not JSON: expecting property name",
    ),
}


@all_rows(("sent", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_unreadable_calls_are_refused_with_400_and_a_reason(sent: bytes, message: str) -> None:
    with pytest.raises(CallError) as caught:
        decode_review_bytes(sent)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    assert message in caught.value.message


@pytest.mark.parametrize("value", ["[" * 300 + "]" * 300, '\\" [{' * 300, "\\\\" * 300])
def test_brackets_inside_strings_do_not_count_as_nesting(value: str) -> None:
    sent = body(review(object={"kind": "ConfigMap", "data": {"text": value, "other": "[" * 300}}))
    assert decode_review_bytes(sent).object["data"]["text"] == value


def test_a_body_of_many_shallow_objects_is_not_deep() -> None:
    many = [{"a": [{}]} for _ in range(2_000)]
    assert decode_review_bytes(body(review(object={"items": many}))).object["items"] == many


def test_nesting_up_to_the_bound_is_read() -> None:
    held = json.loads(nested(MAX_DEPTH - 3))
    assert decode_review_bytes(body(review(object={"x": held}))).object["x"] == held


@all_rows("path", REVIEWS, ids=lambda path: path.name)
def test_every_recorded_review_is_read_as_it_was_sent(path: Path) -> None:
    sent = json.loads(path.read_text())["request"]
    read = decode_review_bytes(path.read_bytes())
    assert read == decode_review(json.loads(path.read_text())) == decode_request(sent)
    assert (read.uid, read.operation, read.dry_run) == (sent["uid"], sent["operation"], sent["dryRun"])
    assert read.kind == GroupVersionKind(**sent["kind"])
    assert read.resource == GroupVersionResource(**sent["resource"])
    assert read.request_kind == GroupVersionKind(**sent["requestKind"])
    assert read.request_resource == GroupVersionResource(**sent["requestResource"])
    assert read.request_sub_resource == sent.get("requestSubResource", "")
    assert read.sub_resource == sent.get("subResource", "")
    assert read.namespace == sent.get("namespace", "")
    assert (read.object, read.old_object, read.options) == (sent["object"], sent["oldObject"], sent["options"])
    assert read.user_info.username == sent["userInfo"]["username"]
    assert list(read.user_info.groups) == sent["userInfo"].get("groups", [])


NAMES = {
    "the request's own name": (request(name="given"), "given"),
    "a creation of an object with a name": (request(), "p"),
    "generateName has no name yet": (request(object={"metadata": {"generateName": "p-"}}), ""),
    "deletecollection names only the old object": (
        request(operation="DELETE", object=None, oldObject={"metadata": {"name": "gone"}}),
        "gone",
    ),
    "the name of a subresource's object is not used": (request(subResource="scale"), ""),
    "metadata of the wrong type": (request(object={"metadata": ["p"]}), ""),
    "a name of the wrong type": (request(object={"metadata": {"name": 5}}), ""),
    "no object": (request(object=None), ""),
}


@pytest.mark.parametrize(("given", "name"), NAMES.values(), ids=NAMES.keys())
def test_name_of_a_request(given: dict[str, Any], name: str) -> None:
    assert decode_request(given).name == name


def test_absent_request_kind_and_resource_are_those_of_the_object() -> None:
    read = decode_request(request(subResource="status"))
    assert read.request_kind == read.kind
    assert read.request_resource == read.resource
    assert read.request_sub_resource == "status"


def test_a_bare_request_reports_paths_below_request() -> None:
    with pytest.raises(CallError, match=r"^request\.namespace: expected a string, found an integer$"):
        decode_request(request(namespace=5))


def test_a_parsed_review_is_refused_with_the_same_text() -> None:
    with pytest.raises(CallError, match=r"^request\.name: expected a string, found a list$"):
        decode_review(review(name=[]))


@pytest.mark.parametrize(
    "number, read",
    [
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (2**63, 2.0**63),
        (-(2**63) - 1, -(2.0**63)),
        (123456789012345680000, 1.2345678901234568e20),
    ],
)
def test_an_integer_outside_int64_is_a_double_as_in_the_api_server(number: int, read: float) -> None:
    found = decode_review_bytes(body(review(object={"spec": {"list": [{"n": number}], "n": number}}))).object
    assert found == {"spec": {"list": [{"n": read}], "n": read}}
    assert type(found["spec"]["n"]) is type(found["spec"]["list"][0]["n"]) is type(read)


def test_integers_stay_integers_beside_long_numbers() -> None:
    listed = [2**63 - 1, -(2**63), *range(1234567, 1234600)]
    held = {"n": listed, "uid": "a1b2c3" * 20, "digest": "0" * 64, "at": "2026-11-23T10:00:00.000000000Z"}
    assert decode_review_bytes(body(review(object=held))).object == held
    assert {type(each) for each in decode_review_bytes(body(review(object=held))).object["n"]} == {int}


def test_a_long_number_is_recognized_anywhere_in_a_large_body() -> None:
    for fill in range((1 << 16) - 400, 1 << 16):
        found = decode_review_bytes(body(review(object={"text": "x" * fill, "n": 2**63}))).object
        assert type(found["n"]) is float, fill


@pytest.mark.parametrize("before", ["", " ", "\n", "\r\n\t", "-", " -", "[", "[ ", "[0,", "[0, ", "[-"])
def test_a_long_number_is_recognized_after_any_text(before: str) -> None:
    sent = body(review(object={"n": "here"})).replace(b'"here"', before.encode() + b"9" * 25 + b"]" * before.count("["))
    found = decode_review_bytes(sent).object["n"]
    assert type(found[-1] if isinstance(found, list) else found) is float


STORED = {
    "deep": (b"[" * 300 + b"1" + b"]" * 300, None),
    "as deep as an API server reads": (b'{"a":' * 9_990 + b"1" + b"}" * 9_990, None),
    "a byte that is not UTF-8": (b'"\xff"', "\ufffd"),
    "such a byte in a key": (b'{"\xff":1}', {"\ufffd": 1}),
    "the first half of a character": (b'"\xe2\x82"', "\ufffd\ufffd"),
    "a surrogate encoded in UTF-8": (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
    "the first half of a pair": (rb'"\ud800"', "\ufffd"),
    "the second half of a pair": (rb'"\udc00x"', "\ufffdx"),
    "the first half of a pair before a letter": (rb'"\ud800\u0041"', "\ufffdA"),
    "two halves that are not a pair": (rb'"\ud800\ud83d\ude00"', "\ufffd\U0001f600"),
    "an escaped backslash before u": (rb'"\\ud800\ud800"', "\\ud800\ufffd"),
    "two keys that become the same key": (rb'{"\ud800":1,"\udfff":2}', {"\ufffd": 2}),
    "a key twice": (b'["\xff",{"a":1,"a":2}]', ["\ufffd", {"a": 2}]),
    "minus zero": (b'["\xff",-0,-0.0]', ["\ufffd", 0, -0.0]),
    "numbers": (
        b'["\xff",1e3,0.5,9223372036854775807,9223372036854775808]',
        ["\ufffd", 1000.0, 0.5, 2**63 - 1, 2.0**63],
    ),
    "a number that no double holds": (b"1e999", None),
    "an integer that no double holds": (b"1" + b"0" * 400, None),
    "an integer with thousands of digits": (b"1" * 5_000, None),
    "a deep number that no double holds": (b"[" * 300 + b"1e999" + b"]" * 300, None),
}
"""JSON that an API server stores unread in a field, with the decoded value. None means that a part is not read."""


def unread_parts(value: Any) -> list[Unread]:
    if isinstance(value, dict | list):
        held = value.values() if isinstance(value, dict) else value
        return [part for each in held for part in unread_parts(each)]
    return [value] if isinstance(value, Unread) else []


@all_rows(("stored", "read"), STORED.values(), ids=STORED.keys())
def test_stored_json_is_decoded_as_in_the_api_server(stored: bytes, read: Any) -> None:
    sent = body(review(object={"spec": "here", "name": "p"}, oldObject={"spec": "here"})).replace(b'"here"', stored)
    found = decode_review_bytes(sent)
    assert (found.uid, found.object["name"]) == (request()["uid"], "p")
    if read is None:
        (part,) = unread_parts(found.object)
        assert part.text.encode() in stored
        assert found.object["spec"] == found.old_object["spec"]
    else:
        assert unread_parts(found.object) == []
        assert repr(found.object["spec"]) == repr(found.old_object["spec"]) == repr(read)


def test_only_too_deep_parts_are_not_read() -> None:
    deep = "[" * 500 + "]" * 500
    held = json.dumps({"before": [1, {"a": "["}], "deep": "here", "after": {"b": [2]}}).replace('"here"', deep)
    found = decode_review_bytes(body(review(object={"spec": "here"})).replace(b'"here"', held.encode())).object["spec"]
    assert (found["before"], found["after"]) == ([1, {"a": "["}], {"b": [2]})
    (part,) = unread_parts(found)
    assert part.text == "[" * (500 - MAX_DEPTH + 4) + "]" * (500 - MAX_DEPTH + 4)
    assert part.reason == f"it is nested deeper than {MAX_DEPTH} levels"


def test_the_time_to_read_a_deep_body_grows_only_with_its_length() -> None:
    def looks(levels: int) -> int:
        counting = Looks()
        held = b"[" * levels + b"]" * levels
        decode_review_bytes(body(review(object={"x": "here"})).replace(b'"here"', held), counting)
        return counting.count

    assert looks(400_000) < 4.5 * looks(100_000)


def test_reading_a_deep_body_stops_at_the_deadline() -> None:
    held = body(review(object={"x": "here"})).replace(b'"here"', b"[" * 50_000 + b"]" * 50_000)
    with pytest.raises(BudgetExceeded):
        decode_review_bytes(held, Deadline(at=0))


def test_all_fields_of_the_user_are_read() -> None:
    user = {"username": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"], "n": None}}
    read = decode_request(request(userInfo=user)).user_info
    assert (read.username, read.uid, read.groups, read.extra) == ("u", "1", ("g",), {"k": ("v",), "n": ()})


def test_patch_operations_equal_those_of_the_api_server() -> None:
    assert [decode_request(request(operation=verb)).operation for verb in Operation] == list(Operation)


HEAD = {
    "uid": "U",
    "kind": {"group": "", "version": "v1", "kind": "Pod"},
    "resource": {"group": "", "version": "v1", "resource": "pods"},
    "name": "p",
    "namespace": "ns",
    "operation": "CREATE",
    "userInfo": {"username": "alice", "extra": {"key": ["value"]}},
}
API_SERVER = json.dumps({"kind": "AdmissionReview", "request": {**HEAD, "object": {"a": 1}, "dryRun": False}}).encode()


@pytest.mark.parametrize(
    "sent",
    [
        API_SERVER,
        API_SERVER.replace(b'{"a": 1}', b"[" * 3_000_000),
        json.dumps({"request": {"object": {"a": 1}, **HEAD}}).encode(),
        json.dumps({"request": {**HEAD, "userInfo": {"extra": {"object": ["x"]}, "username": "alice"}}}).encode(),
    ],
    ids=["as the API server writes it", "an object that is not JSON", "the object first", "an extra named object"],
)
def test_the_head_of_a_review_is_read_without_its_objects(sent: bytes) -> None:
    head = decode_request_without_objects(sent)
    assert head is not None
    found = (head.uid, head.kind.kind, head.namespace, head.operation, head.user_info.username, head.object)
    assert found == ("U", "Pod", "ns", "CREATE", "alice", None)


@pytest.mark.parametrize("name", ['"object', 'x\\"object', '"object" :', ',"object'])
def test_a_name_that_looks_like_the_key_of_the_object_hides_no_finding(name: str) -> None:
    sent = {"request": {**HEAD, "name": name, "object": {"a": "x" * (1 << 20)}}}
    head = decode_request_without_objects(json.dumps(sent, separators=(",", ":")).encode())
    assert head is not None
    assert (head.name, head.namespace) == (name, "ns")


def test_only_the_name_of_the_user_is_read_from_the_head_of_a_review() -> None:
    user = {"username": "alice", "uid": "1", "groups": ["g"] * 1000, "extra": {f"k{i}": ["v"] for i in range(1000)}}
    head = decode_request_without_objects(json.dumps({"request": {**HEAD, "userInfo": user, "object": {}}}).encode())
    assert head is not None
    assert head.user_info == UserInfo("alice", "", (), {})


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"{}",
        body({**review(), "apiVersion": "admission.k8s.io/v1beta1"}),
        body({**review(), "kind": "Pod"}),
        b'{"request":{}}',
        b'{"request":{"operation":"CREATE"}}',
        json.dumps({"request": {"object": "x" * (1 << 20), **HEAD}}).encode(),
    ],
    ids=[
        "nothing",
        "no request",
        "another version",
        "another kind",
        "an empty request",
        "no uid",
        "a large object first",
    ],
)
def test_a_head_that_is_expensive_to_read_is_not_read(sent: bytes) -> None:
    assert decode_request_without_objects(sent) is None


LONG = "x" * 100_000


@pytest.mark.parametrize(
    "sent",
    [{**review(), "apiVersion": LONG}, {**review(), "kind": LONG}, review(operation=LONG)],
    ids=["apiVersion", "kind", "operation"],
)
def test_a_message_has_the_beginning_of_long_values(sent):
    with pytest.raises(CallError) as raised:
        decode_review_bytes(body(sent))
    assert len(raised.value.message) < 600
    assert "xxx …`" in raised.value.message


@pytest.mark.parametrize(
    ("text", "takes_long"),
    [
        ("1e308", True),
        ("-2.5E-310", True),
        ("17976931348623157e+292", True),
        ("0.5", False),
        ('"1e308"', False),
        ('"5f3e08a1e3"', False),
        ('"\\u4e16\\u00e9"', False),
    ],
)
def test_many_numbers_that_take_long_to_decode_are_recognized(text: str, takes_long: bool) -> None:
    many = ", ".join([text] * 2000).encode()
    assert takes_long_to_decode(b'{"x": [' + many + b"]}") is takes_long
    assert not takes_long_to_decode(b'{"x": [' + b"1.0, " * 5000 + text.encode() + b"]}")
