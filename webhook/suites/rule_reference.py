"""Writes the section of one rule in the reference as Markdown. rule_pages.py makes pages of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from webhook.policy.compiled import Policy
from webhook.rules.actions import EFFECTS
from webhook.rules.moments import MOMENTS
from webhook.rules.rule import Rule
from webhook.suites.examples import Example, Pair
from webhook.suites.rule_homes import RuleLocation, RuleLocator
from webhook.yamltext import yamlfile


@dataclass(frozen=True, slots=True)
class StatedRule:
    """A rule with the policies that state it; the first policy gives the topic of the rule."""

    rule: Rule
    policies: list[Policy]


def rules_of_policies(policies: Iterable[Policy]) -> Mapping[str, StatedRule]:
    """Return every rule that policies state, by its id, in the order of the policies."""
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
    if rule.fails:
        yield f"- Without claimgate: {_lower_first_letter(MOMENTS[rule.fails])}"
    yield f"- Source: {' '.join(part for part in (rule.source, rule.function) if part)}"
    yield from (f"- Found by: {home}" for home in _locations_of_rule(entry, homes))
    if rule.issue_links_by_name:
        yield f"- Reported in: {links_to_issues(rule.issue_links_by_name)}"
    yield from (f"- {_text_about_policy_of_rule(policy, rule)}" for policy in entry.policies)
    yield ""
    for title, example in (("Bad", pair.bad), ("Good", pair.good)):
        if example is not None:
            yield from example_lines(title, example)


def _locations_of_rule(entry: StatedRule, homes: RuleLocator) -> Iterator[RuleLocation]:
    """Yield the function that finds objects which break a rule, or its validations in CEL."""
    yield from homes.find_in_checks(entry.rule)
    for policy in entry.policies:
        yield from homes.find_in_policy(entry.rule, policy)


def _lower_first_letter(title: str) -> str:
    """Return a title with a small first letter, as a part of a sentence."""
    return title[:1].lower() + title[1:]


def rule_address(rule: Rule) -> str:
    """Return the address of a rule below the folder of all pages."""
    return f"{rule.group}.md#{rule.id.replace('/', '')}"


def links_to_issues(reports: Mapping[str, str]) -> str:
    """Return links to issues by their short names."""
    return ", ".join(f"[{name}]({link})" for name, link in reports.items())


def _text_about_policy_of_rule(policy: Policy, rule: Rule) -> str:
    """Return a text with the policy of a rule, the actions of its bindings, and how to switch the rule off."""
    actions = sorted({str(action) for binding in policy.bindings for action in binding.actions})
    if rule.id not in policy.catalogue:
        return f"Policy `{policy.name}` ({', '.join(actions) or 'not bound'})"
    done = actions if rule.level == "deny" else [EFFECTS[rule.level].action]
    names = [binding.param_source.name for binding in policy.bindings if binding.param_source]
    off = "".join(f'; off with `"off": {rule.id}` in the ConfigMap `{name}`' for name in dict.fromkeys(names) if name)
    return f"Policy `{policy.name}` ({', '.join(done) or 'not bound'}){off}"


def example_lines(title: str, example: Example) -> Iterator[str]:
    """Yield an example with its object, its former state, and the message of a bad one."""
    yield from (f"{title}: {example.name}", "", "```yaml")
    if example.operation == "UPDATE" and example.old is not None:
        yield from ("# before", *_yaml(example.old), "---", "# after")
    elif example.operation != "CREATE":
        yield f"# {example.operation}"
    yield from (*_yaml(example.object), "```", "")
    if example.said:
        yield from ("```", *example.said.split("\n"), "```", "")


def _yaml(value: object) -> list[str]:
    return yamlfile.dump(value).rstrip("\n").split("\n")
