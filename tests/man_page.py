"""The manual page of the command line, made from its help: `python -m tests.man_page` writes deploy/claimgate.1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer

from webhook import __version__
from webhook.typer_application import EXAMPLES, EXIT_CODES, VERBS, create_typer_application

PAGE = Path(__file__).parents[1] / "deploy" / "claimgate.1"


def page() -> str:
    """Return the manual page in roff."""
    group = typer.main.get_command(create_typer_application())
    context = typer.Context(group, info_name="claimgate")
    lines = [
        f'.TH CLAIMGATE 1 "" "claimgate {__version__}"',
        ".SH NAME",
        "claimgate \\- admission webhook for AI and GPU workloads on Kubernetes",
        ".SH SYNOPSIS",
        ".B claimgate",
        "VERB [OPTIONS] [ARGUMENTS]",
        ".SH VERBS",
    ]
    for verb in VERBS:
        lines += _command(group.get_command(context, verb), f"claimgate {verb}")
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", f".B {code}", _escaped(meaning)]
    return "\n".join([*lines, ""])


def _command(command, path: str) -> Iterator[str]:
    inner = getattr(command, "commands", {})
    yield from (".SS " + _escaped(path), *map(_escaped, _paragraphs(command.help or "")))
    for line in () if inner else EXAMPLES[command.path]:
        yield from (".PP", f".B {_escaped(line)}")
    for each in command.params:
        names = ", ".join(each.opts) if each.opts[0].startswith("-") else (each.metavar or each.human_readable_name)
        yield from (".TP", f".B {_escaped(names)}", _escaped(" ".join((getattr(each, "help", "") or "").split())))
    for name, below in inner.items():
        yield from _command(below, f"{path} {name}")


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.replace("\b", "").strip().split("\n\n")):
        if number:
            yield ".PP"
        yield " ".join(paragraph.split())


def _escaped(text: str) -> str:
    """Return a text in which no line is a roff request."""
    if text == ".PP":
        return text
    made = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{made}" if made.startswith(".") else made


if __name__ == "__main__":
    PAGE.write_text(page())
