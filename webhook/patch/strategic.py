"""Applies strategic merge patches, as Kubeflow Trainer applies runtimePatches to a JobSet.

Source of the rules: k8s.io/apimachinery v0.36.1 pkg/util/strategicpatch/patch.go StrategicMergePatch, with the struct
tags of the API types (listkeys.json, `merge`). Lists with a merge key are merged by this key, and other lists are
replaced. null removes a field. The directives are `$patch` (replace, delete) and `$retainKeys`. Without `$retainKeys`,
a volume or claim gets the sources of the original and of the patch. Two directives for lists, which only kubectl
writes, are refused.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.errors import PatchError

Root: TypeAlias = Literal["JobSetSpec", "JobTemplateSpec", "PodTemplateSpec", "PodSpec"]
Tags: TypeAlias = Mapping[str, Any]
"""The tagged fields of a type. `merge` is the merge key of a list; "" for plain values. `type` is the type of the items
or of the field.
"""

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_COPIES_PER_STEP: Final = 1000
"""The deadline is charged one step for copying this number of list items."""
_GAP: Final = 1 << 1024
"""The distance between the numbers of neighbours. Over a thousand patches can insert items between two neighbours
before all items are numbered again."""
_REFUSED: Final = ("$deleteFromPrimitiveList/", "$setElementOrder/")
_NO_DIRECTIVE: Final = f"write the list in full, or use {_DIRECTIVE}"
FIX_OF_DIRECTIVE: Final = f"remove {_DIRECTIVE} to merge the two, or write replace or delete"


class UnmergeableError(PatchError):
    """A patch cannot be merged; `fix` says what to change."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.fix = fix


class _ItemIndex(Struct, frozen=True):
    """The order of a list's items as increasing numbers, with gaps for new items.

    Args:
        numbers: the numbers of the items, in order.
        by_key: for each merge key, the number of the item; None if several items have this key.
    """

    numbers: list[int]
    by_key: dict[Any, int | None]

    def position_of_item(self, number: int) -> int:
        return bisect_left(self.numbers, number)


