"""Reads the objects of YAML and JSON files, with the place of every path of an object.

A file that cannot be read as a whole is read in pieces: documents between `---`, or lines of JSON. Then one mistake
does not hide the rest of the file. documents.py reads YAML texts, and jsontext.py reads JSON texts.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from msgspec import Struct, structs

from webhook import yamltext
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.errors import InputError, InputProblem
from webhook.yamltext import dump, input_files, jsontext, scalars, templates
from webhook.yamltext.ignore_comments import IgnoreComment
from webhook.yamltext.input_files import (
    MAX_BYTES,
    NOT_UNICODE,
    AnyFile,
    FoundFile,
    InputFile,
    Listed,
    is_unicode,
    read_start,
    walk_folder,
)
from webhook.yamltext.source_line import SourceLine, Words

__all__ = [
    "Document",
    "FileParts",
    "discover",
    "dump",
    "is_manifest_name",
    "listing",
    "load",
    "problem_of_absent_file",
    "read",
    "read_parts",
    "read_parts_of_text",
    "required_files",
    "shown",
    "text",
]

_LINES = (".ndjson", ".jsonl")
_JSON = (".json", *_LINES)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""The first two bytes of a file in UTF-16, as PowerShell writes with `>`."""
_PROJECT_FILES = frozenset(("LICENSE", "SECURITY_CONTACTS"))
"""Files at the top of a project; each repository of the organizations of Kubernetes has SECURITY_CONTACTS
(kubernetes/kubernetes-template-project)."""
_ENDINGS = (".yaml", ".yml", *_JSON)
_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file. `index` counts the objects of the file from 0, without empty documents."""

    value: JSON
    file: str = ""
    index: int = 0
    _source: _Source | None = field(default=None, repr=False, compare=False)
    _at: int = field(default=0, repr=False, compare=False)

    def position(self, path: FieldPath = (), words: Words = ()) -> tuple[int, int]:
        """Return line and column, from 1, of a path or its nearest ancestor, or of the first of `words` in the field.
        Return (0, 0) if the value comes from no text.
        """
        return self._source.position(self._at, path, words) if self._source else (0, 0)

    def source_line(self, path: FieldPath = (), words: Words = ()) -> SourceLine | None:
        """Return the line at the place of `position`, without confidential values; None if no line can be shown."""
        return self._source.source_line(self._at, path, words) if self._source else None

    def ignore_comments(self, line: int) -> Sequence[IgnoreComment]:
        """Return the comments about a line, from 1, that ask for an exception."""
        return self._source.ignore_comments(line) if self._source else ()

    def problem(self, path: FieldPath, message: str) -> InputProblem:
        """Return a problem with the file, line and column of a path."""
        line, column = self.position(path)
        return InputProblem(message=message, file=self.file, line=line, column=column, path=path_as_text(path))


class FileParts(Struct, frozen=True):
    """The documents of a file that could be read, in order, and the problems of the other documents.

    `repeated` are the problems of keys that a mapping has twice, if a value is lost or kustomize refuses the file. The
    documents have the last value of such a key, as in kubectl. `is_template` says that a program such as ytt makes
    other documents from the text.
    """

    documents: tuple[Document, ...] = ()
    problems: tuple[InputProblem, ...] = ()
    repeated: tuple[InputProblem, ...] = ()
    is_template: bool = False


class _Dialect(Struct, frozen=True):
    """How the program that reads a text differs from kubectl. The fields are those of `Places`."""

    words_are_text: bool = False
    refuses_repeats: bool = False


def load(text: str, file: str = "") -> tuple[Document, ...]:
    """Return the objects of a text: YAML, JSON, or JSON values in a row.

    Raises:
        InputError: the text cannot be read, or a value of a repeated key is lost. The error has file, line and column.
    """
    return _documents_or_error(read_parts_of_text(text, file))


def read_parts_of_text(
    text: str, file: str = "", above: int = 0, *, by_kustomize: bool = False, refuses_repeats: bool = False
) -> FileParts:
    """Return the objects of a text. If one piece cannot be read, return the objects of the other pieces.

    Args:
        text: YAML, JSON, or JSON values in a row.
        file: the source of the text.
        above: the number of lines of the file above the text.
        by_kustomize: whether kustomize reads the text. For kustomize, a plain `on` or `yes` is a text (kustomize api
            v0.20 kyaml on go.yaml.in/yaml/v3).
        refuses_repeats: whether the text is a resource of kustomize, which refuses a mapping with a key twice.
    """
    dialect = _Dialect(by_kustomize and scalars.WORD_OF_YAML_1_1.search(text) is not None, refuses_repeats)
    parts = _read_parts_of_text(text, file, dialect)
    if templates.has_values_in_comments(text):
        parts = structs.replace(parts, is_template=True)
    return _moved(parts, above) if above else parts


def _read_parts_of_text(text: str, file: str, dialect: _Dialect) -> FileParts:
    text = text.removeprefix("\ufeff")
    try:
        return _read_whole_text(text, file, dialect)
    except InputError as error:
        pieces = _pieces(text, file)
        if len(pieces) > 1:
            return _read_pieces(pieces, file, dialect)
        return FileParts(problems=error.problems)


def read(path: AnyFile) -> tuple[Document, ...]:
    """Return the objects of a file. `-` is standard input.

    Raises:
        InputError: the file cannot be read, is not UTF-8, is neither YAML nor JSON, or a value of a repeated key is
            lost.
    """
    return _documents_or_error(read_parts(path))


def read_parts(path: AnyFile) -> FileParts:
    """Return the objects of a file or standard input (`-`). One unreadable piece does not hide the others."""
    try:
        return read_parts_of_text(text(path), shown(path))
    except InputError as error:
        return FileParts(problems=error.problems)


def documents_of(text: str) -> tuple[str, ...]:
    """Return the documents of a YAML text, each with the `---` above it; () for JSON, or if only a parser can separate
    the documents.
    """
    is_json = text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")
    return () if is_json else yamltext.split_documents(text)


def text(path: AnyFile, max_bytes: int = MAX_BYTES) -> str:
    """Return the text of a file. `-` is standard input.

    Raises:
        InputError: the file cannot be read, is too large, or is not UTF-8.
    """
    file = shown(path)
    try:
        data = read_start(path, max_bytes=max_bytes)
        if len(data) <= max_bytes:
            return decode_text(data, file)
        problem = InputProblem(message=f"the file is larger than {max_bytes >> 20} MiB; split it", file=file)
    except OSError as error:
        reason = (error.strerror or "unknown cause").lower()
        problem = InputProblem(message=f"cannot be read: {reason}", file=file)
    except UnicodeDecodeError as error:
        problem = problem_of_encoding(data, error, file)
    raise InputError(problem)


def problem_of_encoding(data: bytes, error: UnicodeDecodeError, file: str, above: int = 0) -> InputProblem:
    """Return the problem of bytes that are not UTF-8. `above` is the number of lines of the file above the bytes."""
    line = above + data.count(b"\n", 0, error.start) + 1
    is_utf_16 = above == 0 and data[:2] in _UTF_16
    advice = "but UTF-16; save the file as UTF-8" if is_utf_16 else "text; expected YAML or JSON"
    return InputProblem(message=f"is not UTF-8 {advice}", file=file, line=line)


def decode_text(data: bytes, file: str) -> str:
    """Return the text of a file. In JSON, each byte that is not UTF-8 becomes U+FFFD, as in an API server.

    Raises:
        UnicodeDecodeError: a file that is not JSON is not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        if data[:2] not in _UTF_16 and (file.endswith(_JSON) or data.lstrip()[:2] in (b'{"', b"[{")):
            return jsontext.text_of_bytes(data)
        raise


