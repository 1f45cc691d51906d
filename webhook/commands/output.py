"""Parses `-o FORMAT[=FILE]`, writes to the chosen outputs, and describes a run for its report. Knows no format."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Final, Generic, TextIO, TypeAlias, TypeVar, cast

import typer
from msgspec import Struct

from webhook.errors import ConfigurationError
from webhook.report.rule import Rules
from webhook.report.screen import ScreenAwareWriter, screen_of
from webhook.report.writer import RunDescription, Totals, Writer
from webhook.yamltext.input_files import leads_out_by_link

Text: TypeAlias = Callable[[], str]
"""Returns the text of one format."""

Entry = TypeVar("Entry")
_BLOCK: Final = 1 << 16
_IN_MEMORY: Final = 1 << 20
"""The most characters of a waiting report in memory. A longer report goes to a temporary file."""


class Output(Struct, frozen=True):
    """A chosen format and its file. "" means stdout."""

    format: str
    file: str = ""


def parse_outputs(chosen: Sequence[str] | None, formats: Iterable[str]) -> tuple[Output, ...]:
    """Return the outputs of the flags. The default is text on stdout.

    Args:
        chosen: flag values, `FORMAT` or `FORMAT=FILE`; the file `-` is stdout.
        formats: the formats of the verb.

    Raises:
        ConfigurationError: an unknown format, an empty file name, an address, or two formats for stdout.
    """
    outputs = tuple(_parse_output(text, tuple(formats)) for text in chosen or ["text"])
    if sum(not output.file for output in outputs) > 1:
        raise ConfigurationError("--output: only one format can go to stdout; write the others as `FORMAT=FILE`")
    return outputs


def _parse_output(text: str, formats: Sequence[str]) -> Output:
    name, equals, file = text.partition("=")
    if name not in formats:
        raise ConfigurationError(f"--output: unknown format `{name}`, expected one of {', '.join(formats)}")
    if equals and not file:
        raise ConfigurationError(f"--output: `{text}` does not name a file; write `{name}` or `{name}=FILE`")
    if "://" in file:
        raise ConfigurationError(f"--output: `{file}` is an address, and only a file can be written: name a path")
    return Output(name, "" if file == "-" else file)


def write_to_outputs(outputs: Sequence[Output], texts: Mapping[str, Text]) -> None:
    """Write a document to each output. Files come first, because the reader of stdout may stop reading.

    `texts` has the function that makes the text of each format.
    """
    for output in _outputs_with_files_first(outputs):
        # only chosen formats are made, because a text may be long
        text = texts[output.format]()
        if output.file:
            with _open_for_writing(output.file) as stream:
                stream.write(text)
        else:
            sys.stdout.write(text)


class Report(Generic[Entry]):
    """Writes each entry to every output at once. A context manager, which closes the files.

    Nothing is written before the first entry or the end, so a run that cannot start does not change files.
    """

    def __init__(
        self,
        outputs: Sequence[Output],
        writers: Mapping[str, Callable[[], Writer[Entry]]],
        rules: Rules,
        *,
        waits: bool = False,
    ) -> None:
        """`writers` make the writer of each format. With `waits`, stdout is written only at the end."""
        writer_of_output = [(output, writers[output.format]()) for output in _outputs_with_files_first(outputs)]
        for output, writer in writer_of_output:
            if not output.file and isinstance(writer, ScreenAwareWriter):
                writer.use_screen(screen_of(sys.stdout))
        self._streams = [_Stream(output, writer, rules, waits=waits) for output, writer in writer_of_output]
        self._gone: BrokenPipeError | None = None

    def __enter__(self) -> Report[Entry]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for stream in self._streams:
            stream.close()

    def write_entry(self, entry: Entry) -> None:
        """Write one entry to every output. If stdout was closed, continue with the files."""
        for stream in tuple(self._streams):
            try:
                stream.write_entry(entry)
            except BrokenPipeError as error:
                self._drop_stream(stream, error)

    def add_texts(self, texts: Mapping[str, str]) -> None:
        """Write texts of several entries to the outputs of their formats."""
        for stream in tuple(self._streams) if texts else ():
            try:
                stream.write(texts.get(stream.format, ""))
            except BrokenPipeError as error:
                self._drop_stream(stream, error)

    def end(self, totals: Totals) -> None:
        """Write the end of the report to every output.

        Raises:
            BrokenPipeError: the reader of stdout went away; the files are complete.
        """
        for stream in tuple(self._streams):
            try:
                stream.end(totals)
            except BrokenPipeError as error:
                self._drop_stream(stream, error)
        if self._gone is not None:
            raise self._gone

    def _drop_stream(self, stream: _Stream[Entry], error: BrokenPipeError) -> None:
        """Stop writing to an output without a reader. If no output is left, raise the error."""
        self._streams.remove(stream)
        if not self._streams:
            raise error
        self._gone = error


class _Stream(Generic[Entry]):
    def __init__(self, output: Output, writer: Writer[Entry], rules: Rules, *, waits: bool) -> None:
        self.format = output.format
        self._file = output.file
        self._waits = waits and not output.file
        self._writer = writer
        self._rules = rules
        self._text: TextIO | None = None

    def write_entry(self, entry: Entry) -> None:
        text = self._open_and_begin_once()
        text.writelines(self._writer.entry(entry))

    def write(self, text: str) -> None:
        self._open_and_begin_once().write(text)

    def end(self, totals: Totals) -> None:
        text = self._open_and_begin_once()
        text.writelines(self._writer.end(totals))
        if self._waits:
            text.seek(0)
            while block := text.read(_BLOCK):
                sys.stdout.write(block)

    def close(self) -> None:
        if self._text is not None and self._text is not sys.stdout:
            self._text.close()

    def _open_and_begin_once(self) -> TextIO:
        if self._text is None:
            self._text = self._open_text_file()
            self._text.writelines(self._writer.begin(self._rules))
        return self._text

    def _open_text_file(self) -> TextIO:
        """Return the file of the output, a temporary file if stdout waits, or stdout."""
        if self._file:
            return _open_for_writing(self._file)
        if self._waits:
            return cast("TextIO", SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline=""))
        return sys.stdout


def _open_for_writing(file: str) -> TextIO:
    """Open a file of a report, new or emptied.

    An audited folder may contain a link that has the name of the report and leads to any place.

    Raises:
        ConfigurationError: the path below the working directory leads outside, or the file is a link. Links of the
            system such as /dev/stdout are allowed.
    """
    folder = Path(file).parent
    if leads_out_by_link(folder):
        raise ConfigurationError(f"`{folder}` leads out of the working directory by a link: name the folder itself")
    follows = 0 if file.startswith(("/dev/", "/proc/")) else os.O_NOFOLLOW
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | follows, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ConfigurationError(f"`{file}` is a link, and reports are not written to links: name a file") from None
        raise
    return os.fdopen(descriptor, "w", encoding="utf-8")


def _outputs_with_files_first(outputs: Sequence[Output]) -> list[Output]:
    return sorted(outputs, key=lambda output: not output.file)


def describe_run(
    command_line: typer.Context | None, *, policies: str = "", revision: str = "", docs_address: str = ""
) -> RunDescription:
    """Return the description of a run for its report, with the present time.

    `command_line` is None if another verb calls this verb. `revision` is the checked-out commit.
    """
    arguments = command_line.obj if command_line is not None else None
    return RunDescription(
        time=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        command=shlex.join(("claimgate", *arguments)) if arguments is not None else "",
        policies=policies,
        revision=revision,
        docs_address=docs_address,
    )
