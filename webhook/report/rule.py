"""Describes rules, for formats that list rules, such as SARIF, and for links.

A finding without a rule has its policy as the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from webhook.policy.compiled import Policy
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision
from webhook.rules.pages import shipped_rule_ids
from webhook.rules.problem import Problem
from webhook.rules.rule import Rule as DeclaredRule
from webhook.rules.rule import page_address


class Rule(Struct, frozen=True, kw_only=True):
    """A rule as its author describes it.

    Attributes:
        id: stable between releases.
        docs: a link, or "".
        why: the reason for the rule, or "".
    """

    id: str
    policy: str
    description: str = ""
    why: str = ""
    severity: str = ""
    category: str = ""
    docs: str = ""


@cache
def _ids_of_pages() -> frozenset[str]:
    """Return the ids of the shipped rules. Rules that a site declares for its own policies have no published page."""
    return frozenset(shipped_rule_ids())


class RuleName(NamedTuple):
    """The values by which a user filters findings. The severity may be ""."""

    rule: str
    policy: str
    severity: str


Rules: TypeAlias = Mapping[str, Rule]
"""All rules of a run by id. A policy as a whole is also a rule, with its name as the id."""


class RulesOfPolicies(Mapping[str, Rule]):
    """The rules of policies, sorted by policy: the rules of each policy, and the policy itself.

    The record of a check's rule is read when the rule is looked up.
    """

    def __init__(self, policies: PolicySet, address: str = "", others: Iterable[DeclaredRule] = ()) -> None:
        """`address` is where the documentation is published, for links. `others` has rules that no policy has."""
        self._address = address
        self._policies: dict[str, tuple[Policy, str]] = {}
        self._named: dict[str, DeclaredRule] = {}
        self._rules = {each.id: self._rule_without_policy(each) for each in others}
        for policy in policies.policies:
            described = " ".join(policy.annotations.get("kubernetes.io/description", "").split())
            self._policies[policy.name] = policy, described
            for rule in policy.catalogue:
                self._policies.setdefault(rule, (policy, ""))
            for named in policy.named:
                self._policies.setdefault(named.id, (policy, named.title))
                self._named.setdefault(named.id, named)

    def __getitem__(self, rule: str) -> Rule:
        description = self._rules.get(rule)
        if description is None:
            description = self._rules[rule] = self._create_rule(rule, *self._policies[rule])
        return description

    def _rule_without_policy(self, declared: DeclaredRule) -> Rule:
        return Rule(
            id=declared.id,
            policy=declared.group,
            description=declared.title,
            why=declared.why,
            severity=declared.severity,
            category=declared.group,
            docs=page_address(self._address, declared.id) if self._address else declared.source,
        )

    def _create_rule(self, name: str, policy: Policy, described: str) -> Rule:
        checked = policy.catalogue.get(name)
        declared = checked or self._named.get(name)
        has_page = self._address and (checked is not None or (declared is not None and name in _ids_of_pages()))
        return Rule(
            id=name,
            policy=policy.name,
            description=described if declared is None else declared.title,
            why="" if declared is None else declared.why,
            severity=policy.severity_of_rule(name),
            category=policy.category,
            docs=page_address(self._address, name) if has_page else policy.docs,
        )

    def __iter__(self) -> Iterator[str]:
        return iter({**self._policies, **self._rules})

    def __len__(self) -> int:
        return len({**self._policies, **self._rules})


def rule_of(decision: Decision, rules: Rules, problem: Problem | None = None) -> Rule:
    """Return the rule of a decision. An unknown rule has the fields of the decision."""
    name = problem.code if problem else decision.rule or decision.policy
    description = rules.get(name)
    if description is not None:
        return description
    return Rule(id=name, policy=decision.policy, severity=decision.severity, category=decision.category)


def rule_name(rule: Rule, decision: Decision) -> RuleName:
    """Return the filter values of a decision about a rule."""
    return RuleName(rule.id, decision.policy, rule.severity or decision.severity)
