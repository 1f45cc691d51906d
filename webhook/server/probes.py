"""Answers /healthz and /readyz without FastAPI, because its import takes a twentieth of a start.

The OpenAPI document describes both paths too (pages.py).
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import parse_qs

from webhook.admission.respond import encode_failure_status
from webhook.rules.decisions import DenialStatus
from webhook.server.http_exchange import AsgiApp, Receive, Scope, Send
from webhook.server.server_parts import Readiness

_Answer: TypeAlias = Callable[[bytes], tuple[int, str]]
"""Returns the HTTP code and the text for a query."""


def create_probes(readiness: Readiness) -> dict[str, AsgiApp]:
    """Return the ASGI application of each probe by its path."""

    def readyz(query: bytes) -> tuple[int, str]:
        is_ready, report = readiness.report()
        is_verbose = b"verbose" in parse_qs(query, keep_blank_values=True)
        return 200 if is_ready else 503, "ok" if is_ready and not is_verbose else report

    return {"/healthz": _probe(lambda _query: (200, "ok")), "/readyz": _probe(readyz)}


def _probe(answer: _Answer) -> AsgiApp:
    async def probe(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":
            code, text = answer(scope["query_string"])
            body, headers = text.encode(), [(b"content-type", b"text/plain; charset=utf-8")]
        else:
            code, body = 405, encode_page_error(405, scope["path"])
            headers = [(b"content-type", b"application/json"), (b"allow", b"GET")]
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return probe


def encode_page_error(code: int, path: str) -> bytes:
    """Return the metav1.Status of a page that fails with an HTTP code."""
    phrase = HTTPStatus(code).phrase
    message = f"{path}: {phrase.lower()}; see /docs for what is served"
    return encode_failure_status(DenialStatus(code=code, reason=phrase.replace(" ", ""), message=message))
