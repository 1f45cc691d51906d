"""The values of the variables `request`, `namespaceObject` and `authorizer`.

Knows no policy and looks nothing up. Shapes: k8s.io/apiserver v0.36 pkg/admission/plugin/cel/condition.go
(CreateAdmissionRequest, CreateNamespaceObject); absent optional fields are absent keys, as the API server's conversion
to unstructured leaves them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from webhook.apimachinery.attributes import JSON, Attributes, GroupVersionKind, GroupVersionResource, UserInfo
from webhook.policy.declarations import NAMESPACE_METADATA, REQUEST_RESOURCE
from webhook.policy.matching import Match

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer


class RequestVariables:
    """The values of `request` and `authorizer` for one request, shared by all its policies."""

    __slots__ = ("_attributes", "_authorizer", "_of_matches")

    def __init__(self, attributes: Attributes, authorizer: Authorizer | None) -> None:
        self._attributes = attributes
        self._authorizer = authorizer
        self._of_matches: list[tuple[Match, JSON]] = []

    def request(self, match: Match) -> JSON:
        """Return the value of `request` for a match."""
        for known, shown in self._of_matches:  # nearly always one: the request as it was sent
            if known.resource == match.resource and known.kind == match.kind:
                return shown
        shown = request_as_cel_value(self._attributes, match.resource, match.kind)
        self._of_matches.append((match, shown))
        return shown

    def authorizer(self) -> Mapping[str, Any]:
        """Return `authorizer` for the user of the request, and `authorizer.requestResource` for the requested resource.

        Without somebody who decides, every check is an error.
        """
        from webhook.cel.library import authorizer

        decides = self._authorizer or authorizer.NO_DECISIONS
        user, asked = self._attributes.user_info.username, self._attributes.request_resource
        return {
            "authorizer": authorizer.authorizer_of(user, decides),
            REQUEST_RESOURCE: authorizer.check_of_request_resource(
                user,
                decides,
                group=asked.group,
                resource=asked.resource,
                subresource=self._attributes.sub_resource,
                namespace=self._attributes.namespace,
                name=self._attributes.name,
            ),
        }


def request_as_cel_value(attributes: Attributes, resource: GroupVersionResource, kind: GroupVersionKind) -> JSON:
    """Return the AdmissionRequest as expressions see it: without uid, object and oldObject."""
    shown_kind, shown_resource = _kind_as_json(kind), _resource_as_json(resource)
    shown: dict[str, JSON] = {
        "kind": shown_kind,
        "resource": shown_resource,
        "requestKind": shown_kind if attributes.request_kind == kind else _kind_as_json(attributes.request_kind),
        "requestResource": (
            shown_resource
            if attributes.request_resource == resource
            else _resource_as_json(attributes.request_resource)
        ),
        "operation": str(attributes.operation),
        "userInfo": _user_as_json(attributes.user_info),
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


def _kind_as_json(kind: GroupVersionKind) -> JSON:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}  # _asdict takes three times as long


def _resource_as_json(resource: GroupVersionResource) -> JSON:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}


def _user_as_json(user: UserInfo) -> JSON:
    shown: Mapping[str, JSON] = {
        "username": user.username,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in shown.items() if value}


def namespace_object(namespace: JSON) -> JSON:
    """Return a Namespace with the fields that expressions may see."""
    metadata = namespace.get("metadata") or {}
    return {
        "metadata": {key: value for key, value in metadata.items() if key in NAMESPACE_METADATA and value is not None},
        "spec": namespace.get("spec") or {},
        "status": namespace.get("status") or {},
    }
