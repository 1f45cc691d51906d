"""A backtest as text and as JSON. Counts nothing itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from webhook.commands.backtest_part import PartCounts, PolicySetCounts, RuleCount
from webhook.text import terminal
from webhook.text.wording import counted

_MOST: Final = 20
"""How many namespaces and users the text names; JSON has all."""
_TITLES: Final = {"policies": "these policies", "against": "the policies of --against"}


def backtest_text(counts: PartCounts) -> str:
    """Return the tables for a person."""
    return terminal.lines(_lines_of_report(counts))


def backtest_json(counts: PartCounts) -> str:
    """Return all counts as JSON."""
    sides = {side: _side_as_json(each) for side, each in counts.sides.items()}
    made = {
        "events": counts.events,
        "requests": counts.requests,
        "reads": counts.reads,
        "broken": counts.broken,
        "skipped": dict(sorted(counts.skipped.items())),
        **sides,
        **({"changed": _rules_as_json(counts.changed)} if len(sides) > 1 else {}),
    }
    return f"{terminal.escape_json_text(json.dumps(made, ensure_ascii=False, indent=2))}\n"


def _side_as_json(counts: PolicySetCounts) -> dict[str, Any]:
    return {
        "denied": counts.denied,
        "warned": counts.warned,
        "undecided": counts.undecided,
        "leftOut": counts.left_out.as_json(),
        "exceptions": dict(_sort_by_count(counts.exceptions)),
        "rules": _rules_as_json(counts.rules),
        "namespaces": dict(_sort_by_count(counts.namespaces)),
        "users": dict(_sort_by_count(counts.users)),
    }


def _rules_as_json(rules: Mapping[str, RuleCount]) -> dict[str, Any]:
    return {name: asdict(rules[name]) for name in _rules_by_effect(rules)}


def _lines_of_report(counts: PartCounts) -> Iterator[str]:
    for side, each in counts.sides.items():
        yield from _lines_of_side(_TITLES[side], each)
        yield ""
    if len(counts.sides) > 1:
        yield from _lines_of_changes(counts.changed)
        yield ""
    yield f"{counted(counts.events, 'event')}: {counts.requests} reviewed, {counts.reads} reads"
    for why, number in sorted(counts.skipped.items(), key=lambda each: (-each[1], each[0])):
        yield f"  not reviewed: {number}: {why}"
    if counts.broken:
        yield f"  not read: {counts.broken}"


def _lines_of_side(title: str, counts: PolicySetCounts) -> Iterator[str]:
    undecided = f", {counts.undecided} not decided" if counts.undecided else ""
    yield f"{title} would have denied {counted(counts.denied, 'request')} and warned of {counts.warned}{undecided}"
    for name in _rules_by_effect(counts.rules):
        rule = counts.rules[name]
        effects = {"denied": rule.denied, "warned of": rule.warned, "not decided": rule.undecided}
        told = ", ".join(f"{word} {number}" for word, number in effects.items() if number)
        yield f"  {name}: {told}"
        yield f"      {rule.message}"
        yield f"      first: {rule.example}"
    if counts.left_out:
        yield f"  {counts.left_out}"
    yield from (f"      {number} {reason}" for reason, number in _sort_by_count(counts.exceptions))
    for what, names in (("namespace", counts.namespaces), ("user", counts.users)):
        listed = [f"{name} {number}" for name, number in _sort_by_count(names)[:_MOST]]
        more = [f"{len(names) - _MOST} more (-o json has all)"] if len(names) > _MOST else []
        if listed:
            yield f"  by {what}: {', '.join([*listed, *more])}"


def _lines_of_changes(changed: Mapping[str, RuleCount]) -> Iterator[str]:
    if not changed:
        yield "both would have denied the same requests"
    for name in _rules_by_effect(changed):
        yield f"{name}: {counted(changed[name].denied, 'request')}"
        yield f"      {changed[name].message}"
        yield f"      first: {changed[name].example}"


def _rules_by_effect(rules: Mapping[str, RuleCount]) -> list[str]:
    return sorted(rules, key=lambda name: (-rules[name].denied, -rules[name].warned, name))


def _sort_by_count(names: Counter[str]) -> list[tuple[str, int]]:
    return sorted(names.items(), key=lambda each: (-each[1], each[0]))
