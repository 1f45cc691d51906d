"""Writes the section of each rule and each policy of a site's own folders, as `claimgate explain --policies` shows it.

A rule of rules.yaml has the section of a shipped rule. Another policy is explained by its description, its expressions,
its bindings, and the first denied and the first allowed case of its suites.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from webhook.policy.compiled import Policy
from webhook.policy.load import Options, load_policy_set
from webhook.suites.examples import Pair, examples, examples_of_policies
from webhook.suites.rule_homes import RuleLocator
from webhook.suites.rule_reference import example_lines, rule_section, rules_of_policies
from webhook.yamltext.input_files import path_as_shown

_DESCRIPTION: Final = "kubernetes.io/description"


def own_sections(folders: Iterable[Path], how: Options) -> Mapping[str, str]:
    """Return the sections by the ids of rules and the names of policies.

    Raises:
        PolicyError: every problem of the policies.
        InputError: a suite has mistakes.
    """
    places = list(folders)
    policies = load_policy_set(places, how).policies
    homes, of_rules, of_policies = RuleLocator(), examples(places, how), examples_of_policies(places, how)
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
    """Yield what a policy demands or changes."""
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
    """Return an expression or a message on one line."""
    return " ".join(text.split())
