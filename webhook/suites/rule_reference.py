"""Writes the reference of all rules as Markdown: an index, a page for each group of rules, a section for each rule.

docs/rules has the pages of the shipped rules, and a test checks that they are up to date. One page for all rules would
be larger than 1 MB, which GitHub shows as plain text.

`claimgate explain --policies` shows the sections of the user's policies. A rule in rules.yaml gets a section, as
shipped rules do. Another policy gets its description, expressions and bindings, and the first denied and the first
allowed case of its suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from webhook.errors import InputError, InputProblem
from webhook.policy.compiled import Policy
from webhook.policy.load import Options, load_policy_set
from webhook.rules.actions import EFFECTS
from webhook.rules.rule import Rule
from webhook.suites.examples import Example, Pair, examples, examples_of_policies
from webhook.suites.rule_homes import RuleLocation, RuleLocator
from webhook.text.wording import did_you_mean
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import path_as_shown

_DESCRIPTION: Final = "kubernetes.io/description"
INDEX: Final = "README.md"
_TITLE: Final = """\
# Rules

*Written by `claimgate policies rules --pages`.*

This page lists all rules. Messages and reports name a rule by its id, which does not change. `claimgate explain ID`
shows one rule with a bad and a good example.

Each rule of a policy has a level, which you can change in the params of the policy. Write the ids of rules, separated
by spaces, into `data.deny`, `data.warn`, `data.audit`, `data.advice` or `data.off` of the ConfigMap that the binding of
the policy names. Write `"off"` in quotes, because YAML reads off as false. If several lists name a rule, the strictest
counts.

