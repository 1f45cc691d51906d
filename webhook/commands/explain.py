"""`claimgate explain`: one rule, as its page says it. Reads the pages that were written ahead, and no policy."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from webhook.commands.options import complete_rule
from webhook.rules import pages


def command(
    rule: Annotated[
        list[str],
        typer.Argument(
            metavar="RULE",
            help="The id of a rule, such as gpu-portable/all, a group, or a whole message.",
            autocompletion=complete_rule,
        ),
    ],
) -> int:
    """Explain a shipped rule: what it demands, why, its source, a bad and a good example.

    For rules of your own policies, use `claimgate policies rules --rule ID DIR`.
    """
    sys.stdout.write(pages.sections_about_rules(rule))
    return 0
