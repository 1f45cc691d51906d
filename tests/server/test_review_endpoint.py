"""Each review gets its HTTP code, and no review skips the endpoint."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.rows import all_rows
from tests.server.asgi import Running, allow, review_of
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.deadline import Deadline
from webhook.logs.structured import LogWriter
from webhook.rules.decisions import Decision, DenialStatus, ValidationAction, Verdict
from webhook.server.review_endpoint import timeout_of_call
from webhook.settings.serving import ServerSettings

REVIEWS = sorted((Path(__file__).parents[1] / "data" / "reviews").glob("*.json"))
JSON_TYPE = {"content-type": "application/json"}
BODY = json.dumps(review_of()).encode()

# method, headers, body -> code, reason, piece of the message
REFUSED: dict[str, tuple[str, dict[str, str], bytes, int, str, str]] = {
    "GET": ("GET", JSON_TYPE, b"", 405, "MethodNotAllowed", "/validate answers POST only, found GET"),
    "PUT": ("PUT", JSON_TYPE, BODY, 405, "MethodNotAllowed", "found PUT"),
    "no content type": ("POST", {}, BODY, 415, "UnsupportedMediaType", "expected `application/json`, found none"),
    "YAML": ("POST", {"content-type": "application/yaml"}, BODY, 415, "UnsupportedMediaType", "`application/yaml`"),
    "a very long content type": (
        "POST",
        {"content-type": "application/yaml" + "x" * 60_000},
        BODY,
        415,
        "UnsupportedMediaType",
        "found `application/yaml" + "x" * 82 + " …`",
    ),
    "a content type that only begins like JSON": (
        "POST",
        {"content-type": "application/jsonp"},
        BODY,
        415,
        "UnsupportedMediaType",
        "",
    ),
    "empty body": ("POST", JSON_TYPE, b"", 400, "BadRequest", "the body is not JSON"),
    "not JSON": ("POST", JSON_TYPE, b"{", 400, "BadRequest", "the body is not JSON"),
    "not a review": ("POST", JSON_TYPE, b'{"kind":"Pod"}', 400, "BadRequest", "not an AdmissionReview"),
    "no uid": ("POST", JSON_TYPE, json.dumps(review_of("")).encode(), 400, "BadRequest", "request.uid"),
    "v1beta1": (
        "POST",
        JSON_TYPE,
        BODY.replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1"),
        400,
        "BadRequest",
        "`admission.k8s.io/v1beta1` is not served",
    ),
    "too large": ("POST", JSON_TYPE, b" " * 3000, 413, "RequestEntityTooLarge", "larger than 2000 bytes (found 3000)"),
    "far too large": ("POST", JSON_TYPE, b" " * 9000, 413, "RequestEntityTooLarge", "--max-body-bytes"),
    "a length of thousands of zeros": (
        "POST",
        {**JSON_TYPE, "content-length": "0" * 5000 + "1"},
        b"{",
        400,
        "BadRequest",
        "the body is not JSON",
    ),
    "a length of thousands of digits": (
        "POST",
        {**JSON_TYPE, "content-length": "9" * 5000},
        b"{",
        400,
        "BadRequest",
        "content-length: the number is too large",
    ),
    "an invalid length": ("POST", {**JSON_TYPE, "content-length": "x"}, b"", 400, "BadRequest", "content-length"),
}


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "streamed"])
@pytest.mark.parametrize("limit", [2_000, 200_000], ids=["a small limit", "a large one"])
@pytest.mark.parametrize("times", [1.5, 9], ids=["too large", "far too large"])
def test_a_too_large_review_is_decided_by_failure_policies(declared: bool, limit: int, times: float) -> None:
    request = {**review_of()["request"], "object": {"x": "y" * int(limit * times)}}
    body = json.dumps({**review_of(), "request": request}).encode()
    running = Running(settings=ServerSettings(max_body_bytes=limit))
    pieces = [body[start : start + 1_000] for start in range(0, len(body), 1_000)]
    answer = running.call("POST", "/validate", content=body if declared else _pieces(pieces), headers=JSON_TYPE)
    assert answer.status_code == 200
    response = answer.json()["response"]
    assert (response["uid"], response["allowed"]) == ("U", False)
    assert f"the body is larger than {limit} bytes" in response["status"]["message"]
    assert running.counters.lanes == {("unread",): 1}


@all_rows("path", ["/validate", "/mutate"])
@all_rows(("method", "headers", "body", "code", "reason", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_unreadable_calls(
    path: str, method: str, headers: dict[str, str], body: bytes, code: int, reason: str, message: str
) -> None:
    running = Running(settings=ServerSettings(max_body_bytes=2000))
    answer = running.call(method, path, content=body, headers=headers)
    assert answer.status_code == code
    assert answer.headers["content-type"] == "application/json"
    status = answer.json()
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert (status["code"], status["reason"]) == (code, reason)
    assert message.replace("/validate", path) in status["message"]
    assert running.post(path, review_of()).status_code == 200
    assert answer.headers.get("allow") == ("POST" if code == 405 else None)
    assert running.lines()[0]["message"] == "call refused"


@pytest.mark.parametrize("media_type", ["application/json", "Application/JSON", "application/json; charset=utf-8"])
def test_all_spellings_of_the_content_type_of_json(media_type: str) -> None:
    assert Running().post("/validate", BODY, headers={"content-type": media_type}).status_code == 200


async def _pieces(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def test_a_streamed_body_is_counted() -> None:
    running = Running(settings=ServerSettings(max_body_bytes=2000))
    for pieces, code in (([BODY[:50], BODY[50:]], 200), ([b" " * 1500] * 2, 413), ([b" " * 1500] * 100, 413)):
        answer = running.call("POST", "/validate", content=_pieces(pieces), headers=JSON_TYPE)
        assert answer.status_code == code


def test_a_client_that_disconnects_does_no_harm() -> None:
    sent: list[Any] = []

    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/validate",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    asyncio.run(Running().app_with_clock(scope, gone, send))
    assert sent == []


@all_rows("phase", list(Phase))
@all_rows("path", REVIEWS, ids=lambda path: path.name)
def test_every_recorded_review_is_answered(path: Path, phase: Phase) -> None:
    sent = path.read_bytes()
    answer = Running().post(f"/{phase}?timeout=10s", sent)
    assert answer.status_code == 200
    uid = json.loads(sent)["request"]["uid"]
    expected = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": uid, "allowed": True},
    }
    assert answer.json() == expected


def test_paths_are_phases() -> None:
    seen: list[Phase] = []

    def note(_attributes: Attributes, phase: Phase, _deadline: Deadline) -> Verdict:
        seen.append(phase)
        return Verdict(allowed=True)

    running = Running(note)
    running.post("/validate", review_of())
    running.post("/mutate", review_of())
    assert seen == [Phase.VALIDATE, Phase.MUTATE]


def test_a_denial_is_http_200() -> None:
    status = DenialStatus(code=422, reason="Invalid", message="no")
    answer = Running(lambda *_: Verdict(allowed=False, status=status)).post("/validate", review_of())
    assert answer.status_code == 200
    assert answer.json()["response"]["status"]["code"] == 422


TIMEOUTS = {
    "none": ("", 10.0),
    "empty": ("?timeout=", 10.0),
    "other parameters": ("?pretty=1", 10.0),
    "seconds, a tenth kept back": ("?timeout=5s", 4.5),
    "one second, a fifth kept back": ("?timeout=1s", 0.8),
    "milliseconds": ("?timeout=500ms", 0.4),
    "composed": ("?timeout=1m1.5s", 10.0),
    "longer than --timeout": ("?timeout=30s", 10.0),
    "nothing": ("?timeout=0", 0.0),
}


@pytest.mark.parametrize(("query", "seconds"), TIMEOUTS.values(), ids=TIMEOUTS.keys())
def test_timeout_is_the_time_of_a_call(query: str, seconds: float) -> None:
    assert timeout_of_call(query.removeprefix("?").encode(), 10) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["10", "s", "-5s", "ten", "5s5", "٥s", "9" * 400 + "h"])
def test_an_invalid_timeout_is_refused(text: str) -> None:
    answer = Running().post(f"/validate?timeout={text}", review_of())
    assert (answer.status_code, answer.json()["message"]) == (
        400,
        f"timeout: expected a duration such as `10s`, found `{text}`",
    )


SECRET = "hunter2"


def _fail_with_contents(attributes: Attributes, _phase: Phase, _deadline: Deadline) -> Verdict:
    raise KeyError(attributes.object["metadata"]["name"])


def _fail_deeply(attributes: Attributes, phase: Phase, deadline: Deadline) -> Verdict:
    # named arguments instead of `*_`, because Python 3.13.0 does not count calls with `*_` as recursion
    return _fail_deeply(attributes, phase, deadline)


@pytest.mark.parametrize("reviewer", [_fail_with_contents, _fail_deeply], ids=["an exception", "a recursion"])
def test_an_internal_error_is_500_and_names_the_place_without_contents(reviewer: Any) -> None:
    running = Running(reviewer)
    answer = running.post("/validate", review_of(object={"metadata": {"name": SECRET}}))
    assert answer.status_code == 500
    assert (answer.json()["reason"], answer.json()["code"]) == ("InternalError", 500)
    (line,) = running.lines()
    assert line["message"] == "internal fault"
    assert reviewer.__name__ in "".join(line["traceback"])
    assert SECRET not in answer.text + running.stream.getvalue()


def test_each_review_has_one_log_line_without_the_object() -> None:
    decisions = (
        Decision(policy="quiet", binding="b", evaluation="admit"),
        Decision(policy="loud", binding="b", evaluation="deny", actions=(ValidationAction.WARN,), message="m"),
        Decision(policy="lost", binding="b", evaluation="unknown", lets_pass=True),
        Decision(policy="loud", binding="c", evaluation="deny"),
    )
    patch = ({"op": "add", "path": "/x", "value": SECRET},)
    running = Running(lambda *_: Verdict(allowed=True, decisions=decisions, patch=patch))
    running.post(
        "/mutate", review_of(object={"data": SECRET}, namespace="ns", name="p", userInfo={"username": "alice"})
    )
    (line,) = running.lines()
    assert line.pop("elapsed_ms") > 0
    assert line == {
        "time": "1970-01-01T00:00:00.000Z",
        "level": "info",
        "message": "review",
        "uid": "U",
        "phase": "mutate",
        "operation": "CREATE",
        "kind": "Pod",
        "group": "",
        "namespace": "ns",
        "name": "p",
        "user": "alice",
        "allowed": True,
        "policies": ["loud", "lost"],
        "rules": ["loud"],
        "patched": 1,
    }


def test_a_log_line_has_the_beginning_of_long_user_text() -> None:
    running = Running()
    long = "é" * 30_000
    answered = running.post("/validate", review_of(long, name=long, userInfo={"username": long}))
    assert answered.json()["response"]["uid"] == long
    (line,) = running.lines()
    assert [line[field] for field in ("uid", "name", "user")] == ["é" * 510 + " …"] * 3


def test_a_denied_line_has_its_code_and_subresource() -> None:
    status = DenialStatus(code=403, reason="Forbidden", message="m")
    running = Running(lambda *_: Verdict(allowed=False, status=status))
    running.post("/validate", review_of(subResource="status"))
    (line,) = running.lines()
    assert (line["code"], line["subresource"], line["allowed"]) == (403, "status", False)


def test_a_log_that_cannot_be_written_does_not_prevent_answers() -> None:
    reader, stderr = os.pipe()
    os.close(reader)
    writer = LogWriter(stderr)
    running = Running(writer=writer)
    assert running.post("/validate", review_of()).json()["response"]["allowed"] is True
    assert running.post("/validate", b"").status_code == 400
    assert writer.stop()
    assert writer.dropped == 2
    os.close(stderr)


def test_other_scopes_and_paths_go_on_to_the_application() -> None:
    answer: httpx.Response = Running(allow).post("/validate/", review_of())
    assert (answer.status_code, answer.json()["reason"]) == (404, "NotFound")
