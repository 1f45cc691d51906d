"""Reads the generated pages about shipped rules: the section about each rule, and the ids of all rules.

Sections about a site's own rules are found in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase, digits
from typing import Final

from webhook.errors import ConfigurationError
from webhook.input import shipped
from webhook.text.similar_names import nearest_name

_OF_IDS: Final = frozenset(f"{ascii_lowercase}{digits}/-")
_HEADING: Final = re.compile(r"(?m)^## (\S+/\S+)$")


def sections_about_rules(asked: Sequence[str], own: Mapping[str, str] | None = None) -> str:
    """Return a text about rules: the section about each rule, or the titles of a group's rules.

    Args:
        asked: ids (`ray/num-gpus`), names without a group (`num-gpus`), groups (`ray`), or the words of a pasted
            message, which has ids in parentheses.
        own: the sections about a site's own rules and policies, by id or name.

    Raises:
        ConfigurationError: a rule does not exist, or there are no pages.
    """
    sections = {**shipped_sections(), **(own or {})}
    are_names = all(_rules_of_name(name.strip("()"), sections) for name in asked)
    if mentioned := () if are_names else names_in_message(" ".join(asked), sections):
        return "\n".join(sections[name] for name in mentioned)
    of = "rule or policy" if own else "shipped rule"
    return "\n".join(_text_about_name(name.strip("()"), sections, of) for name in asked)


def shipped_sections() -> Mapping[str, str]:
    """Return the section about each shipped rule by id: id, title and text, separated by blank lines.

    Raises:
        ConfigurationError: there are no pages.
    """
    return _sections(shipped.rule_pages_folder())


def names_in_message(text: str, sections: Container[str]) -> Sequence[str]:
    """Return the rules and policies that a message names, in the order of the message, if they have a section."""
    return [name for name in dict.fromkeys(_ids_among_words(_words_of_ids(text))) if name in sections]


def shipped_rule_ids() -> Iterator[str]:
    """Yield the ids of all shipped rules: rules of checks, and rules of policies with named validations.

    Raises:
        ConfigurationError: there are no pages.
    """
    return _ids_in_folder(shipped.rule_pages_folder())


def _words_of_ids(text: str) -> Sequence[str]:
    """Return the parts of a text that have only characters of ids."""
    return [word.strip("/") for word in "".join(each if each in _OF_IDS else " " for each in text).split()]


def _ids_among_words(words: Sequence[str]) -> Iterator[str]:
    """Yield the words that are ids: words with a group, and words after `policy`."""
    yield from (name for before, name in pairwise(("", *words)) if "/" in name or before == "policy")


def _rules_of_name(name: str, sections: Mapping[str, str]) -> Sequence[str]:
    """Return the ids of the rules that a name means. The name is an id, a name without a group, or a group."""
    if name in sections:
        return (name,)
    return [each for each in sections if name in each.split("/")]


def _text_about_name(name: str, sections: Mapping[str, str], of: str) -> str:
    """Return the section about a rule. If the name means several rules, return a line for each rule.

    Raises:
        ConfigurationError: no rule has the name.
    """
    rules = _rules_of_name(name, sections)
    if not rules:
        close = nearest_name(name, (*sections, *(part for each in sections for part in each.split("/"))))
        advice = f"did you mean {close}?" if close else "`claimgate policies rules` lists all rules"
        raise ConfigurationError(f"explain: no {of} is called `{name}`; {advice}")
    if len(rules) == 1:
        return sections[rules[0]]
    width = max(map(len, rules))
    return "".join(f"{each:{width}}  {sections[each].split(chr(10))[2]}\n" for each in rules)


def _sections(folder: Path) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for page in sorted(folder.glob("*.md")):
        parts = _HEADING.split(page.read_text(encoding="utf-8"))
        texts.update({name: f"{name}\n\n{text.strip()}\n" for name, text in zip(parts[1::2], parts[2::2], strict=True)})
    return texts


def _ids_in_folder(folder: Path) -> Iterator[str]:
    for page in sorted(folder.glob("*.md")):
        yield from _HEADING.findall(page.read_text(encoding="utf-8"))