class ListIndexes:
    """The indexes of merged lists, which the next patch uses again. An inserted item does not change the numbers of
    other items.
    """

    __slots__ = ("_lists",)

    def __init__(self) -> None:
        self._lists: dict[int, tuple[list[JSON], _ItemIndex]] = {}

    def remove_index_of_list(self, listed: list[JSON], key: str, name: str, deadline: Deadline) -> _ItemIndex:
        """Remove and return the index of a list that will be replaced."""
        known = self._lists.pop(id(listed), None)
        if known is not None:
            return known[1]
        deadline.spend(len(listed) // 10)
        numbers, by_key = [*range(0, len(listed) * _GAP, _GAP)], dict[Any, int | None]()
        for number, identity in zip(numbers, _keys_of_items(listed, key, name), strict=True):
            by_key[identity] = None if identity in by_key else number
        return _ItemIndex(numbers, by_key)

    def store_index_of_list(self, listed: list[JSON], index: _ItemIndex) -> None:
        self._lists[id(listed)] = listed, index


class _MergeContext(Struct, frozen=True):
    """The deadline of one merge, and the indexes of its lists."""

    deadline: Deadline
    indexes: ListIndexes


def merge_patch(
    original: JSON, patch: JSON, root: Root, deadline: Deadline | None = None, indexes: ListIndexes | None = None
) -> JSON:
    """Return the result of merging the patch into the original; both stay unchanged.

    Args:
        original: a JobSetSpec, JobTemplateSpec, PodTemplateSpec or PodSpec; None counts as an empty object.
        patch: a part of such an object.
        root: the type of the object.
        deadline: charged for each walked value.
        indexes: the indexes of earlier merges, if `original` is the result of the last merge.

    Raises:
        UnmergeableError: the patch or the original is not an object, or the patch lacks a merge key or has an unknown
        directive.
    """
    if not isinstance(patch, dict) or not isinstance(original, dict | None):
        message = f"a strategic merge patch of {root}, and the value that the patch changes, must be objects"
        raise UnmergeableError(message, "write an object")
    walk = _MergeContext(deadline or Deadline(), indexes or ListIndexes())
    return _merge_map(original or {}, patch, merge_tags_of_type(root), walk)


@cache
def _read_merge_tags() -> Mapping[str, Tags]:
    text = (Path(__file__).parent / "listkeys.json").read_text(encoding="utf-8")
    types: Mapping[str, Tags] = json.loads(text)["merge"]
    return types


def merge_tags_of_type(name: str | None) -> Tags:
    """Return the tagged fields of a type."""
    return _read_merge_tags().get(name or "", {})


def _merge_map(original: dict[str, JSON], patch: dict[str, JSON], tags: Tags, walk: _MergeContext) -> dict[str, JSON]:
    walk.deadline.spend(len(patch) + 1)
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive is not None:
        raise UnmergeableError(
            f"the patch has `{_DIRECTIVE}: {directive}`, which must be replace or delete", FIX_OF_DIRECTIVE
        )
    merged = _apply_retain_keys(original, patch)
    for name, value in patch.items():
        if name.startswith(_REFUSED):
            raise UnmergeableError(f"the directive `{name}` is not supported", _NO_DIRECTIVE)
        if value is None:
            merged.pop(name, None)
        elif name != _RETAIN:
            _merge_field(merged, name, value, tags, walk)
    return merged


def _apply_retain_keys(original: dict[str, JSON], patch: dict[str, JSON]) -> dict[str, JSON]:
    # returns all fields if the patch does not have the directive
    if _RETAIN not in patch:
        return dict(original)
    kept = patch[_RETAIN]
    named = [name for name, value in patch.items() if value is not None and not name.startswith("$")]
    known = {name for name in kept if isinstance(name, str)} if isinstance(kept, list) else None
    if known is None or not known.issuperset(named):
        fix = f"list all fields that are set next to {_RETAIN}, or remove {_RETAIN}"
        raise UnmergeableError(f"`{_RETAIN}` must be a list of every field that is set next to it", fix)
    return {name: value for name, value in original.items() if name in known}


def _merge_field(merged: dict[str, JSON], name: str, value: JSON, tags: Tags, walk: _MergeContext) -> None:
    old, tag = merged.get(name), tags.get(name, {})
    if isinstance(value, dict) and isinstance(old, dict):
        merged[name] = _merge_map(old, value, merge_tags_of_type(tag.get("type")), walk)
    elif isinstance(value, list) and isinstance(old, list):
        merged[name] = _merge_list(old, value, tag, name, walk)
    elif isinstance(value, dict) and _DIRECTIVE in value:
        merged.pop(name, None)
    else:
        merged[name] = _without_directives(value)


def _without_directives(value: JSON) -> JSON:
    # also without nulls
    if isinstance(value, dict):
        cleaned = {}
        for name, inner in value.items():
            if type(inner) is str and name != _RETAIN:  # the usual case
                cleaned[name] = inner
            elif inner is not None and name != _RETAIN and not _is_directive(inner):
                cleaned[name] = _without_directives(inner)
        return cleaned
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _is_directive(item)]
    return value


