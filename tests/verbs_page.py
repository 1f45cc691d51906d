"""The reference of verbs, made from the help of the command line: `python -m tests.verbs_page` writes docs/verbs.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from webhook.typer_application import EXIT_CODES, VERBS, create_typer_application

PAGE = Path(__file__).parents[1] / "docs" / "verbs.md"
_HEAD = """# Verbs

Every verb with its arguments and flags, as `claimgate VERB --help` tells them (`make docs` writes this page).
[commands.md](commands.md) says what they are for. A flag with a variable takes the variable's value where it is not given:
[settings.md](settings.md).
"""


def page() -> str:
    """The whole page, in Markdown."""
    group = typer.main.get_command(create_typer_application())
    context = typer.Context(group, info_name="claimgate")
    lines = [_HEAD]
    for verb in VERBS:
        lines += _verb(group.get_command(context, verb), f"claimgate {verb}", "##")
    lines += ["## Exit codes\n", "| exit code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join([*lines, ""])


def _verb(command: Any, path: str, level: str) -> Iterator[str]:
    """A verb, and those below it."""
    context = typer.Context(command, info_name=path)
    below = getattr(command, "commands", {})
    yield f"{level} {path}\n"
    yield from (f"{' '.join(each.split())}\n" for each in (command.help or "").replace("\b", "").split("\n\n") if each)
    if not below:
        yield f"```text\n{path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    yield from _table([record for each in command.params if (record := each.get_help_record(context))])
    for name, each in below.items():
        yield from _verb(each, f"{path} {name}", "###")


def _table(records: list[tuple[str, str]]) -> Iterator[str]:
    if records:
        yield from ("| argument or flag | what it says |", "|---|---|")
        yield from (f"| `{_cell(names)}` | {_cell(' '.join(told.split()))} |" for names, told in records)
        yield ""


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)


if __name__ == "__main__":
    PAGE.write_text(page())
