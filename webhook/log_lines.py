"""Lines of log files, plain or compressed by gzip, a few megabytes at a time.

A file that is cut off or damaged gives what stands before. Knows nothing of what the lines mean.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from webhook.errors import Problem
from webhook.yamlfile import open_local_file, problem_of_absent_file, shown

_PART: Final = 2 << 20
"""Bytes of lines that are given at a time."""
LONGEST: Final = 32 << 20
"""Bytes of a line: an event with two objects of the 1.5 MB that etcd takes, and room for what JSON adds."""
_IN_NAMES: Final = (".log", ".json", ".ndjson")
"""What the names of logs in a folder have in them; `.json` is in `.jsonl`, too."""
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class LogPart:
    """Whole lines of a file, with the number of the first from 1; or what is wrong with the rest of it.

    read_bytes: how many bytes of the file, as it is stored, were read for them.
    """

    file: str
    lines: Sequence[bytes] = field(repr=False, default=())
    first: int = 1
    read_bytes: int = 0
    problem: Problem | None = None


def list_log_files(named: Sequence[str]) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """List the files in the named files and folders, a folder's older rotated logs first, and what does not exist.

    A folder gives its files whose names have `.log`, `.json`, `.jsonl` or `.ndjson` in them, by the time when they were
    last written, which is their order when they are rotated.
    """
    listed: dict[str, None] = {}
    problems: list[Problem] = []
    for name in named:
        path = Path(name)
        if name != "-" and not path.exists():
            problems.append(problem_of_absent_file(name))
        elif name != "-" and path.is_dir():
            logs = [each for each in path.iterdir() if each.is_file() and _is_log_name(each.name)]
            if not logs:
                told = (
                    f"has no logs; expected files with {' or '.join(_IN_NAMES)} in their names, or the name of a file"
                )
                problems.append(Problem(message=told, file=shown(name)))
            listed.update(
                (str(each), None) for each in sorted(logs, key=lambda each: (each.stat().st_mtime, each.name))
            )
        else:
            listed[name] = None
    return tuple(listed), tuple(problems)


def _is_log_name(name: str) -> bool:
    return not name.startswith(".") and any(each in name for each in _IN_NAMES)


def read_log_parts(file: str, open_file: Callable[[str], IO[bytes]] = open_local_file) -> Iterator[LogPart]:
    """Yield the lines of a file, `-` for standard input, in parts; `open_file` opens it by its name."""
    first = 1
    try:
        raw: IO[bytes] = sys.stdin.buffer if file == "-" else open_file(file)
        with raw:
            before = 0
            for lines in _lists_of_whole_lines(raw):
                at = raw.tell() if raw.seekable() else 0
                yield LogPart(shown(file), lines, first, at - before)
                first, before = first + len(lines), at
    except _LineTooLongError:
        yield _part_with_problem(file, first, f"a line is longer than {LONGEST >> 20} MiB")
    except EOFError:
        yield _part_with_problem(file, first, "the gzip stream is cut off here; what stands before was read")
    except (gzip.BadGzipFile, zlib.error):
        yield _part_with_problem(file, first, "the gzip stream is damaged here; what stands before was read")
    except OSError as error:
        yield _part_with_problem(file, 0, f"cannot be read: {(error.strerror or 'unknown cause').lower()}")


def _part_with_problem(file: str, line: int, message: str) -> LogPart:
    return LogPart(shown(file), problem=Problem(message=message, file=shown(file), line=line))


class _LineTooLongError(Exception):
    """Is raised for a line that is longer than any event."""


def _lists_of_whole_lines(raw: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield lists of whole lines; what was read before an error comes before the error."""
    begun = raw.peek(2)[:2] if hasattr(raw, "peek") else b""
    stream: IO[bytes] = gzip.GzipFile(fileobj=raw) if begun == _GZIP else raw  # type: ignore[assignment]
    rest = b""
    while True:
        try:
            block = stream.read1(_PART) if begun == _GZIP else stream.read(_PART)  # type: ignore[attr-defined]
        except (EOFError, gzip.BadGzipFile, zlib.error):
            if whole := rest.split(b"\n")[:-1]:
                yield whole
            raise
        if not block:
            break
        *lines, rest = (rest + block).split(b"\n") if rest else block.split(b"\n")
        if len(rest) > LONGEST:
            raise _LineTooLongError
        if lines:
            yield lines
    if rest:
        yield [rest]
