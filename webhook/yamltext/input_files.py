"""Opens the files that users name, and files in folders that other people may have written.

A path that a user named may be any file, such as a pipe or a device. Every other file must be a regular file below its
folder, after links are resolved. Each step of a path is checked and opened by the descriptor of its folder. So a link
that replaces a file after the check is not followed. The number of bytes is always bounded.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import IO, Final, TypeAlias

from msgspec import Struct

from webhook.errors import InputProblem

MAX_BYTES: Final = 128 * 1024 * 1024
"""The most bytes of a file, enough for a dump of a large cluster. A limit is needed because a device may never end."""
PRIVATE_FOLDERS: Final = frozenset((".git",))
"""Folders with credentials of the user who checked the files out. A link into such a folder is not followed."""
_TEST_DATA: Final = frozenset(("testdata", "test_data"))
"""The names for the inputs of tests, which may be wrong on purpose, in Go and in Python."""
_OF_DEPENDENCIES: Final = frozenset(("node_modules", "bower_components", "site-packages"))
"""Names of folders that package managers fill."""
_VENDOR: Final = "vendor"
_LOCKS_ABOVE: Final = ("Gopkg.lock", "glide.lock", "jsonnetfile.lock.json")
_LISTS_INSIDE: Final = ("modules.txt", "vendor.json", "autoload.php")
"""Files that package managers for Go, Jsonnet or PHP write into the folder `vendor` or beside it. A `vendor` without
such a file, as vendir writes it, may have manifests.
"""
_VIRTUAL_ENVIRONMENT: Final = "pyvenv.cfg"
"""The file by which Python recognizes virtual environments."""
_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/{1,2}([^/].*)")
NOT_UNICODE: Final = "its name is not UTF-8"
_PIECE_BYTES: Final = 1024 * 1024
_MAX_LINKS: Final = 40
"""The most links on the way to a file, as in Linux."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""The flags for a file of a folder. Opening a pipe must not wait."""


class NotReadError(OSError):
    """A file of a folder may not be read. `strerror` says why."""


class InputFile(Struct, frozen=True):
    """A file to read.

    Args:
        name: the path, an address, or `-` for standard input.
        root: the folder in which the file must be; "" for a file that a user named.
    """

    name: str
    root: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def is_named(self) -> bool:
        """Return whether a user named the file itself and not a folder above it."""
        return not self.root

    @property
    def path(self) -> Path:
        """Return the name as a Path."""
        return Path(self.name)


AnyFile: TypeAlias = str | Path | InputFile
"""A file to read. A str or Path means that the user named the file."""
OpenFile: TypeAlias = Callable[[InputFile], IO[bytes]]


def as_input_file(file: AnyFile) -> InputFile:
    """Return a file with the folder in which it must be."""
    return file if isinstance(file, InputFile) else InputFile(str(file))


def open_file(file: InputFile) -> IO[bytes]:
    """Open a file of this machine for reading.

    Raises:
        NotReadError: a file of a folder is not a regular file, or a link leads out of the folder.
        OSError: the file cannot be opened.
    """
    if file.is_named:
        return file.path.open("rb")
    return os.fdopen(_descriptor_below(file.root, PurePath(file.name)), "rb")


