"""What the variables of an expression that stand for the request hold: `request`, `namespaceObject`, `authorizer`.

Knows no policy and looks nothing up. Shapes: k8s.io/apiserver v0.36 pkg/admission/plugin/cel/condition.go
(CreateAdmissionRequest, CreateNamespaceObject); absent optional fields are absent keys, as the API server's conversion
to unstructured leaves them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from webhook.attributes import JSON, Attributes, GroupVersionKind, GroupVersionResource, UserInfo
from webhook.policy.declarations import NAMESPACE_METADATA, REQUEST_RESOURCE

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer


def authorizer_values(attributes: Attributes, decides: Authorizer) -> Mapping[str, Any]:
    """`authorizer` for the user of a request, and `authorizer.requestResource` for what is requested."""
    from webhook.cel.library import authorizer

    user, asked = attributes.user_info.username, attributes.request_resource
    return {
        "authorizer": authorizer.authorizer_of(user, decides),
        REQUEST_RESOURCE: authorizer.request_resource(
            user,
            decides,
            group=asked.group,
            resource=asked.resource,
            subresource=attributes.sub_resource,
            namespace=attributes.namespace,
            name=attributes.name,
        ),
    }


def request(attributes: Attributes, resource: GroupVersionResource, kind: GroupVersionKind) -> JSON:
    """The AdmissionRequest as expressions see it: without uid, object and oldObject."""
    own_kind, own_resource = _kind(kind), _resource(resource)
    shown: dict[str, JSON] = {
        "kind": own_kind,
        "resource": own_resource,
        "requestKind": own_kind if attributes.request_kind == kind else _kind(attributes.request_kind),
        "requestResource": (
            own_resource if attributes.request_resource == resource else _resource(attributes.request_resource)
        ),
        "operation": str(attributes.operation),
        "userInfo": _user(attributes.user_info),
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }
    if attributes.sub_resource:
        shown["subResource"] = attributes.sub_resource
    if sub_resource := attributes.request_sub_resource or attributes.sub_resource:
        shown["requestSubResource"] = sub_resource
    if attributes.name:
        shown["name"] = attributes.name
    if attributes.namespace:
        shown["namespace"] = attributes.namespace
    return shown


def _kind(kind: GroupVersionKind) -> JSON:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}  # _asdict takes three times as long


def _resource(resource: GroupVersionResource) -> JSON:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}


def _user(user: UserInfo) -> JSON:
    shown: Mapping[str, JSON] = {
        "username": user.username,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in shown.items() if value}


def namespace_object(namespace: JSON) -> JSON:
    """A Namespace with the fields that expressions may see."""
    metadata = namespace.get("metadata") or {}
    return {
        "metadata": {key: value for key, value in metadata.items() if key in NAMESPACE_METADATA and value is not None},
        "spec": namespace.get("spec") or {},
        "status": namespace.get("status") or {},
    }
