"""The FastAPI application for people and probes: health, readiness, metrics, version, documentation.

Knows FastAPI. Reviews never come here: review_endpoint.py answers them; their paths stand in the OpenAPI document all
the same. Errors are metav1.Status here too, so that every path of the server fails in one form.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.exceptions import HTTPException

from webhook.admission.respond import encode_failure_status
from webhook.rules.decisions import DenialStatus
from webhook.server import openapi
from webhook.server.docs_page import page
from webhook.server.metrics import PAUSE, Pause
from webhook.server.readiness import Readiness

Metrics = Callable[[Pause | None], Awaitable[tuple[bytes, str]]]
"""Returns the metrics text and its media type; awaits the argument between two pieces of work."""
PoliciesShown = Callable[[], Iterable[dict[str, Any]]]
"""Returns a row of plain JSON for each policy."""


def create(
    readiness: Readiness, metrics: Metrics, version: Mapping[str, str], policies: PoliciesShown = tuple
) -> FastAPI:
    """Return the FastAPI application.

    Args:
        readiness: the checks behind /readyz.
        metrics: what /metrics answers.
        version: what /version answers; must have `version`.
        policies: what /debug/policies lists.
    """
    app = FastAPI(
        title="claimgate",
        version=version["version"],
        description="Admission webhook for AI and GPU workloads.",
        docs_url=None,  # FastAPI's pages load scripts of other hosts, which a cluster without internet cannot reach
        redoc_url=None,
    )
    _add_probes(app, readiness)

    @app.get("/metrics", summary="Counts and durations, for Prometheus.", response_class=PlainTextResponse)
    async def exposition(request: Request) -> Response:
        content, media_type = await metrics(request.scope.get(PAUSE))
        return Response(content, media_type=media_type)

    @app.get("/version", summary="What runs here.")
    async def what_runs() -> dict[str, str]:
        return dict(version)

    @app.get("/debug/policies", summary="The policies in service, and where each speaks.")
    async def in_service() -> list[dict[str, Any]]:
        return list(policies())

    app.add_exception_handler(HTTPException, _error_as_status)
    app.add_exception_handler(Exception, _error_as_status)
    app.openapi = _openapi_function(app)  # type: ignore[method-assign]
    rendered = page(app.openapi(), str(app.openapi_url))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(rendered)

    return app


def _add_probes(app: FastAPI, readiness: Readiness) -> None:
    @app.get("/healthz", summary="The process answers.", response_class=PlainTextResponse)
    async def healthz() -> str:
        return "ok"

    @app.get("/readyz", summary="Reviews should be sent here.", response_class=PlainTextResponse)
    async def readyz(request: Request) -> PlainTextResponse:
        is_ready, report = readiness.report()
        verbose = "verbose" in request.query_params
        return PlainTextResponse(report if verbose or not is_ready else "ok", status_code=200 if is_ready else 503)


async def _error_as_status(request: Request, error: Exception) -> Response:
    code = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    phrase = HTTPStatus(code).phrase
    message = f"{request.url.path}: {phrase.lower()}; see /docs for what is served"
    body = encode_failure_status(DenialStatus(code=code, reason=phrase.replace(" ", ""), message=message))
    return Response(body, status_code=code, headers=headers, media_type="application/json")


def _openapi_function(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """Return a function that gives FastAPI's OpenAPI document with the two paths of reviews added."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            made["paths"].update(openapi.OPERATIONS)
            made.setdefault("components", {}).setdefault("schemas", {}).update(openapi.SCHEMAS)
            app.openapi_schema = made
        return app.openapi_schema

    return document
