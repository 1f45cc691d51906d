"""From a verdict to the bytes of the AdmissionReview that answers it.

Knows what kube-apiserver 1.36 checks in an answer (k8s.io/apiserver pkg/admission/plugin/webhook/request/
admissionreview.go, errors/statuserror.go) and how its audit log names annotations; decides nothing.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from webhook.admission import wire
from webhook.attributes import Operation, Phase
from webhook.decisions import Details, Status, Verdict

_ENCODER: Final = msgspec.json.Encoder()
_HEAD: Final = f'{{"apiVersion":"{wire.API_VERSION}","kind":"{wire.KIND}","response":'.encode()
MAX_KEY: Final = 63
"""Characters in the name part of a qualified name (apimachinery pkg/util/validation, IsQualifiedName)."""
_SUFFIX: Final = 8
"""Characters kept for a number behind names that meet; names that only differ in their last ones count on together."""
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]+")


def encode_response(uid: str, verdict: Verdict, phase: Phase, operation: Operation = Operation.CREATE) -> bytes:
    """The whole AdmissionReview v1 as compact JSON.

    A patch goes out only with its type, only when the request is allowed, only in the mutating phase, and never on
    DELETE: the API server fails each of the others whatever the failurePolicy says.
    """
    response: dict[str, Any] = {"uid": uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = failure_status(_status(verdict))
    elif verdict.patch and phase is Phase.MUTATE and operation is not Operation.DELETE:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(_ENCODER.encode(verdict.patch)).decode()
    if verdict.warnings:
        response["warnings"] = verdict.warnings
    if verdict.audit_annotations:
        response["auditAnnotations"] = audit_annotations(verdict.audit_annotations)
    return _HEAD + _ENCODER.encode(response) + b"}"


def failure_status(status: Status) -> dict[str, Any]:
    """The metav1.Status of a failure, without its apiVersion and kind: code and reason are always both there."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": status.message,
        "reason": status.reason,
        **({"details": _details(status.details)} if status.details else {}),
        "code": status.code,
    }


def _details(details: Details) -> dict[str, Any]:
    """The metav1.StatusDetails; a name or group that is not there is left out, as Go does."""
    causes = [{"reason": each.reason, "message": each.message, "field": each.field} for each in details.causes]
    about = {"name": details.name, "group": details.group, "kind": details.kind}
    return {**{name: text for name, text in about.items() if text}, "causes": causes}


def status_body(status: Status) -> bytes:
    """A whole metav1.Status as JSON: what the API server shows of an answer that is no review."""
    return _ENCODER.encode({"kind": "Status", "apiVersion": "v1", **failure_status(status)})


def audit_annotations(given: Mapping[str, str]) -> dict[str, str]:
    """The same annotations under keys that the audit log keeps: it drops others, and later ones of the same name."""
    kept: dict[str, str] = {}
    last: dict[str, int] = {}
    for key, value in given.items():
        name = _FOREIGN.sub("_", key).strip("._-")[:MAX_KEY].rstrip("._-")
        if name:
            kept[free_name(name, kept, last)] = value
    return kept


def free_name(name: str, taken: Mapping[str, str], last: dict[str, int]) -> str:
    """The name, or with the next number that is free; `last` has those given out, so that many are no long search."""
    candidate, stem = name, name[: MAX_KEY - _SUFFIX]
    while candidate in taken:
        last[stem] = number = last.get(stem, 1) + 1
        suffix = f"-{number}"
        candidate = name[: MAX_KEY - len(suffix)] + suffix
    return candidate


def _status(verdict: Verdict) -> Status:
    """The verdict's own status; code below 400 would be raised to 400 by the API server, so reason goes with it."""
    if verdict.status is None:
        return Status(code=400, reason="BadRequest", message="denied without explanation")
    return verdict.status
