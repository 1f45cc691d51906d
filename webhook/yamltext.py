"""YAML text: its values, the places of their paths, and values as YAML.

The only module that knows the YAML library. Values mean what kubectl takes them for (yamlscalar); of a key that stands
twice in a mapping the last counts, and it is told. Values are built from the parser's events without recursion, so that
no text can exhaust the stack; places are looked up only when asked for, from the node tree of the text. Knows no files.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from webhook import paths, yamlscalar
from webhook.attributes import JSON
from webhook.paths import MAX_DEPTH, FieldPath
from webhook.terminal import is_graphic

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

MAX_ALIASED = 100_000
"""Most values that aliases may add to one document; Kubernetes manifests with aliases add hundreds."""


class YamlError(Exception):
    """Text that is not YAML, or not the YAML that Kubernetes takes; line and column from 1, 0 where unknown."""

    def __init__(self, message: str, line: int = 0, column: int = 0, path: str = "") -> None:
        super().__init__(message)
        self.line, self.column, self.path = line, column, path


def dump(value: JSON) -> str:
    """The YAML of a value: keys in order, no aliases, and quoted whatever kubectl would not read as text.

    One that holds characters which a terminal obeys, or nobody sees, has escapes for all that is not ASCII.
    """
    text = _dumped(value, is_ascii=False)
    return text if is_graphic(text.replace("\n", "")) else _dumped(value, is_ascii=True)


def _dumped(value: JSON, *, is_ascii: bool) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=not is_ascii, width=120))


class _Dumper(_DUMPER):  # type: ignore[misc]  # the base is C or Python, whichever is there
    def ignore_aliases(self, data: JSON) -> bool:  # noqa: ARG002
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text.rstrip("\n") else None
    try:
        is_text = yamlscalar.resolve(text) is text
    except ValueError:
        is_text = False
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style if is_text else '"')


_Dumper.add_representer(str, _represent_text)


class Extent(NamedTuple):
    """Where a document of a text begins, with its directives, and ends, in characters, and the place of its value.

    Lines and columns count from 0.
    """

    start: int
    end: int
    line: int
    column: int
    place: tuple[int, int]


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
            alone = " " * extent.column + self.text[extent.start : extent.end]
            self.nodes[at] = yaml.compose(alone, Loader=_LOADER)
        return self.nodes[at]


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


@dataclass(slots=True)
class _Frame:
    """A mapping or list that is being read. `key` is the key whose value comes next; None before a key."""

    container: Any
    anchor: str | None
    size: int
    key: str | None = None
    is_merge: bool = False
    merged: list[JSON] = field(default_factory=list)


def values(places: Places, repeated: list[YamlError]) -> Iterator[tuple[int, JSON]]:
    """Every document of a text with its number in the stream, empty ones included.

    Args:
        places: the text; gets to know where its documents begin.
        repeated: gets what to say of keys that stand twice in one mapping; kubectl v1.36 takes the last one, too.

    Raises:
        YamlError: the text cannot be read.
    """
    number = -1
    try:
        for event in yaml.parse(places.text, Loader=_LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                number, begun, first, reader = number + 1, event, None, _Reader(repeated)
            elif isinstance(event, yaml.DocumentEndEvent):
                places.extents[number] = _extent(begun, first, event)
                yield number, reader.result
            elif not isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent):
                first = first or event
                reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise YamlError(f"not YAML: {error.problem or error.context}", line, column) from None
    except yaml.reader.ReaderError as error:
        before = places.text[: error.position]
        raise YamlError("not YAML: a character that text cannot hold", before.count("\n") + 1) from None


def _extent(begun: Any, first: Any, ended: Any) -> Extent:
    """Of a document whose start, first value and end these events are."""
    start, value = begun.start_mark, first.start_mark
    return Extent(start.index, ended.start_mark.index, start.line, start.column, (value.line, value.column))


class _Reader:
    """Builds one document from the parser's events."""

    def __init__(self, repeated: list[YamlError]) -> None:
        self.repeated = repeated
        self.frames: list[_Frame] = []
        self.anchors: dict[str, tuple[JSON, int] | None] = {}
        self.size = 0
        self.aliased = 0
        self.result: JSON = None

    def take(self, event: Any) -> None:
        """One event that belongs to the document."""
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close(event)
        elif isinstance(event, yaml.AliasEvent):
            self._put(self._alias(event), event)
        else:
            value = self._scalar(event)
            if event.anchor:
                self.anchors[event.anchor] = value, 1
            self._put(value, event)

    def _open(self, event: Any) -> None:
        frame = self.frames[-1] if self.frames else None
        if frame and isinstance(frame.container, dict) and frame.key is None:
            raise self._fail(event, "a mapping or list cannot be a key; expected text")
        if len(self.frames) >= MAX_DEPTH:
            self.frames.clear()  # so that the message does not print the path
            raise self._fail(event, f"nested more than {MAX_DEPTH} levels deep")
        if event.anchor:
            self.anchors[event.anchor] = None
        container: JSON = {} if isinstance(event, yaml.MappingStartEvent) else []
        self.frames.append(_Frame(container, event.anchor, self.size))

    def _close(self, event: Any) -> None:
        frame = self.frames.pop()
        for mapping in frame.merged:
            for key, value in mapping.items():
                frame.container.setdefault(key, value)
        if frame.anchor:
            self.anchors[frame.anchor] = frame.container, self.size - frame.size + 1
        self._put(frame.container, event)

    def _alias(self, event: Any) -> JSON:
        if event.anchor not in self.anchors:
            raise self._fail(event, f"unknown alias `*{event.anchor}`; expected an anchor `&{event.anchor}` before it")
        anchored = self.anchors[event.anchor]
        if anchored is None:
            raise self._fail(event, f"alias `*{event.anchor}` contains itself")
        value, size = anchored
        self.size += size
        self.aliased += size
        if self.aliased > MAX_ALIASED:
            raise self._fail(event, f"aliases add more than {MAX_ALIASED} values")
        return value

    def _put(self, value: JSON, event: Any) -> None:
        """A finished value: the document, an item, a key, or the value of a key."""
        self.size += 1
        if not self.frames:
            self.result = value
            return
        frame = self.frames[-1]
        if isinstance(frame.container, list):
            frame.container.append(value)
        elif frame.key is None:
            self._key(frame, value, event)
        else:
            if frame.is_merge:
                self._merge(frame, value, event)
            else:
                frame.container[frame.key] = value
            frame.key = None

    def _key(self, frame: _Frame, value: JSON, event: Any) -> None:
        try:
            key = yamlscalar.key(value)
        except ValueError as error:
            raise self._fail(event, str(error)) from None
        frame.is_merge = key == "<<" and isinstance(event, yaml.ScalarEvent) and not event.style
        if key in frame.container and not frame.is_merge:
            message = f"key `{key}` appears twice in one mapping, and kubectl takes the last; expected it once"
            self.repeated.append(self._fail(event, message))
        frame.key = key

    def _merge(self, frame: _Frame, value: JSON, event: Any) -> None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self._fail(event, "`<<` needs a mapping or a list of mappings")
        frame.merged.extend(sources)

    def _scalar(self, event: Any) -> JSON:
        """The value of a scalar by its tag, else by its style: quoted is text, plain is resolved."""
        tag = (event.tag or "").removeprefix("tag:yaml.org,2002:")
        try:
            if tag == "binary":
                return base64.b64decode(event.value).decode(errors="replace")
            if tag not in _RESOLVED and (tag or event.style):
                return event.value
            value = yamlscalar.resolve(event.value)
            if tag and not isinstance(value, _RESOLVED[tag]):
                raise self._fail(event, f"`{event.value}` is not what its tag `!!{tag}` says")
            return float(value) if tag == "float" else value
        except ValueError as error:
            raise self._fail(event, str(error)) from None

    def _fail(self, event: Any, message: str) -> YamlError:
        steps = [len(frame.container) if isinstance(frame.container, list) else frame.key for frame in self.frames]
        path = paths.render(tuple(step for step in steps if step is not None))
        return YamlError(message, event.start_mark.line + 1, event.start_mark.column + 1, path)


_RESOLVED: dict[str, Any] = {"bool": bool, "int": int, "float": (int, float), "null": type(None)}
