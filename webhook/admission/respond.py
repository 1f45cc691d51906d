"""Encodes a verdict as the AdmissionReview that answers the request.

The keys of annotations are those that the API server's audit log accepts. If the configuration has the address of the
documentation, messages link to the pages of shipped rules: `(train-job/gang-size)` becomes
`(train-job/gang-size, https://…)`. Every denial then ends with the address of the page about denials.

Source: kube-apiserver 1.36, k8s.io/apiserver pkg/admission/plugin/webhook/request/admissionreview.go and
errors/statuserror.go.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from webhook.admission import wire
from webhook.admission.enforce import MAX_WARNINGS
from webhook.apimachinery.attributes import Operation, Phase
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import DenialDetails, DenialStatus, Verdict
from webhook.rules.rule import denials_address, page_address
from webhook.yamltext.unread import Unread

MAX_KEY: Final = 63
"""Characters in the name part of a qualified name (apimachinery pkg/util/validation, IsQualifiedName)."""
_HEAD: Final = f'{{"apiVersion":"{wire.API_VERSION}","kind":"{wire.KIND}","response":'.encode()
_SUFFIX: Final = 8
"""Characters at the end of a long key for a number that distinguishes equal keys."""
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]+")


def json_of_unread_part(part: Any) -> msgspec.Raw:
    """Return the JSON of a part that is too deep to be decoded, for an encoder of msgspec."""
    if not isinstance(part, Unread):
        raise TypeError(type(part).__name__)
    return msgspec.Raw(part.text.encode())


_ENCODER: Final = msgspec.json.Encoder(enc_hook=json_of_unread_part)


def encode_response(uid: str, verdict: Verdict, phase: Phase, operation: Operation = Operation.CREATE) -> bytes:
    """Return the whole AdmissionReview v1 as compact JSON.

    Only an allowed request in the mutating phase, except a DELETE, has a patch. An API server fails the call for any
    other patch, with any failurePolicy.
    """
    response: dict[str, Any] = {"uid": uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = failure_status_as_json(_status_of_verdict(verdict))
    elif verdict.patch and phase is Phase.MUTATE and operation is not Operation.DELETE:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(_ENCODER.encode(verdict.patch)).decode()
    if verdict.warnings:
        response["warnings"] = verdict.warnings
    if verdict.audit_annotations:
        response["auditAnnotations"] = sanitize_audit_annotations(verdict.audit_annotations)
    return _HEAD + _ENCODER.encode(response) + b"}"


def failure_status_as_json(status: DenialStatus) -> dict[str, Any]:
    """Return the metav1.Status of a failure without apiVersion and kind. It always has code and reason."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": status.message,
        "reason": status.reason,
        **({"details": _details_as_json(status.details)} if status.details else {}),
        "code": status.code,
    }


def _details_as_json(details: DenialDetails) -> dict[str, Any]:
    # an empty name or group is left out, as in Go
    causes = [{"reason": each.reason, "message": each.message, "field": each.field} for each in details.causes]
    about = {"name": details.name, "group": details.group, "kind": details.kind}
    return {**{name: text for name, text in about.items() if text}, "causes": causes}


def encode_failure_status(status: DenialStatus) -> bytes:
    """Return a whole metav1.Status as JSON; API servers show the Status in place of a review."""
    return _ENCODER.encode({"kind": "Status", "apiVersion": "v1", **failure_status_as_json(status)})


def sanitize_audit_annotations(given: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations with unique keys that the audit log accepts."""
    kept: dict[str, str] = {}
    last: dict[str, int] = {}
    for key, value in given.items():
        name = _FOREIGN.sub("_", key).strip("._-")[:MAX_KEY].rstrip("._-")
        if name:
            kept[next_free_name(name, kept, last)] = value
    return kept


def next_free_name(name: str, taken: Mapping[str, str], last: dict[str, int]) -> str:
    """Return a free name: the name itself, or the name with a number. `last` has the last number of each name."""
    candidate, prefix = name, name[: MAX_KEY - _SUFFIX]
    while candidate in taken:
        last[prefix] = number = last.get(prefix, 1) + 1
        suffix = f"-{number}"
        candidate = name[: MAX_KEY - len(suffix)] + suffix
    return candidate


def _status_of_verdict(verdict: Verdict) -> DenialStatus:
    if verdict.status is None:
        return DenialStatus(code=400, reason="BadRequest", message="denied without explanation")
    return verdict.status


def with_docs_links(verdict: Verdict, policies: PolicySet, docs_address: str) -> Verdict:
    """Return the verdict with the addresses of the pages of its rules, and of the page about denials.

    Warnings get no addresses if they would become longer than an API server passes on.
    """
    if verdict.status is None and not verdict.warnings:
        return verdict
    status = verdict.status and _linked_status(verdict.status, policies, docs_address)
    warnings = tuple(_text_with_links(each, policies, docs_address) for each in verdict.warnings)
    is_short = sum(map(len, warnings)) <= MAX_WARNINGS
    return replace(verdict, status=status, warnings=warnings if is_short else verdict.warnings)


def _linked_status(status: DenialStatus, policies: PolicySet, docs_address: str) -> DenialStatus:
    # kubectl shows only the causes if the reason is Invalid
    page = denials_address(docs_address)
    message = _text_with_links(status.message, policies, docs_address)
    message += f"\nwhat to do: {page}" if "\n" in message else f"; what to do: {page}"
    if status.details is None:
        return replace(status, message=message)
    causes = [
        replace(each, message=_text_with_links(each.message, policies, docs_address)) for each in status.details.causes
    ]
    if causes and status.reason == "Invalid":
        causes[-1] = replace(causes[-1], message=f"{causes[-1].message}; what to do: {page}")
    return replace(status, message=message, details=replace(status.details, causes=tuple(causes)))


def _text_with_links(text: str, policies: PolicySet, docs_address: str) -> str:
    return "\n".join(_linked_line(line, policies, docs_address) for line in text.split("\n"))


def _linked_line(line: str, policies: PolicySet, docs_address: str) -> str:
    rule = line.rpartition("(")[2].removeprefix("claimgate: ").removesuffix(")")
    if not line.endswith(f"{rule})") or not any(rule in policy.catalogue for policy in policies.policies):
        return line
    return f"{line[:-1]}, {page_address(docs_address, rule)})"
