"""Merges the ApplyConfiguration of a MutatingAdmissionPolicy, a partial object, into the whole object.

Source of the rules: k8s.io/apiserver v0.36.1 pkg/admission/plugin/policy/mutating/patch/smd.go, and
structured-merge-diff v6.3.2 typed/{validate,merge}.go. Objects are merged field by field. Lists with keys are merged
item by item in the configuration's order, and sets become unions. A configuration cannot set atomic fields, and removes
nothing. Owners of fields are not recorded.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.deadline import Deadline
from webhook.errors import PatchError
from webhook.patch import gotext
from webhook.patch.schema import ListShape, MapShape, Node, Shape, schema_of_kind, shape_of_node

Key: TypeAlias = tuple[Any, ...]
"""The identity of a list item: its key fields with values, or the value itself."""

_ABSENT: Final = object()


def apply_configuration(
    document: JSON,
    configuration: JSON,
    gvk: GroupVersionKind,
    *,
    crd: JSON = None,
    sent: JSON = None,
    deadline: Deadline | None = None,
) -> JSON:
    """Return the document after merging the configuration. Unchanged parts stay the same objects.

    Args:
        document: the current object. Fields that are also in `sent` may be unknown to the schema.
        configuration: the value of `Object{…}` as plain JSON.
        gvk: the kind of the document.
        crd: the CustomResourceDefinition of a custom kind, if it is known. The document must then fit its schema.
        sent: the document before the first change.
        deadline: charged for the values that are compared with the schema.

    Raises:
        PatchError: the configuration does not fit the kind, or sets an atomic field. The message is that of API servers
            from `error applying patch:` on, except for the form of a wrong value.
    """
    node = schema_of_kind(gvk, crd)
    until = deadline or Deadline()
    if problems := tuple(_SchemaValidation(until).find_problems(configuration, node, "")):
        raise PatchError(
            f"error applying patch: failed to convert patch object to typed object: {_join_problems(problems)}"
        )
    atomics = tuple(_paths_of_atomic_fields(configuration, node, ""))
    if atomics:
        raise PatchError(
            "error applying patch: invalid ApplyConfiguration: "
            f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        )
    if crd is not None and (
        problems := tuple(_SchemaValidation(until, of_document=True).find_problems(document, node, "", sent))
    ):
        raise PatchError(
            f"error applying patch: failed to convert original object to typed object: {_join_problems(problems)}"
        )
    try:
        return _merge_values(document, configuration, node, "")
    except _MergeError as error:
        raise PatchError(f"error applying patch: failed to merge patch: {error}") from None


class _MergeError(Exception):
    """Values of the document and the configuration cannot be merged."""


def _join_problems(problems: tuple[str, ...]) -> str:
    if len(problems) == 1:
        return problems[0]
    return "errors:" + "".join(f"\n  {problem}" for problem in problems)


# --- does the configuration fit the schema? ---


def _shape_fitting_value(shape: Shape, value: JSON) -> Shape:
    # returns the whole shape if the shape allows no value of this kind
    if isinstance(value, dict):
        return Shape(map=shape.map) if shape.map else shape
    if isinstance(value, list):
        return Shape(list=shape.list) if shape.list else shape
    if value is None or isinstance(value, gotext.NonJsonValue):
        return shape
    return Shape(scalar=shape.scalar) if shape.scalar else shape


class _SchemaValidation(Struct, frozen=True):
    """Finds values that do not fit the schema.

    With `of_document`, the value is the document, not the configuration. A document may have duplicate items, and
    unknown fields that the submitted object has, because API servers drop these fields later. Unknown fields of list
    items are always allowed, because items are not compared with the items of the submitted object.
    """

    deadline: Deadline
    of_document: bool = False

    def find_problems(self, value: JSON, node: Node, path: str, sent: JSON = None) -> Iterator[str]:
        """Yield the problems of a value in the API server's order."""
        if value is None:  # null of JSON; CEL's null is a NonJsonValue, which no field accepts
            return
        shape = _shape_fitting_value(shape_of_node(node), value)
        if shape.map:
            if not isinstance(value, dict):
                yield _text_with_path(path, f"expected map, got {gotext.plain_go_text(value)}")
            else:
                yield from self._problems_of_members(value, shape.map, path, sent)
        elif shape.scalar:
            if not _is_of_scalar_type(shape.scalar, value):
                word, show = _SCALAR_WORDS[shape.scalar]
                yield _text_with_path(path, f"{word}, got {show(value)}")
        elif not isinstance(value, list):
            yield _text_with_path(path, f"expected list, got {gotext.plain_go_text(value)}")
        else:
            assert shape.list is not None
            yield from self._problems_of_items(value, shape.list, path)

    def _problems_of_members(self, value: dict[str, JSON], shape: MapShape, path: str, sent: JSON) -> Iterator[str]:
        self.deadline.spend(1 + len(value))
        for name, inner in value.items():
            node = shape.fields.get(name, shape.other)
            before = sent.get(name, _ABSENT) if isinstance(sent, dict) else _ABSENT
            if node is None:
                if self.of_document and inner is before:
                    continue
                yield _text_with_path(f"{path}.{name}", "field not declared in schema")
                return  # structured-merge-diff checks no further fields
            yield from self.find_problems(inner, node, f"{path}.{name}", before)

    def _problems_of_items(self, value: list[JSON], shape: ListShape, path: str) -> Iterator[str]:
        self.deadline.spend(1 + len(value))
        seen: set[Key] = set()
        for index, item in enumerate(value):
            place = f"{path}[{index}]"
            if shape.is_associative:
                try:
                    key = _key_of_item(item, shape)
                except _MergeError as error:
                    yield _text_with_path(path, f"element {index}: {error}")
                    return
                place = f"{path}{_key_as_text(key)}"
                if key in seen and not self.of_document:
                    yield _text_with_path(path, f"duplicate entries for key {_key_as_text(key)}")
                seen.add(key)
            yield from self.find_problems(item, shape.element, place, item)


