"""Writes the reference of all rules as Markdown: an index, and a page for each group of rules.

Built from catalogues, policies and suites; docs/rules has the pages of the shipped rules, and a test compares them. One
page for all rules would have more than 1 MB, which GitHub shows as plain text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from webhook.errors import InputError, InputProblem
from webhook.policy.compiled import Policy
from webhook.rules.actions import EFFECTS
from webhook.suites.examples import Pair
from webhook.suites.rule_homes import RuleLocator
from webhook.suites.rule_reference import StatedRule, rule_address, rule_section, rules_of_policies
from webhook.text.wording import did_you_mean

INDEX: Final = "README.md"
_TITLE: Final = """\
# Rules

*Written by `claimgate policies rules --pages`.*

This page lists all rules. Messages and reports name a rule by its id, which does not change. `claimgate explain ID`
shows one rule with a bad and a good example.

Each rule has a level, which you can change in the params of its policy. Write the ids of rules, separated by spaces,
into `data.deny`, `data.warn`, `data.audit`, `data.advice` or `data.off` of the ConfigMap that the binding of the policy
names. Write `"off"` in quotes, because YAML reads off as false. If several lists name a rule, the strictest counts.

The `validationActions` of the binding limit the level: under `[Warn]` no rule denies. To switch off a rule of a policy
in CEL without checks, change the binding of the policy: its `validationActions`, or its `namespaceSelector`.
"""


def rule_pages(policies: Iterable[Policy], examples: Mapping[str, Pair]) -> Mapping[str, str]:
    """Return every page by its file name, groups in alphabetical order, rules in the order of their modules."""
    groups: dict[str, list[StatedRule]] = {}
    for entry in rules_of_policies(policies).values():
        groups.setdefault(entry.rule.group, []).append(entry)
    homes = RuleLocator()
    made = {f"{group}.md": _page(group, groups[group], examples, homes) for group in sorted(groups)}
    return {INDEX: "\n".join((_TITLE, *_effects(), *_index(groups))), **made}


def _effects() -> Iterator[str]:
    """Yield the table of levels and their effects."""
    yield from ("| level | at admission | in reports |", "|---|---|---|")
    yield from (f"| `{level}` | {effect.at_admission} | {effect.in_reports} |" for level, effect in EFFECTS.items())
    yield ""


def rules_as_text(
    policies: Iterable[Policy], examples: Callable[[], Mapping[str, Pair]], named: Sequence[str] = ()
) -> str:
    """Return the sections of the named rules as one text; of all rules if none is named.

    Raises:
        InputError: no policy states a rule that is named.
    """
    known = rules_of_policies(policies)
    unknown = [_unknown(each, known) for each in named if each not in known]
    if unknown:
        raise InputError(*unknown)
    chosen = [known[each] for each in named or sorted(known, key=lambda rule: known[rule].rule.group)]
    homes, pairs = RuleLocator(), examples()
    return "\n".join(line for entry in chosen for line in rule_section(entry, pairs.get(entry.rule.id, Pair()), homes))


def _unknown(rule: str, known: Iterable[str]) -> InputProblem:
    close = get_close_matches(rule, known, n=1)
    hint = did_you_mean(close[0] if close else "", "`claimgate policies rules` prints all of them")
    return InputProblem(message=f"no policy states the rule `{rule}`: {hint}")


def _index(groups: Mapping[str, Sequence[StatedRule]]) -> Iterator[str]:
    for group in sorted(groups):
        yield f"- [{group}]({group}.md)"
        yield from (f"  {_item(each)}" for each in groups[group])
    yield ""


def _page(group: str, entries: Sequence[StatedRule], examples: Mapping[str, Pair], homes: RuleLocator) -> str:
    head = f"*Written by `claimgate policies rules --pages`; all rules: [{INDEX}]({INDEX})*"
    lines = [f"# {group}", "", head, "", "Your job was refused? [Here is what to do](../denials.md).", ""]
    lines += [*map(_item, entries), ""]
    for each in entries:
        lines += rule_section(each, examples.get(each.rule.id, Pair()), homes)
    return "\n".join(lines)


def _item(entry: StatedRule) -> str:
    return f"- [{entry.rule.id}]({rule_address(entry.rule)}): {entry.rule.title.rstrip('.')}"
