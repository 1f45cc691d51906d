"""The pages about shipped rules, which were written ahead: the section about one rule, and the ids of all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from webhook.errors import ConfigurationError
from webhook.input import shipped
from webhook.text.similar_names import nearest_name

_ID: Final = re.compile(r"[a-z0-9-]+/[a-z0-9-]+")
_HEADING: Final = re.compile(r"(?m)^## (\S+/\S+)$")


def sections_about_rules(rules: Sequence[str]) -> str:
    """Return the sections about rules, whose ids may have parentheses around them as in a message.

    Raises:
        ConfigurationError: there is no such rule, or there are no pages.
    """
    folder = shipped.rule_pages_folder()
    return "\n".join(_section_about_rule(folder, each.strip("()")) for each in rules)


def shipped_rule_ids() -> Iterator[str]:
    """Yield the ids of all shipped rules: those of checks, and those of policies with named validations.

    Raises:
        ConfigurationError: there are no pages.
    """
    return _ids_in_folder(shipped.rule_pages_folder())


def _section_about_rule(folder: Path, name: str) -> str:
    """Return the section about a rule from the page of its group.

    Raises:
        ConfigurationError: there is no such rule.
    """
    page = folder / f"{name.partition('/')[0]}.md"
    if _ID.fullmatch(name) and page.is_file():
        parts = _HEADING.split(page.read_text(encoding="utf-8"))
        sections = dict(zip(parts[1::2], parts[2::2], strict=True))
        if name in sections:
            return f"{name}\n\n{sections[name].strip()}\n"
    close = nearest_name(name, _ids_in_folder(folder))
    advice = f"did you mean {close}?" if close else "`claimgate policies rules` lists all"
    raise ConfigurationError(f"explain: no shipped rule is called `{name}`; {advice}")


def _ids_in_folder(folder: Path) -> Iterator[str]:
    for page in sorted(folder.glob("*.md")):
        yield from _HEADING.findall(page.read_text(encoding="utf-8"))
