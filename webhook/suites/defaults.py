"""Objects in the form in which suites compare them.

An expected object recorded from a server has its defaults, a webhook's patch has not.
"""

from __future__ import annotations

from typing import Final

from webhook.admission.fixtures import group_version_kind_of_object
from webhook.apimachinery.attributes import JSON
from webhook.errors import CallError
from webhook.schema.api_defaults import with_api_defaults
from webhook.schema.sent import as_sent_by_api_server

_SERVER_METADATA: Final = frozenset(
    ("managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink")
)
_EMPTY: Final = frozenset(
    ("resources", "securityContext", "nodeSelector", "labels", "annotations", "strategy", "metadata")
)


def comparable_object(obj: JSON) -> JSON:
    """Return an object with defaults and without fields that only a server writes, for comparison."""
    if not isinstance(obj, dict):
        return obj
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _SERVER_METADATA}
    if metadata.get("namespace") == "default":
        del metadata["namespace"]
    bare = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    return _without_empty(_with_defaults({**bare, "metadata": metadata}))


def _with_defaults(obj: JSON) -> JSON:
    try:
        kind = group_version_kind_of_object(obj)
    except CallError:
        return obj
    sent = as_sent_by_api_server(obj, kind)
    return obj if sent is None else with_api_defaults(sent, kind)


def _without_empty(value: JSON) -> JSON:
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned = {key: _without_empty(item) for key, item in value.items()}
    return {key: item for key, item in cleaned.items() if key not in _EMPTY or item not in ({}, None)}
