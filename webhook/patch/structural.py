"""Changes a custom resource by its schema as API servers do: fills in defaults, and removes unknown fields and nulls.

Inputs are not changed. Without a change, the same value is returned. Schemas are those of CustomResourceDefinitions.
Source: k8s.io/apiextensions-apiserver v0.36 pkg/apiserver/schema/: {defaulting,pruning}/algorithm.go,
defaulting/prunenulls.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.patch.gotext import NilList

Schema: TypeAlias = Mapping[str, Any]
_META: Final = frozenset(("apiVersion", "kind", "metadata"))
_ABSENT: Final = object()
_EMPTY: Final[Schema] = {}
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"


def with_schema_defaults(value: JSON, schema: Schema | None, deadline: Deadline) -> JSON:
    """Return the value with defaults for absent fields, and for nulls that are not allowed."""
    if not schema:
        return value
    if isinstance(value, dict):
        deadline.spend(1 + len(value))
        filled = {**value, **_defaults_of_missing_fields(value, schema.get("properties") or _EMPTY)}
        changed = {
            name: _with_defaults(inner, *_schema_of_field(name, schema), deadline) for name, inner in filled.items()
        }
        return (
            changed if len(changed) > len(value) or any(changed[name] is not value[name] for name in value) else value
        )
    if isinstance(value, list) and "items" in schema:
        items = schema["items"]
        return _change_items_or_keep_list(value, lambda inner: _with_defaults(inner, items, False, deadline), deadline)
    return value


def _defaults_of_missing_fields(value: dict[str, JSON], properties: Mapping[str, Schema]) -> dict[str, JSON]:
    return {
        name: inner["default"]
        for name, inner in properties.items()
        if inner.get("default") is not None and (name not in value or is_forbidden_null(value[name], inner))
    }


def _with_defaults(value: JSON, schema: Schema | None, is_declared: bool, deadline: Deadline) -> JSON:
    if not is_declared and schema is not None and value is None and is_forbidden_null(value, schema):
        value = schema.get("default")
    return with_schema_defaults(value, schema, deadline)


def is_forbidden_null(value: JSON, schema: Schema) -> bool:
    """Return whether a value is null although its schema does not allow null."""
    return value is None and schema.get("nullable") is not True


def _schema_of_field(name: str, schema: Schema) -> tuple[Schema | None, bool]:
    # also returns whether `properties` declares the field
    declared = (schema.get("properties") or _EMPTY).get(name)
    if declared is not None:
        return declared, True
    others = schema.get("additionalProperties")
    return (others if isinstance(others, dict) else None), False


def without_unknown_fields(value: JSON, schema: Schema, deadline: Deadline) -> JSON:
    """Return the object without fields that its schema does not declare."""
    return _without_unknown_fields(value, {**schema, _EMBEDDED: True}, deadline)


def _without_unknown_fields(value: JSON, schema: Schema | None, deadline: Deadline) -> JSON:
    if isinstance(value, dict):
        deadline.spend(1 + len(value))
        changed = {
            name: _field_without_unknown(name, inner, schema or _EMPTY, deadline) for name, inner in value.items()
        }
        if all(changed[name] is inner for name, inner in value.items()):
            return value
        return {name: inner for name, inner in changed.items() if inner is not _ABSENT}
    if isinstance(value, list):
        items = (schema or _EMPTY).get("items")
        if items and _keeps_unknown(schema):
            items = {**items, _PRESERVE: True}
        return _change_items_or_keep_list(
            value, lambda inner: _without_unknown_fields(inner, items, deadline), deadline
        )
    return value


def _field_without_unknown(name: str, value: JSON, schema: Schema, deadline: Deadline) -> JSON:
    # _ABSENT if the field is unknown
    if name in _META and schema.get(_EMBEDDED) is True:
        return value
    inner, is_declared = _schema_of_field(name, schema)
    if is_declared or schema.get("additionalProperties") is not None:
        return _without_unknown_fields(value, inner, deadline)
    return value if _keeps_unknown(schema) else _ABSENT


def _keeps_unknown(schema: Schema | None) -> bool:
    return schema is not None and schema.get(_PRESERVE) is True


def object_as_stored(value: JSON, schema: Schema | None, deadline: Deadline) -> JSON:
    """Return a merged object in its stored form.

    CEL's empty list becomes null, or is removed if the schema forbids null.
    """
    if type(value) is NilList:
        return None
    if type(value) is dict:
        deadline.spend(1 + len(value))
        changed = {name: _value_as_stored(name, inner, schema or _EMPTY, deadline) for name, inner in value.items()}
        if all(changed[name] is inner for name, inner in value.items()):
            return value
        return {name: inner for name, inner in changed.items() if inner is not _ABSENT}
    if type(value) is list:
        items = (schema or _EMPTY).get("items")
        return _change_items_or_keep_list(value, lambda inner: object_as_stored(inner, items, deadline), deadline)
    return value


def _value_as_stored(name: str, value: JSON, schema: Schema, deadline: Deadline) -> JSON:
    inner, _ = _schema_of_field(name, schema)
    if type(value) is NilList and inner is not None and inner.get("nullable") is not True:
        return inner.get("default", _ABSENT)
    return object_as_stored(value, inner, deadline)


def _change_items_or_keep_list(value: list[JSON], change: Callable[[JSON], JSON], deadline: Deadline) -> list[JSON]:
    deadline.spend(len(value))
    changed = [change(inner) for inner in value]
    return changed if any(one is not other for one, other in zip(changed, value, strict=True)) else value
