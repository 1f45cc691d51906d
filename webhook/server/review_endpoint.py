"""The ASGI application that answers POST /validate and /mutate. Other paths go to FastAPI (pages.py).

It knows HTTP: methods, media types, lengths, deadlines, status codes. It knows only the head of a review, which has its
sender; the bodies of reviews and answers are bytes for it. It is called before FastAPI because a FastAPI route costs
three times as much. review_handler.py decides where a review is evaluated.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic
from typing import Final, NamedTuple
from urllib.parse import parse_qs

from webhook.admission.respond import encode_failure_status
from webhook.apimachinery.attributes import Phase
from webhook.errors import CallError
from webhook.rules.decisions import DenialStatus
from webhook.rules.text import shorten_text
from webhook.server.http_connection import CLIENT_GONE, PATHS
from webhook.server.http_exchange import AsgiApp, Receive, Scope, Send
from webhook.server.request_body import (
    FREE_BYTES,
    BodyBudget,
    BodyReader,
    ClientGone,
    IncompleteBodyError,
    body_of_single_message,
    client_address,
)
from webhook.server.review_handler import ReviewHandler
from webhook.server.server_parts import Readiness
from webhook.settings.serving import DEFAULTS

_ANSWER_SHARE: Final = 0.05
"""The share of a call's time that is reserved for the answer if its body does not arrive."""
_MOST_DIGITS: Final = 18
_JSON: Final = "application/json"
_SHOWN: Final = 100
"""How many characters of a header a message shows; a header of 60 KB on many connections would stop the loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one call, and of the bodies above 64 KiB of all calls together."""

    body_bytes: int = DEFAULTS.max_body_bytes
    inflight_body_bytes: int = DEFAULTS.max_inflight_body_bytes
    timeout_s: float = DEFAULTS.timeout


class _Reply(NamedTuple):
    """An HTTP code and a body, and whether the connection ends: of a body that is too large the rest was not read."""

    code: int
    body: bytes
    ends_connection: bool = False


