"""Converts events of an API server's audit log to the requests that a webhook would have got.

The request of a create or an update has the object that the user sent, which needs a log of level Request. A patch is
not an object, so its request has the object of the answer, with defaults and after admission. The log lacks the object
before an update. So the new object is also the old object, and rules about changes find no change.

Source: k8s.io/apiserver v0.36 pkg/apis/audit/v1 types.go Event, pkg/endpoints/handlers.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from webhook.admission.decode import decode_request
from webhook.apimachinery.attributes import JSON, Attributes
from webhook.apimachinery.paths import MAX_DEPTH
from webhook.deadline import Deadline
from webhook.errors import CallError
from webhook.yamltext.jsontext import decode_any_json, is_deeper_than

_OPERATIONS: Final = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE"}
_READS: Final = frozenset(("get", "list", "watch", "head", "proxy"))
_NAMESPACES: Final = b'"namespaces"'
"""The resource in every event about a Namespace."""
_CREATED: Final = 201
_REFUSED: Final = 400


class EventWithoutRequest(Exception):
    """No admission request can be made from an audit event; the message says why.

    `is_read`: the request only reads. `is_stored`: the API server stored the sent object.
    """

    def __init__(self, why: str, *, is_read: bool = False, is_stored: bool = True) -> None:
        super().__init__(why)
        self.is_read = is_read
        self.is_stored = is_stored and not is_read


class _ObjectReference(msgspec.Struct, rename="camel"):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""
    api_version: str = ""
    subresource: str = ""


class _ResponseStatus(msgspec.Struct):
    code: int = 0


class _AuditEvent(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    level: str = ""
    audit_id: str = msgspec.field(default="", name="auditID")
    stage: str = ""
    verb: str = ""
    request_uri: str = msgspec.field(default="", name="requestURI")
    user: dict[str, Any] = {}
    object_ref: _ObjectReference | None = None
    response_status: _ResponseStatus | None = None
    request_object: msgspec.Raw = msgspec.Raw()
    response_object: msgspec.Raw = msgspec.Raw()


class _EventWithValues(_AuditEvent, rename="camel"):
    """An event with its objects as parsed JSON, for events that msgspec cannot decode."""

    request_object: Any = None
    response_object: Any = None


_EVENT: Final = msgspec.json.Decoder(_AuditEvent)


def request_of_audit_event(line: bytes) -> Attributes:
    """Return the request of one line of an audit log.

    Raises:
        EventWithoutRequest: the event is a read, has no object, or was refused by the API server.
        ValueError: the line is not an event of audit.k8s.io.
    """
    event = _decode_event(line)
    if event.kind != "Event" or not event.api_version.startswith("audit.k8s.io/"):
        raise ValueError(f"expected an Event of audit.k8s.io, found kind `{event.kind[:80]}`")
    return _attributes_of_event(event, _admitted_object(event))


def namespace_of_audit_event(line: bytes) -> tuple[str, JSON] | None:
    """Return the name of the Namespace that a line of an audit log changes, and the Namespace after the change.

    The Namespace is None if the event has no object. The result is None if the line changes no Namespace or is broken.
    """
    if _NAMESPACES not in line:
        return None
    try:
        event = _decode_event(line)
        reference = event.object_ref or _ObjectReference()
        is_changed = event.verb in _OPERATIONS or event.verb == "delete"
        if reference.resource != "namespaces" or reference.subresource or not is_changed:
            return None
        obj = _admitted_object(event)
    except EventWithoutRequest as reason:
        return (reference.name, None) if reason.is_stored and reference.name else None
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return None
    name = reference.name or metadata.get("name")
    return (name, obj) if isinstance(name, str) and name else None


def _decode_event(line: bytes) -> _AuditEvent:
    if not is_deeper_than(MAX_DEPTH, line):
        try:
            return _EVENT.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # the slower decoder below also reads such a line, or reports the error
    return msgspec.convert(decode_any_json(line, Deadline()), _EventWithValues)


def _attributes_of_event(event: _AuditEvent, obj: dict[str, Any]) -> Attributes:
    reference = event.object_ref or _ObjectReference()
    group, _, version = str(obj.get("apiVersion")).rpartition("/")
    metadata = obj["metadata"] if isinstance(obj.get("metadata"), dict) else {}
    operation = _OPERATIONS[event.verb]
    if event.verb == "patch" and event.response_status is not None and event.response_status.code == _CREATED:
        operation = "CREATE"  # a server-side apply created the object
    return _decode_request_of_event(
        {
            "uid": event.audit_id or "none",
            "kind": {"group": group, "version": version, "kind": obj.get("kind")},
            "resource": {
                "group": reference.api_group,
                "version": reference.api_version or version,
                "resource": reference.resource,
            },
            "name": reference.name or str(metadata.get("name") or ""),
            "namespace": reference.namespace,
            "operation": operation,
            "userInfo": event.user,
            "object": obj,
            "oldObject": obj if operation == "UPDATE" else None,
        }
    )


def _decode_object(written: Any) -> JSON:
    if not isinstance(written, msgspec.Raw):
        return written
    text = bytes(written)
    try:
        return msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decode_any_json(text, Deadline())


def _decode_request_of_event(review: JSON) -> Attributes:
    try:
        return decode_request(review)
    except CallError as error:
        raise EventWithoutRequest(f"the object cannot be read: {error.message.partition(':')[0]}") from None


def _admitted_object(event: _AuditEvent) -> dict[str, Any]:
    # the object that the user sent; for a patch, the object of the answer
    if event.verb in _READS or event.stage != "ResponseComplete":
        raise EventWithoutRequest("reads, and events of other stages", is_read=True)
    if event.verb not in _OPERATIONS:
        raise EventWithoutRequest(f"verb {event.verb[:40]}, which has no object")
    if event.object_ref is None or not event.object_ref.resource:
        raise EventWithoutRequest("no object of the API")
    if event.object_ref.subresource:
        raise EventWithoutRequest(f"subresource {event.object_ref.subresource[:40]}")
    if "dryRun=" in event.request_uri:
        raise EventWithoutRequest("dry runs", is_stored=False)
    if event.response_status is not None and event.response_status.code >= _REFUSED:
        raise EventWithoutRequest("refused by the API server", is_stored=False)
    written = event.response_object if event.verb == "patch" else event.request_object
    value = _decode_object(written)
    if value is None:
        needed = "RequestResponse" if event.verb == "patch" else "Request or RequestResponse"
        raise EventWithoutRequest(
            f"{event.verb} at level {event.level[:20] or 'unknown'}; the object needs level {needed}"
        )
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or value["kind"] == "Status":
        raise EventWithoutRequest(f"{event.verb} without a whole object")
    return value
