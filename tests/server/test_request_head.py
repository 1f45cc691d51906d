"""Requests that the server refuses before a review. The text of the answer has the reason, and an earlier request is
answered first.
"""

from __future__ import annotations

import json
import re
import socket
import time

import pytest

from tests.server.asgi import Running, review_of
from tests.server.serving import Server, listening
from tests.server.test_slow_clients import until
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.deadline import Deadline
from webhook.rules.decisions import Verdict
from webhook.server.http_exchange import MAX_HEADERS, MAX_URL_BYTES

BODY = json.dumps(review_of()).encode()
TYPE = b"content-type: application/json\r\n"
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)


def request(*headers: bytes, line: bytes = b"POST /validate HTTP/1.1", body: bytes = BODY) -> bytes:
    return line + b"\r\n" + TYPE + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + body


LENGTH = b"content-length: %d" % len(BODY)
WHOLE = request(b"host: a", LENGTH)


def converse(server: Server, said: bytes) -> list[tuple[int, str]]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(said)
        client.settimeout(3)
        heard = b""
        try:
            while piece := client.recv(65536):
                heard += piece
        except (TimeoutError, ConnectionResetError):
            pass
    answers = re.split(rb"HTTP/1\.1 (?=\d{3} )", heard)[1:]
    texts = [json.loads(part.partition(b"\r\n\r\n")[2]).get("message", "") for part in answers]
    return [(int(part[:3]), text) for part, text in zip(answers, texts, strict=True)]


REFUSED = {
    "no host": (request(LENGTH), "the request has no `Host` header; HTTP/1.1 needs exactly one"),
    "two hosts": (
        request(b"host: a", b"host: b", LENGTH),
        "the request has 2 `Host` headers; HTTP/1.1 needs exactly one",
    ),
    "a compressed body": (
        request(b"host: a", b"transfer-encoding: gzip, chunked", body=CHUNKED),
        "transfer-encoding: expected `chunked`, found `gzip, chunked`; send the body without this coding",
    ),
    "a compressed body, declared in two headers": (
        request(b"host: a", b"transfer-encoding: gzip", b"transfer-encoding: chunked", body=CHUNKED),
        "transfer-encoding: expected `chunked`, found `gzip`; send the body without this coding",
    ),
    "too many headers": (
        request(b"host: a", *[b"x-%d: a" % number for number in range(MAX_HEADERS)], LENGTH),
        f"there are more than {MAX_HEADERS} headers",
    ),
    "a long URL": (
        request(b"host: a", LENGTH, line=b"POST /validate?" + b"a" * MAX_URL_BYTES + b" HTTP/1.1"),
        f"the URL is longer than {MAX_URL_BYTES} bytes",
    ),
    "tiny chunks": (
        request(b"host: a", b"transfer-encoding: chunked", body=b"1\r\n \r\n" * 300),
        "the chunks of the body are too small; send at least 256 bytes in each",
    ),
    "another protocol": (
        request(b"host: a", b"connection: upgrade", b"upgrade: h2c", LENGTH),
        "this server speaks HTTP/1.1 alone; send no `Upgrade` header",
    ),
    "two lengths of a body": (
        request(b"host: a", LENGTH, b"transfer-encoding: chunked", body=CHUNKED),
        "invalid http request received: transfer-encoding can't be present with content-length",
    ),
    "not HTTP": (b"hello\r\n\r\n", "invalid http request received: "),
}


@pytest.mark.parametrize(("said", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_an_invalid_request_head_is_refused_with_the_reason(said: bytes, message: str) -> None:
    with listening(Running()) as server:
        ((code, text),) = converse(server, said)
        assert code == 400
        assert text.startswith(message)


TAKEN = {
    "chunks": request(b"host: a", b"Transfer-Encoding: Chunked", b"connection: close", body=CHUNKED),
    "HTTP/1.0 without a host": request(LENGTH, line=b"POST /validate HTTP/1.0"),
}


@pytest.mark.parametrize("said", TAKEN.values(), ids=TAKEN.keys())
def test_valid_request_heads_are_accepted(said: bytes) -> None:
    with listening(Running()) as server:
        assert converse(server, said) == [(200, "")]


def slowly(_attributes: Attributes, _phase: Phase, _deadline: Deadline) -> Verdict:
    time.sleep(0.02)
    return Verdict(allowed=True)


@pytest.mark.parametrize("said", [WHOLE, *(said for said, _ in REFUSED.values())], ids=["valid", *REFUSED])
def test_a_request_before_the_previous_answer_ends_the_connection_after_this_answer(said: bytes) -> None:
    with listening(Running(slowly)) as server:
        assert [code for code, _ in converse(server, WHOLE + said)] == [200]
        until(lambda: not server.listener.connections)