The `validationActions` of the binding limit the level: under `[Warn]` no rule denies. To switch off a rule of a policy
in CEL without checks, change the binding of the policy: its `validationActions`, or its `namespaceSelector`.
"""


def rule_pages(
    policies: Iterable[Policy], examples: Mapping[str, Pair], others: Iterable[Rule] = ()
) -> Mapping[str, str]:
    """Return every page by its file name: groups in alphabetical order, rules in the order of their modules.

    `others` are rules that no policy has.
    """
    groups: dict[str, list[StatedRule]] = {}
    for entry in (*rules_of_policies(policies).values(), *(StatedRule(rule, []) for rule in others)):
        groups.setdefault(entry.rule.group, []).append(entry)
    homes = RuleLocator()
    pages = {f"{group}.md": _page(group, groups[group], examples, homes) for group in sorted(groups)}
    return {INDEX: "\n".join((_TITLE, *_effects(), *_index(groups))), **pages}


def _effects() -> Iterator[str]:
    """Yield the table of levels and their effects."""
    yield from ("| level | at admission | in reports |", "|---|---|---|")
    yield from (f"| `{level}` | {effect.at_admission} | {effect.in_reports} |" for level, effect in EFFECTS.items())
    yield ""


def rules_as_text(
    policies: Iterable[Policy],
    examples: Callable[[], Mapping[str, Pair]],
    named: Sequence[str] = (),
    others: Iterable[Rule] = (),
) -> str:
    """Return the sections of the named rules as one text. Without names, return all sections. `others` are rules that
    no policy has.

    Raises:
        InputError: no policy states a named rule.
    """
    rules_by_id = {**rules_of_policies(policies), **{rule.id: StatedRule(rule, []) for rule in others}}
    unknown = [_unknown(each, rules_by_id) for each in named if each not in rules_by_id]
    if unknown:
        raise InputError(*unknown)
    chosen = [rules_by_id[each] for each in named or sorted(rules_by_id, key=lambda rule: rules_by_id[rule].rule.group)]
    homes, pairs = RuleLocator(), examples()
    return "\n".join(line for entry in chosen for line in rule_section(entry, pairs.get(entry.rule.id, Pair()), homes))


def _unknown(rule: str, known_rules: Iterable[str]) -> InputProblem:
    close = get_close_matches(rule, known_rules, n=1)
    hint = did_you_mean(close[0] if close else "", "`claimgate policies rules` lists all rules")
    return InputProblem(message=f"no policy states the rule `{rule}`: {hint}")


def _index(groups: Mapping[str, Sequence[StatedRule]]) -> Iterator[str]:
    for group in sorted(groups):
        yield f"- [{group}]({group}.md)"
        yield from (f"  {_item(each)}" for each in groups[group])
    yield ""


def _page(group: str, entries: Sequence[StatedRule], examples: Mapping[str, Pair], homes: RuleLocator) -> str:
    head = f"*Written by `claimgate policies rules --pages`; all rules: [{INDEX}]({INDEX})*"
    lines = [f"# {group}", "", head, ""]
    if any(entry.policies for entry in entries):
        lines += ["Your job was refused? [Here is what to do](../denials.md).", ""]
    lines += [*map(_item, entries), ""]
    for each in entries:
        lines += rule_section(each, examples.get(each.rule.id, Pair()), homes)
    return "\n".join(lines)


def _item(entry: StatedRule) -> str:
    return f"- [{entry.rule.id}]({rule_address(entry.rule)}): {entry.rule.title.rstrip('.')}"


@dataclass(frozen=True, slots=True)
class StatedRule:
    """A rule with the policies that state the rule. The first policy gives the topic."""

    rule: Rule
    policies: list[Policy]


def rules_of_policies(policies: Iterable[Policy]) -> Mapping[str, StatedRule]:
    """Return all rules of policies by their ids, in the order of the policies."""
    by_id: dict[str, StatedRule] = {}
    for policy in policies:
        for rule in (*policy.catalogue.values(), *policy.named):
            entry = by_id.setdefault(rule.id, StatedRule(rule, []))
            if policy not in entry.policies:
                entry.policies.append(policy)
    return by_id


def rule_section(entry: StatedRule, pair: Pair, homes: RuleLocator) -> Iterator[str]:
    """Yield the section of one rule: title, reason, source, function, policies, and examples."""
    rule = entry.rule
    yield from (f"## {rule.id}", "", rule.title, "", rule.why, "")
    if rule.refused_by:
        yield f"- Refused by: {rule.refused_by}"
    if rule.moment:
        yield f"- Without claimgate: {_lower_first_letter(rule.moment)}"
    if rule.level_in_tests and rule.level_of_object(is_of_tests=True) != rule.level:
        yield f"- In folders of tests (`test`, `tests`, `e2e`, `fixtures`): {rule.level_in_tests}"
    yield f"- Source: {' '.join(part for part in (rule.source, rule.function) if part)}"
    yield from (f"- Found by: {home}" for home in _locations_of_rule(entry, homes))
    if rule.issue_links_by_name:
        yield f"- Reported in: {links_to_issues(rule.issue_links_by_name)}"
    yield from (f"- {_text_about_policy_of_rule(policy, rule)}" for policy in entry.policies)
    if not entry.policies:
        off = f"off with `--skip {rule.id}` or `report.skip` of claimgate.yaml"
        yield f"- Only `claimgate audit` of files has the rule; {off}"
    yield ""
    for title, example in (("Bad", pair.bad), ("Good", pair.good)):
        if example is not None:
            yield from example_lines(title, example)


def _locations_of_rule(entry: StatedRule, homes: RuleLocator) -> Iterator[RuleLocation]:
    """Yield the functions that find objects which break a rule, or its validations in CEL."""
    yield from homes.find_in_checks(entry.rule)
    for policy in entry.policies:
        yield from homes.find_in_policy(entry.rule, policy)


def _lower_first_letter(title: str) -> str:
    return title[:1].lower() + title[1:]


def rule_address(rule: Rule) -> str:
    """Return the address of a rule below the folder of all pages."""
    return f"{rule.group}.md#{rule.id.replace('/', '')}"


def links_to_issues(reports: Mapping[str, str]) -> str:
    """Return links to issues by their short names."""
    return ", ".join(f"[{name}]({link})" for name, link in reports.items())


def _text_about_policy_of_rule(policy: Policy, rule: Rule) -> str:
    """Return a text with the policy of a rule, the actions of the policy's bindings, and how to switch the rule off."""
    actions = sorted({str(action) for binding in policy.bindings for action in binding.actions})
    if rule.id not in policy.catalogue:
        return f"Policy `{policy.name}` ({', '.join(actions) or 'not bound'})"
    done = actions if rule.level == "deny" else [EFFECTS[rule.level].action]
    names = [binding.param_source.name for binding in policy.bindings if binding.param_source]
    off = "".join(f'; off with `"off": {rule.id}` in the ConfigMap `{name}`' for name in dict.fromkeys(names) if name)
    return f"Policy `{policy.name}` ({', '.join(done) or 'not bound'}){off}"


