"""Builds the values of any YAML text from the events of the parser. The code has no recursion, so no text can exhaust
the stack.

Values are read as kubectl v1.36 reads them (scalars.py). The last of repeated keys counts. A repeated key is reported
if a value is lost, or if kustomize refuses the file because of the key. The keys of a `<<` override the same keys above
the `<<`, unlike in YAML 1.1 and kustomize. Such keys are reported too.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml
from msgspec import Struct, field

from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import MAX_DEPTH
from webhook.yamltext import scalars
from webhook.yamltext.jsontext import equal_as_json, keeps_value
from webhook.yamltext.places import LOADER, Extent, Places

MAX_ALIASED = 100_000
"""The most values that aliases may add to one document. Kubernetes manifests with aliases add hundreds."""
_LONGEST_PATH: Final = 1_000
_LONGEST_KEY: Final = 300
_EXPECTED: Final = "; expected it once"
_OF_EVERY_OBJECT: Final = frozenset(("apiVersion", "kind"))
"""The keys of every object. A document that has both keys twice is two objects without a `---` between them."""
NO_SEPARATOR: Final = "a line `---` is missing above, so several objects are one document"
"""The beginning of a message about a document with several objects."""
_METADATA: Final = re.compile(r"(?:items\[[0-9]{1,9}\]\.)?metadata(\.annotations)?")
"""Matches the paths of the metadata of an object and of its annotations. kustomize writes its own annotations into the
metadata before it looks for repeated keys. So it joins the annotations of a metadata that has them twice, and uses the
last value of an annotation (kubectl v1.32 and kustomize v5.5).
"""
_VALUES: Final = (yaml.NodeEvent, yaml.CollectionEndEvent)
"""The classes of events about values."""


class YamlError(Exception):
    """A text is not YAML, or Kubernetes does not accept the text. Line and column count from 1; 0 means unknown."""

    def __init__(self, message: str, line: int = 0, column: int = 0, path: str = "") -> None:
        super().__init__(message)
        self.line, self.column, self.path = line, column, path

    def with_lines_above(self, lines: int) -> YamlError:
        """Return the same error for a text with this number of lines above."""
        return YamlError(str(self), self.line and self.line + lines, self.column, self.path)


class _Frame(Struct):
    """A mapping or list that is being read.

    Attributes:
        size: the number of values of the document before this mapping or list.
        key: the key of the next value; None if a key comes next, and in a list.
        merge: the event of the current key if the key is a `<<`.
        repeated: the event of the current key if the mapping already has the key.
        repeats: the keys that occur more than once.
        merged: the keys with a value from a `<<`.
        overridden: the keys to which a `<<` gave another value, with the event of the `<<`.
    """

    container: Any
    anchor: str | None
    size: int
    key: str | None = None
    merge: Any = None
    merged: set[str] = field(default_factory=set)
    repeated: Any = None
    repeats: dict[str, _Repeat] = field(default_factory=dict)
    overridden: dict[str, Any] = field(default_factory=dict)


class _Repeat(Struct):
    """A key that occurs more than once in a mapping: how often, whether a value is lost, and its last event."""

    count: int = 1
    loses: bool = False
    event: Any = None


def parse_documents(places: Places, repeated: list[YamlError]) -> Iterator[tuple[int, JSON]]:
    """Yield every document of a text with its number in the stream. Empty documents are included.

    Args:
        places: contains the text, and gets the extents of the documents.
        repeated: gets an error for each repeated key, if a value is lost or kustomize refuses the file.

    Raises:
        YamlError: the text cannot be read.
    """
    number = -1
    try:
        for event in yaml.parse(places.text, Loader=LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                number, document_start, first = number + 1, event, None
                reader = _Reader(places, repeated)
            elif isinstance(event, yaml.DocumentEndEvent):
                places.extents[number] = _extent(document_start, first, event)
                yield number, reader.result
            elif isinstance(event, _VALUES):
                first = first or event
                reader.process_event(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise YamlError(f"not YAML: {error.problem or error.context}", line, column) from None
    except yaml.reader.ReaderError as error:
        before = places.text[: error.position]
        raise YamlError("not YAML: it has a character that YAML does not allow", before.count("\n") + 1) from None


def _extent(document_start: Any, first: Any, document_end: Any) -> Extent:
    """Return the extent of a document, from the events of its beginning, its first value and its end."""
    start, value = document_start.start_mark, first.start_mark
    return Extent(start.index, document_end.start_mark.index, start.line, start.column, (value.line, value.column))


class _Reader:
    """Builds one document from the parser's events."""

    def __init__(self, places: Places, repeated: list[YamlError]) -> None:
        self.repeated = repeated
        self.words_are_text = places.words_are_text
        self.refuses_repeats = places.refuses_repeats
        self.frames: list[_Frame] = []
        self.anchors: dict[str, tuple[JSON, int] | None] = {}
        self.size = 0
        self.aliased = 0
        self.result: JSON = None

    def process_event(self, event: Any) -> None:
        """Process one event of the document."""
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
            if event.anchor:
                self.anchors[event.anchor] = value, 1
            self._put(value, event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close(event)
        else:
            self._put(self._alias(event), event)

    def _open(self, event: Any) -> None:
        frame = self.frames[-1] if self.frames else None
        if frame and isinstance(frame.container, dict) and frame.key is None:
            raise self._fail(event, "a mapping or list cannot be a key; expected text")
        if len(self.frames) >= MAX_DEPTH:
            self.frames.clear()  # so that the message has no long path
            raise self._fail(event, f"nested more than {MAX_DEPTH} levels deep")
        if event.anchor:
            self.anchors[event.anchor] = None
        container: JSON = {} if isinstance(event, yaml.MappingStartEvent) else []
        self.frames.append(_Frame(container, event.anchor, self.size))

    def _close(self, event: Any) -> None:
        frame = self.frames.pop()
        if frame.repeats or frame.overridden:
            self._note_repeated_keys(frame)
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
        """Put a complete value where it belongs: the value is the document, an item, a key, or the value of a key."""
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
            if frame.merge:
                self._merge(frame, value, event)
            else:
                self._set(frame, frame.key, value)
            frame.key = None

    def _set(self, frame: _Frame, key: str, value: JSON) -> None:
        """Set the value of a key. If the mapping already has the key, note whether a part of the old value is lost."""
        if frame.repeated is not None:
            repeat = frame.repeats.setdefault(key, _Repeat())
            repeat.count += 1
            repeat.loses = repeat.loses or not keeps_value(value, frame.container[key], key)
            repeat.event, frame.repeated = frame.repeated, None
        frame.container[key] = value
        frame.merged.discard(key)

    def _note_repeated_keys(self, frame: _Frame) -> None:
        """Report the repeated keys of a mapping that just ended. A long path is left out of the errors."""
        is_long = sum(len(each.key or "") for each in self.frames) > _LONGEST_PATH
        path = "" if is_long else self._path()
        by_kustomize = _METADATA.fullmatch(path) if self.refuses_repeats else None
        refuses = self.refuses_repeats and not (by_kustomize and by_kustomize[1])
        reader = "kustomize" if self.refuses_repeats else "kubectl"
        result = "kustomize refuses the file" if refuses else f"{reader} uses the last value"
        noted = {key: repeat for key, repeat in frame.repeats.items() if repeat.loses or refuses}
        if by_kustomize and refuses:
            noted.pop("annotations", None)  # none is lost, because kustomize joins them
        if noted and not self.frames and frame.repeats.keys() >= _OF_EVERY_OBJECT:
            of_each_key = "" if self.refuses_repeats else " of each key"
            notes = [
                _error_at(frame.repeats[key].event, f"{NO_SEPARATOR}, and {result}{of_each_key}", path)
                for key in _OF_EVERY_OBJECT
            ]
            self.repeated.append(min(notes, key=lambda note: (note.line, note.column)))
            noted = {}
        for key, repeat in noted.items():
            often = "twice" if repeat.count == 2 else f"{repeat.count} times"
            message = f"key `{_shown(key)}` appears {often} in one mapping, and {result}{_EXPECTED}"
            self.repeated.append(_error_at(repeat.event, message, path))
        for key, event in frame.overridden.items():
            message = (
                f"key `{_shown(key)}` comes before a `<<` that also sets it, and kubectl uses the value of the `<<`"
                f"{_EXPECTED}"
            )
            self.repeated.append(_error_at(event, message, path))

    def _key(self, frame: _Frame, value: JSON, event: Any) -> None:
        try:
            key = scalars.key(value)
        except ValueError as error:
            raise self._fail(event, str(error)) from None
        frame.merge = event if key == "<<" and _is_merge_key(event) else None
        if key in frame.container and not frame.merge and key not in frame.merged:
            frame.repeated = event
        frame.key = key

    def _merge(self, frame: _Frame, value: JSON, event: Any) -> None:
        """Set the keys of a `<<`, including keys that the mapping already has. If several mappings of the `<<` have a
        key, the first of these mappings counts.
        """
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self._fail(event, "`<<` needs a mapping or a list of mappings")
        merged: dict[str, JSON] = {}
        for source in sources:
            for key, item in source.items():
                merged.setdefault(key, item)
        for key, item in merged.items():
            if key in frame.container and not equal_as_json(frame.container[key], item):
                frame.overridden[key] = frame.merge
        frame.container |= merged
        frame.merged |= merged.keys()

    def _scalar(self, event: Any) -> JSON:
        """Return the value of a scalar. The tag gives the type. A scalar without a tag is a text if it has quotes."""
        if event.style and not event.tag:
            return event.value
        tag = (event.tag or "").removeprefix("tag:yaml.org,2002:")
        try:
            if tag == "binary":
                return self._text_of_base64(event)
            if tag not in _RESOLVED and (tag or event.style):
                return event.value
            value = scalars.resolve(event.value)
            if self.words_are_text and not tag and scalars.is_word_of_yaml_1_1(event.value):
                return event.value
            if tag and not isinstance(value, _RESOLVED[tag]):
                raise self._fail(event, f"`{event.value}` is not what its tag `!!{tag}` says")
            return float(value) if tag == "float" else value
        except ValueError as error:
            raise self._fail(event, str(error)) from None

    def _text_of_base64(self, event: Any) -> str:
        """Return the text of a binary value. kubectl accepts only line breaks between the letters of base64."""
        try:
            data = base64.b64decode(event.value.replace("\n", ""), validate=True)
        except ValueError:
            raise self._fail(event, "the value is not base64, which its tag `!!binary` requires") from None
        return data.decode(errors="replace")

    def _fail(self, event: Any, message: str) -> YamlError:
        return _error_at(event, message, self._path())

    def _path(self) -> str:
        steps = [len(frame.container) if isinstance(frame.container, list) else frame.key for frame in self.frames]
        return paths.path_as_text(tuple(step for step in steps if step is not None))


def _shown(key: str) -> str:
    """Shorten a key for a message, because many mappings may repeat a long key."""
    return key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}…"


def _is_merge_key(event: Any) -> bool:
    """Return whether `<<` merges: it must have neither quotes nor the tag of another type."""
    return isinstance(event, yaml.ScalarEvent) and not event.style and event.tag in (None, "tag:yaml.org,2002:merge")


def _error_at(event: Any, message: str, path: str) -> YamlError:
    return YamlError(message, event.start_mark.line + 1, event.start_mark.column + 1, path)


_RESOLVED: dict[str, Any] = {"bool": bool, "int": int, "float": (int, float), "null": type(None)}
