"""`claimgate explain`: one rule, as its page says it. Reads the pages that were written ahead, and no policy."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from webhook import shipped
from webhook.errors import ConfigurationError
from webhook.similar_names import nearest_name

_ID: Final = re.compile(r"[a-z0-9-]+/[a-z0-9-]+")
_NAMED: Final = re.compile(r"(?m)^## (\S+/\S+)$")


def command(
    rule: Annotated[
        list[str], typer.Argument(metavar="RULE", help="The id of a rule, as it ends a message: gpu-portable/all.")
    ],
) -> int:
    """Say of a shipped rule what it demands and why, where it comes from, and show a bad and a good example.

    For rules of your own policies there is `claimgate policies rules --rule ID DIR`.
    """
    folder = shipped.rule_pages_folder()
    sys.stdout.write("\n".join(_section_about_rule(folder, each.strip("()")) for each in rule))
    return 0


def _section_about_rule(folder: Path, name: str) -> str:
    """Return the section about a rule from the page of its group.

    Raises:
        ConfigurationError: there is no such rule.
    """
    page = folder / f"{name.partition('/')[0]}.md"
    if _ID.fullmatch(name) and page.is_file():
        parts = _NAMED.split(page.read_text(encoding="utf-8"))
        sections = dict(zip(parts[1::2], parts[2::2], strict=True))
        if name in sections:
            return f"{name}\n\n{sections[name].strip()}\n"
    close = nearest_name(name, _all_rule_names(folder))
    advice = f"did you mean {close}?" if close else "`claimgate policies rules` lists all"
    raise ConfigurationError(f"explain: no shipped rule is called `{name}`; {advice}")


def _all_rule_names(folder: Path) -> Iterator[str]:
    for page in sorted(folder.glob("*.md")):
        yield from _NAMED.findall(page.read_text(encoding="utf-8"))
