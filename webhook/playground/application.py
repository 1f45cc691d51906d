"""The web application of the playground: the page with its files, the samples, and the evaluation of questions.

Answers only on loopback, and only to its own page. Pages of other origins in the same browser are refused, even under a
name that points to 127.0.0.1 (DNS rebinding). The page may load nothing from other hosts, so no text of the user leaves
the machine. A sample is a question in the format in which the page opens and saves questions.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from webhook import __version__
from webhook.admission.respond import encode_failure_status
from webhook.errors import CallError, ClaimgateError
from webhook.playground.evaluation import Check, answer_question
from webhook.playground.exchange import MOST_BYTES, Question, input_errors_as_json, read_question
from webhook.playground.measured_engine import MeasuredEngine
from webhook.playground.words import fields_of_kind, words_of_expressions
from webhook.playground.worker import Workers
from webhook.policy.load import Options
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import DenialStatus
from webhook.yamltext import yamlfile

FOLDER: Final = Path(__file__).with_name("samples")
PAGE: Final = Path(__file__).with_name("page")
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_NONCE: Final = "NONCE"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LONGEST_NAME: Final = 253
_Next = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Playground:
    """Answers questions in child processes, with the policies and options of the command line.

    Attributes:
        policies: the policies of the command line, for a question without policies.
        options: how policies in a question are compiled.
        engine: records the evaluations of `policies`.
        workers: the processes that answer questions.
        check: returns the output of `claimgate policies check`.
        draft: returns the files of a suite with the question as a case.
    """

    policies: PolicySet
    options: Options
    engine: MeasuredEngine
    workers: Workers
    check: Check
    draft: Callable[[Question, Options], Mapping[str, str]]

    async def answer(self, question: Question) -> bytes:
        """Return the answer to a question, as JSON."""
        return await self.workers.run(
            lambda: answer_question(question, self.policies, self.options, self.engine, self.check)
        )

    async def files_of_case(self, question: Question) -> bytes:
        """Return JSON with `files`, the texts by file name, or with `errors`."""
        return await self.workers.run(lambda: self._draft_or_errors(question))

    def _draft_or_errors(self, question: Question) -> dict[str, Any]:
        try:
            return {"files": dict(self.draft(question, self.options))}
        except ClaimgateError as error:
            return {"errors": input_errors_as_json(error)}


def create_application(playground: Playground, hosts: frozenset[str]) -> FastAPI:
    """Create the application. `hosts` are the allowed values of the header `Host`, such as `127.0.0.1:8642`."""
    app = FastAPI(title="claimgate playground", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    _refuse_other_hosts_and_origins(app, hosts)
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    files = {path.name: path.read_bytes() for path in PAGE.iterdir() if path.suffix in _TYPES}

    @app.get("/")
    async def page() -> HTMLResponse:
        nonce = secrets.token_urlsafe(16)
        headers = {"Content-Security-Policy": _POLICY.format(nonce=nonce)}
        return HTMLResponse(text.replace(_NONCE, nonce), headers=headers)

    @app.get("/page/{name}")
    async def file(name: str) -> Response:
        if name not in files:
            raise CallError(404, "NotFound", "there is no such file")
        return Response(files[name], media_type=_TYPES[Path(name).suffix])

    @app.get("/samples")
    async def listed() -> JSONResponse:
        return JSONResponse([{"name": name, **sample} for name, sample in read_samples().items()])

    @app.get("/words")
    async def words() -> JSONResponse:
        options = playground.options
        return JSONResponse(words_of_expressions(options.registry, options.version))

    @app.get("/fields")
    async def fields(api_version: str = "", kind: str = "") -> JSONResponse:
        return JSONResponse(fields_of_kind(api_version[:_LONGEST_NAME], kind[:_LONGEST_NAME]))

    @app.post("/case")
    async def drafted(request: Request) -> Response:
        files = await playground.files_of_case(read_question(await _read_bounded_body(request)))
        return Response(files, media_type="application/json")

    @app.post("/evaluate")
    async def evaluated(request: Request) -> Response:
        answered = await playground.answer(read_question(await _read_bounded_body(request)))
        return Response(answered, media_type="application/json")

    return app


def _refuse_other_hosts_and_origins(app: FastAPI, hosts: frozenset[str]) -> None:
    """Refuse other hosts and origins, and add security headers to answers."""

    @app.middleware("http")
    async def guard(request: Request, call_next: _Next) -> Response:
        refused = _refusal_of_request(request.headers, request.method, hosts)
        response = _error_response(refused) if refused else await call_next(request)
        for name, value in _HEADERS.items():
            response.headers[name] = value
        response.headers.setdefault("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
        return response

    @app.exception_handler(CallError)
    async def refused(_: Request, error: CallError) -> Response:
        return _error_response(error)


def _refusal_of_request(headers: Mapping[str, str], method: str, hosts: frozenset[str]) -> CallError | None:
    host, origin = headers.get("host", ""), headers.get("origin")
    if host not in hosts:
        return CallError(403, "Forbidden", f"this page answers only to {' or '.join(sorted(hosts))}")
    if origin is not None and origin != f"http://{host}":
        return CallError(403, "Forbidden", "a page of another origin may not send questions")
    if method == "POST" and origin is None:
        return CallError(403, "Forbidden", "a question must name its origin, as a browser does")
    if method == "POST" and headers.get("content-type", "").partition(";")[0] != "application/json":
        return CallError(415, "UnsupportedMediaType", "a question is application/json")
    return None


async def _read_bounded_body(request: Request) -> bytes:
    """Return the body of a request.

    Raises:
        CallError: 413.
    """
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > MOST_BYTES:
            text = f"the texts together have more than {MOST_BYTES >> 20} MiB, the limit of the playground"
            raise CallError(413, "RequestEntityTooLarge", text)
    return bytes(received)


def _error_response(error: CallError) -> Response:
    body = encode_failure_status(DenialStatus(code=error.code, reason=error.reason, message=error.message))
    return Response(body, status_code=error.code, media_type="application/json")


def read_samples() -> Mapping[str, Mapping[str, Any]]:
    """Return `title`, `object`, `cluster`, `phase` and `isWhole` of every sample by name, in the order of the files."""
    return {path.stem: yamlfile.read(path)[0].value for path in sorted(FOLDER.glob("*.yaml"))}
