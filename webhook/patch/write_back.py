"""Applies the changes of an object in the form of API servers to the object as its author wrote it.

The form of API servers has quantities as texts, no empty values, and defaults. Only changed values are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.yamltext.jsontext import equal_as_json

_ABSENT: Final = object()


def write_back_changes(written: JSON, shown: JSON, changed: JSON, deadline: Deadline) -> JSON:
    """Return `written` with the changes from `shown` to `changed`. Without changes, return the same value.

    List items are matched by identity, otherwise by `name`, otherwise by position.
    """
    deadline.spend(1)
    if changed is shown:
        return written
    if isinstance(shown, dict) and isinstance(changed, dict):
        return _write_back_fields(written, shown, changed, deadline)
    if isinstance(shown, list) and isinstance(changed, list):
        return _write_back_elements(written, shown, changed, deadline)
    return written if equal_as_json(shown, changed) else changed


def _write_back_fields(
    written: JSON, shown: Mapping[str, JSON], changed: Mapping[str, JSON], deadline: Deadline
) -> JSON:
    before = written if isinstance(written, dict) else {}
    result = dict(before)
    is_changed = False
    for name in deadline.charge_for_items(shown):
        if name not in changed:
            is_changed |= result.pop(name, _ABSENT) is not _ABSENT
    for name, value in deadline.charge_for_items(changed.items()):
        old = before.get(name, _ABSENT)
        new = write_back_changes(old, shown[name], value, deadline) if name in shown else value
        if new is not old:
            result[name] = new
            is_changed = True
    return result if is_changed else written


def _write_back_elements(written: JSON, shown: Sequence[JSON], changed: Sequence[JSON], deadline: Deadline) -> JSON:
    before = written if isinstance(written, list) and len(written) == len(shown) else shown
    result = []
    for value, index in zip(changed, _indexes_in(shown, changed, deadline), strict=True):
        result.append(value if index is None else write_back_changes(before[index], shown[index], value, deadline))
    is_same = len(result) == len(before) and all(map(_is_same_object, result, before))
    return written if is_same else result


def _is_same_object(one: JSON, other: JSON) -> bool:
    return one is other


def _indexes_in(shown: Sequence[JSON], changed: Sequence[JSON], deadline: Deadline) -> Sequence[int | None]:
    # for each item of `changed` the index of the same item in `shown`; None for a new item
    by_identity = {id(each): index for index, each in enumerate(deadline.charge_for_items(shown))}
    by_name = {name: index for index, each in enumerate(shown) if (name := _name_of(each))}
    indexes = [by_identity.get(id(each)) for each in deadline.charge_for_items(changed)]
    left = set(range(len(shown))).difference(indexes)
    for position, value in enumerate(deadline.charge_for_items(changed)):
        if indexes[position] is None:
            name = _name_of(value)
            index = by_name.get(name, -1) if name else position
            if index in left:
                indexes[position] = index
                left.discard(index)
    return indexes


def _name_of(element: JSON) -> str:
    name = element.get("name") if isinstance(element, dict) else None
    return name if isinstance(name, str) else ""
