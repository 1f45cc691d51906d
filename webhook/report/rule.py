"""Descriptions of rules, for formats that list rules, such as SARIF, and for links.

Knows policies; knows no format. What no policy names is said under the name of the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from webhook.policy.compiled import Policy
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision
from webhook.rules.problem import Problem
from webhook.rules.rule import page_address


class Rule(Struct, frozen=True, kw_only=True):
    """A rule as its author describes it. `id` is stable; `docs` is a link, "" if there is none."""

    id: str
    policy: str
    description: str = ""
    severity: str = ""
    category: str = ""
    docs: str = ""


class RuleName(NamedTuple):
    """The names by which a person selects results: the rule, its policy, and its severity or ""."""

    rule: str
    policy: str
    severity: str


Rules: TypeAlias = Mapping[str, Rule]
"""All rules of a run by id; a policy as a whole is a rule with the policy's name."""


def rules(policies: PolicySet, address: str = "") -> Rules:
    """Return the rules of all policies, in the order of their names: those that a policy names, and the policy itself.

    Args:
        policies: the policies.
        address: where the documentation is published; what shipped checks find links to its page there.
    """
    made: dict[str, Rule] = {}
    for policy in policies.policies:
        described = " ".join(policy.annotations.get("kubernetes.io/description", "").split())
        made[policy.name] = _create_report_rule(policy, policy.name, described)
        for rule in (*policy.catalogue.values(), *policy.named):
            described_rule = _create_report_rule(policy, rule.id, rule.title)
            if address and rule.id in policy.catalogue:
                described_rule = replace(described_rule, docs=page_address(address, rule.id))
            made.setdefault(rule.id, described_rule)
    return made


def _create_report_rule(policy: Policy, name: str, description: str) -> Rule:
    return Rule(
        id=name,
        policy=policy.name,
        description=description,
        severity=policy.severity_of_rule(name),
        category=policy.category,
        docs=policy.docs,
    )


def rule_of(decision: Decision, rules: Rules, problem: Problem | None = None) -> Rule:
    """Return the rule that a decision is about; for an unknown one, a rule with the decision's fields."""
    name = problem.code if problem else decision.rule or decision.policy
    known = rules.get(name)
    if known is not None:
        return known
    return Rule(id=name, policy=decision.policy, severity=decision.severity, category=decision.category)


def rule_name(rule: Rule, decision: Decision) -> RuleName:
    """Return the names for a decision about a rule."""
    return RuleName(rule.id, decision.policy, rule.severity or decision.severity)
