"""Reads valid objects of Kubernetes kinds: the smallest object, a full object, and variants of the full object.

tests/e2e/test_valid_objects.py creates all objects of valid_objects.yaml with kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.yamltext import yamlfile

FILE: Final = Path(__file__).with_name("valid_objects.yaml")


class ValidObjects(Struct, frozen=True):
    """The objects of one kind.

    Attributes:
        required: the fields that every variant has, as the ends of their paths.
        filled: the fields that an API server and its plugins set in addition to defaults.
    """

    smallest: JSON
    full: JSON
    filled: JSON
    required: tuple[str, ...]

    def variants(self, names: Collection[str]) -> Iterator[tuple[str, JSON]]:
        """Yield the path of each optional field with one of these names, and the full object without this field."""
        paths = set(paths_of_fields(self.smallest))
        for path in dict.fromkeys(paths_of_fields(self.full)):
            is_named = path.rpartition(".")[2] in names
            if is_named and path not in paths and not f".{path}".endswith(self.required):
                yield path, _without_path(self.full, path.split("."))

    def as_sent(self, obj: JSON, namespace: str) -> JSON:
        """Return the object with the fields that an API server and its plugins set."""
        metadata = {"namespace": namespace} if namespace else {}
        return _merged(_merged(obj, {"metadata": metadata | SET_BY_SERVER}), self.filled)


SET_BY_SERVER: Final = {"uid": "5bbe1e60-7f6c-4a0f-9d4b-8a4d3a3b7c11", "creationTimestamp": "2026-01-01T00:00:00Z"}
"""The metadata that an API server sets in every object."""


def _merged(value: JSON, others: JSON) -> Any:
    """Return an object with the missing fields of another object."""
    if not (isinstance(value, dict) and isinstance(others, dict)):
        return value
    return {**others, **{key: _merged(each, others.get(key)) for key, each in value.items()}}


@cache
def valid_objects() -> Mapping[GroupVersionKind, ValidObjects]:
    """Return the objects by kind. The file is read on first use."""
    (document,) = yamlfile.read(FILE)
    required = tuple(f".{path}" for path in document.value["required"])
    return {
        _kind_of_object(row["smallest"]): ValidObjects(
            row["smallest"], _without_nulls(row["full"]), row.get("filled", {}), required
        )
        for row in document.value["kinds"]
    }


def _kind_of_object(obj: JSON) -> GroupVersionKind:
    group, _, version = obj["apiVersion"].rpartition("/")
    return GroupVersionKind(group, version, obj["kind"])


def _without_nulls(value: JSON) -> Any:
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return value


def paths_of_fields(value: JSON, at: str = "") -> Iterator[str]:
    """Yield the path of each field, such as `spec.containers[].image` for items of a list. Keys with a dot are left
    out, because they are keys of maps.
    """
    if isinstance(value, list):
        for each in value:
            yield from paths_of_fields(each, f"{at}[]")
    elif isinstance(value, dict):
        for key, each in dict.items(value):  # `value` may be an object with unknown fields
            if "." not in key:
                path = f"{at}.{key}" if at else key
                yield path
                yield from paths_of_fields(each, path)


def _without_path(value: JSON, steps: list[str]) -> JSON:
    """Return an object without a field. If the path goes through a list, all items lose the field."""
    name, lists = steps[0].rstrip("[]"), steps[0].count("[]")
    if name not in value:
        return value
    if len(steps) == 1 and not lists:
        return {key: each for key, each in value.items() if key != name}
    part = value[name]
    rest = steps[1:]
    without = [_without_path(each, rest) for each in part] if lists else _without_path(part, rest)
    return {**value, name: without}
