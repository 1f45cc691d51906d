"""What is known of a rule before anything breaks it: for formats that list rules, such as SARIF, and for links.

Knows policies; knows no format. Today each policy is one rule, with its name as rule id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from webhook.decisions import Decision
from webhook.policy.policy_set import PolicySet


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule as its author describes it. `id` is stable; `docs` is a link, "" where the author gives none."""

    id: str
    policy: str
    description: str = ""
    severity: str = ""
    category: str = ""
    docs: str = ""


Rules: TypeAlias = Mapping[str, Rule]
"""Every rule of a run by its id."""


def rules(policies: PolicySet) -> Rules:
    """The rules of all policies, in the order of their names."""
    return {
        policy.name: Rule(
            id=policy.name,
            policy=policy.name,
            description=" ".join(policy.annotations.get("kubernetes.io/description", "").split()),
            severity=policy.severity,
            category=policy.category,
            docs=policy.docs,
        )
        for policy in policies.policies
    }


def rule_of(decision: Decision, rules: Rules) -> Rule:
    """The rule that a decision is about; what a server decided elsewhere has only what the decision says."""
    known = rules.get(decision.policy)
    if known is not None:
        return known
    return Rule(id=decision.policy, policy=decision.policy, severity=decision.severity, category=decision.category)
