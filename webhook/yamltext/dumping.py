"""Writes values as YAML that kubectl reads back as the same values."""

from __future__ import annotations

from typing import Any, Final

import yaml

from webhook.apimachinery.attributes import JSON
from webhook.text.terminal import escape_ci_commands_in_quotes, has_ci_command, is_graphic
from webhook.yamltext import scalars
from webhook.yamltext.unread import Unread, refuse_unread_part

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_UNLIMITED: Final = 1 << 30
"""A width above every line, so no text continues on another line."""


def dump(value: JSON) -> str:
    """Return the YAML of a value, with keys in their order and without aliases. Texts that kubectl would read as
    another type get quotes.

    If the YAML has control or invisible characters, all characters outside ASCII are escaped. A text that a CI system
    may take for a command is written in double quotes on one line, with an escape in the command.

    Raises:
        UnreadPartError: the value has a part that was not read.
    """
    text = _dumped(value, _Dumper)
    is_ascii = not is_graphic(text.replace("\n", ""))
    if has_ci_command(text):
        return escape_ci_commands_in_quotes(_dumped(value, _QuotingDumper, is_ascii=is_ascii, width=_UNLIMITED))
    return _dumped(value, _Dumper, is_ascii=True) if is_ascii else text


def _dumped(value: JSON, dumper: Any, *, is_ascii: bool = False, width: int = 120) -> str:
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=not is_ascii, width=width))


class _Dumper(_DUMPER):  # type: ignore[misc]  # the base class is the C class of libyaml or a Python class
    def ignore_aliases(self, data: JSON) -> bool:  # noqa: ARG002
        return True


class _QuotingDumper(_Dumper):
    """Puts texts with a line break, or with a possible command of a CI system, in double quotes."""


def _represent_text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text.rstrip("\n") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style if _stays_text(text) else '"')


def _represent_text_in_quotes(dumper: Any, text: str) -> Any:
    is_plain = _stays_text(text) and "\n" not in text and "::" not in text and "##" not in text
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


def _stays_text(text: str) -> bool:
    try:
        return scalars.resolve(text) is text
    except ValueError:
        return False


def _represent_unread_part(_: Any, part: Unread) -> Any:
    refuse_unread_part(part)  # claimgate could not read YAML with such a part


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(Unread, _represent_unread_part)
_QuotingDumper.add_representer(str, _represent_text_in_quotes)
