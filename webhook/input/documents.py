"""Reads the files of the command line as single documents with their places.

Accepts files, folders, stdin and lists (JSON arrays, `kind: List`). One unreadable file does not hide other files: its
problem is collected.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.object_lists import is_list, objects_of_list
from webhook.apimachinery.paths import FieldPath, parse_path
from webhook.errors import InputProblem
from webhook.input import object_store
from webhook.yamltext import templates, yamlfile
from webhook.yamltext.input_files import FoundFile, InputFile, Listed, read_start
from webhook.yamltext.source_line import FindLine, Locate, Place, SourceLine, Words
from webhook.yamltext.templates import looks_like_manifest

Listing: TypeAlias = Callable[[Sequence[str | Path]], Listed]
"""Lists the files of the named places."""

PatternsOfFolder: TypeAlias = Callable[[Path], tuple[str, ...]]
"""Returns patterns of the files to leave out of a named folder."""

IGNORE_FILE: Final = ".claimgateignore"
"""The file in a named folder that lists files to leave out."""
_BEYOND_BOUNDS: Final = ("nested more than", "aliases add more than", "is not UTF-8", "the file is larger")
_MOST_PATTERNS_BYTES: Final = 1 << 20
"""The most bytes of a .claimgateignore file."""


class InputDocument(Struct, frozen=True, kw_only=True):
    """One document or list item.

    Attributes:
        index: the number of the document in the source, from 0.
        path: the path of the item in the document.
    """

    source: str
    index: int
    value: JSON
    path: FieldPath
    document: yamlfile.Document

    def place(self, path: FieldPath = (), words: Words = ()) -> Place:
        """Return the place of a field, or of the first of `words` in the field. For a field that is not written, return
        the place of the nearest field above.
        """
        line, column = self.document.position((*self.path, *path), words)
        return Place(file=self.source, line=line, column=column)

    def locator(self, inside: FieldPath = ()) -> Locate:
        """Return a function that finds a printed path. `inside` is the path of the object in this input."""

        def locate(path: str, words: Words) -> Place:
            try:
                return self.place((*inside, *parse_path(path)), words)
            except ValueError:
                return self.place()

        return locate

    def line_finder(self, inside: FieldPath = ()) -> FindLine:
        """Return a function for the source line of a printed path. The line is None if it must not be shown."""

        def line(path: str, words: Words) -> SourceLine | None:
            try:
                return self.document.source_line((*self.path, *inside, *parse_path(path)), words)
            except ValueError:
                return None

        return line


class InputDocuments(Struct, frozen=True, kw_only=True):
    """The documents that could be read, in order, and the problems of other files.

    Attributes:
        templates: files that are manifests only after rendering. Outside of charts, their documents are still read.
        others: problems of unreadable files that are in a folder and do not look like manifests.
        excluded: the number of files that were left out.
        repeated: problems of keys that a mapping has twice, if a value is lost. The document has the last value, as
            with kubectl.
    """

    documents: tuple[InputDocument, ...]
    files: int
    problems: tuple[InputProblem, ...]
    templates: tuple[templates.ChartTemplate, ...] = ()
    others: tuple[InputProblem, ...] = ()
    excluded: int = 0
    repeated: tuple[InputProblem, ...] = ()


class InputSources(Struct, frozen=True, kw_only=True):
    """The files to read, each once.

    Attributes:
        problems: the problems of names that do not exist.
        excluded: how many files were left out.
        ignored: how many files a `.claimgateignore` leaves out.
        not_read: entries of folders that are not regular files or lead out of their folder.
        project_files: files that stand at the top of a project, such as LICENSE.
    """

    sources: tuple[InputFile, ...]
    problems: tuple[InputProblem, ...]
    excluded: int
    ignored: int = 0
    not_read: tuple[FoundFile, ...] = ()
    project_files: tuple[str, ...] = ()


def read_documents(
    named: Sequence[str | Path], exclude: Sequence[str] = (), *, patterns: PatternsOfFolder | None = None
) -> InputDocuments:
    """Read files, stdin (`-`), and the YAML and JSON files of folders, in order.

    The caller needs all files. So a file of a folder that is not read is a problem.

    Args:
        named: the files and folders to read.
        exclude: patterns of names, or of paths below a named folder, with `*` for any characters.
        patterns: returns the excluding patterns of a named folder; by default the patterns of its `.claimgateignore`.
    """
    sources = list_sources(named, exclude, patterns=patterns)
    not_read = map(yamlfile.problem_of_file_not_read, sources.not_read)
    documents = documents_of_files(sources.sources)
    return replace(documents, problems=(*sources.problems, *not_read, *documents.problems), excluded=sources.excluded)


def documents_of_files(files: Iterable[InputFile]) -> InputDocuments:
    """Return the documents of files."""
    inputs = [documents_of_file(each, yamlfile.read_parts(each)) for each in files]
    return InputDocuments(
        documents=tuple(document for each in inputs for document in each.documents),
        files=len(inputs),
        problems=tuple(problem for each in inputs for problem in each.problems),
        templates=tuple(template for each in inputs for template in each.templates),
        others=tuple(other for each in inputs for other in each.others),
        repeated=tuple(key for each in inputs for key in each.repeated),
    )


def list_sources(
    named: Sequence[str | Path],
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
    *,
    listing: Listing = yamlfile.listing,
    patterns: PatternsOfFolder | None = None,
) -> InputSources:
    """Return the files for the names on the command line.

    Args:
        named: the files and folders to read.
        exclude: patterns, as for `read_documents`.
        include: patterns. A file of a folder must match one of them. A file that the user names is always read.
        listing: lists the files of names.
        patterns: as for `read_documents`.
    """
    problems: list[InputProblem] = []
    not_read: list[FoundFile] = []
    project_files: list[str] = []
    all_sources = list(_expanded_sources(named, problems, not_read, project_files, listing))
    find = patterns or ignore_patterns
    by_folder = {str(Path(name)): find(Path(name)) for name in named if Path(name).is_dir()}

    names = [each.name for each in (*all_sources, *(each.file for each in not_read))]
    excluded, included = _names_that_match(names, exclude), _names_that_match(names, include)
    ignored = {
        name for folder, names_in_folder in by_folder.items() for name in _ignored_names(names, folder, names_in_folder)
    }

    def is_wanted(source: InputFile) -> bool:
        return source.name not in excluded and (not include or source.is_named or source.name in included)

    not_excluded = list(filter(is_wanted, all_sources))
    sources = tuple(each for each in not_excluded if each.name not in ignored)
    unread = [each for each in not_read if is_wanted(each.file)]
    reported = tuple(each for each in unread if each.file.name not in ignored)
    return InputSources(
        sources=sources,
        problems=tuple(problems),
        excluded=len(all_sources) - len(sources),
        ignored=len(not_excluded) - len(sources) + len(unread) - len(reported),
        not_read=reported,
        project_files=tuple(project_files),
    )


def ignore_patterns(folder: Path) -> tuple[str, ...]:
    """Return the patterns of a `.claimgateignore`: one a line, as for --exclude, with `!` before exceptions.

    Raises:
        InputError: the file cannot be read.
    """
    if not os.path.lexists(folder / IGNORE_FILE):
        return ()
    file = InputFile(str(folder / IGNORE_FILE), str(folder))
    lines = (line.strip() for line in yamlfile.text(file, _MOST_PATTERNS_BYTES).splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def ignore_patterns_of_copy(folder: Path, copy: Path) -> tuple[str, ...]:
    """Return the patterns for a folder from a copy of the working directory. A folder outside of the working directory
    has no patterns.

    Raises:
        InputError: the file cannot be read.
    """
    inside = PurePath(os.path.relpath(folder))
    return () if inside.parts[:1] == ("..",) or inside.is_absolute() else ignore_patterns(copy / inside)


def _ignored_names(names: Iterable[str], folder: str, patterns: Sequence[str]) -> set[str]:
    """Return the files that the patterns exclude. Patterns are relative to the folder, and the last match decides."""
    below = {name: PurePath(name) for name in names} if patterns else {}
    inside = ((each.relative_to(folder), name) for name, each in below.items() if each.is_relative_to(folder))
    paths = _paths_of({str(path): name for path, name in inside})
    ignored: set[str] = set()
    for pattern in patterns:
        change = ignored.difference_update if pattern.startswith("!") else ignored.update
        change(_names_of_pattern(paths, pattern.removeprefix("!")))
    return ignored


def documents_of_file(file: InputFile, parts: yamlfile.FileParts, *, is_first: bool = True) -> InputDocuments:
    """Return the documents of a file or a part of it."""
    source = file.name
    chart = templates.find_chart_of_template(Path(source))
    lines = {each.line for each in parts.problems}
    is_template = parts.is_template or (
        (bool(chart) or (bool(parts.problems) and not any(map(_is_beyond_bounds, parts.problems))))
        and (templates.has_template_actions(file) or templates.has_variables_in_flow(file, lines))
    )
    if is_template and (chart or parts.is_template):
        parts = yamlfile.FileParts()
    is_other = bool(parts.problems) and not is_template and not file.is_named and not _could_be_manifest(file)
    return InputDocuments(
        documents=tuple(_documents_of_source(source, parts.documents)),
        files=int(is_first),
        problems=() if is_template or is_other else parts.problems,
        templates=(templates.ChartTemplate(source, chart),) if is_template else (),
        others=parts.problems if is_other else (),
        repeated=parts.repeated,
    )


def _is_beyond_bounds(problem: InputProblem) -> bool:
    """A file above a bound of this reader is not a template. kubectl may still read such a file as a manifest."""
    return problem.message.startswith(_BEYOND_BOUNDS)


def documents_of_text(text: str, source: str) -> InputDocuments:
    """Return the documents of a text. `source` is the name in their places."""
    parts = yamlfile.read_parts_of_text(text, source)
    return InputDocuments(
        documents=tuple(_documents_of_source(source, parts.documents)),
        files=1,
        problems=parts.problems,
        repeated=parts.repeated,
    )


def _could_be_manifest(file: InputFile) -> bool:
    """Return whether an unreadable file may be a manifest. Then it must be reported."""
    try:
        return looks_like_manifest(read_start(file, object_store.open_file))
    except OSError:
        return True


def looks_like_object(file: InputFile) -> bool:
    """Return whether a file has the keys `apiVersion` and `kind`, or cannot be read."""
    try:
        data = read_start(file)
    except OSError:
        return True
    return looks_like_manifest(data) and all(key in data.replace(b"\0", b"") for key in (b"apiVersion", b"kind"))


def problem_of_nothing_read(
    named: Sequence[str | Path], inputs: InputDocuments, expected: str
) -> tuple[InputProblem, ...]:
    """Return a problem if no document and no problem was read."""
    if inputs.documents or inputs.problems or inputs.templates:
        return ()
    is_emptied = inputs.excluded and not inputs.files
    reason = (
        f"--include, --exclude or {IGNORE_FILE} leaves out every file"
        if is_emptied
        else "expected YAML, JSON or NDJSON"
    )
    message = f"no {expected} found; {reason}"
    return (InputProblem(message=message, file=" ".join(map(yamlfile.shown, named))),)


def source_name(name: str | Path) -> str:
    """Return the normalized path of a file, or its address."""
    return str(name) if "://" in str(name) else str(Path(name))


def _expanded_sources(
    named: Sequence[str | Path],
    problems: list[InputProblem],
    not_read: list[FoundFile],
    project_files: list[str],
    listing: Listing,
) -> Iterator[InputFile]:
    """Yield files and stdin, each once. A file that the user names counts as named, even if it is in a named folder."""
    itself = set(map(source_name, named))
    seen = set[str]()
    for name in named:
        files_of_name = listing([name])
        problems += files_of_name.problems
        project_files += files_of_name.project_files
        not_read += (each for each in files_of_name.not_read if each.file.name not in itself)
        for file in files_of_name.files:
            if file.name not in seen:
                seen.add(file.name)
                yield InputFile(file.name) if file.name in itself else file


def _names_that_match(names: Iterable[str], patterns: Iterable[str]) -> set[str]:
    """Return the files for which a pattern matches the path, a folder above, or the end of either path."""
    paths = _paths_of({name: name for name in names})
    return {name for pattern in patterns for name in _names_of_pattern(paths, pattern)}


def _paths_of(files: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """Return the paths of files and of the folders above them, each with the names of its files."""
    paths: dict[str, list[str]] = {}
    for file, name in files.items():
        path = PurePath(file)
        for each in (path, *path.parents):
            paths.setdefault(f"/{each.as_posix()}", []).append(name)
    return paths


def _names_of_pattern(paths: Mapping[str, Sequence[str]], pattern: str) -> Iterator[str]:
    for path in fnmatch.filter(paths, f"*/{pattern.strip('/')}"):  # fnmatch.filter compiles the pattern once
        yield from paths[path]


def _documents_of_source(source: str, documents: Iterable[yamlfile.Document]) -> Iterator[InputDocument]:
    shown = yamlfile.shown(source)
    index = 0
    for document in documents:
        for path, value in _document_or_items((), document.value):
            yield InputDocument(source=shown, index=index, value=value, path=path, document=document)
            index += 1


def _document_or_items(path: FieldPath, value: JSON) -> Iterator[tuple[FieldPath, JSON]]:
    """Yield the document itself, or the items of an array or a list of the API. Empty documents yield nothing.

    An array of numbers or texts has no objects, and stays one item. A list of open arrays is faster than nested
    generators, in which each item passes up to 190 levels.
    """
    opened: list[Iterator[tuple[FieldPath, JSON]]] = [iter([(path, value)])]
    while opened:
        for at, item in opened[-1]:
            if isinstance(item, list) and not _has_only_data(item):
                opened.append(_items_with_paths(at, item))
                break
            if is_list(item):
                opened.append(objects_of_list(item, at))
                break
            if item is not None:
                yield at, item
        else:
            opened.pop()


def _has_only_data(items: Sequence[JSON]) -> bool:
    """Return whether an array has numbers or texts, and nothing that may be or hold an object."""
    return bool(items) and not any(each is None or isinstance(each, dict | list) for each in items)


def _items_with_paths(path: FieldPath, items: Sequence[JSON]) -> Iterator[tuple[FieldPath, JSON]]:
    return (((*path, index), item) for index, item in enumerate(items))
