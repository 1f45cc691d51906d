"""Reads the files of the command line part by part, so that memory does not grow with the input.

`documents.read_documents` holds everything; this module gives the same documents, problems and templates of each part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from webhook import documents, yamlfile
from webhook.errors import InputError, Problem
from webhook.file_parts import FilePart, RereadableFiles
from webhook.input_files import FoundFile, InputFile


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePart:
    """A part of a file, or the `problem` because of which the rest of the file cannot be read.

    is_first: whether it is the first of it.
    """

    file: InputFile
    part: FilePart
    is_first: bool
    problem: Problem | None = None

    @property
    def source(self) -> str:
        """Return the name of the file."""
        return self.file.name


class DocumentStream:
    """Files, folders and standard input, which can be read several times.

    Args:
        named: what to read.
        exclude: patterns of names, or of paths below what is named, of what is left out.
        include: such patterns of what alone is read of folders.
        listing: lists the files of names.
        patterns: finds the patterns of a named folder; those of its `.claimgateignore` if None.

    Attributes:
        problems: what does not exist or cannot be listed.
        sources: the files in order, each once.
        excluded: how many files are left out.
        ignored: how many of these a `.claimgateignore` leaves out.
        not_read: what is in folders and is not read, because it is no regular file or leads out of its folder.
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
        listed = documents.list_sources(named, exclude, include, listing=listing, patterns=patterns)
        self.problems, self.excluded, self.not_read = listed.problems, listed.excluded, listed.not_read
        self.ignored = listed.ignored
        self._inputs = {each.name: each for each in listed.sources}
        self.sources = tuple(self._inputs)
        self._files = RereadableFiles()

    def replace_with_rendered(
        self, folder: str, data: bytes, replaced: Callable[[str], bool], not_read: Iterable[FoundFile] = ()
    ) -> None:
        """Replace the files of a folder by the text that the folder was rendered to, without those not read."""
        self.not_read = tuple({each.file.name: each for each in (*self.not_read, *not_read)}.values())
        gone = {each for each in self.sources if replaced(each)}
        at = next((number for number, each in enumerate(self.sources) if each in gone), len(self.sources))
        before, after = ([each for each in part if each not in gone] for part in (self.sources[:at], self.sources[at:]))
        self.sources = (*before, folder, *after)
        self._inputs[folder] = InputFile(folder)
        self._files.set_content(folder, data)

    def add_files_not_read(self, files: Iterable[FoundFile]) -> None:
        """Add what is not read of folders that are rendered, each once."""
        by_name = {each.file.name: each for each in (*self.not_read, *files)}
        self.not_read = tuple(by_name.values())

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


def read_documents_of_part(part: SourcePart) -> documents.InputDocuments:
    """Return the documents of a part, and its problems, as `documents.read_documents` does for whole files."""
    shown = yamlfile.shown(part.source)
    if part.problem is not None:
        read = yamlfile.FileParts(problems=(part.problem,))
    else:
        read = yamlfile.read_parts_of_text(part.part.text, shown, part.part.above)
    return documents.documents_of_file(part.file, read, is_first=part.is_first)
