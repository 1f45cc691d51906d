"""The OpenAPI description of the two paths of reviews, which FastAPI does not know.

Knows the shape of admission.k8s.io/v1 as far as people need it to call us by hand.
"""

from __future__ import annotations

from typing import Any, Final

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


OPERATIONS: Final[dict[str, Any]] = {
    "/validate": _review_operation("validate", "The verdict on an object as it will be stored."),
    "/mutate": _review_operation("mutate", "The changes to an object as it was submitted."),
}
