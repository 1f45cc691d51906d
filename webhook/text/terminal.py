r"""Makes text safe for a terminal, a CI log or a log file: control characters become visible and have no effect.

Otherwise people who choose names could deceive the readers of a log. A terminal obeys ESC, OSC and the C1 controls
(ECMA-48). Bidirectional and invisible characters make a text look like another (Unicode Standard Annex 9, Technical
Report 36). A line break turns a name into a line, and CI systems execute commands in lines. All these characters become
escapes: `\x1b`, `\u202e`, `\n`. Backslashes stay, because the text is for people.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

Shell: TypeAlias = Literal["bash", "zsh", "fish", "powershell", "pwsh"]
"""The shells that Typer completes."""
_LINE: Final = re.compile(r"\n(?= \| |\* |what to do: |ERROR: <input>:)")
_SHORT: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_COMMAND: Final = re.compile(r"^\s*:(?=:)|#(?=#(?:\[|vso\[|teamcity\[))")
"""Matches commands of CI systems: `::error` at the start of a line or after blanks, `##[error]` anywhere
(actions/runner ActionCommand.cs), `##vso[` (Azure Pipelines), and `##teamcity[`."""


def one_line(text: str) -> str:
    r"""Return the text on one line, with a visible escape for each character that is neither graphic nor a space."""
    if not text.isprintable():  # Cc, Cf, Cs, Co, Cn, Zl or Zp, or a blank other than " "
        text = "".join(map(_shown, text))
    return _COMMAND.sub(_escape_command_sign, text) if "::" in text or "##" in text else text


def message_lines(text: str) -> list[str]:
    """Split a message into its first line, problems (`* `), lines of source as in cel-go (` | `), and what to do."""
    return [one_line(part) for part in _LINE.split(text)]


def lines(texts: Iterable[str]) -> str:
    """Join texts, each on a separate line."""
    return "".join(f"{one_line(text)}\n" for text in texts)


def print_to_stderr(texts: Iterable[str]) -> None:
    """Write each text to stderr as one line, as `lines` does."""
    sys.stderr.write(lines(texts))


def escape_json_text(text: str) -> str:
    r"""Return equal JSON with `\uXXXX` for characters that are not graphic; line breaks between tokens stay.

    Args:
        text: a result of json.dumps, in which characters below U+0020 are already escaped.
    """
    text = escape_ci_commands_in_quotes(text)
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(character if character in " \n" else _in_json(character) for character in text)


def has_ci_command(text: str) -> bool:
    """Return whether a CI system would execute a command in a line."""
    return ("::" in text or "##" in text) and any(map(_COMMAND.search, text.split("\n")))


def escape_ci_commands_in_quotes(text: str) -> str:
    r"""Return equal JSON or YAML, with `\u0023` in the commands that CI systems execute anywhere in a line.

    Args:
        text: JSON or YAML that has such commands only in double quotes, and not at the beginning of a line.
    """
    if "##" not in text:
        return text
    return _COMMAND.sub(lambda match: rf"\u{ord(match[0]):04x}" if match[0] == "#" else match[0], text)


def is_graphic(text: str) -> bool:
    """Return whether every character is graphic or a space."""
    return text.isprintable() or all(map(_is_graphic, text))


def _shown(character: str) -> str:
    if _is_graphic(character):
        return character
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else _unicode_escape(code))


def _unicode_escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_graphic(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _in_json(character: str) -> str:
    if _is_graphic(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _escape_command_sign(match: re.Match[str]) -> str:
    # escapes the last character of the command
    sign = match[0][-1]
    return f"{match[0][:-1]}\\x{ord(sign):02x}"
