"""`claimgate explain`: prints the page of one rule. The pages of shipped rules are part of the package."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from webhook.commands import options
from webhook.commands.options import complete_rule
from webhook.rules import pages
from webhook.settings.shared import Settings
from webhook.text import terminal

_SETTINGS: Final = ("workloads", "kubernetes_version", "own_namespace")


@options.add_settings_flags(Settings, *_SETTINGS)
def command(
    rule: Annotated[
        list[str],
        typer.Argument(
            metavar="RULE",
            help="The id of a rule, such as gpu-portable/all, a group, the name of your policy, or a whole message.",
            autocompletion=complete_rule,
        ),
    ],
    *,
    policies: Annotated[
        list[Path] | None,
        typer.Option(
            "--policies",
            metavar="DIR",
            help="Also explain the rules and policies of these folders and files; repeatable.",
        ),
    ] = None,
    settings: Settings,
) -> int:
    """Explain a rule: what the rule requires, why, its source, a bad and a good example.

    With --policies, also explain your own rules and policies. The examples are cases of the suites in the folders.
    """
    if not policies:
        sys.stdout.write(pages.sections_about_rules(rule))
        return 0
    from webhook.assembly import create_compile_options
    from webhook.suites.rule_reference import own_sections

    text = pages.sections_about_rules(rule, own_sections(policies, create_compile_options(settings)))
    sys.stdout.write(terminal.lines(text.removesuffix("\n").split("\n")))
    return 0
