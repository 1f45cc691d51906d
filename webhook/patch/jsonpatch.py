"""JSON Patch as Kubernetes applies it.

Source of the rules: gopkg.in/evanphx/json-patch.v4 v4.13.0 patch.go, which k8s.io/apiserver v0.36.1 uses for webhooks
and for MutatingAdmissionPolicy. These points differ from RFC 6902:

- `replace` of an absent key adds the key.
- Negative indices count from the end.
- `copy` of an absent key gives null.
- `test` of an absent key against null passes.
- 1 and 1.0 differ.

Copied bytes are bounded as in API servers (JSONPatchMaxCopyBytes of k8s.io/apiserver pkg/server/config.go). The depth
of the result is bounded because code that walks objects recurses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import MAX_DEPTH
from webhook.deadline import CHARACTERS, Deadline
from webhook.errors import PatchError
from webhook.yamltext.jsontext import equal_as_json
from webhook.yamltext.unread import Unread

Operation: TypeAlias = Mapping[str, JSON]

_MOST_COPIED_BYTES: Final = 3 << 20
"""The maximum number of bytes of all copies of a patch, as compact JSON."""
_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_BAD_INDEX: Final = "Unable to access invalid index: {}: invalid index referenced"


class FailedTest(PatchError):
    """A `test` operation failed. A MutatingAdmissionPolicy then changes nothing, and the call of a webhook fails."""


def apply_operations(document: JSON, operations: Sequence[Operation], deadline: Deadline | None = None) -> JSON:
    """Return the document after all operations. The given document is not changed.

    Raises:
        FailedTest: a `test` operation failed.
        PatchError: an operation is invalid or does not apply; the message is that of the API server.
    """
    if not isinstance(operations, Sequence) or not all(isinstance(operation, Mapping) for operation in operations):
        raise PatchError("a JSON patch must be a list of operations, each an object with op and path")
    until = deadline or Deadline()
    patched = _PatchedDocument(document, until)
    for operation in until.items_with_clock_checks(operations):
        kind = _member_as_text(operation, "op")
        action = _ACTIONS.get(kind or "")
        if action is None:
            raise PatchError(f"Unexpected kind: {'unknown' if kind is None else kind}")
        action(patched, operation)
    return patched.root


class _PatchedDocument:
    """A document during a patch. Each object or list that changes is copied once."""

    def __init__(self, root: JSON, deadline: Deadline) -> None:
        self.root = root
        self.deadline = deadline
        self.copied_bytes = 0
        self.own: dict[int, JSON] = {}  # copies, kept so that their ids stay in use

    def find_container_and_last_step(self, path: str, missing: str, *, for_change: bool) -> tuple[JSON, str]:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
        if not steps or not isinstance(self.root, dict | list):
            raise PatchError(f"{missing}: missing value")
        if for_change:
            self.root = self.copy_unless_copied(self.root)
        container = self.root
        for step in steps[:-1]:
            try:
                key = _key_or_index(container, step)
                inner = container[key]
            except (PatchError, KeyError):
                inner = None
            if not isinstance(inner, dict | list):
                raise PatchError(f"{missing}: missing value")
            if for_change:
                inner = container[key] = self.copy_unless_copied(inner)
            container = inner
        return container, steps[-1]

    def copy_unless_copied(self, container: JSON) -> JSON:
        """Return the object or list if it is already a copy, otherwise a copy."""
        if id(container) not in self.own:
            container = container.copy()
            self.own[id(container)] = container
        return container

    def copy_within_limit(self, value: JSON) -> JSON:
        """Return a deep copy.


        Raises:
            PatchError: all copies together exceed the limit of API servers.
        """
        copy = self._copy_and_count(value)
        if self.copied_bytes > _MOST_COPIED_BYTES:
            raise PatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self.copied_bytes}, "
                f"exceeding the limit {_MOST_COPIED_BYTES}"
            )
        return copy

    def _copy_and_count(self, value: JSON) -> JSON:
        if isinstance(value, dict):
            self._count(2 + max(0, len(value) - 1))
            copy: JSON = {}
            for key, item in value.items():
                self._count(_size_of_scalar(key) + 1)
                copy[key] = self._copy_and_count(item)
            return copy
        if isinstance(value, list):
            self._count(2 + max(0, len(value) - 1))
            return [self._copy_and_count(item) for item in value]
        self._count(_size_of_scalar(value))
        return value

    def _count(self, size: int) -> None:
        self.copied_bytes += size
        self.deadline.spend(1 + size // CHARACTERS)

    def require_readable_depth(self, value: JSON, path: str) -> None:
        """Refuse a value that is too deep at its new path.

        Raises:
            PatchError: the value and its path have too many levels.
        """
        depth, level = path.count("/"), [value]
        while level:
            level = [each for each in level if isinstance(each, dict | list)]
            if level and depth >= MAX_DEPTH:
                raise PatchError(f"the result is nested deeper than {MAX_DEPTH} levels, which claimgate does not read")
            depth += 1
            inner: list[JSON] = []
            for each in level:
                self.deadline.spend(1 + len(each))
                inner += each.values() if isinstance(each, dict) else each
            level = inner


def _size_of_scalar(value: JSON) -> int:
    # in Go's JSON, which escapes five characters for HTML
    if isinstance(value, Unread):
        return len(value.text)
    text = json.dumps(value, ensure_ascii=False)
    escaped = sum(map(text.count, "<>&")) * 5 + sum(map(text.count, "\u2028\u2029")) * 3
    return len(text.encode(errors="replace")) + escaped


def _key_or_index(container: JSON, step: str) -> Any:
    # raises PatchError for an index outside of the list
    if isinstance(container, dict):
        return step
    index = _parse_index(step)
    if not -len(container) <= index < len(container):
        raise PatchError(_BAD_INDEX.format(index))
    return index


def _parse_index(step: str) -> int:
    if not _INDEX.fullmatch(step):
        raise PatchError(f"strconv.Atoi: parsing {json.dumps(step, ensure_ascii=False)}: invalid syntax")
    return int(step)


def _insert_value(container: JSON, step: str, value: JSON, where: str) -> None:
    try:
        if isinstance(container, dict):
            container[step] = value
        elif step == "-":
            container.append(value)
        else:
            container.insert(_insertion_index(container, step), value)
    except PatchError as error:
        raise PatchError(f"{where}: {error}") from None


def _insertion_index(container: list[JSON], step: str) -> int:
    # the index is at most one past the end; negative indexes count from one past the end
    try:
        index = _parse_index(step)
    except PatchError as error:
        raise PatchError(f"value was not a proper array index: '{step}': {error}") from None
    size = len(container) + 1
    if not -size <= index < size:
        raise PatchError(_BAD_INDEX.format(index))
    return index if index >= 0 else index + size


def _delete_value(container: JSON, step: str, where: str) -> None:
    if isinstance(container, dict) and step not in container:
        raise PatchError(f"{where}: Unable to remove nonexistent key: {step}: missing value")
    del container[_key_for_reading(container, step, where)]


def _key_for_reading(container: JSON, step: str, where: str) -> Any:
    try:
        return _key_or_index(container, step)
    except PatchError as error:
        raise PatchError(f"{where}: {error}") from None


def _value_at_step(container: JSON, step: str, where: str) -> JSON:
    key = _key_for_reading(container, step, where)
    return container.get(key) if isinstance(container, dict) else container[key]


def _member_as_text(operation: Operation, member: str) -> str | None:
    value = operation.get(member)
    return value if isinstance(value, str) else None


def _path_member(operation: Operation, kind: str, member: str = "path") -> str:
    path = _member_as_text(operation, member)
    if path is None:
        detail = {"from": "operation, missing from field: ", "path": "operation missing path field: "}[member]
        detail = "" if member == "path" and kind in {"add", "remove", "copy"} else detail
        raise PatchError(f"{kind} operation failed to decode {member}: {detail}missing value")
    return path


def _apply_add(patched: _PatchedDocument, operation: Operation) -> None:
    path = _path_member(operation, "add")
    missing = f'add operation does not apply: doc is missing path: "{path}"'
    container, step = patched.find_container_and_last_step(path, missing, for_change=True)
    patched.require_readable_depth(operation.get("value"), path)
    _insert_value(container, step, operation.get("value"), f"error in add for path: '{path}'")


def _apply_remove(patched: _PatchedDocument, operation: Operation) -> None:
    path = _path_member(operation, "remove")
    missing = f'remove operation does not apply: doc is missing path: "{path}"'
    container, step = patched.find_container_and_last_step(path, missing, for_change=True)
    _delete_value(container, step, f"error in remove for path: '{path}'")


def _apply_replace(patched: _PatchedDocument, operation: Operation) -> None:
    path, value = _path_member(operation, "replace"), operation.get("value")
    if path == "":
        if not isinstance(value, dict | list):
            raise PatchError("replace operation value must be object or array")
        patched.require_readable_depth(value, path)
        patched.root = value
        return
    missing = f"replace operation does not apply: doc is missing path: {path}"
    container, step = patched.find_container_and_last_step(path, missing, for_change=True)
    try:
        key = _key_or_index(container, step)
    except PatchError:
        message = f"replace operation does not apply: doc is missing key: {path}: missing value"
        raise PatchError(message) from None
    patched.require_readable_depth(value, path)
    container[key] = value


def _apply_move(patched: _PatchedDocument, operation: Operation) -> None:
    source = _path_member(operation, "move", "from")
    missing = f"move operation does not apply: doc is missing from path: {source}"
    container, step = patched.find_container_and_last_step(source, missing, for_change=True)
    value = _value_at_step(container, step, f"error in move for path: '{step}'")
    _delete_value(container, step, f"error in move for path: '{step}'")
    path = _path_member(operation, "move")
    missing = f"move operation does not apply: doc is missing destination path: {path}"
    container, step = patched.find_container_and_last_step(path, missing, for_change=True)
    patched.require_readable_depth(value, path)
    _insert_value(container, step, value, f"error in move for path: '{path}'")


def _apply_copy(patched: _PatchedDocument, operation: Operation) -> None:
    source = _path_member(operation, "copy", "from")
    missing = f"copy operation does not apply: doc is missing from path: {source}"
    container, step = patched.find_container_and_last_step(source, missing, for_change=False)
    value = _value_at_step(container, step, f"error in copy for from: '{source}'")
    path = _path_member(operation, "copy")
    missing = f"copy operation does not apply: doc is missing destination path: {path}"
    container, step = patched.find_container_and_last_step(path, missing, for_change=True)
    value = patched.copy_within_limit(value)
    patched.require_readable_depth(value, path)
    _insert_value(container, step, value, "error while adding value during copy")


def _apply_test(patched: _PatchedDocument, operation: Operation) -> None:
    path, expected = _path_member(operation, "test"), operation.get("value")
    if path == "":
        current = patched.root
    else:
        missing = f"test operation does not apply: is missing path: {path}"
        container, step = patched.find_container_and_last_step(path, missing, for_change=False)
        current = _value_at_step(container, step, f"error in test for path: '{path}'")
    if not equal_as_json(current, expected):
        raise FailedTest(f"testing value {path} failed: test failed")


_ACTIONS: Final = {
    "add": _apply_add,
    "remove": _apply_remove,
    "replace": _apply_replace,
    "move": _apply_move,
    "copy": _apply_copy,
    "test": _apply_test,
}
