"""`-o FORMAT[=FILE]`: reading it and delivering to it. Knows no format."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from webhook.errors import ConfigurationError

Writer: TypeAlias = Callable[[], str]
"""Makes the text of one format when it is wanted."""


@dataclass(frozen=True, slots=True)
class Output:
    """One chosen format and where it goes; file "" is stdout."""

    format: str
    file: str = ""


def parse(chosen: Sequence[str] | None, known: Sequence[str]) -> tuple[Output, ...]:
    """The outputs chosen by the flags; text on stdout when none was.

    Args:
        chosen: flag values, `FORMAT` or `FORMAT=FILE`; the file `-` is stdout.
        known: the formats of the verb.

    Raises:
        ConfigurationError: an unknown format, an empty file name, or two formats for stdout.
    """
    outputs = tuple(_parse(text, known) for text in chosen or ["text"])
    if sum(not output.file for output in outputs) > 1:
        raise ConfigurationError("--output: only one format can go to stdout; write the others as `FORMAT=FILE`")
    return outputs


def _parse(text: str, known: Sequence[str]) -> Output:
    name, equals, file = text.partition("=")
    if name not in known:
        raise ConfigurationError(f"--output: unknown format `{name}`, expected one of {', '.join(known)}")
    if equals and not file:
        raise ConfigurationError(f"--output: `{text}` names no file; write `{name}` or `{name}=FILE`")
    return Output(name, "" if file == "-" else file)


def deliver(outputs: Sequence[Output], writers: Mapping[str, Writer]) -> None:
    """Write each output once, files first, so that a full report exists when stdout's reader goes away.

    Args:
        outputs: what `parse` gave.
        writers: format -> the function that makes its text.
    """
    for output in sorted(outputs, key=lambda output: not output.file):
        text = writers[output.format]()
        if output.file:
            Path(output.file).write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(text)
