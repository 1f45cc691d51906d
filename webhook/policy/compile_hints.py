"""Hints about an expression that does not compile: the probable name, or the missing annotation.

The errors themselves are in the API server's words (expressions.py). Hints are shown below the errors for people, and
nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from webhook.cel import library
from webhook.cel.environment import Environment
from webhook.errors import CompileIssue
from webhook.facts.subject import SHIPPED
from webhook.manifests.annotations import PREFIX
from webhook.policy.foreign_habits import hints_for_habits
from webhook.rules.declarations import PROBLEMS
from webhook.text.similar_names import nearest_name

_UNDECLARED: Final = re.compile(r"undeclared reference to '([^']*)'")
_UNDEFINED: Final = re.compile(r"undefined field '([^']*)'")


def hints_for_issues(
    issues: Iterable[CompileIssue], place: Environment, source: str, facts: Iterable[str] = SHIPPED.fact_names
) -> tuple[str, ...]:
    """Return the hints for some issues, each hint once.

    Args:
        issues: the message of the checker about the expression.
        source: the expression.
        place: the names that the expression may use.
        facts: the names of all facts, declared or not.
    """
    declared = frozenset(facts)
    habits = {habit: text for habit, text in hints_for_habits(source) if habit not in place.variables}
    explained = frozenset(token for habit in habits for token in habit.split())
    told = [_hint_for_message(each.message, place, declared, explained) for each in issues]
    return tuple(dict.fromkeys(text for text in (*told, *habits.values()) if text))


def _hint_for_message(message: str, place: Environment, facts: frozenset[str], explained: frozenset[str]) -> str:
    """Return the hint for one issue; "" for a name that already has a hint."""
    if match := _UNDECLARED.match(message):
        if match[1] in explained:
            return ""
        return _hint_for_name(match[1], place, facts)
    if match := _UNDEFINED.match(message):
        fields = {name for structure in place.structures.values() for name in structure.fields}
        return _did_you_mean(match[1], fields)
    return ""


def _hint_for_name(name: str, place: Environment, facts: frozenset[str]) -> str:
    if name in facts:
        return f"`{name}` is a fact, which a policy has to ask for: add the annotation `{PREFIX}facts: {name}`"
    if name == PROBLEMS:
        return f"`{PROBLEMS}` is what checks find: name their groups in the annotation `{PREFIX}checks`"
    if name == "params":
        return "`params` exists only with `spec.paramKind`: add it, or remove `params`"
    return _did_you_mean(name, {*place.variables, *facts, *_function_names(place)})


def _function_names(place: Environment) -> Iterator[str]:
    """Yield the names of functions, without operators."""
    named = (*library.overloads_of_version(place.version), *place.functions)
    yield from (each.name for each in named if each.name[:1].isalpha())


def _did_you_mean(name: str, others: Iterable[str]) -> str:
    near = nearest_name(name, sorted(others))
    return f"did you mean `{near}`?" if near else ""
