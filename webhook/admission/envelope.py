"""From attributes back to the AdmissionReview that an API server would send: what decode.py reads, written."""

from __future__ import annotations

from typing import Any

from webhook.admission import wire
from webhook.attributes import JSON, Attributes, GroupVersionKind, GroupVersionResource, UserInfo


def review(attributes: Attributes) -> JSON:
    """The AdmissionReview an API server would send for these attributes."""
    request: dict[str, Any] = {
        "uid": attributes.uid,
        "kind": _kind(attributes.kind),
        "resource": _resource(attributes.resource),
        "requestKind": _kind(attributes.request_kind),
        "requestResource": _resource(attributes.request_resource),
        "operation": str(attributes.operation),
        "userInfo": _user(attributes.user_info),
        "object": attributes.object,
        "oldObject": attributes.old_object,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }
    present = {
        "subResource": attributes.sub_resource,
        "requestSubResource": attributes.request_sub_resource,
        "name": attributes.name,
        "namespace": attributes.namespace,
    }
    request.update((key, value) for key, value in present.items() if value)
    return {"apiVersion": wire.API_VERSION, "kind": wire.KIND, "request": request}


def _kind(kind: GroupVersionKind) -> JSON:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(resource: GroupVersionResource) -> JSON:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}


def _user(user: UserInfo) -> JSON:
    extra = {key: list(values) for key, values in user.extra.items()}
    parts = {"username": user.username, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {key: value for key, value in parts.items() if value}
