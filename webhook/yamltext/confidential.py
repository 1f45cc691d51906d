"""Hides the values of Secrets and of environment variables, which no report may show.

In an object, HIDDEN replaces each value. For a YAML text, this module returns the places of the values.
A repeated key has several places, and so does an anchor that is used several times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import yaml

from webhook.apimachinery.attributes import JSON

HIDDEN: Final = "***"
"""The text in place of a confidential value."""
VARIABLES: Final = frozenset(("env", "envVars", "env_vars", "environment"))
"""Fields with environment variables: a list of `name` and `value`, or a map."""
WHOLE: Final = frozenset(("runtimeEnvYAML", "kubectl.kubernetes.io/last-applied-configuration"))
"""Fields with a text that contains confidential values: the environment of a RayJob, and the last object that kubectl
applied."""
OF_SECRETS: Final = frozenset(("data", "stringData"))
_Inside: TypeAlias = Literal["", "secret", "variable"]
_OWN: Final = {"secret": OF_SECRETS, "variable": frozenset(("value",))}


class Span(NamedTuple):
    """The place of a value. Lines and columns count from 0. `last_column` is the column after the value."""

    line: int
    column: int
    last_line: int
    last_column: int


def confidential_spans(root: Any) -> list[Span]:
    """Return the places of confidential values below a node, in the order of the text."""
    hidden: set[Span] = set()
    seen: set[tuple[int, str]] = set()
    nodes: list[tuple[Any, _Inside]] = [(root, "")]
    while nodes:
        node, inside = nodes.pop()
        if (id(node), inside) in seen:
            continue
        seen.add((id(node), inside))
        if isinstance(node, yaml.SequenceNode):
            nodes += ((item, inside) for item in node.value)
        elif isinstance(node, yaml.MappingNode):
            for value, state in _values_with_state(node, inside):
                if state is None:
                    hidden.update(_spans_of_confidential_value(value))
                else:
                    nodes.append((value, state))
    return list(_without_nested_spans(sorted(hidden)))


def _without_nested_spans(spans: list[Span]) -> Iterator[Span]:
    """Leave out spans inside other spans. Anchors cause such spans."""
    end = (-1, -1)
    for span in spans:
        if span[2:] > end:
            yield span
            end = span[2:]


def _values_with_state(node: Any, inside: _Inside) -> Iterator[tuple[Any, _Inside | None]]:
    """Yield each value of a mapping, and what the value belongs to: a Secret, a variable, or "" for anything else.

    None means that the value is confidential.
    """
    if any(key.value == "<<" or (key.value == "kind" and value.value == "Secret") for key, value in node.value):
        inside = inside or "secret"  # `<<` may merge `kind: Secret`
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else ""
        if name == "<<":
            yield value, inside
        elif name in VARIABLES:
            yield value, "variable" if isinstance(value, yaml.SequenceNode) else None
        elif name in WHOLE or name in _OWN.get(inside, ()):
            yield value, None
        else:
            yield value, ""


def _spans_of_confidential_value(value: Any) -> Iterator[Span]:
    """Yield the place of a confidential value. Of a mapping, yield only the places of the values, not of the keys."""
    if isinstance(value, yaml.MappingNode):
        yield from (_span(node) for _, node in value.value)
    else:
        yield _span(value)


def _span(node: Any) -> Span:
    start, end = node.start_mark, node.end_mark
    return Span(start.line, start.column, end.line, end.column)


def without_confidential(value: JSON) -> JSON:
    """Return the object with HIDDEN in place of confidential values."""
    if isinstance(value, list):
        return [without_confidential(each) for each in value]
    if not isinstance(value, dict):
        return value
    is_secret = value.get("kind") == "Secret"
    return {key: _hide_field(key, item, is_secret=is_secret) for key, item in value.items()}


def _hide_field(key: str, value: JSON, *, is_secret: bool) -> JSON:
    if key in VARIABLES and isinstance(value, list):
        return [_hide_variable(each) for each in value]
    if key in VARIABLES or key in WHOLE or (is_secret and key in OF_SECRETS):
        return _hide_values(value)
    return without_confidential(value)


def _hide_variable(value: JSON) -> JSON:
    """Return an environment variable with a hidden `value`. A `valueFrom` is kept."""
    if not isinstance(value, dict):
        return value
    return {key: HIDDEN if key == "value" else without_confidential(item) for key, item in value.items()}


def _hide_values(value: JSON) -> JSON:
    """Return a map with its values hidden. For another value, return HIDDEN, but null for null."""
    return dict.fromkeys(value, HIDDEN) if isinstance(value, dict) else value if value is None else HIDDEN
