"""Makes valid objects of a custom kind from the schema of its CustomResourceDefinition.

Only errors about absent fields are findings, because the made values may break a pattern or a bound. A rule in CEL,
`oneOf` or a webhook of the operator may require a field that the schema does not require. Fields that a
rule or `oneOf` names count as possibly required.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import get
from webhook.evaluation.merged_pods import PartialObject
from webhook.suites.valid_objects import ValidObjects
from webhook.workloads.rows import Row

_Shape = TypeVar("_Shape", list[Any], dict[str, Any])
_NAME: Final = re.compile(r"\w+", re.ASCII)
_MOST_FIELDS: Final = 20_000
"""The maximum number of fields of a schema that are read. A PodSpec has 2,000, and the largest known kind about 12,000.
"""
_FURTHER_SCHEMAS: Final = ("anyOf", "oneOf", "allOf", "not")
_OF_EVERY_OBJECT: Final = ("apiVersion", "kind", "metadata", "status")
_NOT_KNOWN: Final = "{} is not known"


class CustomKind(Struct, frozen=True, kw_only=True):
    """One served version of a custom kind: its resource, and the schema of its objects."""

    row: Row
    schema: JSON

    @property
    def kind(self) -> GroupVersionKind:
        """Return the kind at this version."""
        return self.row.gvk


def custom_kinds(definitions: Iterable[JSON]) -> Iterator[CustomKind]:
    """Yield the served versions of CustomResourceDefinitions. Definitions of other shapes are left out."""
    for each in definitions:
        group, names = get(each, ("spec", "group")), get(each, ("spec", "names"))
        versions = get(each, ("spec", "versions"))
        if not (isinstance(group, str) and isinstance(names, dict) and isinstance(versions, list)):
            continue
        for version in versions:
            schema = get(version, ("schema", "openAPIV3Schema"))
            if isinstance(schema, dict) and get(version, ("served",)) is True:
                row = Row(
                    group=group,
                    versions=(str(version.get("name")),),
                    kind=str(names.get("kind")),
                    resource=str(names.get("plural")),
                    namespaced=get(each, ("spec", "scope")) != "Cluster",
                )
                yield CustomKind(row=row, schema=schema)


def objects_of_custom_kind(custom: CustomKind) -> ValidObjects:
    """Return the smallest object that the schema allows, and a full object. The metadata of both objects is only a
    name.
    """
    head = {"apiVersion": custom.kind.api_version, "kind": custom.kind.kind, "metadata": {"name": "x"}}
    names = frozenset(_names_in_rules(custom.schema))
    objects = []
    for is_full in (False, True):
        obj = _ObjectMaker(is_full, names).value(custom.schema, "", skipped=_OF_EVERY_OBJECT)
        if isinstance(obj, PartialObject):
            obj.update(head)
        objects.append(obj if isinstance(obj, PartialObject) else {**head, **obj})
    return ValidObjects(objects[0], objects[1], {}, tuple(_required_paths(custom.schema, names)))


def _part(schema: JSON, name: str, shape: type[_Shape]) -> _Shape:
    """Return a part of a schema. An absent part is empty, and so is a part of another type."""
    part = schema.get(name)
    return part if isinstance(part, shape) else shape()


def _required_paths(schema: Any, names: frozenset[str]) -> Iterator[str]:
    """Yield the path, with a leading dot, of each field that may be required or has a default."""
    pending, left = [("", schema)], _MOST_FIELDS
    while pending and left:
        left -= 1
        at, each = pending.pop()
        if not isinstance(each, dict):
            continue
        pending.append((f"{at}[]", each.get("items")))
        required, defaults = _part(each, "required", list), _part(each, "default", dict)
        for name, schema_of_field in _part(each, "properties", dict).items():
            path = f"{at}.{name}"
            is_kept = name in required or name in defaults or name in names or each.get("minProperties")
            if is_kept or path == ".spec" or (isinstance(schema_of_field, dict) and "default" in schema_of_field):
                yield path
            pending.append((path, schema_of_field))


def _names_in_rules(schema: Any) -> Iterator[str]:
    """Yield the words in rules in CEL, and the fields that `anyOf`, `oneOf`, `allOf` or `not` require, at any depth."""
    pending, left = [schema], _MOST_FIELDS
    while pending and left:
        left -= 1
        each = pending.pop()
        if isinstance(each, list):
            pending += each
        elif isinstance(each, dict):
            for rule in _part(each, "x-kubernetes-validations", list):
                yield from _NAME.findall(str(get(rule, ("rule",)) or ""))
            for name in _FURTHER_SCHEMAS:
                if name in each:
                    yield from _required_names(each[name])
            pending += each.values()


def _required_names(schema: Any) -> Iterator[str]:
    pending, left = [schema], _MOST_FIELDS
    while pending and left:
        left -= 1
        each = pending.pop()
        if isinstance(each, list):
            pending += each
        elif isinstance(each, dict):
            yield from (name for name in _part(each, "required", list) if isinstance(name, str))
            pending += each.values()


class _ObjectMaker:
    """Makes one object. `names` are fields that may be required although the schema says optional."""

    def __init__(self, is_full: bool, names: frozenset[str]) -> None:
        self._is_full = is_full
        self._names = names
        self._left = _MOST_FIELDS

    def value(self, schema: Any, path: str, skipped: tuple[str, ...] = ()) -> Any:
        """Return a value that a schema allows. Parts of a value without a schema are unknown."""
        self._left -= 1
        if not isinstance(schema, dict) or self._left < 0:
            return _unknown_object(path)
        if "default" in schema and not schema.get("properties"):
            return schema["default"]
        if options := _part(schema, "enum", list):
            return options[0]
        if schema.get("x-kubernetes-int-or-string"):
            return 1
        match schema.get("type"):
            case "object":
                return self._fields(schema, path, skipped)
            case "array":
                is_empty = not (self._is_full or schema.get("minItems"))
                return [] if is_empty else [self.value(schema.get("items"), f"{path}[].")]
            case "string":
                return "x"
            case "integer" | "number":
                return 1
            case "boolean":
                return False
        return _unknown_object(path)

    def _fields(self, schema: JSON, path: str, skipped: tuple[str, ...]) -> Any:
        properties = _part(schema, "properties", dict)
        if not properties:
            return self._map(schema, path)
        fields: dict[str, Any] = {}
        unknown: set[str] = set()
        required, defaults = _part(schema, "required", list), _part(schema, "default", dict)
        for name, schema_of_field in properties.items():
            if name in skipped:
                continue
            has_default = name in defaults or (isinstance(schema_of_field, dict) and "default" in schema_of_field)
            is_spec = not path and name == "spec"  # authors always write `spec`, even if `spec` is optional
            if self._is_full or name in required or has_default or is_spec:
                fields[name] = defaults[name] if name in defaults else self.value(schema_of_field, f"{path}{name}.")
            elif name in self._names or schema.get("minProperties"):
                unknown.add(name)
        return PartialObject(fields, lambda name: name not in unknown, path, _NOT_KNOWN) if unknown else fields

    def _map(self, schema: JSON, path: str) -> Any:
        values = schema.get("additionalProperties")
        if not isinstance(values, dict) or (schema.get("minProperties") and not self._is_full):
            return _unknown_object(path)
        return {"example.com/x": self.value(values, f"{path}x.")} if self._is_full else {}


def _unknown_object(path: str) -> PartialObject:
    return PartialObject({}, lambda _: False, path, _NOT_KNOWN)
