"""The reference of all rules, as Markdown: what, why, who refuses, a bad and a good example, and how to switch it off.

Made of catalogues, policies and suites; docs/rules.md is that of the shipped ones, which a test holds to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from webhook import yamlfile
from webhook.policy.compiled import Policy
from webhook.problems.catalogue import Rule
from webhook.problems.moments import MOMENTS
from webhook.suites.examples import Example, Pair

_TITLE: Final = """\
# Rules

*Written by `claimgate policies rules`.*

Every rule has an id that stays: messages and reports name it. A rule of checks is switched off, or only warned of, by
its id in the params of its policy: `data.ignore`, `data.warn` or `data.deny` of the ConfigMap that the policy's binding
names, ids separated by spaces. A rule of a policy that is CEL alone is switched off by the policy's binding: its
`validationActions`, or a namespaceSelector that leaves namespaces out.
"""


@dataclass(frozen=True, slots=True)
class Stated:
    """A rule, and the policies that state it, the first of which says what the rule is about."""

    rule: Rule
    policies: list[Policy]


def stated(policies: Iterable[Policy]) -> Mapping[str, Stated]:
    """Every rule that policies state, by its id, in the order of the policies."""
    by_id: dict[str, Stated] = {}
    for policy in policies:
        for rule in (*policy.catalogue.values(), *policy.named):
            entry = by_id.setdefault(rule.id, Stated(rule, []))
            if policy not in entry.policies:
                entry.policies.append(policy)
    return by_id


def markdown(policies: Iterable[Policy], examples: Mapping[str, Pair]) -> str:
    """The whole page, groups in the order of the alphabet, rules in that of their importance."""
    groups: dict[str, list[Stated]] = {}
    for entry in stated(policies).values():
        groups.setdefault(entry.rule.group, []).append(entry)
    lines = [_TITLE, *_index(groups)]
    for group in sorted(groups):
        lines += [f"## {group}", ""]
        for entry in groups[group]:
            lines += _rule(entry, examples.get(entry.rule.id, Pair()))
    return "\n".join(lines)


def _index(groups: Mapping[str, list[Stated]]) -> Iterator[str]:
    for group in sorted(groups):
        yield f"- [{group}](#{group})"
        for entry in groups[group]:
            yield f"  - [{entry.rule.id}]({anchor(entry.rule)}): {entry.rule.title.rstrip('.')}"
    yield ""


def _rule(entry: Stated, pair: Pair) -> Iterator[str]:
    rule = entry.rule
    yield from (f"### {rule.id}", "", rule.title, "", rule.why, "")
    if rule.refused_by:
        yield f"- Refused by: {rule.refused_by}"
    if rule.fails:
        yield f"- Without claimgate: {_within(MOMENTS[rule.fails])}"
    yield f"- Source: {' '.join(part for part in (rule.source, rule.function) if part)}"
    if rule.reports:
        yield f"- Reported in: {links(rule.reports)}"
    yield from (f"- {_stated_by(policy, rule)}" for policy in entry.policies)
    yield ""
    for title, example in (("Bad", pair.bad), ("Good", pair.good)):
        if example is not None:
            yield from _example(title, example)


def _within(title: str) -> str:
    """A title as a part of a sentence."""
    return title[:1].lower() + title[1:]


def anchor(rule: Rule) -> str:
    """The address of a rule within the page."""
    return f"#{rule.id.replace('/', '')}"


def links(reports: Mapping[str, str]) -> str:
    """Issues by their short names, as links."""
    return ", ".join(f"[{name}]({link})" for name, link in reports.items())


def _stated_by(policy: Policy, rule: Rule) -> str:
    """The policy of a rule, what its bindings do, and how the rule is switched off there."""
    actions = sorted({str(action) for binding in policy.bindings for action in binding.actions})
    if rule.id not in policy.catalogue:
        return f"Policy `{policy.name}` ({', '.join(actions) or 'not bound'})"
    done = ["Warn"] if rule.level == "warn" else actions
    names = [binding.param_source.name for binding in policy.bindings if binding.param_source]
    off = "".join(f"; off with `ignore: {rule.id}` in the ConfigMap `{name}`" for name in dict.fromkeys(names) if name)
    return f"Policy `{policy.name}` ({', '.join(done) or 'not bound'}){off}"


def _example(title: str, example: Example) -> Iterator[str]:
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
