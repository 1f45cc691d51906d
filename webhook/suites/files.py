"""Reads a suite file and the files that it names.

A suite is often part of a proposed change, and may run where secrets are mounted. Files that a suite names must be in
the folder that the command line names. `..`, absolute paths and symbolic links are resolved before this check. If
suites of kyverno and gator share files, users name the folder with all these files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from webhook import assembly
from webhook.apimachinery.attributes import JSON
from webhook.errors import InputError, InputProblem
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import FoundFile, InputFile


class Suite(Struct, frozen=True, kw_only=True):
    """A suite file.

    Attributes:
        root: the folder that the command line named, or the folder of the named file.
        is_named: whether the command line named the file itself, which may then be a link or a pipe.
    """

    file: Path
    root: Path
    is_named: bool = False

    @property
    def folder(self) -> Path:
        """Return the folder that file names in the suite are relative to."""
        return self.file.parent

    @property
    def input(self) -> InputFile:
        """Return the suite file as an input file."""
        return InputFile(str(self.file), "" if self.is_named else str(self.root))

    def objects(self, names: Sequence[str]) -> tuple[JSON, ...]:
        """Return the objects of files and folders that the suite names.

        Raises:
            InputError: a file is outside the root, or cannot be read.
        """
        return assembly.objects_of_files([file for name in names for file in self._files(self.folder / name, name)])

    def policies_folder(self) -> Path:
        """Return the folder of the suite, which has its policies.

        Raises:
            InputError: a link leads outside the root.
        """
        list(self._files(self.folder, str(self.folder)))
        return self.folder

    def _files(self, place: Path, name: str) -> Iterator[InputFile]:
        self._check_is_inside_root(place, name)
        if not place.exists():
            raise InputError(yamlfile.problem_of_absent_file(place))
        if not place.is_dir():
            yield InputFile(str(place), str(self.root))
            return
        listing = yamlfile.listing([place], str(self.root))
        if problems := (*listing.problems, *map(self._problem_of_file_not_read, listing.not_read)):
            raise InputError(*problems)
        yield from listing.files

    def _check_is_inside_root(self, path: Path, name: str) -> None:
        if "\0" not in name and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root)):
            return
        raise InputError(self._problem_of_file_not_read(FoundFile(InputFile(name), f"it is outside `{self.root}`")))

    def _problem_of_file_not_read(self, file: FoundFile) -> InputProblem:
        fix = "name the folder that contains both on the command line, or copy the file beside the suite"
        return InputProblem(message=f"`{file.file}` is not read: {file.reason}; {fix}", file=str(self.file))
