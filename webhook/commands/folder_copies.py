"""Copies folders for programs that would follow every link: without links that lead out of the named folders.

The copy repeats the whole paths of the folders, so a path such as `../base` means the same in it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

from webhook.errors import ProgramError
from webhook.yamltext.input_files import PRIVATE_FOLDERS, FoundFile, InputFile, NotReadError, open_file, reason_not_read

_MAX_BYTES: Final = 512 * 1024 * 1024
_MAX_FILES: Final = 100_000
_PIECE_BYTES: Final = 1024 * 1024


class FolderCopies:
    """Copies of folders that are named, or below a named one.

    Attributes:
        not_read: entries of the folders that the copies do not have, because they are not regular files or lead
    elsewhere.
    """

    def __init__(self, named: Iterable[str | Path], into: str) -> None:
        """Args: the folders that a person named; an empty folder for the copies."""
        self.not_read: list[FoundFile] = []
        self._roots = tuple(os.path.realpath(each) for each in named)
        self._into = Path(into)
        self._copied: set[str] = set()
        self._bytes = 0

    def root_of(self, path: str) -> str:
        """Return the named folder that a path without links is in; "" for a path outside, or in a folder of git."""
        for root in self._roots:
            if Path(path).is_relative_to(root) and PRIVATE_FOLDERS.isdisjoint(Path(path).relative_to(root).parts):
                return root
        return ""

    def copy_path(self, path: str) -> str:
        """Return where the copy of a path without links is."""
        return str(self._into / Path(path).relative_to("/"))

    def add(self, path: str) -> None:
        """Copy a folder, and what its links lead to.

        Args:
            path: without links, and below a named folder.

        Raises:
            ProgramError: the folders are too large to be copied.
            OSError: something cannot be read.
        """
        waiting = [path]
        while waiting:
            at = waiting.pop()
            if at in self._copied:
                continue
            self._copied.add(at)
            if len(self._copied) > _MAX_FILES:
                raise ProgramError(f"cannot be copied: the folder has more than {_MAX_FILES:,} files")
            mode = os.lstat(at).st_mode
            if stat.S_ISDIR(mode):
                Path(self.copy_path(at)).mkdir(parents=True, exist_ok=True)
                waiting += [os.path.join(at, name) for name in os.listdir(at) if name not in PRIVATE_FOLDERS]  # noqa: PTH118, PTH208
            elif stat.S_ISLNK(mode):
                waiting += self._copy_link(at)
            else:
                self._copy_file(at)

    def _copy_link(self, path: str) -> tuple[str, ...]:
        """Copy a link that stays inside the folder, and return its target, because the copy also needs the target."""
        link = InputFile(path, self.root_of(path))
        target = os.path.realpath(path)
        if not self.root_of(target):
            self.not_read.append(FoundFile(link, reason_not_read(link), is_folder=Path(target).is_dir()))
        elif os.path.lexists(target):
            Path(self.copy_path(path)).symlink_to(self.copy_path(target))
            return (target,)
        return ()

    def _copy_file(self, path: str) -> None:
        file, copy = InputFile(path, self.root_of(path)), Path(self.copy_path(path))
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open_file(file) as source, copy.open("xb") as written:
                for piece in iter(partial(source.read, _PIECE_BYTES), b""):
                    self._bytes += len(piece)
                    if self._bytes > _MAX_BYTES:
                        raise ProgramError(f"cannot be copied: the folder has more than {_MAX_BYTES >> 20} MiB")
                    written.write(piece)
        except NotReadError as error:
            self.not_read.append(FoundFile(file, str(error.strerror)))
        except OSError as error:
            if error.errno != errno.ENOENT:  # it existed a moment ago
                raise
