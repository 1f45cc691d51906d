"""Reads lines of log files, plain or compressed by gzip, a few megabytes at a time.

A damaged file is read up to the damage.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from webhook.errors import InputProblem
from webhook.yamltext.input_files import FoundFile, InputFile, Listed, OpenFile, open_file, walk_folder
from webhook.yamltext.yamlfile import problem_of_absent_file, shown

_PART: Final = 2 << 20
"""The bytes of lines in one part."""
LONGEST: Final = 32 << 20
"""The most bytes of a line: enough for an event with two objects of 1.5 MB, the limit of etcd, with JSON escapes."""
_IN_NAMES: Final = (".log", ".json", ".ndjson")
"""Parts of the names of log files. `.json` also matches `.jsonl`."""
_GZIP: Final = b"\x1f\x8b"
_MOST_UNPACKED: Final = 200
"""The most unpacked bytes for each packed byte. Audit logs have 10 to 40, and gzip allows 1,000."""
_UNPACKED_ANYHOW: Final = 64 << 20
"""Unpacked bytes that are always allowed, even for a small packed file."""


@dataclass(frozen=True, slots=True)
class LogPart:
    """Whole lines of a file, or the problem with the rest of the file.

    Attributes:
        first: the number of the first line, from 1.
        read_bytes: the bytes of the stored file that were read for these lines.
    """

    file: str
    lines: Sequence[bytes] = field(repr=False, default=())
    first: int = 1
    read_bytes: int = 0
    problem: InputProblem | None = None


def list_log_files(named: Sequence[str]) -> Listed:
    """Return the named log files, the log files of named folders, and problems of missing files.

    In a folder, files with `.log`, `.json`, `.jsonl` or `.ndjson` in their names are logs. Logs are sorted by the time
    of the last write, so older rotated logs come first.
    """
    files: dict[str, InputFile] = {}
    problems: list[InputProblem] = []
    not_read: list[FoundFile] = []
    for name in named:
        path = Path(name)
        if name != "-" and not path.exists():
            problems.append(problem_of_absent_file(name))
        elif name != "-" and path.is_dir():
            walked = list(walk_folder(path, _is_log_name, enters=lambda _: False))
            logs = [each.file for each in walked if not each.reason and each.file.path.exists()]
            not_read += [each for each in walked if each.reason and not each.is_folder]
            if not logs:
                message = (
                    f"has no logs; expected files with {' or '.join(_IN_NAMES)} in their names, or the name of a file"
                )
                problems.append(InputProblem(message=message, file=shown(name)))
            logs.sort(key=lambda each: (each.path.stat().st_mtime, each.path.name))
            files.update((each.name, each) for each in logs)
        else:
            files[name] = InputFile(name)
    return Listed(files=tuple(files.values()), problems=tuple(problems), not_read=tuple(not_read))


def _is_log_name(name: str) -> bool:
    return not name.startswith(".") and any(each in name for each in _IN_NAMES)


def read_log_parts(log: InputFile, open_file: OpenFile = open_file) -> Iterator[LogPart]:
    """Yield the lines of a file, or of standard input (`-`), in parts."""
    first, file = 1, log.name
    try:
        raw: IO[bytes] = sys.stdin.buffer if file == "-" else open_file(log)
        with raw:
            before = 0
            for lines in _lists_of_whole_lines(raw):
                at = raw.tell() if raw.seekable() else 0
                yield LogPart(shown(file), lines, first, at - before)
                first, before = first + len(lines), at
    except _LineTooLongError:
        yield _part_with_problem(file, first, f"a line is longer than {LONGEST >> 20} MiB")
    except _UnpackedTooLargeError:
        message = f"the gzip stream unpacks to more than {_MOST_UNPACKED} times its size; the part before it was read"
        yield _part_with_problem(file, first, message)
    except EOFError:
        yield _part_with_problem(file, first, "the gzip stream is cut off here; the part before it was read")
    except (gzip.BadGzipFile, zlib.error):
        yield _part_with_problem(file, first, "the gzip stream is damaged here; the part before it was read")
    except OSError as error:
        yield _part_with_problem(file, 0, f"cannot be read: {(error.strerror or 'unknown cause').lower()}")


def _part_with_problem(file: str, line: int, message: str) -> LogPart:
    return LogPart(shown(file), problem=InputProblem(message=message, file=shown(file), line=line))


class _LineTooLongError(Exception):
    """A line is longer than any event."""


class _UnpackedTooLargeError(Exception):
    """A gzip stream unpacks to far more bytes than a log."""


def _lists_of_whole_lines(raw: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield lists of whole lines. Lines before an error are yielded before the error is raised."""
    rest, size = list[bytes](), 0  # the pieces of a line that has not ended yet
    for block in _blocks(raw):
        if b"\n" not in block:
            rest.append(block)
            size += len(block)
        else:
            head, *lines = block.split(b"\n")
            rest.append(head)
            last = lines.pop()
            yield [b"".join(rest), *lines]
            rest, size = [last], len(last)
        if size > LONGEST:
            raise _LineTooLongError
    if size:
        yield [b"".join(rest)]


def _blocks(raw: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a file, unpacked if it is compressed by gzip.

    Raises:
        _UnpackedTooLargeError: there are far more unpacked than packed bytes.
    """
    beginning = raw.peek(2)[:2] if hasattr(raw, "peek") else b""
    if beginning != _GZIP:
        yield from iter(partial(raw.read, _PART), b"")
        return
    packed = _CountedBytes(raw)
    stream = gzip.GzipFile(fileobj=packed)  # type: ignore[call-overload]
    unpacked = 0
    for block in iter(partial(stream.read1, _PART), b""):
        unpacked += len(block)
        if unpacked > _UNPACKED_ANYHOW + _MOST_UNPACKED * packed.size:
            raise _UnpackedTooLargeError
        yield block


class _CountedBytes(Struct):
    """A stream that counts the bytes that are read from it."""

    stream: IO[bytes]
    size: int = 0

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size)
        self.size += len(data)
        return data