def _is_of_scalar_type(scalar: str, value: JSON) -> bool:
    if scalar == "numeric":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "string":
        return isinstance(value, str)
    if scalar == "boolean":
        return isinstance(value, bool)
    return isinstance(value, str | int | float)


_SCALAR_WORDS: Final = {
    "numeric": ("expected numeric (int or float)", gotext.go_type_name),
    "string": ("expected string", gotext.go_syntax_text),
    "boolean": ("expected boolean", gotext.plain_go_text),
    "untyped": ("expected any scalar", gotext.plain_go_text),
}


def _paths_of_atomic_fields(value: JSON, node: Node, path: str) -> Iterator[str]:
    # does not look into undeclared fields
    shape = shape_of_node(node)
    if isinstance(value, dict) and shape.map:
        if shape.map.is_atomic:
            yield path
        for name, inner in value.items():
            if name in shape.map.fields:
                yield from _paths_of_atomic_fields(inner, shape.map.fields[name], f"{path}.{name}")
    if isinstance(value, list) and shape.list:
        if not shape.list.is_associative:
            yield path
        for index, item in enumerate(value):
            yield from _paths_of_atomic_fields(item, shape.list.element, f"{path}[{index}]")


# --- merging ---


def _merge_values(old: JSON, new: JSON, node: Node, path: str) -> JSON:
    # `old` may be absent
    if old is _ABSENT:
        return new
    shape = shape_of_node(node)
    of_new = _shape_fitting_value(shape, new)
    if old is not None and new is not None and _shape_fitting_value(shape, old) != of_new:
        return new  # a new value of another allowed kind replaces the old value
    if of_new.map:
        return _merge_maps(_require_map(old, "lhs", path), _require_map(new, "rhs", path), of_new.map, path)
    if of_new.list:
        return _merge_lists(_require_list(old, "lhs", path), _require_list(new, "rhs", path), of_new.list, path)
    return new


def _require_map(value: JSON, side: str, path: str) -> dict[str, JSON] | None:
    if value is None or isinstance(value, dict):
        return value
    raise _MergeError(_text_with_path(path, f"{side}: expected map, got {gotext.plain_go_text(value)}"))


def _require_list(value: JSON, side: str, path: str) -> list[JSON] | None:
    if value is None or isinstance(value, list):
        return value
    raise _MergeError(_text_with_path(path, f"{side}: expected list, got {gotext.plain_go_text(value)}"))


