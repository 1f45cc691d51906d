"""The reference of verbs, made from the help of the command line: `python -m tests.verbs_page` writes docs/verbs.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from webhook.typer_application import EXAMPLES, EXIT_CODES, VERBS, create_typer_application

PAGE = Path(__file__).parents[1] / "docs" / "verbs.md"
_HEAD = """# Verbs

This page lists every verb with its arguments and flags, as `claimgate VERB --help` prints them. [commands.md](commands.md)
has an overview. If a flag has a variable, claimgate reads the variable unless you pass the flag: [settings.md](settings.md).
(`make docs` writes this page.)
"""


def page() -> str:
    group = typer.main.get_command(create_typer_application())
    context = typer.Context(group, info_name="claimgate")
    lines = [_HEAD]
    for verb in VERBS:
        lines += _verb(group.get_command(context, verb), f"claimgate {verb}", "##")
    lines += ["## Exit codes\n", "| exit code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join([*lines, ""])


def _verb(command: Any, path: str, level: str) -> Iterator[str]:
    context = typer.Context(command, info_name=path)
    below = getattr(command, "commands", {})
    yield f"{level} {path}\n"
    yield from (f"{' '.join(each.split())}\n" for each in (command.help or "").replace("\b", "").split("\n\n") if each)
    if not below:
        usage = f"{path} {' '.join(command.collect_usage_pieces(context))}"
        yield "\n".join(("```text", usage, "", *EXAMPLES[command.path], "```", ""))
    yield from _table([record for each in command.params if (record := each.get_help_record(context))])
    for name, each in below.items():
        yield from _verb(each, f"{path} {name}", "###")


def _table(records: list[tuple[str, str]]) -> Iterator[str]:
    if records:
        yield from ("| argument or flag | meaning |", "|---|---|")
        yield from (f"| `{_cell(names)}` | {_cell(' '.join(told.split()))} |" for names, told in records)
        yield ""


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)


if __name__ == "__main__":
    PAGE.write_text(page())
