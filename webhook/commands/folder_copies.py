"""Copies folders for helm and kustomize, which follow every link. A copy has no links out of the named folders.

A copy keeps the whole path of its folder, so `../base` leads from one copy to another.

A kustomization is copied with the folders that it uses, and refused if it uses a file outside of the audited folder.
kustomize would enter any folder that a kustomization names, and clone entries that look like addresses. The copy of a
kustomization is written from the value that was checked. The original text could mean something else to kustomize,
which ignores the case of keys and reads the last of equal keys. Source: sigs.k8s.io/kustomize api v0.20
internal/target/kusttarget.go.
"""

from __future__ import annotations

import errno
import json
import os
import posixpath
import stat
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.cluster import kustomizations
from webhook.errors import ProgramError
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import PRIVATE_FOLDERS, FoundFile, InputFile, NotReadError, open_file, reason_not_read

_RESOURCES: Final = ("resources", "bases", "components")
_PLUGINS: Final = ("generators", "transformers", "validators")
"""Fields for plugins. An entry is a path, or the text of an object."""
_FIELDS: Final = {each.casefold(): each for each in (*_RESOURCES, *_PLUGINS)}
_MAX_BYTES: Final = 512 * 1024 * 1024
_MAX_FILES: Final = 100_000
_PIECE_BYTES: Final = 1024 * 1024


class FolderCopies:
    """Copies of folders that a person named, or of folders below the named folders.

    `not_read` has the entries that were not copied, because they are not regular files, or are links to a place
    outside.
    """

    def __init__(self, named: Iterable[str | Path], into: str) -> None:
        """`into` is an empty folder for the copies."""
        self.not_read: list[FoundFile] = []
        self._roots = tuple(os.path.realpath(each) for each in named)
        self._into = Path(into)
        self._copied: set[str] = set()
        self._bytes = 0

    def root_of(self, path: str) -> str:
        """Return the named folder that contains a path without links. Return "" for a path outside of the named
        folders, and for `.git` and similar folders.
        """
        for root in self._roots:
            if Path(path).is_relative_to(root) and PRIVATE_FOLDERS.isdisjoint(Path(path).relative_to(root).parts):
                return root
        return ""

    def copy_path(self, path: str) -> str:
        """Return the path of the copy of a path without links."""
        return str(self._into / Path(path).relative_to("/"))

    def add(self, path: str) -> None:
        """Copy a folder below a named folder, and the targets of its links. `path` must have no links.

        Raises:
            ProgramError: the folders are too large to be copied.
            OSError: a file or folder cannot be read.
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
        """Copy a link with a target in a named folder. The caller must copy the returned target."""
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
            if error.errno != errno.ENOENT:  # the file was removed meanwhile
                raise


def copy_kustomization(copies: FolderCopies, folder: str, *, with_remote: bool) -> None:
    """Copy a kustomization and all folders that it uses directly or through others. `folder` must have no links.

    `with_remote` allows entries that kustomize fetches.

    Raises:
        ProgramError: a kustomization cannot be read, or uses a path that does not exist or is outside of the named
            folders.
        OSError: a file cannot be read.
    """
    waiting, seen = [folder], set[str]()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        copies.add(at)
        for name in sorted(kustomizations.FILES):
            copy = Path(copies.copy_path(at)) / name
            if copy.is_file():
                value = _value_of_kustomization(copies, copy, posixpath.join(at, name))
                waiting += _folders_of_kustomization(copies, at, value, with_remote=with_remote)
                copy.unlink()
                copy.write_bytes(_json_of_kustomization(value, posixpath.join(at, name)))


def _json_of_kustomization(value: dict[str, JSON], file: str) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):  # a part that is nested too deeply, or NaN
        raise ProgramError(f"`{file}` has a value that cannot be copied") from None


def _value_of_kustomization(copies: FolderCopies, copy: Path, file: str) -> dict[str, JSON]:
    read = yamlfile.read_parts(InputFile(str(copy), copies.copy_path("/")))
    if read.problems:
        raise ProgramError(f"`{file}` cannot be read: {read.problems[0].message}")
    value = read.documents[0].value if read.documents else {}
    if len(read.documents) > 1 or not isinstance(value, dict):
        raise ProgramError(f"`{file}` is not a kustomization: expected one object")
    for key in value:
        if (field := _FIELDS.get(key.casefold(), key)) != key:
            raise ProgramError(f"`{file}` has the key `{key}`, which kustomize reads as `{field}`: write `{field}`")
    return value


def _folders_of_kustomization(
    copies: FolderCopies, folder: str, value: dict[str, JSON], *, with_remote: bool
) -> Iterator[str]:
    """Yield the folders that a kustomization names, without links."""
    for field in _FIELDS.values():
        entries = value.get(field)
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, str):
                continue
            path = posixpath.normpath(posixpath.join(folder, entry))  # as Go joins paths, without looking at links
            target = os.path.realpath(path)
            if not (copies.root_of(path) and copies.root_of(target)):
                raise ProgramError(
                    f"`{folder}` uses `{entry}`, which is outside of the audited folder; "
                    "name a folder that contains both"
                )
            if os.path.isdir(target):  # noqa: PTH112 - a text
                yield target
            elif os.path.isfile(target) and not Path(path).is_relative_to(folder):  # noqa: PTH113 - as above
                raise ProgramError(
                    f"`{folder}` uses the file `{entry}`, which is outside of the folder, so kustomize refuses the "
                    "file; move the file into the folder, or list a folder with a kustomization"
                )
            elif not (os.path.lexists(path) or with_remote or (field in _PLUGINS and _is_object_text(entry))):
                why = (
                    "is remote; --render-remote lets kustomize fetch remote resources"
                    if _is_remote(entry)
                    else "does not exist"
                )
                raise ProgramError(f"`{folder}` uses `{entry}`, which {why}")


def _is_remote(entry: str) -> bool:
    """Return whether an entry has a scheme, a user, a query, or the name of a host as its first step."""
    first, slash, _ = entry.partition("/")
    return ":" in entry or "?" in entry or (bool(slash) and "." in first and first not in (".", ".."))


def _is_object_text(entry: str) -> bool:
    read = yamlfile.read_parts_of_text(entry)
    return bool(read.documents) and all(isinstance(each.value, dict) for each in read.documents)