def _merge_maps(old: dict[str, JSON] | None, new: dict[str, JSON] | None, shape: MapShape, path: str) -> JSON:
    if shape.is_atomic or not (old or new):  # both values are empty or null; empty and null stay different
        return new
    merged = dict(old or {})
    changed = old is None
    for name, value in (new or {}).items():
        before = merged.get(name, _ABSENT)
        merged[name] = _merge_values(before, value, shape.fields.get(name, shape.other), f"{path}.{name}")
        changed = changed or merged[name] is not before
    return merged if changed else old


def _merge_lists(old: list[JSON] | None, new: list[JSON] | None, shape: ListShape, path: str) -> JSON:
    if not shape.is_associative or not (old or new):
        return new
    if not new:
        return old
    old_items = old or []
    old_keys = [_key_of_item_at(item, shape, path, index) for index, item in enumerate(old_items)]
    new_keys = [_key_of_item_at(item, shape, path, index) for index, item in enumerate(new)]
    # an item that the document has twice is replaced
    times = Counter(old_keys)
    items = {key: item if times[key] == 1 else None for key, item in zip(old_keys, old_items, strict=True)}
    others = dict(zip(new_keys, new, strict=True))
    merged = []
    for index, key in _order_of_merged_list(old_keys, new_keys):
        if key is None:
            merged.append(old_items[index])
        else:
            place = f"{path}{_key_as_text(key)}"
            merged.append(_merge_values(items.get(key, _ABSENT), others[key], shape.element, place))
    return old if len(merged) == len(old_items) and all(map(_is_same_object, merged, old_items)) else merged


def _is_same_object(one: JSON, other: JSON) -> bool:
    return one is other


def _order_of_merged_list(old_keys: list[Key], new_keys: list[Key]) -> Iterator[tuple[int, Key | None]]:
    # (index, None) is an item that only the document has, and (-1, key) is an item of the configuration. The order is
    # that of visitListItems in merge.go: items that both have are in the configuration's order. An item that only the
    # document has stays before the next item that both have.
    in_old, in_new = set(old_keys), set(new_keys)
    shared = deque(key for key in new_keys if key in in_old)
    expected = shared.popleft() if shared else None
    done: set[Key] = set()
    left = right = 0
    while left < len(old_keys) or right < len(new_keys):
        if left < len(old_keys) and right < len(new_keys):
            key = old_keys[left]
            if key == new_keys[right]:
                done.add(key)
                yield -1, key
                left, right = left + 1, right + 1
                expected = shared.popleft() if shared else None
                continue
            if key in in_new and expected is not None and expected != key:
                left += 1  # another shared item comes before this item
                continue
        if left < len(old_keys):
            key = old_keys[left]
            if key not in in_new:
                yield left, None
                left += 1
                continue
            if key in done:
                left += 1
        if right < len(new_keys):
            key = new_keys[right]
            done.add(key)
            yield -1, key
            right += 1
            if expected == key:
                expected = shared.popleft() if shared else None


# --- keys of list items ---


def _key_of_item_at(item: JSON, shape: ListShape, path: str, index: int) -> Key:
    try:
        return _key_of_item(item, shape)
    except _MergeError as error:
        raise _MergeError(_text_with_path(path, f"element {index}: {error}")) from None


def _key_of_item(item: JSON, shape: ListShape) -> Key:
    # absent key fields have their defaults
    if not shape.keys:
        if isinstance(item, dict):
            raise _MergeError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise _MergeError("not supported: associative list with lists as elements")
        if item is None:
            raise _MergeError("associative list without keys has an element that's an explicit null")
        return ("", gotext.identity_of_item(item))
    if not isinstance(item, dict):
        kind = "a null element" if item is None else "non-map elements"
        raise _MergeError(f"associative list with keys may not have {kind}")
    known = {**(shape.defaults or {}), **item}
    key = tuple((name, gotext.identity_of_item(known[name])) for name in sorted(shape.keys) if name in known)
    if not key:
        names = " ".join(f'"{name}"' for name in shape.keys)
        raise _MergeError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return key


def _key_as_text(key: Key) -> str:
    if key[0] == "":
        return f"[={gotext.text_of_identity(key[1])}]"
    return f"[{','.join(f'{name}={gotext.text_of_identity(value)}' for name, value in key)}]"


def _text_with_path(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text
