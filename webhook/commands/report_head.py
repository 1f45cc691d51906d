"""Describes a run for the head of its report. Every verb that writes reports uses it."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

import typer

from webhook.report.writer import RunDescription


def describe_run(
    command_line: typer.Context | None, *, policies: str = "", revision: str = "", docs_address: str = ""
) -> RunDescription:
    """Return how a report is made, with the present time.

    Args:
        command_line: the context of the command line, as the program got it; None if another verb calls this verb.
        policies: the sets of policies.
        revision: the commit that is checked out.
        docs_address: where the documentation is published.
    """
    arguments = command_line.obj if command_line is not None else None
    return RunDescription(
        time=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        command=shlex.join(("claimgate", *arguments)) if arguments is not None else "",
        policies=policies,
        revision=revision,
        docs_address=docs_address,
    )
