"""Reads the files of the command line part by part. Memory does not grow with the input.

A part has about a megabyte of whole YAML documents or whole lines of JSON. Some files are one part: a JSON document,
and a YAML stream that only a parser can split (directives, `...`). `documents.read_documents` gives the same documents,
problems and templates, but reads everything at once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from msgspec import Struct

from webhook.errors import InputError, InputProblem
from webhook.input import documents
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import MAX_BYTES, AnyFile, FoundFile, InputFile, OpenFile, as_input_file, open_file
from webhook.yamltext.yamlfile import decode_text, problem_of_encoding, shown

_HIDDEN: Final = "the name of the file or of a folder above begins with a dot; name the file to read it"

_BLOCK: Final = 1 << 20
"""The bytes of one read, and about the bytes of a part."""
_IN_MEMORY: Final = 8 << 20
"""The most bytes of standard input in memory. Further bytes go to a temporary file."""
MAX_COPIED_BYTES: Final = 4 << 30
"""The most bytes of standard input or a pipe, because a pipe may be endless."""
_LINES: Final = (".ndjson", ".jsonl")
_FOR_PARSER: Final = (b"%", b"...")
"""The beginnings of lines after which only a parser knows where a document ends."""
_LONE_RETURN: Final = re.compile(rb"\r(?!\n)")


class FilePart(Struct, frozen=True):
    """A part of a file, and the number of lines before it."""

    text: str
    above: int
    size_bytes: int


class RereadableFiles:
    """Reads files, pipes, and standard input as `-`, each as often as needed.

    `open_file` opens a file, possibly of an object store. `max_copied_bytes` bounds standard input and each pipe.
    """

    def __init__(self, open_file: OpenFile = open_file, max_copied_bytes: int = MAX_COPIED_BYTES) -> None:
        self._open_file = open_file
        self._max_copied_bytes = max_copied_bytes
        self._spooled: dict[str, IO[bytes]] = {}

    def read_parts(self, file: AnyFile) -> Iterator[FilePart]:
        """Yield the parts of a file in order.

        Raises:
            InputError: the file cannot be read, is not UTF-8, or has a document that is too large.
        """
        above, path = 0, str(file)
        try:
            with self._open_for_reading(file) as stream:
                for data in _split_at_documents(stream, path):
                    yield FilePart(_decode_utf8(data, path, above), above, len(data))
                    above += data.count(b"\n")
        except OSError as error:
            reason = (error.strerror or "unknown cause").lower()
            raise InputError(InputProblem(message=f"cannot be read: {reason}", file=shown(path))) from None

    def set_content(self, name: str, data: bytes) -> None:
        """Make `data` the content that is read under a name."""
        self._spooled[name] = self._copy(BytesIO(data), name)

    def size_bytes(self, path: str) -> int:
        """Return the bytes of a file; 0 if unknown."""
        try:
            return 0 if path == "-" else Path(path).stat().st_size
        except OSError:
            return 0

    def close(self) -> None:
        """Delete the copies of standard input and pipes."""
        for copy in self._spooled.values():
            copy.close()
        self._spooled.clear()

    @contextmanager
    def _open_for_reading(self, file: AnyFile) -> Iterator[IO[bytes]]:
        path = str(file)
        if path != "-" and path not in self._spooled:
            with self._open_file(as_input_file(file)) as stream:
                if stream.seekable():
                    yield stream
                    return
                self._spooled[path] = self._copy(stream, path)
        elif path not in self._spooled:
            self._spooled[path] = self._copy(sys.stdin.buffer, path)
        self._spooled[path].seek(0)
        yield self._spooled[path]

    def _copy(self, stream: IO[bytes], path: str) -> IO[bytes]:
        """Copy a stream that can be read only once into a temporary file."""
        copy = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - it is read again until the process ends
        while block := stream.read(_BLOCK):
            if copy.tell() + len(block) > self._max_copied_bytes:
                copy.close()
                message = f"the input is larger than {self._max_copied_bytes >> 20} MiB; split it"
                raise InputError(InputProblem(message=message, file=shown(path)))
            copy.write(block)
        return copy


def _split_at_documents(stream: IO[bytes], path: str) -> Iterator[bytes]:
    block_so_far, is_first = bytearray(stream.read(_BLOCK)), True
    is_lines = path.endswith(_LINES)
    is_whole = not is_lines and (path.endswith(".json") or block_so_far.lstrip().startswith((b"{", b"[")))
    while block := stream.read(_BLOCK):
        block_so_far += block
        if not is_whole and (
            cut := block_so_far.rfind(b"\n") + 1 if is_lines else _start_of_last_document(block_so_far)
        ):
            is_whole = not is_lines and _needs_parser(block_so_far)
            if not is_whole:
                yield bytes(block_so_far[:cut])
                del block_so_far[:cut]
                is_first = False
        if len(block_so_far) > MAX_BYTES:
            too_large = "the file is" if is_whole else "a document is"
            message = f"{too_large} larger than {MAX_BYTES >> 20} MiB; split it"
            raise InputError(InputProblem(message=message, file=shown(path)))
    if block_so_far or is_first:
        yield bytes(block_so_far)


def _needs_parser(text: bytearray) -> bool:
    """Return whether only a parser knows where a document ends."""
    begins_line = text.startswith(_FOR_PARSER) or any(b"\n" + each in text for each in _FOR_PARSER)
    return begins_line or (b"\r" in text and _LONE_RETURN.search(text) is not None)


def _start_of_last_document(text: bytearray) -> int:
    """Return the index of the last document, which may continue in the next bytes. 0 means that the data has only one
    document.
    """
    at = text.rfind(b"\n---")
    while at > 0 and not text[at + 4 : at + 5].isspace():
        at = text.rfind(b"\n---", 0, at)
    return max(at + 1, 0)


def _decode_utf8(data: bytes, path: str, above: int) -> str:
    try:
        return decode_text(data, path)
    except UnicodeDecodeError as error:
        raise InputError(problem_of_encoding(data, error, shown(path), above)) from None


class SourcePart(Struct, frozen=True, kw_only=True):
    """A part of a file, or the `problem` that prevents reading the rest of the file."""

    file: InputFile
    part: FilePart
    is_first: bool
    problem: InputProblem | None = None

    @property
    def source(self) -> str:
        """Return the name of the file."""
        return self.file.name


class DocumentStream:
    """The files of the command line, which can be read several times.

    Args:
        named: files, folders, or `-` for standard input.
        exclude: patterns of names, or of paths below a named folder. Files that match are left out.
        include: patterns. If given, a file of a folder must match one of these patterns.
        listing: lists the files of the named places.
        patterns: returns the excluding patterns of a named folder; by default the patterns of its `.claimgateignore`.

    Attributes:
        problems: files that do not exist or cannot be listed.
        sources: the files in order, each once.
        excluded: how many files are left out.
        ignored: how many files a `.claimgateignore` leaves out.
        not_read: entries of folders that are not regular files or lead out of their folder.
        project_files: files that stand at the top of a project, such as LICENSE.
        patches: files with the name of a patch, beside a rendered kustomization that does not list the files.
    """

    def __init__(
        self,
        named: Sequence[str | Path],
        exclude: Sequence[str] = (),
        include: Sequence[str] = (),
        *,
        listing: documents.Listing = yamlfile.listing,
        patterns: documents.PatternsOfFolder | None = None,
    ) -> None:
        sources = documents.list_sources(named, exclude, include, listing=listing, patterns=patterns)
        self.problems, self.excluded, self.not_read = sources.problems, sources.excluded, sources.not_read
        self.ignored, self.project_files = sources.ignored, sources.project_files
        self.patches: frozenset[str] = frozenset()
        self._named, self._exclude, self._include, self._patterns = named, exclude, include, patterns
        self._inputs = {each.name: each for each in sources.sources}
        self.sources = tuple(self._inputs)
        self._files = RereadableFiles()

    def replace_with_rendered(
        self, folder: str, data: bytes, replaced: Callable[[str], bool], is_patch: Callable[[str], bool]
    ) -> None:
        """Replace some files by `folder`, with `data` as its text.

        Args:
            folder: the rendered folder.
            data: the rendered objects.
            replaced: returns whether the text was rendered from a file.
            is_patch: returns whether a file has the name of a patch, and no kustomization of the folder lists the file.
        """
        self.patches |= {each for each in self.sources if is_patch(each)}
        gone = {each for each in self.sources if replaced(each)}
        at = next((number for number, each in enumerate(self.sources) if each in gone), len(self.sources))
        before, after = ([each for each in part if each not in gone] for part in (self.sources[:at], self.sources[at:]))
        self.sources = (*before, folder, *after)
        self._inputs[folder] = InputFile(folder)
        self._files.set_content(folder, data)

    def add_files_not_read(self, files: Iterable[FoundFile]) -> None:
        """Add files of rendered folders that are not read, each once."""
        by_name = {each.file.name: each for each in (*self.not_read, *files)}
        self.not_read = tuple(by_name.values())

    def hidden_manifests(self) -> Sequence[FoundFile]:
        """Return hidden files that look like objects. `kubectl apply` reads hidden files, and an audit does not."""
        sources = documents.list_sources(
            self._named, self._exclude, self._include, listing=yamlfile.hidden_listing, patterns=self._patterns
        )
        return [
            FoundFile(each, _HIDDEN)
            for each in sources.sources
            if each.name not in self._inputs and documents.looks_like_object(each)
        ]

    def unread_folders_with_manifests(self) -> Sequence[FoundFile]:
        """Return the folders of dependencies or test data with files that look like objects."""
        sources = documents.list_sources(
            self._named,
            self._exclude,
            self._include,
            listing=yamlfile.listing_of_folders_not_entered,
            patterns=self._patterns,
        )
        return [
            each
            for each in sources.not_read
            if any(map(documents.looks_like_object, yamlfile.listing([each.file.name]).files))
        ]

    def close(self) -> None:
        """Delete the copies of standard input and pipes."""
        self._files.close()

    def size_bytes(self) -> int:
        """Return the size of all files. Standard input and pipes count as 0."""
        return sum(map(self._files.size_bytes, self.sources))

    def parts(self) -> Iterator[SourcePart]:
        """Yield the parts of all files in order."""
        for source in self.sources:
            yield from self.parts_of(source)

    def input_files(self) -> Sequence[InputFile]:
        """Return the files in order."""
        return [self._inputs[source] for source in self.sources]

    def parts_of(self, source: str) -> Iterator[SourcePart]:
        """Yield the parts of one file."""
        yield from parts_of_file(self._files, self._inputs[source])


def parts_of_file(files: RereadableFiles, file: InputFile) -> Iterator[SourcePart]:
    """Yield the parts of one file."""
    is_first = True
    try:
        for part in files.read_parts(file):
            yield SourcePart(file=file, part=part, is_first=is_first)
            is_first = False
    except InputError as error:
        empty = FilePart("", 0, 0)
        [problem] = error.problems
        yield SourcePart(file=file, part=empty, is_first=is_first, problem=problem)


def read_documents_of_part(
    part: SourcePart, *, by_kustomize: bool = False, refuses_repeats: bool = False
) -> documents.InputDocuments:
    """Return the documents and problems of a part, as `documents.read_documents` does for whole files.

    `by_kustomize` says that kustomize reads the file, for which `on` and `yes` are texts. `refuses_repeats` says that
    the file is a resource of kustomize, which refuses repeated keys.
    """
    shown = yamlfile.shown(part.source)
    if part.problem is not None:
        parts = yamlfile.FileParts(problems=(part.problem,))
    else:
        text = part.part
        parts = yamlfile.read_parts_of_text(
            text.text, shown, text.above, by_kustomize=by_kustomize, refuses_repeats=refuses_repeats
        )
    return documents.documents_of_file(part.file, parts, is_first=part.is_first)
