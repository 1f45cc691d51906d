"""The FastAPI application for people and Prometheus: metrics, version, policies, documentation.

review_endpoint.py and probes.py answer reviews and probes; the OpenAPI document also has their paths. Errors are
metav1.Status, as on every path of the server. /docs is HTML without scripts, fonts or styles of other hosts: the pages
of FastAPI stay blank without a content delivery network.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.exceptions import HTTPException

from webhook.policy.compiled import Binding, Policy
from webhook.server.probes import encode_page_error

_STYLE: Final = (
    "body{font:1rem/1.5 sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
    "code{font-family:monospace}td,th{padding:.2rem 1rem .2rem 0;text-align:left;vertical-align:top}"
    "section{border-top:1px solid;margin-top:1.5rem}"
)


def page(document: Mapping[str, Any], source: str) -> str:
    """Return the HTML page of an OpenAPI document; `source` is its address."""
    info = document["info"]
    return "".join(
        (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])}</title>',
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}</p>",
            f'<p>The same for programs: <a href="{escape(source)}">{escape(source)}</a></p>',
            *_html_of_operations(document["paths"]),
            *_html_of_schemas(document.get("components", {}).get("schemas", {})),
            "</body></html>\n",
        )
    )


def _html_of_operations(paths: Mapping[str, Any]) -> Iterator[str]:
    for path, operations in paths.items():
        for method, operation in operations.items():
            yield f"<section><h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
            yield f"<p>{escape(operation.get('summary', ''))}</p>"
            parameters = [f"<code>{escape(each['name'])}</code>" for each in operation.get("parameters", ())]
            yield f"<p>Parameters: {', '.join(parameters)}</p>" if parameters else ""
            if "requestBody" in operation:
                yield f"<p>Body: {_html_of_media_types(operation['requestBody'])}</p>"
            answers = ((code, _html_of_answer(answer)) for code, answer in operation["responses"].items())
            yield from _html_table("Code", "Answer", answers)
            yield "</section>"


def _html_of_answer(answer: Mapping[str, Any]) -> str:
    content = _html_of_media_types(answer)
    return f"{escape(answer['description'])}{f' ({content})' if content else ''}"


def _html_of_media_types(holder: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{escape(media)}: {_html_of_type(content['schema'])}" if content.get("schema") else escape(media)
        for media, content in holder.get("content", {}).items()
    )


def _html_of_schemas(schemas: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in schemas.items():
        yield f'<section id="{escape(name)}"><h2>{escape(name)}</h2>'
        rows = ((key, _html_of_field(value)) for key, value in schema.get("properties", {}).items())
        yield from _html_table("Field", "Type", rows)
        yield "</section>"


def _html_of_field(schema: Mapping[str, Any]) -> str:
    parts = [_html_of_type(schema), escape(str(schema.get("description", "")))]
    return ": ".join(filter(None, parts))


def _html_of_type(schema: Mapping[str, Any]) -> str:
    reference = str(schema.get("$ref", "")).rpartition("/")[2]
    if reference:
        return f'<a href="#{escape(reference)}">{escape(reference)}</a>'
    words = " or ".join(f"<code>{escape(each)}</code>" for each in schema.get("enum", ()))
    return words or escape(str(schema.get("type", "any value")))


def _html_table(first: str, second: str, rows: Iterator[tuple[str, str]]) -> Iterator[str]:
    yield f"<table><tr><th>{first}</th><th>{second}</th></tr>"
    yield from (f"<tr><td><code>{escape(key)}</code></td><td>{text}</td></tr>" for key, text in rows)
    yield "</table>"


_OBJECT: Final = {"type": "object", "nullable": True, "additionalProperties": True}


def _schema_of_string_map(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


_REQUEST: Final = {
    "type": "object",
    "required": ["uid", "kind", "resource", "operation"],
    "properties": {
        "uid": {"type": "string", "description": "echoed in the answer"},
        "kind": _schema_of_string_map("group", "version", "kind"),
        "resource": _schema_of_string_map("group", "version", "resource"),
        "subResource": {"type": "string"},
        "requestKind": _schema_of_string_map("group", "version", "kind"),
        "requestResource": _schema_of_string_map("group", "version", "resource"),
        "requestSubResource": {"type": "string"},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "operation": {"type": "string", "enum": ["CREATE", "UPDATE", "DELETE", "CONNECT"]},
        "userInfo": {"type": "object", "additionalProperties": True},
        "object": _OBJECT,
        "oldObject": _OBJECT,
        "options": _OBJECT,
        "dryRun": {"type": "boolean"},
    },
}
_RESPONSE: Final = {
    "type": "object",
    "required": ["uid", "allowed"],
    "properties": {
        "uid": {"type": "string"},
        "allowed": {"type": "boolean"},
        "status": {"$ref": "#/components/schemas/Status"},
        "patchType": {"type": "string", "enum": ["JSONPatch"]},
        "patch": {"type": "string", "format": "byte", "description": "RFC 6902 operations, base64"},
        "warnings": {"type": "array", "items": {"type": "string", "maxLength": 256}},
        "auditAnnotations": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
_STATUS: Final = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["Failure"]},
        "code": {"type": "integer"},
        "reason": {"type": "string"},
        "message": {"type": "string"},
        "metadata": {"type": "object"},
    },
}


def _schema_of_review(part: str, reference: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["apiVersion", "kind", part],
        "properties": {
            "apiVersion": {"type": "string", "enum": ["admission.k8s.io/v1"]},
            "kind": {"type": "string", "enum": ["AdmissionReview"]},
            part: {"$ref": f"#/components/schemas/{reference}"},
        },
    }


SCHEMAS: Final[dict[str, Any]] = {
    "AdmissionRequest": _REQUEST,
    "AdmissionResponse": _RESPONSE,
    "AdmissionReviewRequest": _schema_of_review("request", "AdmissionRequest"),
    "AdmissionReviewResponse": _schema_of_review("response", "AdmissionResponse"),
    "Status": _STATUS,
}

_ERRORS: Final = {
    "400": "not JSON, not an AdmissionReview, no uid, or an unknown version",
    "405": "not a POST",
    "408": "the body was not whole before the call's deadline",
    "413": "the body is too large",
    "415": "the body is not application/json",
    "429": "other calls fill the memory for large bodies; try again",
    "500": "a fault of the webhook itself; the webhook configuration's failurePolicy decides",
    "503": "the cluster could not be read since the start; the webhook configuration's failurePolicy decides",
}


def _json_content(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _review_operation(name: str, summary: str) -> dict[str, Any]:
    errors = {code: {"description": text, "content": _json_content("Status")} for code, text in _ERRORS.items()}
    verdict = {"description": "every verdict, allowed or denied", "content": _json_content("AdmissionReviewResponse")}
    timeout = {"name": "timeout", "in": "query", "schema": {"type": "string", "example": "10s"}}
    operation = {
        "operationId": name,
        "summary": summary,
        "tags": ["admission"],
        "parameters": [timeout],
        "requestBody": {"required": True, "content": _json_content("AdmissionReviewRequest")},
        "responses": {"200": verdict, **errors},
    }
    return {"post": operation}


def _probe_operation(name: str, summary: str, *codes: str) -> dict[str, Any]:
    content = {"text/plain": {"schema": {"type": "string"}}}
    responses = {code: {"description": _PROBE_CODES[code], "content": content} for code in codes}
    return {"get": {"operationId": name, "summary": summary, "tags": ["probes"], "responses": responses}}


_PROBE_CODES: Final = {"200": "ok", "503": "not ready, with the reasons"}
OPERATIONS: Final[dict[str, Any]] = {
    "/validate": _review_operation("validate", "The verdict on an object as it will be stored."),
    "/mutate": _review_operation("mutate", "The changes to an object as it was submitted."),
    "/healthz": _probe_operation("healthz", "The process answers.", "200"),
    "/readyz": _probe_operation("readyz", "Reviews should be sent here.", "200", "503"),
}

Metrics = Callable[[], Awaitable[tuple[bytes, str]]]
"""Returns the metrics text and its media type."""
PoliciesInService = Callable[[], Iterable[Policy]]
"""Returns the policies in the order of evaluation."""


def create(metrics: Metrics, version: Mapping[str, str], policies: PoliciesInService = tuple) -> FastAPI:
    """Return the FastAPI application. `version` is the answer of /version, and must have the key `version`."""
    app = FastAPI(
        title="claimgate",
        version=version["version"],
        description="Admission webhook for AI and GPU workloads.",
        docs_url=None,  # scripts of other hosts, which a cluster without internet cannot reach
        redoc_url=None,
    )

    @app.get("/metrics", summary="Counts and durations, for Prometheus.", response_class=PlainTextResponse)
    async def exposition() -> Response:
        content, media_type = await metrics()
        return Response(content, media_type=media_type)

    @app.get("/version", summary="What runs here.")
    async def what_runs() -> dict[str, str]:
        return dict(version)

    @app.get("/debug/policies", summary="The policies in service, with their resources and bindings.")
    async def in_service() -> list[dict[str, Any]]:
        return [policy_row(each) for each in policies()]

    app.add_exception_handler(HTTPException, _error_as_status)
    app.add_exception_handler(Exception, _error_as_status)
    app.openapi = _openapi_function(app)  # type: ignore[method-assign]
    rendered = page(app.openapi(), str(app.openapi_url))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(rendered)

    return app


async def _error_as_status(request: Request, error: Exception) -> Response:
    code = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    body = encode_page_error(code, request.url.path)
    return Response(body, status_code=code, headers=headers, media_type="application/json")


def _openapi_function(app: FastAPI) -> Callable[[], dict[str, Any]]:
    # FastAPI's document with the paths of reviews and probes

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            schema["paths"].update(OPERATIONS)
            schema.setdefault("components", {}).setdefault("schemas", {}).update(SCHEMAS)
            app.openapi_schema = schema
        return app.openapi_schema

    return document


def policy_row(policy: Policy) -> dict[str, Any]:
    """Return a policy as /debug/policies lists it: names, kinds and settings; no expression, parameter or object."""
    return {
        "name": policy.name,
        "kind": policy.kind,
        "file": Path(policy.file).name,
        "failurePolicy": "Fail" if policy.is_fail else "Ignore",
        "phase": policy.phase if policy.kind == "validating" else "mutate",
        "checks": policy.checks,
        "facts": policy.facts,
        "concerns": policy.concerns,
        "anyPod": policy.any_pod,
        "registered": policy.is_registered and bool(policy.bindings),
        "resources": sorted(set(_resources_of_policy(policy))),
        "bindings": [_binding(each) for each in policy.bindings],
    }


def _resources_of_policy(policy: Policy) -> Iterator[str]:
    for rule in policy.criteria.rules:
        groups = ("*",) if rule.groups is None else sorted(rule.groups)
        for resource, sub in rule.resources:
            name = f"{resource}/{sub}" if sub else resource
            yield from (f"{name}.{group}" if group else name for group in groups)


def _binding(binding: Binding) -> dict[str, Any]:
    source = binding.param_source
    param = f"{source.namespace}/{source.name}".strip("/") if source and source.name else ""
    return {"name": binding.name, "validationActions": binding.actions, "param": param}
