"""`claimgate policies rules`: the reference of rules, as one text or as pages, and tables of late failures."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from webhook import assembly, terminal
from webhook.commands import options, policy_folders
from webhook.commands.completion import complete_rule
from webhook.errors import ConfigurationError
from webhook.policy.load import load_policy_set
from webhook.settings.shared import Settings


@options.add_settings_flags(Settings, *policy_folders.SETTINGS)
def command(
    folder: policy_folders.Folders = None,
    *,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="ID",
            help="Print only this rule, such as device-claims/claim-exists; repeatable.",
            autocompletion=complete_rule,
        ),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write an index and a page for each group of rules into this folder."),
    ] = None,
    late: Annotated[
        bool, typer.Option("--late", help="Print tables of what would fail after it was accepted, and of reports.")
    ] = False,
    settings: Settings,
) -> int:
    """Print the reference of rules as Markdown.

    What each rule says and why, where it comes from, a bad and a good example out of the suites beside the policies,
    and how to switch it off.
    """
    from webhook.suites import late_failures, rule_pages
    from webhook.suites.examples import examples

    if (bool(rule), pages is not None, late).count(True) > 1:
        raise ConfigurationError("--rule, --pages and --late exclude each other: give one of them")
    chosen = policy_folders.settings_with_named_policies(folder, settings)
    places, how = assembly.policy_folders_of_settings(chosen), assembly.create_compile_options(chosen)
    policies = load_policy_set(places, how).policies
    if late:
        uncovered = () if folder else late_failures.read_uncovered_failures()
        text = late_failures.late_failures_as_markdown(policies, uncovered)
        sys.stdout.write(terminal.lines(text.removesuffix("\n").split("\n")))
    elif pages is not None:
        _write_pages(pages, rule_pages.rule_pages(policies, examples(places, how)))
    else:
        text = rule_pages.rules_as_text(policies, examples(places, how), rule or ())
        sys.stdout.write(terminal.lines(text.removesuffix("\n").split("\n")))
    return 0


def _write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        (folder / name).write_text(page, encoding="utf-8")
