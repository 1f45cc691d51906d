"""Where the paths of YAML documents stand, looked up in the nodes of a document when somebody asks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from webhook import yamlscalar
from webhook.paths import FieldPath

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Extent(NamedTuple):
    """Where a document of a text begins, with its directives, and ends, in characters, and the place of its value.

    Lines and columns count from 0.
    """

    start: int
    end: int
    line: int
    column: int
    place: tuple[int, int]

    def moved(self, characters: int, lines: int) -> Extent:
        """The same in a text that has so much more before it."""
        line, column = self.place
        return Extent(
            self.start + characters, self.end + characters, self.line + lines, self.column, (line + lines, column)
        )


@dataclass(slots=True)
class Places:
    """Where the paths of a text's documents stand.

    `extents` are those of its documents, by their numbers; `nodes` are made of the documents that somebody asks about:
    beside a Deployment often stand definitions of some MB, whose nodes would take seconds and gigabytes.
    """

    text: str
    extents: dict[int, Extent] = field(default_factory=dict, repr=False)
    nodes: dict[int, Any] = field(default_factory=dict, repr=False)

    def position(self, at: int, path: FieldPath = ()) -> tuple[int, int]:
        """Line and column, from 1, of a path of the document with this number, or of its nearest ancestor."""
        extent = self.extents[at]
        line, column = extent.place
        node = self._node(at) if path else None
        for step in path:
            child = _child(node, step)
            if child is None:
                break
            mark, node = child
            line, column = extent.line + mark.line, mark.column
        return line + 1, column + 1

    def _node(self, at: int) -> Any:
        if at not in self.nodes:
            extent = self.extents[at]
            self.nodes[at] = _composed(" " * extent.column + self.text[extent.start : extent.end])
        return self.nodes[at]


def _composed(document: str) -> Any:
    try:
        return yaml.compose(document, Loader=LOADER)
    except yaml.composer.ComposerError:
        with suppress(yaml.YAMLError):  # written in Python, it refuses tabs that libyaml takes: then no path is found
            return yaml.compose(document, Loader=_Repeating)
        return None


class _Repeating(yaml.SafeLoader):
    """Composes texts in which an anchor stands twice, which PyYAML refuses: in YAML an alias means the last before."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if not self.check_event(yaml.AliasEvent):
            self.anchors.pop(self.peek_event().anchor, None)  # type: ignore[no-untyped-call]  # the stubs lack it
        return super().compose_node(parent, index)


def _child(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """The mark and the node of one step below a node; a key is marked where it stands, an item where it begins."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    if not isinstance(node, yaml.MappingNode) or isinstance(step, int):
        return None
    own = merged = None
    for key, value in node.value:
        if _is_merge(key):
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            merged = merged or next(filter(None, (_child(source, step) for source in sources)), None)
        elif (key.value if key.style else yamlscalar.key(yamlscalar.resolve(key.value))) == step:
            own = key.start_mark, value  # the last one counts
    return own or merged


def _is_merge(scalar: Any) -> bool:
    return scalar.value == "<<" and not scalar.style