def example_lines(title: str, example: Example) -> Iterator[str]:
    """Yield an example with its object, its former state, and the message of a bad example."""
    yield from (f"{title}: {example.name}", "", "```yaml")
    if example.operation == "UPDATE" and example.old is not None:
        yield from ("# before", *_yaml(example.old), "---", "# after")
    elif example.operation != "CREATE":
        yield f"# {example.operation}"
    yield from (*_yaml(example.object), "```", "")
    if example.messages:
        yield from ("```", *example.messages.split("\n"), "```", "")


def _yaml(value: object) -> list[str]:
    return yamlfile.dump(value).rstrip("\n").split("\n")


def own_sections(folders: Iterable[Path], options: Options) -> Mapping[str, str]:
    """Return the sections by the ids of rules and the names of policies.

    Raises:
        PolicyError: the policies have problems. The error lists all problems.
        InputError: a suite has mistakes.
    """
    places = list(folders)
    policies = load_policy_set(places, options).policies
    homes, of_rules, of_policies = RuleLocator(), examples(places, options), examples_of_policies(places, options)
    sections = {}
    for name, entry in rules_of_policies(policies).items():
        _, *lines = rule_section(entry, of_rules.get(name, Pair()), homes)
        sections[name] = _section(name, lines)
    for policy in policies:
        if not policy.named and not policy.catalogue:
            sections.setdefault(policy.name, _section(policy.name, _policy_lines(policy, of_policies)))
    return sections


def _section(name: str, lines: Iterable[str]) -> str:
    text = "\n".join(lines).strip()
    return f"{name}\n\n{text}\n"


def _policy_lines(policy: Policy, pairs: Mapping[str, Pair]) -> Iterator[str]:
    description = " ".join(policy.annotations.get(_DESCRIPTION, "").split())
    yield from (description or f"The {policy.kind} policy has no description (annotation {_DESCRIPTION}).", "")
    yield f"- File: {path_as_shown(policy.file)}"
    actions = sorted({str(action) for binding in policy.bindings for action in binding.actions})
    applies = ", ".join(actions) if policy.kind == "validating" else "changes objects"
    yield f"- Bindings: {applies if policy.bindings else 'none, so the policy is never evaluated'}"
    if policy.expands:
        yield "- Also evaluated on the pod templates of workloads"
    yield from (f"- Applies if: `{_joined(each.expression.source)}`" for each in policy.conditions)
    for rule in policy.rules:
        message = f": {_joined(rule.message)}" if rule.message else ""
        yield f"- Demands: `{_joined(rule.expression.source)}`{message}"
    yield from (f"- Changes: `{_joined(change.expression.source)}`" for change in policy.changes)
    if policy.docs:
        yield f"- Documentation: {policy.docs}"
    yield ""
    pair = pairs.get(policy.name, Pair())
    for title, example in (("Bad", pair.bad), ("Good", pair.good)):
        if example is not None:
            yield from example_lines(title, example)


def _joined(text: str) -> str:
    return " ".join(text.split())