def _is_directive(value: JSON) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _merge_list(original: list[JSON], patch: list[JSON], tag: Tags, name: str, walk: _MergeContext) -> list[JSON]:
    walk.deadline.spend(len(original) // _COPIES_PER_STEP + len(patch))  # the patch is searched for nulls
    key = tag.get("merge")
    if key is None:
        return patch
    if key == "":
        walk.deadline.spend(len(original) // 10)
        both = list(dict.fromkeys([*original, *patch]))
        return _items_in_merged_order(both, patch, original, lambda item: item)
    kept, given = _apply_delete_directives(original, patch, key, name)
    index = walk.indexes.remove_index_of_list(kept, key, name, walk.deadline)
    identities = _keys_of_items(given, key, name)
    if any(index.by_key.get(identity, 0) is None for identity in identities):
        return _merge_with_duplicates(kept, list(zip(identities, given, strict=True)), tag, name, walk)
    old_positions = {
        each: index.position_of_item(number) for each in identities if (number := index.by_key.get(each)) is not None
    }
    merged, fields = dict[Any, JSON](), merge_tags_of_type(tag.get("type"))
    for identity, item in zip(identities, walk.deadline.items_with_clock_checks(given), strict=True):
        if identity in merged:
            merged[identity] = _merge_map(merged[identity], item, fields, walk)
        elif identity in old_positions:
            merged[identity] = _merge_map(kept[old_positions[identity]], item, fields, walk)
        else:
            merged[identity] = _without_directives(item)
    return _order_merged_items_by_index(kept, merged, old_positions, index, walk)


def _order_merged_items_by_index(
    kept: list[JSON], merged: dict[Any, JSON], old_positions: dict[Any, int], index: _ItemIndex, walk: _MergeContext
) -> list[JSON]:
    # items of the patch have the patch's order, and stay behind the items that preceded them in the original
    taken = sorted(old_positions.values())
    others, builder = _RemainingItems(kept, taken), _MergedListBuilder()
    for identity, item in merged.items():
        if identity in old_positions:
            others.move_items_before(builder, old_positions[identity])
        builder.append_patch_item(identity, item)
    others.move_items_before(builder, len(kept))
    numbers = builder.number_items_with_gaps(index.numbers, taken)
    if builder.fit_patch_numbers_into_gaps(numbers, index.by_key):
        walk.indexes.store_index_of_list(builder.items, _ItemIndex(numbers, index.by_key))
    return builder.items


class _MergedListBuilder:
    """Builds a list from groups of a patch's items and slices of another list."""

    __slots__ = ("_added", "_slices", "items")

    def __init__(self) -> None:
        self.items: list[JSON] = []
        self._slices: list[tuple[int, slice]] = []
        self._added: list[tuple[int, list[Any]]] = []

    def append_patch_item(self, identity: Any, item: JSON) -> None:
        if not self._added or self._added[-1][0] + len(self._added[-1][1]) < len(self.items):
            self._added.append((len(self.items), []))
        self._added[-1][1].append(identity)
        self.items.append(item)

    def append_slice(self, items: list[JSON], part: slice) -> None:
        self._slices.append((len(self.items), part))
        self.items += items[part]

    def number_items_with_gaps(self, known: list[int], taken: list[int]) -> list[int]:
        """Return the numbers for the new list: the numbers of the old list, with 0 for the patch's items.

        `taken` has the indexes of replaced items.
        """
        first, added = self._added[0] if self._added else (0, [])
        if len(self._added) <= 1 and (not taken or (taken[0], taken[-1]) == (first, first + len(taken) - 1)):
            known[first : first + len(taken)] = [0] * len(added)  # the usual case, and much faster than a new list
            return known
        numbers = [0] * len(self.items)
        for place, part in self._slices:
            numbers[place : place + part.stop - part.start] = known[part]
        return numbers

    def fit_patch_numbers_into_gaps(self, numbers: list[int], by_key: dict[Any, int | None]) -> bool:
        """Number each item of the patch within its gap. Return whether all gaps were large enough."""
        for first, added in self._added:
            end, steps = first + len(added), len(added) + 1
            before = numbers[first - 1] if first else None
            after = numbers[end] if end < len(numbers) else (before or 0) + steps * _GAP
            step = _GAP if before is None else (after - before) // steps
            if not step:
                return False
            for place, identity in enumerate(added, first):
                by_key[identity] = numbers[place] = after - (end - place) * step
        return True


class _RemainingItems:
    """Moves the items of a list to a builder in slices, from left to right, except the items at `left_out`."""

    __slots__ = ("_at", "_items", "_left_out", "_next")

    def __init__(self, items: list[JSON], left_out: list[int]) -> None:
        self._items = items
        self._left_out = left_out
        self._at = self._next = 0

    def move_items_before(self, builder: _MergedListBuilder, end: int) -> None:
        while self._next < len(self._left_out) and self._left_out[self._next] < end:
            place = self._left_out[self._next]
            self._move_slice(builder, place)
            self._at, self._next = place + 1, self._next + 1
        if end > self._at:
            self._move_slice(builder, end)
            self._at = end

    def _move_slice(self, builder: _MergedListBuilder, end: int) -> None:
        if end > self._at:
            builder.append_slice(self._items, slice(self._at, end))


def _merge_with_duplicates(
    kept: list[JSON], given: list[tuple[Any, JSON]], tag: Tags, name: str, walk: _MergeContext
) -> list[JSON]:
    # the original has an item of the patch twice; API servers store no such list
    key = tag["merge"]
    before = _keys_of_items(kept, key, name)
    places, merged, fields = _first_positions(before), list(kept), merge_tags_of_type(tag.get("type"))
    for identity, item in walk.deadline.items_with_clock_checks(given):
        if identity in places:
            merged[places[identity]] = _merge_map(merged[places[identity]], item, fields, walk)
        else:
            places[identity] = len(merged)
            merged.append(_without_directives(item))
    identify = partial(_key_of_item, key=key, name=name)
    return _items_in_merged_order(merged, [identity for identity, _ in given], before, identify)


def _apply_delete_directives(
    original: list[JSON], patch: list[JSON], key: str, name: str
) -> tuple[list[JSON], list[JSON]]:
    # returns the remaining items of the original, and the patch's items without `$patch: delete` or `replace`
    given, unwanted = [], []
    replaces = False
    for item in patch:
        directive = item.get(_DIRECTIVE) if isinstance(item, dict) else None
        if directive is None:
            given.append(item)
        elif directive == "delete":
            unwanted.append(item)
        elif directive == "replace":
            replaces = True
        else:
            message = f"an item of {name} has `{_DIRECTIVE}: {directive}`, which must be replace or delete"
            raise UnmergeableError(message, FIX_OF_DIRECTIVE)
    if unwanted:
        known = {*_keys_of_items(unwanted, key, name)}
        original = [
            old for old, own in zip(original, _keys_of_items(original, key, name), strict=True) if own not in known
        ]
    return (given, []) if replaces else (original, given)


def _keys_of_items(listed: list[JSON], key: str, name: str) -> list[Any]:
    try:
        keys = [item[key] for item in listed]
    except (KeyError, TypeError):
        keys = [_key_of_item(item, key, f"{name}[{index}]") for index, item in enumerate(listed)]
    if not {dict, list}.isdisjoint(map(type, keys)):  # one call of C: each patch checks the whole list
        message = f"an item of {name} has a `{key}` that is an object or a list, which does not tell items apart"
        raise UnmergeableError(message, f"write a string as `{key}`")
    return keys


def _key_of_item(item: JSON, key: str, name: str) -> Any:
    if not isinstance(item, dict) or key not in item:
        raise UnmergeableError(f"{name} has no `{key}`, which tells the items of the list apart", f"set `{key}`")
    return item[key]


def _items_in_merged_order(
    items: list[JSON], patch_order: list[Any], original_order: list[Any], identify: Callable[[JSON], Any]
) -> list[JSON]:
    # items of the patch have the patch's order, and stay behind the items that preceded them in the original
    wanted, old_positions = _first_positions(patch_order), _first_positions(original_order)
    patched, others = [], deque[tuple[int, JSON]]()
    for item in items:
        identity = identify(item)
        if identity in wanted:
            patched.append((wanted[identity], old_positions.get(identity, -1), item))
        else:
            others.append((old_positions[identity], item))
    ordered = []
    for _, place, item in sorted(patched, key=itemgetter(0)):
        while others and others[0][0] < place:
            ordered.append(others.popleft()[1])
        ordered.append(item)
    return [*ordered, *(item for _, item in others)]


def _first_positions(identities: list[Any]) -> dict[Any, int]:
    positions: dict[Any, int] = {}
    for place, identity in enumerate(identities):
        positions.setdefault(identity, place)
    return positions