def shown(path: AnyFile) -> str:
    """Return the name of a file for messages."""
    return "<stdin>" if str(path) == "-" else str(path)


def _documents_or_error(parts: FileParts) -> tuple[Document, ...]:
    if problems := (*parts.problems, *parts.repeated):
        raise InputError(*problems)
    return parts.documents


# --- folders ---


def discover(places: Iterable[str | Path]) -> tuple[Path, ...]:
    """List the paths of the files that `required_files` lists, with the same errors."""
    return tuple(each.path for each in required_files(places))


def required_files(places: Iterable[str | Path], root: str = "") -> tuple[InputFile, ...]:
    """List the named files and the files in named folders. Every place must exist.

    If another file names the places, `root` is the folder in which the places must be.

    Raises:
        InputError: a path does not exist, a folder cannot be listed, or a file or link in a folder may not be read.
    """
    listing_of_places = listing(places, root)
    if problems := (*listing_of_places.problems, *map(problem_of_file_not_read, listing_of_places.not_read)):
        raise InputError(*problems)
    return listing_of_places.files


def listing(places: Iterable[str | Path], root: str = "") -> Listed:
    """List the named files, and the YAML and JSON files in named folders, sorted, each once. `-` is standard input.

    A YAML or JSON file has the ending .yaml, .yml, .json, .ndjson or .jsonl. These are left out below a named folder:

    - hidden files and folders, such as `..data` of a mounted ConfigMap; links outside of `..data` lead to its files
    - folders of dependencies and of test data

    If another file names the places, `root` is the folder in which the places must be.
    """
    files: dict[str, InputFile] = {}
    problems: list[InputProblem] = []
    not_read: list[FoundFile] = []
    project_files: list[str] = []
    for place in map(Path, places):
        if not is_unicode(str(place)):
            shown_name = os.fsencode(place).decode(errors="backslashreplace")
            problems.append(InputProblem(message=f"is not read: {NOT_UNICODE}", file=shown_name))
        elif place.is_dir():
            walked = sorted(_files(place, root, problems, project_files), key=lambda each: each.file.path)
            not_read += [each for each in walked if each.reason]
            for each in walked:
                if not each.reason:
                    files.setdefault(each.file.name, each.file)
        elif str(place) == "-" or place.exists():
            files[str(place)] = InputFile(str(place), root)
        else:
            problems.append(problem_of_absent_file(place))
    return Listed(
        files=tuple(files.values()),
        problems=tuple(problems),
        not_read=tuple(not_read),
        project_files=tuple(project_files),
    )


