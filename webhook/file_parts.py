"""Large files, a part at a time: whole documents of a YAML stream, or lines of JSON lines, of about a megabyte.

A JSON document, and a YAML stream whose documents can be told apart by a parser alone (directives, `...`), is one part.
Knows where documents end and nothing of what is in them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from webhook.errors import InputError, Problem
from webhook.input_files import MAX_BYTES, AnyFile, OpenFile, as_input_file, open_file
from webhook.yamlfile import decode_text, shown

_BLOCK: Final = 1 << 20
"""Bytes that are read at a time, and about the size of a part."""
_IN_MEMORY: Final = 8 << 20
"""Bytes of standard input that are kept in memory; more goes to a temporary file."""
MAX_COPIED_BYTES: Final = 4 << 30
"""Bytes of standard input or a pipe; only there the end of an input without end would not be met while it is read."""
_LINES: Final = (".ndjson", ".jsonl")
_WHOLE: Final = re.compile(rb"^(?:%|\.\.\.)|\r(?!\n)", re.MULTILINE)
"""In a text that has this, only a parser knows where a document ends."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file, and how many lines stand above it."""

    text: str
    above: int
    size_bytes: int


class RereadableFiles:
    """Files, pipes, and standard input as `-`, each of which can be read several times.

    Args:
        open_file: opens a file, also one that is not on this machine.
        max_copied_bytes: the most that is copied of standard input or a pipe.
    """

    def __init__(self, open_file: OpenFile = open_file, max_copied_bytes: int = MAX_COPIED_BYTES) -> None:
        self._open_file = open_file
        self._max_copied_bytes = max_copied_bytes
        self._spooled: dict[str, IO[bytes]] = {}

    def read_parts(self, file: AnyFile) -> Iterator[FilePart]:
        """Yield the parts of a file in order.

        Raises:
            InputError: it cannot be read, has a document that is too large, or is not UTF-8.
        """
        above, path = 0, str(file)
        try:
            with self._open_for_reading(file) as stream:
                for data in _split_at_documents(stream, path):
                    yield FilePart(_decode_utf8(data, path, above), above, len(data))
                    above += data.count(b"\n")
        except OSError as error:
            reason = (error.strerror or "unknown cause").lower()
            raise InputError(Problem(message=f"cannot be read: {reason}", file=shown(path))) from None

    def set_content(self, name: str, data: bytes) -> None:
        """Make `data` the content that is read under a name."""
        self._spooled[name] = self._copy(BytesIO(data), name)

    def size_bytes(self, path: str) -> int:
        """Return how many bytes a file has; 0 where that is unknown."""
        try:
            return 0 if path == "-" else Path(path).stat().st_size
        except OSError:
            return 0

    def close(self) -> None:
        """Delete the copies of standard input and pipes."""
        for kept in self._spooled.values():
            kept.close()
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
        kept = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - it is read again until the process ends
        while block := stream.read(_BLOCK):
            if kept.tell() + len(block) > self._max_copied_bytes:
                kept.close()
                message = f"the input is larger than {self._max_copied_bytes >> 20} MiB; split it"
                raise InputError(Problem(message=message, file=shown(path)))
            kept.write(block)
        return kept


def _split_at_documents(stream: IO[bytes], path: str) -> Iterator[bytes]:
    """Yield the bytes of each part of a file."""
    held, is_first = bytearray(stream.read(_BLOCK)), True
    is_lines = path.endswith(_LINES)
    is_whole = not is_lines and (path.endswith(".json") or held.lstrip().startswith((b"{", b"[")))
    while block := stream.read(_BLOCK):
        held += block
        if not is_whole and (cut := held.rfind(b"\n") + 1 if is_lines else _start_of_last_document(held)):
            is_whole = not is_lines and _WHOLE.search(held) is not None
            if not is_whole:
                yield bytes(held[:cut])
                del held[:cut]
                is_first = False
        if len(held) > MAX_BYTES:
            what = "the file is" if is_whole else "a document is"
            message = f"{what} larger than {MAX_BYTES >> 20} MiB; split it"
            raise InputError(Problem(message=message, file=shown(path)))
    if held or is_first:
        yield bytes(held)


def _start_of_last_document(held: bytearray) -> int:
    """Return where the last document of these bytes begins, whose end is not read yet; 0 where it is the first."""
    at = held.rfind(b"\n---")
    while at > 0 and not held[at + 4 : at + 5].isspace():
        at = held.rfind(b"\n---", 0, at)
    return max(at + 1, 0)


def _decode_utf8(data: bytes, path: str, above: int) -> str:
    try:
        return decode_text(data, path)
    except UnicodeDecodeError as error:
        line = above + data.count(b"\n", 0, error.start) + 1
        problem = Problem(message="is not UTF-8 text; expected YAML or JSON", file=shown(path), line=line)
        raise InputError(problem) from None
