"""What is done about a rule: what the catalogue says, unless the params of a policy name the rule.

`data.deny`, `data.warn` and `data.ignore` of a ConfigMap list rule ids, separated by spaces, commas or line ends. A
rule that several of them name is treated by the strictest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from webhook.attributes import JSON
from webhook.problems.catalogue import Catalogue

Action: TypeAlias = Literal["Deny", "Warn", "Ignore"]
_ACTIONS: Final[Mapping[str, Action]] = {"ignore": "Ignore", "warn": "Warn", "deny": "Deny"}
_SEPARATOR: Final = re.compile(r"[\s,]+")
_NONE: Final[Mapping[str, Action]] = MappingProxyType({})
_LONGEST: Final = 100_000
"""Characters of one list that are kept between requests."""


def chosen(param: JSON) -> Mapping[str, Action]:
    """The rules that a param names, with what is done about each."""
    data = param.get("data") if isinstance(param, dict) else None
    if not isinstance(data, dict):
        return _NONE
    lists = tuple(str(data.get(name) or "") for name in _ACTIONS)
    if not any(lists):
        return _NONE
    return _chosen(lists) if sum(map(len, lists)) < _LONGEST else _chosen.__wrapped__(lists)


@lru_cache(maxsize=64)
def _chosen(lists: tuple[str, ...]) -> Mapping[str, Action]:
    actions: dict[str, Action] = {}
    for text, action in zip(lists, _ACTIONS.values(), strict=True):  # the strictest last
        actions.update(dict.fromkeys(filter(None, _SEPARATOR.split(text)), action))
    return actions


def action(rule: str, catalogue: Catalogue, named: Mapping[str, Action]) -> Action:
    """What is done about a problem of a rule."""
    return named.get(rule) or _ACTIONS[catalogue[rule].level]


def unknown(param: JSON, known: Collection[str]) -> Iterator[str]:
    """The rule ids that a param names and no catalogue has."""
    yield from (rule for rule in chosen(param) if rule not in known)
