"""Defines the levels of rules and their effects (`EFFECTS`), and reads the level of a rule from several sources.

A later source overrides an earlier source:

1. The catalogue: the level of the rule's record.
2. The params: `data.deny`, `data.warn`, `data.audit`, `data.advice` and `data.off` of a ConfigMap list ids of rules,
   separated by spaces, commas or line ends. If several lists name a rule, the strictest list is used.
3. The configuration file: `levels` of groups and rules. The level of a rule overrides the level of its group. A
   configuration also sets keys of params (`params`, `releases`). Then its lists replace the lists of the ConfigMap.

The validationActions of a binding limit every rule of its policy. With [Warn], no rule denies.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from sys import getsizeof
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.site_params import data_of_config_map
from webhook.deadline import Deadline
from webhook.rules.decisions import ValidationAction
from webhook.text.caches import TwoGenerationCache

Action: TypeAlias = Literal["Deny", "Warn", "Audit", "Advice", "Off"]
"""The action for a problem, with its name in expressions."""
Level: TypeAlias = Literal["deny", "warn", "audit", "advice", "off"]
"""The action for a problem, with its name in records and params."""
Chosen: TypeAlias = Mapping[str, Action]
"""The chosen actions of some rules, by their ids."""


class LevelEffect(Struct, frozen=True):
    """The effect of a level: the action in expressions, and texts about requests and reports."""

    action: Action
    at_admission: str
    in_reports: str


EFFECTS: Final[Mapping[Level, LevelEffect]] = MappingProxyType(
    {
        "deny": LevelEffect(
            "Deny", "the `validationActions` of the binding: with `Deny` the request is denied", "a failure"
        ),
        "warn": LevelEffect("Warn", "a warning; the request passes", "a warning"),
        "audit": LevelEffect(
            "Audit", "an audit annotation, as with `validationActions: [Audit]`; users do not see it", "a warning"
        ),
        "advice": LevelEffect(
            "Advice",
            "nothing",
            "with `--advice` of replay, audit and test: a line that begins with `advice`; exit codes ignore advice",
        ),
        "off": LevelEffect("Off", "nothing", "nothing"),
    }
)
"""The effect of each level. The strictest level is first."""
LEVELS: Final[tuple[Level, ...]] = tuple(EFFECTS)
REPORTED: Final[tuple[Action, ...]] = ("Deny", "Warn", "Audit", "Advice")
"""The actions with which a problem becomes a decision, the strictest first."""

OFF_IN_QUOTES: Final = 'write `"off"` in quotes, because YAML reads off as false'
OTHER_LISTS: Final = {"ignore": 'write `"off"`', "false": OFF_IN_QUOTES}
"""Wrong names of lists that users write, with the fixes. `ignore` was the name of `off` in earlier releases."""
_SEPARATOR: Final = re.compile(r"[\s,]+")
_NONE: Final[Chosen] = MappingProxyType({})
_CHARACTER_S: Final = 2e-7
"""Seconds for each character of a list. The lists of a ConfigMap may have a megabyte."""
_ID_BYTES: Final = 150
_KEPT: Final[TwoGenerationCache[tuple[str, ...], Chosen | None]] = TwoGenerationCache(2 << 20)


def actions_of_param(param: JSON, deadline: Deadline) -> Chosen:
    """Return the actions of the rules that a param names.

    Raises:
        Exception: the error of the deadline, if the time does not suffice for the lists.
    """
    data = data_of_config_map(param)
    lists = tuple([str(data.get(level) or "") for level in reversed(LEVELS)])
    if not any(lists):
        return _NONE
    named = _KEPT.get(lists, None)
    if named is None:
        deadline.require_time_for_call(sum(map(len, lists)) * _CHARACTER_S)
        named = _actions_of_lists(lists)
        _KEPT.put(lists, named, sum(map(getsizeof, lists)) + _ID_BYTES * len(named))
    return named


def _actions_of_lists(lists: tuple[str, ...]) -> Chosen:
    actions: dict[str, Action] = {}
    for text, level in zip(lists, reversed(LEVELS), strict=True):  # the strictest list last, to override
        actions.update(dict.fromkeys(_rule_ids_in_text(text), EFFECTS[level].action))
    return actions


def _rule_ids_in_text(text: str) -> Iterator[str]:
    return filter(None, _SEPARATOR.split(text))


def action_for_problem(rule: str, level: Level, *deciders: Chosen) -> Action:
    """Return the action of the last of `deciders` that names the rule, otherwise the action of the level."""
    for decided in reversed(deciders):
        if rule in decided:
            return decided[rule]
    return EFFECTS[level].action


def actions_within_binding(decided: Action, allowed: tuple[ValidationAction, ...]) -> tuple[ValidationAction, ...]:
    """Return the actions for a decided action, limited by the actions of the binding."""
    if decided == "Deny":
        return allowed
    if decided == "Warn":
        return actions_without_denial(allowed)
    return (ValidationAction.AUDIT,) if decided == "Audit" else (ValidationAction.ADVICE,)


def actions_without_denial(allowed: tuple[ValidationAction, ...]) -> tuple[ValidationAction, ...]:
    """Return the actions of a binding, with Warn in place of Deny."""
    return tuple(dict.fromkeys(ValidationAction.WARN if each is ValidationAction.DENY else each for each in allowed))


def mistakes_in_param(param: JSON, known: Collection[str]) -> Iterator[tuple[FieldPath, str]]:
    """Yield field and text of mistakes in a param: unknown rules, and unknown names of lists."""
    data = data_of_config_map(param)
    yield from (
        (("data", name), f"unknown list of rules `{name}`: {fix}") for name, fix in OTHER_LISTS.items() if name in data
    )
    for level in LEVELS:
        for rule in dict.fromkeys(_rule_ids_in_text(str(data.get(level) or ""))):
            if rule not in known:
                yield ("data", level), f"unknown rule `{rule}`: {_hint_for_unknown_rule(rule, sorted(known))}"


def _hint_for_unknown_rule(rule: str, known: Sequence[str]) -> str:
    close = get_close_matches(rule, known, n=1)
    return f"did you mean `{close[0]}`?" if close else "`claimgate policies rules` lists all rules"