def hidden_listing(places: Iterable[str | Path]) -> Listed:
    """List the YAML and JSON files that `listing` leaves out because the file or a folder above the file is hidden.
    Files in `.git` and in folders that begin with `..` are not listed.
    """
    files: dict[str, InputFile] = {}
    for place in map(Path, places):
        for each in walk_folder(place, _has_manifest_ending, _may_hide_manifests) if place.is_dir() else ():
            is_hidden = any(part.startswith(".") for part in each.file.path.relative_to(place).parts)
            if is_hidden and not each.reason:
                files[each.file.name] = each.file
    return Listed(files=tuple(files.values()))


def listing_of_folders_not_entered(places: Iterable[str | Path]) -> Listed:
    """List the folders that `listing` leaves out because of dependencies or test data."""
    folders = (input_files.folders_not_entered(Path(place), _is_not_hidden) for place in places)
    return Listed(not_read=tuple(each for of_place in folders for each in of_place))


def problem_of_file_not_read(file: FoundFile) -> InputProblem:
    """Return a message that a file or link in a folder is not read, with the reason."""
    fix = "; name a folder that contains the link and its target" if "outside" in file.reason else ""
    return InputProblem(message=f"is not read: {file.reason}{fix}", file=file.file.name)


def is_manifest_name(name: str) -> bool:
    """Return whether a folder's file is read: its name has an ending of YAML or JSON, and is not hidden."""
    return _has_manifest_ending(name) and not name.startswith(".")


def _has_manifest_ending(name: str) -> bool:
    return name.endswith(_ENDINGS)


def _may_hide_manifests(name: str) -> bool:
    return name not in input_files.PRIVATE_FOLDERS and not name.startswith("..")


def problem_of_absent_file(place: str | Path) -> InputProblem:
    """Return a message that a file or folder does not exist. A URL gets a message of its own."""
    if address := input_files.url_in_place_of_file(place):
        return InputProblem(
            message="is an address, and only files, folders and `-` are read: download it", file=address
        )
    return InputProblem(message="no such file or folder", file=str(place))


def _files(folder: Path, root: str, problems: list[InputProblem], project_files: list[str]) -> Iterator[FoundFile]:
    def unlisted(error: OSError) -> None:
        reason = (error.strerror or "unknown cause").lower()
        problems.append(InputProblem(message=f"cannot be listed: {reason}", file=str(error.filename)))

    def note_project_files(at: str, names: Sequence[str]) -> None:
        project_files.extend(f"{at}/{name}" for name in names if name in _PROJECT_FILES)

    return walk_folder(
        folder, is_manifest_name, _is_not_hidden, root=root, on_error=unlisted, on_folder=note_project_files
    )


def _is_not_hidden(name: str) -> bool:
    return not name.startswith(".")


# --- texts ---


class _Source(Protocol):
    """A text with objects. The number `at` identifies an object. Lines and columns count from 1."""

    def position(self, at: int, path: FieldPath = (), words: Words = ()) -> tuple[int, int]: ...

    def source_line(self, at: int, path: FieldPath = (), words: Words = ()) -> SourceLine | None: ...

    def ignore_comments(self, line: int) -> Sequence[IgnoreComment]: ...


def _read_whole_text(text: str, file: str, dialect: _Dialect) -> FileParts:
    if file.endswith(_JSON) or text.lstrip()[:1] in ("{", "["):
        parts = _json(text, file, is_sure=file.endswith(_JSON))
        if parts is not None:
            return parts
    source = yamltext.Places(text, words_are_text=dialect.words_are_text, refuses_repeats=dialect.refuses_repeats)
    repeated: list[yamltext.YamlError] = []
    try:
        values = [item for item in yamltext.read_documents(source, repeated) if item[1] is not None]
    except yamltext.YamlError as error:
        raise InputError(_problem_of_yaml_error(file, error)) from None
    documents = tuple(Document(value, file, index, source, at) for index, (at, value) in enumerate(values))
    return FileParts(documents, repeated=tuple(_problem_of_yaml_error(file, each) for each in repeated))


