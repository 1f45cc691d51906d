"""Reads the files of the command line part by part, so that memory does not grow with the input.

`documents.read_documents` holds everything; this module gives the same documents, problems and templates of each part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from webhook import documents, yamlfile
from webhook.errors import InputError, Problem
from webhook.file_parts import FilePart, RereadableFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePart:
    """A part of a file, or the `problem` because of which the rest of the file cannot be read.

    is_named: whether somebody named the file itself and no folder above it. is_first: whether it is the first of it.
    """

    source: str
    part: FilePart
    is_named: bool
    is_first: bool
    problem: Problem | None = None


class DocumentStream:
    """Files, folders and standard input, which can be read several times.

    Args:
        named: what to read.
        exclude: patterns of names, or of paths below what is named, of what is left out.
        include: such patterns of what alone is read of folders.
        listing: lists the files of names.

    Attributes:
        problems: what does not exist or cannot be listed.
        sources: the files in order, each once.
        excluded: how many files are left out.
    """

    def __init__(
        self,
        named: Sequence[str | Path],
        exclude: Sequence[str] = (),
        include: Sequence[str] = (),
        *,
        listing: documents.Listing = yamlfile.listing,
    ) -> None:
        listed = documents.list_sources(named, exclude, include, listing=listing)
        self.problems, self.sources, self.excluded = listed.problems, listed.sources, listed.excluded
        self._itself = {documents.source_name(name) for name in named}
        self._files = RereadableFiles()

    def replace_with_rendered(self, folder: str, data: bytes, replaced: Callable[[str], bool]) -> None:
        """Replace the files of a folder by the text that the folder was rendered to."""
        gone = {each for each in self.sources if replaced(each)}
        at = next((number for number, each in enumerate(self.sources) if each in gone), len(self.sources))
        before, after = ([each for each in part if each not in gone] for part in (self.sources[:at], self.sources[at:]))
        self.sources = (*before, folder, *after)
        self._itself.add(folder)
        self._files.set_content(folder, data)

    def close(self) -> None:
        """Release what was kept of standard input and pipes."""
        self._files.close()

    def size_bytes(self) -> int:
        """Return the size of all files; standard input and pipes have no size."""
        return sum(map(self._files.size_bytes, self.sources))

    def parts(self) -> Iterator[SourcePart]:
        """Yield the parts of all files in order."""
        for source in self.sources:
            yield from self.parts_of(source)

    def is_named(self, source: str) -> bool:
        """Return whether somebody named a file itself, and no folder above it."""
        return source in self._itself

    def parts_of(self, source: str) -> Iterator[SourcePart]:
        """Yield the parts of one file."""
        yield from parts_of_file(self._files, source, is_named=self.is_named(source))


def parts_of_file(files: RereadableFiles, source: str, *, is_named: bool) -> Iterator[SourcePart]:
    """Yield the parts of one file."""
    is_first = True
    try:
        for part in files.read_parts(source):
            yield SourcePart(source=source, part=part, is_named=is_named, is_first=is_first)
            is_first = False
    except InputError as error:
        empty = FilePart("", 0, 0)
        [problem] = error.problems
        yield SourcePart(source=source, part=empty, is_named=is_named, is_first=is_first, problem=problem)


def read_documents_of_part(part: SourcePart) -> documents.InputDocuments:
    """Return the documents of a part, and its problems, as `documents.read_documents` does for whole files."""
    shown = yamlfile.shown(part.source)
    if part.problem is not None:
        read = yamlfile.FileParts(problems=(part.problem,))
    else:
        read = yamlfile.read_parts_of_text(part.part.text, shown, part.part.above)
    return documents.documents_of_file(part.source, read, is_named=part.is_named, is_first=part.is_first)
