"""Field paths: the printed form, the JSON Pointer of patches (RFC 6901), and the value at a path.

Paths are printed as in k8s.io/apimachinery pkg/util/validation/field/path.go, with one difference: a key that is not a
word has quotes, as in `limits["nvidia.com/gpu"]`. With the quotes, `parse_path` can read every printed path.
"""

from __future__ import annotations

import json
import re
from typing import Final, TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.text.caches import cache_for_short_texts

FieldPath: TypeAlias = tuple[str | int, ...]
"""Keys and list indices from the root: ("spec", "containers", 0)."""

MAX_DEPTH: Final = 200
"""The largest number of levels that an object may have. A walk through an object nests at most three Python calls for
each level, so 200 levels are below the interpreter's limit of 1,000 nested calls. A CustomResourceDefinition with a pod
template has about 60 levels."""

_WORD = r"[A-Za-z_$][A-Za-z0-9_$-]*"
_PLAIN = re.compile(_WORD)
_STEP = re.compile(
    rf'\.?(?P<word>{_WORD})|\[(?:(?P<index>0|[1-9][0-9]*)|(?P<quoted>"[^"\\]*(?:\\.[^"\\]*)*")|(?P<raw>[^\]"]+))\]'
)
_AFTER = re.compile(r":(?=\s|$)|\s|$")
_ROOTS = frozenset(("apiVersion", "kind", "metadata", "spec", "status", "data", "stringData", "binaryData", "webhooks"))
"""The first steps of paths that messages begin with. `spec: …` begins with a path, and `error: …` does not."""


def path_as_text(path: FieldPath) -> str:
    """Write a path for users: `spec.containers[0].resources.limits["nvidia.com/gpu"]`; the root is ""."""
    return "".join([f"[{step}]" if isinstance(step, int) else _render_key(step) for step in path]).removeprefix(".")


@cache_for_short_texts(1 << 20)
def _render_key(key: str) -> str:
    return f".{key}" if _PLAIN.fullmatch(key) else f"[{json.dumps(key, ensure_ascii=False)}]"


def parse_path(text: str) -> FieldPath:
    """Parse a printed path; keys in brackets may be unquoted, as Kubernetes prints them (`limits[a.b/c]`).

    Raises:
        ValueError: the text is not a field path.
    """
    path, end = _longest_path_and_end(text)
    if len(path) > MAX_DEPTH:
        raise ValueError(f"a field path has at most {MAX_DEPTH} steps")
    if end != len(text):
        raise ValueError(f'`{text}` is not a field path: expected `.name`, `[0]` or `["key"]` at character {end + 1}')
    return path


def _longest_path_and_end(text: str) -> tuple[FieldPath, int]:
    # return at most MAX_DEPTH + 1 steps
    path: list[str | int] = []
    position = 0
    while len(path) <= MAX_DEPTH and (match := _STEP.match(text, position)):
        dotted = match[0].startswith(".")
        if match["word"] is not None and dotted != bool(path):
            break
        path.append(_step_of_match(match))
        position = match.end()
    return tuple(path), position


def _step_of_match(match: re.Match[str]) -> str | int:
    if match["index"] is not None:
        return int(match["index"])
    if match["quoted"] is not None:
        return _unquoted_key(match["quoted"])
    return match["word"] or match["raw"]


def _unquoted_key(quoted: str) -> str:
    try:
        return str(json.loads(quoted, strict=False))
    except json.JSONDecodeError:
        return quoted[1:-1]


def split_off_leading_path(text: str) -> tuple[FieldPath, str]:
    """Return the field path at the beginning of a message, and the rest of the message with the separator.

    `spec.x[0].y: text` gives (("spec", "x", 0, "y"), ": text"), `spec.x text` gives (("spec", "x"), " text"). Without a
    leading path, the result is ((), text). `nvidia.com is …` has no path: a path without an index must start with a
    known field such as `spec`.
    """
    path, end = _longest_path_and_end(text)
    separator = _AFTER.match(text, end)
    if not path or separator is None or not _is_rooted(path, separator[0] == ":"):
        return (), text
    return path, text[end:]


def _is_rooted(path: FieldPath, colon: bool) -> bool:
    if any(isinstance(step, int) for step in path[1:]):
        return isinstance(path[0], str)
    return path[0] in _ROOTS and (colon or len(path) > 1)


def json_pointer(path: FieldPath) -> str:
    """Write a path as JSON Pointer: `/spec/containers/0`; the root is ""."""
    return "".join(f"/{_escaped_step(step)}" if isinstance(step, str) else f"/{step}" for step in path)


def path_of_json_pointer(pointer: str, root: JSON) -> FieldPath:
    """Return the path of a JSON Pointer in `root`. A step of digits is an index if `root` has a list there, and
    otherwise a key.
    """
    path: list[str | int] = []
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        path.append(int(key) if isinstance(root, list) else key)
        root = get(root, (path[-1],))
    return tuple(path)


def _escaped_step(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key


def get(value: JSON, path: FieldPath, default: JSON = None) -> JSON:
    """Return the value at a path. Return the default if a step is absent, null, or a key for a list."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return default
        if value is None:
            return default
    return default if value is None else value


_FURTHER_SPEC: Final = re.compile(r"(; |, |likewise )spec(?=[.])")


def replace_spec_prefixes(text: str, spec: str) -> str:
    """Replace the first step `spec` of paths in the middle of a text, as in `…; spec.x: …, spec.y`, by another path."""
    return _FURTHER_SPEC.sub(lambda match: match[1] + spec, text) if "spec." in text else text