def _problem_of_yaml_error(file: str, error: yamltext.YamlError) -> InputProblem:
    return InputProblem(message=str(error), file=file, line=error.line, column=error.column, path=error.path)


def _json(text: str, file: str, *, is_sure: bool) -> FileParts | None:
    """Return the JSON values of a text; None for a text in YAML.

    `is_sure` means that the text must be JSON because of the file's name.

    Raises:
        InputError: the text must be JSON, or begins with JSON, but is invalid.
    """
    source = yamltext.JsonPlaces(text)
    documents: list[Document] = []
    repeated: list[jsontext.JsonError] = []
    try:
        for value, offset in jsontext.values_with_offsets(text, repeated):
            documents.append(Document(value, file, len(documents), source, offset))
    except json.JSONDecodeError as error:
        if not is_sure and (not documents or text.startswith("---", error.pos)):
            return None
        problem = InputProblem(
            message=f"not JSON: {error.msg.lower()}", file=file, line=error.lineno, column=error.colno
        )
        raise InputError(problem) from None
    except jsontext.JsonError as error:
        raise InputError(_problem_of_json_error(file, error, source)) from None
    source.has_repeated = bool(repeated)
    harmful = (each for each in repeated if not each.is_harmless)
    return FileParts(tuple(documents), repeated=tuple(_problem_of_json_error(file, each, source) for each in harmful))


def _problem_of_json_error(file: str, error: jsontext.JsonError, source: yamltext.JsonPlaces) -> InputProblem:
    line, column = source.position(error.offset)
    return InputProblem(message=str(error), file=file, line=line, column=column)


# --- pieces ---


class _Piece(Struct, frozen=True):
    """A separate part of a text, and the number of lines above it."""

    text: str
    above: int
    is_line: bool


class _ShiftedSource(Struct, frozen=True):
    """Returns places in the whole text for a piece of the text."""

    source: _Source
    above: int

    def position(self, at: int, path: FieldPath = (), words: Words = ()) -> tuple[int, int]:
        line, column = self.source.position(at, path, words)
        return line + self.above, column

    def source_line(self, at: int, path: FieldPath = (), words: Words = ()) -> SourceLine | None:
        return self.source.source_line(at, path, words)

    def ignore_comments(self, line: int) -> Sequence[IgnoreComment]:
        return self.source.ignore_comments(line - self.above)


def _pieces(text: str, file: str) -> list[_Piece]:
    """Return the pieces of a text: lines of JSON, or documents of a YAML stream; [] for an indented JSON text."""
    if file.endswith(_LINES) or _is_json_lines(text):
        lines = text.split("\n")
        return [_Piece(line, above, is_line=True) for above, line in enumerate(lines) if line.strip()]
    if file.endswith(_JSON):
        return []
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text)), len(text)]
    return [
        _Piece(text[start:end], text.count("\n", 0, start), is_line=False)
        for start, end in pairwise(starts)
        if text[start:end].strip()
    ]


def _is_json_lines(text: str) -> bool:
    """Return whether a line is an object of JSON. No line of an indented JSON text is a whole object."""
    return any(_is_object(line) for line in text.split("\n") if line.startswith('{"'))


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _read_pieces(pieces: Sequence[_Piece], file: str, dialect: _Dialect) -> FileParts:
    documents: list[Document] = []
    problems: list[InputProblem] = []
    repeated: list[InputProblem] = []
    for piece in pieces:
        try:
            parts = (
                _json(piece.text, file, is_sure=True) if piece.is_line else _read_whole_text(piece.text, file, dialect)
            )
        except InputError as error:
            problems += _shift_problems(error.problems, piece.above)
            continue
        for each in parts.documents if parts else ():
            source = _ShiftedSource(each._source, piece.above) if each._source else None  # noqa: SLF001
            documents.append(replace(each, index=len(documents), _source=source))
        repeated += _shift_problems(parts.repeated if parts else (), piece.above)
    return FileParts(tuple(documents), tuple(problems), tuple(repeated))


def _moved(parts: FileParts, above: int) -> FileParts:
    """Return the parts with places for a file that has `above` lines above the text."""
    documents = tuple(
        replace(each, _source=_ShiftedSource(each._source, above)) if each._source else each  # noqa: SLF001 - of this module
        for each in parts.documents
    )
    problems, repeated = (tuple(_shift_problems(each, above)) for each in (parts.problems, parts.repeated))
    return structs.replace(parts, documents=documents, problems=problems, repeated=repeated)


def _shift_problems(problems: Iterable[InputProblem], above: int) -> Iterator[InputProblem]:
    """Yield the problems with lines of the whole text, which has `above` lines above the part."""
    return (structs.replace(each, line=each.line and each.line + above) for each in problems)
