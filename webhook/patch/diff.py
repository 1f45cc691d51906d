"""Computes the JSON Patch from one value to another: small, in a stable order, and strict RFC 6902.

Identical Python objects are not compared, so unchanged parts cost nothing. `equal_as_json` compares values, so true, 1
and 1.0 differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import json_pointer
from webhook.deadline import Deadline
from webhook.yamltext.jsontext import equal_as_json

Operation: TypeAlias = dict[str, JSON]
_GONE: Final = object()


def operations_between(before: JSON, after: JSON, deadline: Deadline | None = None) -> tuple[Operation, ...]:
    """Return the operations that change `before` to `after`.

    The operations have the order of the object's members. Lists of equal length are compared item by item. In other
    lists, equal items at both ends stay. Items between them are replaced, added or removed.
    """
    return tuple(_operations_between_values(before, after, "", deadline or Deadline()))


def _operations_between_values(before: JSON, after: JSON, path: str, deadline: Deadline) -> Iterator[Operation]:
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _operations_between_maps(before, after, path, deadline)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _operations_between_lists(before, after, path, deadline)
    elif not equal_as_json(before, after):
        yield {"op": "replace", "path": path, "value": after}


def _operations_between_maps(
    before: dict[str, JSON], after: dict[str, JSON], path: str, deadline: Deadline
) -> Iterator[Operation]:
    for key, value in deadline.items_with_clock_checks(before.items()):
        now = after.get(key, _GONE)
        if now is _GONE:
            yield {"op": "remove", "path": path + json_pointer((key,))}
        elif now is not value:  # nearly every member is the same object
            yield from _operations_between_values(value, now, path + json_pointer((key,)), deadline)
    for key, value in deadline.items_with_clock_checks(after.items()):
        if key not in before:
            yield {"op": "add", "path": path + json_pointer((key,)), "value": value}


def _operations_between_lists(
    before: list[JSON], after: list[JSON], path: str, deadline: Deadline
) -> Iterator[Operation]:
    shorter = min(len(before), len(after))
    start = 0
    if len(before) != len(after):
        while start < shorter and equal_as_json(before[start], after[start]):
            deadline.spend(1)
            start += 1
        end = 0
        while end < shorter - start and equal_as_json(before[-1 - end], after[-1 - end]):
            deadline.spend(1)
            end += 1
        shorter -= end
    for index in deadline.items_with_clock_checks(range(start, shorter)):
        if before[index] is not after[index]:
            yield from _operations_between_values(before[index], after[index], f"{path}/{index}", deadline)
    for _ in range(len(before) - len(after)):
        yield {"op": "remove", "path": f"{path}/{shorter}"}
    for index in range(shorter, shorter + len(after) - len(before)):
        yield {"op": "add", "path": f"{path}/{index}", "value": after[index]}
