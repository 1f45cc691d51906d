"""Where values stand that nobody may read in a report: those of Secrets and of environment variables.

Values are found in the nodes of the text, not in what was read of it: of a key that stands twice both are found, and
what an anchor holds wherever it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import yaml

from webhook.confidential import OF_SECRETS, VARIABLES, WHOLE

_Inside: TypeAlias = Literal["", "secret", "variable"]
_OWN: Final = {"secret": OF_SECRETS, "variable": frozenset(("value",))}


class Span(NamedTuple):
    """Where a value begins and ends; lines and columns count from 0, and the last column is the first after it."""

    line: int
    column: int
    last_line: int
    last_column: int


def confidential(root: Any) -> list[Span]:
    """The places of such values below a node, in the order of the text."""
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
            for value, state in _values(node, inside):
                if state is None:
                    hidden.update(_hidden(value))
                else:
                    nodes.append((value, state))
    return list(_apart(sorted(hidden)))


def _apart(spans: list[Span]) -> Iterator[Span]:
    """The same without those that lie in others, as what an anchor holds may: nodes never overlap otherwise."""
    end = (-1, -1)
    for span in spans:
        if span[2:] > end:
            yield span
            end = span[2:]


def _values(node: Any, inside: _Inside) -> Iterator[tuple[Any, _Inside | None]]:
    """The values of a mapping, each with what it is inside of; None where nobody may read it."""
    if any(key.value == "<<" or (key.value == "kind" and value.value == "Secret") for key, value in node.value):
        inside = inside or "secret"  # what is merged into a mapping may say that it is one
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


def _hidden(value: Any) -> Iterator[Span]:
    """The places of a value, or of those of a mapping, whose names may be read."""
    if isinstance(value, yaml.MappingNode):
        yield from (_span(inner) for _, inner in value.value)
    else:
        yield _span(value)


def _span(node: Any) -> Span:
    start, end = node.start_mark, node.end_mark
    return Span(start.line, start.column, end.line, end.column)
