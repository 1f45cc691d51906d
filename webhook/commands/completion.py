"""What a shell offers for the value of an argument or a flag: ids of shipped rules, and output formats.

Each function takes what was typed of the value so far, as Typer calls it.
"""

from __future__ import annotations

from collections.abc import Callable

from webhook import rule_pages


def complete_rule(incomplete: str) -> list[str]:
    """Return ids of shipped rules that begin with a text."""
    return [rule for rule in rule_pages.shipped_rule_ids() if rule.startswith(incomplete)]


def complete_rule_or_group(incomplete: str) -> list[str]:
    """Return ids and groups of shipped rules that begin with a text."""
    rules = tuple(rule_pages.shipped_rule_ids())
    groups = dict.fromkeys(rule.partition("/")[0] for rule in rules)
    return [name for name in (*groups, *rules) if name.startswith(incomplete)]


def complete_output(*formats: str) -> Callable[[str], list[str]]:
    """Return the completion of `FORMAT[=FILE]` for some formats: each alone, and with the sign before a file."""

    def complete(incomplete: str) -> list[str]:
        return [text for name in formats for text in (name, f"{name}=") if text.startswith(incomplete)]

    return complete