class ReviewEndpoint:
    """The ASGI application to serve: reviews go to the handler, all other requests to `application`."""

    def __init__(
        self,
        application: AsgiApp,
        handler: ReviewHandler,
        readiness: Readiness,
        limits: Limits,
        why_not_started: Callable[[], str] = str,
    ) -> None:
        self._application = application
        self._handler = handler
        self._readiness = readiness
        self._limits = limits
        self._why_not_started = why_not_started
        self._free_bytes = min(FREE_BYTES, limits.body_bytes)
        self.bodies = BodyBudget(limits.inflight_body_bytes)
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request as an ASGI application."""
        phase = PATHS.get(scope["path"]) if scope["type"] == "http" else None
        if phase is None:
            await self._application(scope, receive, send)
            return
        arrived = monotonic()
        self.in_flight += 1
        try:
            code, body, ends_connection = await self._review(scope, receive, phase, arrived)
        except ClientGone:
            return
        except asyncio.CancelledError as error:
            if error.args != (CLIENT_GONE,):
                raise
            self._handler.record_abandoned_review()
            return
        finally:
            self.in_flight -= 1
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        if code == 405:
            headers.append((b"allow", b"POST"))
        if code == 429:
            headers.append((b"retry-after", b"1"))
        if self._readiness.draining or ends_connection:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _review(self, scope: Scope, receive: Receive, phase: Phase, arrived: float) -> _Reply:
        """Return the reply: 200 for every verdict, a metav1.Status for every error."""
        try:
            length = _check_headers(scope)
            self._require_started()
            deadline = arrived + timeout_of_call(scope["query_string"], self._limits.timeout_s)
            first = await receive() if length is not None and length <= self._free_bytes else None
            if (
                first is not None and (came := body_of_single_message(first)) is not None
            ):  # without the cost of the rest
                return _Reply(200, await self._handler.answer(came, phase, deadline, client_address(scope)))
            limit, until = self._limits.body_bytes, deadline - _ANSWER_SHARE * (deadline - arrived)
            reading = BodyReader(self.bodies, scope, receive, length=length, limit=limit, deadline=until, first=first)
            async with reading as body:
                return _Reply(200, await self._handler.answer(body, phase, deadline, client_address(scope)))
        except IncompleteBodyError as incomplete:
            return await self._answer_incomplete_body(incomplete, phase, arrived, client_address(scope))
        except CallError as error:
            return self._refuse(phase, error)
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001 - our own bug: HTTP 500 leaves it to the failurePolicy
            status = self._handler.record_unexpected_error(phase, error)
            return _Reply(status.code, encode_failure_status(status))

    def _require_started(self) -> None:
        """Refuse a call that arrives before the cluster was read, so that the failurePolicy decides."""
        if why := self._why_not_started():
            raise CallError(503, "ServiceUnavailable", f"claimgate cannot judge requests yet: {why}")

    async def _answer_incomplete_body(
        self, error: IncompleteBodyError, phase: Phase, arrived: float, address: str
    ) -> _Reply:
        """Answer by the policies' failurePolicy if the beginning of the body names the request, else with an HTTP
        error.
        """
        is_too_large = error.code == 413
        late = f"the request was not read whole within {monotonic() - arrived:.2g} s"
        because = error.message.partition(";")[0] if is_too_large else late
        answer = await self._handler.answer_incomplete_body(error.came, phase, arrived, because, address)
        if answer is None:
            return self._refuse(phase, error)
        return _Reply(200, answer, ends_connection=is_too_large)

    def _refuse(self, phase: Phase, error: CallError) -> _Reply:
        self._handler.record_refused_call(phase, error)
        status = DenialStatus(code=error.code, reason=error.reason, message=error.message)
        return _Reply(error.code, encode_failure_status(status), ends_connection=error.code == 413)


def _check_headers(scope: Scope) -> int | None:
    """Return the declared length of a JSON POST, None when it is streamed.

    Raises:
        CallError: 405 or 415.
    """
    if scope["method"] != "POST":
        raise CallError(405, "MethodNotAllowed", f"{scope['path']} answers POST only, found {scope['method']}")
    media_type, length = "", None
    for name, value in scope["headers"]:
        if name == b"content-type":
            media_type = value.decode("latin-1")
        elif name == b"content-length":
            length = _parse_content_length(value)
    if media_type != _JSON and media_type.partition(";")[0].strip().lower() != _JSON:
        given = f"`{shorten_text(media_type, _SHOWN)}`" if media_type else "none"
        raise CallError(415, "UnsupportedMediaType", f"content-type: expected `{_JSON}`, found {given}")
    return length


def _parse_content_length(value: bytes) -> int:
    if not value.isdigit():
        shown = shorten_text(value.decode("latin-1"), _SHOWN)
        raise CallError(400, "BadRequest", f"content-length: expected a number, found `{shown}`")
    digits = value.lstrip(b"0")  # Python refuses to read a number of thousands of digits, also of zeros
    if len(digits) > _MOST_DIGITS:
        raise CallError(400, "BadRequest", "content-length: the number is too large")
    return int(digits or b"0")


_UNITS_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_WAY_S: Final = 0.2
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")


@lru_cache(maxsize=64)
def timeout_of_call(query: bytes, most_s: float) -> float:
    """Return the seconds for a call by its `?timeout=`, less a part for the network; at most `most_s`.

    A tenth is kept back, of short ones up to a fifth: writing the answer needs this time on a busy node.

    Raises:
        CallError: 400 if it is not a duration as Go writes them.
    """
    if not query:
        return most_s
    given = parse_qs(query.decode("latin-1")).get("timeout", [""])[0]
    if not given:
        return most_s
    if not _DURATION.fullmatch(given):
        raise CallError(400, "BadRequest", f"timeout: expected a duration such as `10s`, found `{given}`")
    asked = sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(given))
    seconds = min(asked, 2 * most_s)  # hundreds of digits are infinity, and infinity minus a tenth of it is NaN
    return min(seconds - max(0.1 * seconds, min(_WAY_S, 0.2 * seconds)), most_s)