def read_start(file: AnyFile, open_file: OpenFile = open_file, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file. If the file has more than `max_bytes`, return more than `max_bytes`, but perhaps not
    all. `-` is standard input.

    Raises:
        OSError: the file cannot be read.
    """
    file = as_input_file(file)
    if file.name == "-" and file.is_named:
        return _read_pieces(sys.stdin.buffer, max_bytes)
    with open_file(file) as stream:
        return _read_pieces(stream, max_bytes)


def read_whole(file: AnyFile, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file.

    Raises:
        OSError: the file cannot be read, or is larger than `max_bytes`.
    """
    data = read_start(file, max_bytes=max_bytes)
    if len(data) > max_bytes:
        raise OSError(errno.EFBIG, f"the file is larger than {max_bytes >> 10:,} KiB")
    return data


def is_regular_file(file: InputFile) -> bool:
    """Return whether a path is a regular file. For a file of a folder, links must not lead out of the folder."""
    if file.is_named:
        return file.path.is_file()
    try:
        os.close(_descriptor_below(file.root, PurePath(file.name)))
    except OSError:
        return False
    return True


class FoundFile(Struct, frozen=True):
    """A file of a folder. `reason` says why it is not read; "" if it is read."""

    file: InputFile
    reason: str = ""
    is_folder: bool = False


class Listed(Struct, frozen=True, kw_only=True):
    """The named files and the files in named folders, each once.

    Attributes:
        problems: messages about places that do not exist or cannot be listed.
        not_read: files and links in folders that are not read, because they are not regular or lead out of the folder.
        project_files: files that stand at the top of a project, such as LICENSE.
    """

    files: tuple[InputFile, ...] = ()
    problems: tuple[InputProblem, ...] = ()
    not_read: tuple[FoundFile, ...] = ()
    project_files: tuple[str, ...] = ()


def walk_folder(
    folder: Path,
    is_wanted: Callable[[str], bool],
    enters: Callable[[str], bool],
    *,
    root: str = "",
    on_error: Callable[[OSError], None] | None = None,
    on_folder: Callable[[str, Sequence[str]], None] | None = None,
) -> Iterator[FoundFile]:
    """Yield the files below a folder, and links that lead out of the folder.

    Files of one folder are sorted by name. Folders of dependencies and of test data are not entered.

    Args:
        folder: where to begin. It may be a link, or itself a folder of dependencies.
        is_wanted: returns whether a file with a name is wanted.
        enters: returns whether the files of a folder with a name are wanted.
        root: the folder that links must not leave; "" for `folder`.
        on_error: is called with the error of a folder that cannot be listed.
        on_folder: is called with each folder and the names of its files.
    """
    root = root or str(folder)
    for at, folders, names in os.walk(folder, onerror=on_error):
        if on_folder is not None:
            on_folder(at, names)
        folders[:] = sorted(name for name in folders if enters(name) and not reason_not_entered(at, name, names))
        for name in folders:
            path = os.path.join(at, name)  # noqa: PTH118 - as os.walk writes its paths
            link = InputFile(path, root)
            if os.path.islink(path) and (reason := reason_not_read(link)):  # noqa: PTH114
                yield FoundFile(link, reason, is_folder=True)
        for name in sorted(filter(is_wanted, names)):
            file = InputFile(str(Path(at, name)), root)
            yield FoundFile(file, reason_not_read(file))


def reason_not_entered(at: str, name: str, files: Sequence[str]) -> str:
    """Return why the files of the folder `name` in the folder `at` are not read; "" if they are read.

    `files` are the names of the files in `at`.
    """
    if name in _TEST_DATA:
        return "it holds the inputs of tests; name the folder to read it"
    if _holds_dependencies(os.path.join(at, name), name, files):  # noqa: PTH118 - as os.walk writes its paths
        return "a package manager fills it with dependencies; name the folder to read it"
    return ""


def folders_not_entered(folder: Path, enters: Callable[[str], bool]) -> Iterator[FoundFile]:
    """Yield the outermost folders that `walk_folder` does not enter although `enters` allows it."""
    for at, folders, names in os.walk(folder):
        reasons = {name: reason_not_entered(at, name, names) for name in sorted(filter(enters, folders))}
        for name, reason in reasons.items():
            if reason:
                yield FoundFile(InputFile(str(Path(at, name)), str(folder)), reason, is_folder=True)
        folders[:] = [name for name, reason in reasons.items() if not reason]


def _holds_dependencies(folder: str, name: str, files: Sequence[str]) -> bool:
    """Return whether a package manager fills a folder. Users do not apply its files."""
    if name == _VENDOR:
        return any(lock in files for lock in _LOCKS_ABOVE) or any(map(partial(_has_file, folder), _LISTS_INSIDE))
    return name in _OF_DEPENDENCIES or _has_file(folder, _VIRTUAL_ENVIRONMENT)


def _has_file(folder: str, name: str) -> bool:
    return os.path.lexists(os.path.join(folder, name))  # noqa: PTH118 - for each folder of a tree


def is_unicode(name: str) -> bool:
    """Return whether a file's name is Unicode. File systems allow any bytes, and reports are UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def reason_not_read(file: InputFile) -> str:
    """Return why a file of a folder, or a link to a folder, is not read; "" if it may be read."""
    if not is_unicode(file.name):
        return NOT_UNICODE
    try:
        is_regular = file.is_named or stat.S_ISREG(os.lstat(file.name).st_mode)
    except OSError:
        return ""
    try:
        if not is_regular:
            os.close(_descriptor_below(file.root, PurePath(file.name)))
    except NotReadError as error:
        return str(error.strerror)
    except FileNotFoundError:
        return "it is a link that leads nowhere"
    except OSError:
        return ""
    return ""


def leads_out_by_link(folder: Path) -> bool:
    """Return whether a path below the working directory leads out of this directory by a link. An author of audited
    files may have made the link.
    """
    is_below = not folder.is_absolute() and ".." not in folder.parts
    return is_below and not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath("."))


def write_file_of_folder(file: Path, text: str) -> None:
    """Overwrite a file of a folder. A link in its place is replaced, and its target is not changed."""
    part = file.with_name(f".{file.name}.part")
    part.unlink(missing_ok=True)
    try:
        with part.open("x", encoding="utf-8") as stream:
            stream.write(text)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _read_pieces(stream: IO[bytes], max_bytes: int) -> bytes:
    """Read until the end of the stream, or more than `max_bytes`, in pieces. One read() would reserve `max_bytes`."""
    pieces, size = list[bytes](), 0
    for piece in iter(partial(stream.read, min(_PIECE_BYTES, max_bytes + 1)), b""):
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            break
    return b"".join(pieces)


def _descriptor_below(root: str, path: PurePath) -> int:
    """Open a regular file below a folder. Links that stay in the folder are followed.

    Raises:
        NotReadError: the file is not regular, or is outside of the folder.
        OSError: as open() does.
    """
    top = list(PurePath(os.path.realpath(root)).parts)
    is_below = path.is_relative_to(root)
    waiting = deque(path.relative_to(root).parts if is_below else Path(path).absolute().parts[1:])
    if not is_below:
        _return_inside(root, top, top[:1], waiting)
    folders = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    links = 0
    try:
        while waiting:
            part = waiting.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                if len(folders) > 1:
                    os.close(folders.pop())
                else:
                    _return_inside(root, top, top[:-1], waiting)
                continue
            mode = os.stat(part, dir_fd=folders[-1], follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                links += 1
                if links > _MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                target = os.readlink(part, dir_fd=folders[-1])
                waiting.extendleft(reversed(target.split("/")))
                if target.startswith("/"):
                    while len(folders) > 1:
                        os.close(folders.pop())
                    _return_inside(root, top, top[:1], waiting)
            elif stat.S_ISDIR(mode):
                if links and part in PRIVATE_FOLDERS:
                    raise NotReadError(errno.EXDEV, f"a link leads into `{part}`")
                folders.append(os.open(part, _FOLDER, dir_fd=folders[-1]))
            elif any(each not in ("", ".") for each in waiting):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            else:
                return _regular_descriptor(part, mode, folders[-1])
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    finally:
        for each in folders:
            os.close(each)


def _return_inside(root: str, top: list[str], at: list[str], waiting: deque[str]) -> None:
    """Take the steps of a path that left the folder `root` from `waiting`, until the path is in the folder again.

    `top` is the resolved path of the folder. `at` is the place outside, where the steps begin.

    Raises:
        NotReadError: the steps do not lead into the folder.
    """
    while waiting and at != top:
        part = waiting.popleft()
        if part == "..":
            at = at[:-1] or at
        elif part not in ("", "."):
            at = [*at, part]
        if at != top[: len(at)]:
            break
    if at != top:
        raise NotReadError(errno.EXDEV, f"the file behind its links is outside `{root}`")


def _regular_descriptor(name: str, mode: int, folder: int) -> int:
    """Open a regular file of an open folder. Refuse another kind of file, also if it replaced the regular file."""
    if stat.S_ISREG(mode):
        descriptor = os.open(name, _FILE, dir_fd=folder)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    raise NotReadError(errno.EINVAL, "it is not a regular file")


def path_as_shown(file: str | Path) -> str:
    """Return a path for messages. A path below the working directory is relative to that directory."""
    place, current_folder = Path(file), Path.cwd()
    return (
        str(place.relative_to(current_folder))
        if place.is_absolute() and place.is_relative_to(current_folder)
        else str(file)
    )


def url_in_place_of_file(file: str | Path) -> str:
    """Return the URL that a user wrote in place of a file; "" for a file. A Path contains only one of the two slashes
    of `://`.
    """
    match = _ADDRESS.fullmatch(str(file))
    return f"{match[1]}://{match[2]}" if match else ""
